"""What you know now: thirty questions whose wrong options are the course's best-known mistakes.

Ten of them are asked before the course, all of them after it. Answers are kept in the progress
file beside the predictions, under names such as "before.letters".
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
        text: the answer. Between backticks stands code, here as elsewhere.
        says: why it is right, or what is wrong with it.
        right: whether it is the right one.
        lesson, section: where a wrong one is mended.
        turn: the exercise and the wrong turn that is the same mistake, "" if there is none.
    """

    text: str
    says: str
    right: bool = False
    lesson: str = ""
    section: str = ""
    turn: str = ""


@dataclass(frozen=True)
class Item:
    """A question of the inventory with four options, of which exactly one is right."""

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
    """How many answers were right, of how many."""

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
    """Return the questions that are asked before the course, or after it.

    Raises:
        ValueError: `when` is neither "before" nor "after".
    """
    if when not in WHEN:
        raise Misuse(f'when is {when!r}, but it is "before" the course or "after" it.')
    return tuple(item for item in load_items() if item.before or when == "after")


def given(predicted: Mapping[str, Any], when: str) -> dict[str, Choice | None]:
    """Return what was answered, by question; `None` stands for "I don't know".

    Args:
        predicted: that section of a progress file, whatever is in it: what is no answer to a
            question, or one to an earlier wording, is left out.
        when: "before" or "after".
    """
    found = {}
    for item in asked(when):
        entry = predicted.get(f"{when}.{item.id}")
        if isinstance(entry, dict) and "chose" in entry:
            options: dict[str | None, Choice | None] = {one.text: one for one in item.options}
            options[None] = None
            if isinstance(entry["chose"], str | None) and entry["chose"] in options:
                found[item.id] = options[entry["chose"]]
    return found


def share(answers: Mapping[str, Choice | None], items: tuple[Item, ...]) -> Share:
    """Return how many of these questions were answered right, of those that were answered."""
    chosen = [answers[item.id] for item in items if item.id in answers]
    return Share(sum(choice is not None and choice.right for choice in chosen), len(chosen))


def by_topic(predicted: Mapping[str, Any]) -> dict[str, tuple[Share, Share]]:
    """Return for each topic, and for the ten questions asked twice, the shares before and after."""
    before, after = (given(predicted, when) for when in WHEN)
    rows = {}
    for topic in dict.fromkeys(item.topic for item in load_items()):
        items = tuple(item for item in load_items() if item.topic == topic)
        rows[topic] = share(before, items), share(after, items)
    twice = asked("before")
    return rows | {"the ten asked twice": (share(before, twice), share(after, twice))}
