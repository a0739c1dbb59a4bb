"""The inventory as a widget: one question at a time, and no verdict before the last one."""

import warnings

import ipywidgets
from ipywidgets import HTML, Button, HBox, Layout, RadioButtons

from transformer_lesson.exercises.engine.inventory import Choice, Item, asked, given, share
from transformer_lesson.exercises.engine.predictions import STYLE
from transformer_lesson.exercises.engine.progress import progress_file, read_progress, remember
from transformer_lesson.exercises.engine.reports import to_html
from transformer_lesson.lessons import LESSONS


class Inventory(ipywidgets.VBox):
    """The questions of the inventory that have no answer yet, one after another.

    Each answer is kept at once and is final, so that a cell that is run again goes on where it
    stopped. After the last one, "before" says how many were right and where to learn the others,
    and never which option it is: the same questions come again. "after" says everything.

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
        self.answers = given(predicted, when)
        self.text, self.told = HTML(), HTML()
        self.options = RadioButtons(layout=Layout(width="auto"))
        self.next = Button(description="Next", tooltip="Keep this answer, and go on")
        self.unknown = Button(description="I don't know", tooltip="Go on without an answer")
        self.next.on_click(lambda _: self._take(self.options.index))
        self.unknown.on_click(lambda _: self._take(len(self.item.options)))
        super().__init__([self.text, self.options, HBox([self.next, self.unknown]), self.told])
        self.add_class("lesson-inventory")
        self._show()

    @property
    def item(self) -> Item | None:
        """The first question without an answer, or `None`."""
        return next((item for item in self.items if item.id not in self.answers), None)

    def _take(self, index: int | None) -> None:
        if index is None:
            self.told.value = _status("Choose an answer first, or say that you don't know.")
            return
        chosen = (*self.item.options, None)[index]
        name, self.answers[self.item.id] = f"{self.when}.{self.item.id}", chosen
        with warnings.catch_warnings(record=True) as told:  # no cell runs that could show them
            warnings.simplefilter("always")
            remember("predicted", name, {"chose": chosen.text if chosen else None})
        self.told.value = _status("".join(f"<p>{to_html(str(one.message))}</p>" for one in told))
        self._show()

    def _show(self) -> None:
        if self.item is None:
            self.children = [HTML(STYLE + _status(self._end()))]
            return
        number = f"Question {len(self.answers) + 1} of {len(self.items)}."
        self.text.value = STYLE + _status(f"<b>{number}</b> {to_html(self.item.text)}")
        labels = [option.text.replace("`", "") for option in self.item.options]
        self.options.options = labels
        self.options.index = None  # new options choose the first of them

    def _end(self) -> str:
        right, of = share(self.answers, self.items)
        head = f"<b>{right} of {of} right.</b>"
        missed = [item for item in self.items if not _is_right(self.answers[item.id])]
        if self.when == "before":
            if missed:
                head += " The others are answered here, and at the end you are asked again:"
            return f"<p>{head}</p><ul>{''.join(map(_where, missed))}</ul>"
        head += " Run <code>gain()</code> to see it beside what you knew before."
        told = "".join(_correction(item, self.answers[item.id]) for item in missed)
        return f"<p>{head}</p><ol>{told}</ol>"

    def __repr__(self) -> str:
        return f"What you know, {self.when} the course: {len(self.items)} questions"

    def _repr_mimebundle_(self, **kwargs) -> dict:
        """The widget, and the questions without answers for viewers without a kernel."""
        bundle = super()._repr_mimebundle_(**kwargs)
        listed = "".join(_listed(item) for item in self.items)
        folded = f"<details><summary>{self!r}</summary><ol>{listed}</ol></details>"
        return {**bundle, "text/plain": repr(self), "text/markdown": folded}


def _is_right(choice: Choice | None) -> bool:
    return choice is not None and choice.right


def _place(choice: Choice) -> str:
    title = to_html(LESSONS[choice.lesson].title)
    return f"lesson {choice.lesson}, {title}: <i>{to_html(choice.section)}</i>"


def _mended(item: Item) -> Choice:
    """The wrong option that says where the question as a whole is answered: the first one."""
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


def _listed(item: Item) -> str:
    options = "".join(f"<li>{to_html(option.text)}</li>" for option in item.options)
    return f"<li>{to_html(item.text)}<ul>{options}</ul></li>"


def _status(content: str) -> str:
    return f'<div role="status">{content}</div>'
