"""The inventory as a card: one question at a time, and no feedback before the last one."""

import warnings

from transformer_lesson.course import LESSONS
from transformer_lesson.exercises.engine.inventory import Choice, Item, asked, given, share
from transformer_lesson.exercises.engine.progress import (
    learners_seed,
    progress_file,
    read_progress,
    remember,
)
from transformer_lesson.exercises.engine.question_card import Card, shuffled
from transformer_lesson.exercises.engine.reports import to_html


class Inventory(Card):
    """The inventory's unanswered questions, one after another.

    Each answer is stored at once and is final, so a cell that is run again continues where it
    stopped. After the last one, "before" says how many were right and where to learn the rest, but
    not the right options, because the same questions come again. "after" says everything.

    Args:
        when: "before" or "after" the course.

    Raises:
        ValueError: `when` is neither.
    """

    def __init__(self, when: str):
        self.when, self.items = when, asked(when)
        try:
            predicted = read_progress(progress_file())["predicted"]
        except OSError as error:
            warnings.warn(f"Progress could not be read: {error}", stacklevel=3)
            predicted = {}
        self.given = given(predicted, when)
        self.left = [item for item in self.items if item.id not in self.given]
        named = [(f"{when}.{item.id}", item) for item in self.left]
        super().__init__(named, verb="Next", tells=False)
        self.add_class("lesson-inventory")
        self._close()

    def ask(self, number: int, question: Item) -> str:
        number += len(self.items) - len(self.left) + 1
        return f"<b>Question {number} of {len(self.items)}.</b> {to_html(question.text)}"

    def take(self, number: int, chosen: Choice | None) -> None:
        item = self.left[number]
        self.given[item.id] = chosen
        remember("predicted", f"{self.when}.{item.id}", {"chose": chosen.text if chosen else None})
        self._close()

    def _close(self) -> None:
        """Show the result once all questions are answered."""
        if len(self.given) == len(self.items):
            self.end = self._end()

    def _end(self) -> str:
        right, total = share(self.given, self.items)
        head = f"<b>{right} of {total} right.</b>"
        missed = [item for item in self.items if not _is_right(self.given[item.id])]
        if self.when == "before":
            if missed:
                head += " The others are answered here, and at the end you are asked again:"
            return f"<p>{head}</p><ul>{''.join(map(_where, missed))}</ul>"
        head += " Run <code>gain()</code> to see it beside what you knew before."
        corrections = "".join(_correction(item, self.given[item.id]) for item in missed)
        return f"<p>{head}</p><ol>{corrections}</ol>"

    def __repr__(self) -> str:
        return f"What you know, {self.when} the course: {len(self.items)} questions"

    def folded(self) -> str:
        """Return the questions without answers."""
        listed = "".join(_listed(item, self.when) for item in self.items)
        return f"<details><summary>{self!r}</summary><ol>{listed}</ol></details>"


def _is_right(choice: Choice | None) -> bool:
    return choice is not None and choice.right


def _place(choice: Choice) -> str:
    title = to_html(LESSONS[choice.lesson].title)
    return f"lesson {choice.lesson}, {title}: <i>{to_html(choice.section)}</i>"


def _mended(item: Item) -> Choice:
    """Return the first wrong option, which says where the question as a whole is answered."""
    return next(option for option in item.options if not option.right)


def _where(item: Item) -> str:
    return f"<li>{to_html(item.topic)}: {_place(_mended(item))}</li>"


def _correction(item: Item, choice: Choice | None) -> str:
    lines = [f"<b>{to_html(item.text)}</b>"]
    if choice:
        lines.append(f"✗ <i>{to_html(choice.text)}</i>: {to_html(choice.says)}")
    lines.append(f"✓ <i>{to_html(item.answer.text)}</i>: {to_html(item.answer.says)}")
    lines.append(f"→ {_place(choice or _mended(item))}")
    return f"<li>{'<br>'.join(lines)}</li>"


def _listed(item: Item, when: str) -> str:
    ordered = shuffled(item.options, f"{when}.{item.id}", learners_seed())
    options = "".join(f"<li>{to_html(option.text)}</li>" for option in ordered)
    return f"<li>{to_html(item.text)}<ul>{options}</ul></li>"
