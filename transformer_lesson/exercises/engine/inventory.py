"""The inventory: thirty questions whose wrong options are the course's most common mistakes.

Ten are asked before the course, all thirty after it. Answers are stored in the progress file beside
the predictions, under names such as "before.letters".
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from transformer_lesson.exercises.engine.misuse import Misuse

WHEN = ("before", "after")


@dataclass(frozen=True)
class Choice:
    """One answer to choose from.

    Args:
        text: the answer; code is between backticks.
        says: why it is right, or what is wrong with it.
        right: whether it is the right one.
        lesson, section: where to learn better after a wrong one.
        turn: the exercise and the wrong turn that make the same mistake, "" if none does.
    """

    text: str
    says: str
    right: bool = False
    lesson: str = ""
    section: str = ""
    turn: str = ""


@dataclass(frozen=True)
class Item:
    """A question with four options, exactly one of them right."""

    id: str
    topic: str
    text: str
    options: tuple[Choice, ...]
    before: bool = False

    @property
    def answer(self) -> Choice:
        """The right option."""
        return next(option for option in self.options if option.right)


class Share(NamedTuple):
    """A number of right answers and the number of all answers."""

    right: int
    asked: int


@cache
def load_items() -> tuple[Item, ...]:
    """Return all thirty questions, topic by topic."""
    file = resources.files("transformer_lesson.exercises") / "inventory.toml"
    entries = tomllib.loads(file.read_text(encoding="utf-8"))["item"]
    return tuple(
        Item(**{key: value for key, value in entry.items() if key != "option"}, options=options)
        for entry in entries
        for options in [tuple(Choice(**option) for option in entry["option"])]
    )


def asked(when: str) -> tuple[Item, ...]:
    """Return the questions asked before or after the course.

    Raises:
        ValueError: `when` is neither "before" nor "after".
    """
    if when not in WHEN:
        raise Misuse(f'when is {when!r}, but it is "before" the course or "after" it.')
    return tuple(item for item in load_items() if item.before or when == "after")


def given(predicted: Mapping[str, Any], when: str) -> dict[str, Choice | None]:
    """Return the answers by question; `None` is "I don't know".

    Args:
        predicted: the "predicted" section of a progress file; entries that are not answers to the
            current questions are ignored.
        when: "before" or "after".
    """
    answers = {}
    for item in asked(when):
        entry = predicted.get(f"{when}.{item.id}")
        if isinstance(entry, dict) and "chose" in entry:
            options: dict[str | None, Choice | None] = {
                choice.text: choice for choice in item.options
            }
            options[None] = None
            if isinstance(entry["chose"], str | None) and entry["chose"] in options:
                answers[item.id] = options[entry["chose"]]
    return answers


def share(answers: Mapping[str, Choice | None], items: tuple[Item, ...]) -> Share:
    """Return how many of these questions were answered, and how many of them right."""
    chosen = [answers[item.id] for item in items if item.id in answers]
    return Share(sum(choice is not None and choice.right for choice in chosen), len(chosen))


def by_topic(predicted: Mapping[str, Any]) -> dict[str, tuple[Share, Share]]:
    """Return the shares before and after, for each topic and for the ten questions asked twice."""
    before, after = (given(predicted, when) for when in WHEN)
    rows = {}
    for topic in dict.fromkeys(item.topic for item in load_items()):
        items = tuple(item for item in load_items() if item.topic == topic)
        rows[topic] = share(before, items), share(after, items)
    twice = asked("before")
    return rows | {"the ten asked twice": (share(before, twice), share(after, twice))}
