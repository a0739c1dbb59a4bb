"""The words for a mistake: its name, and why it is wrong."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import NamedTuple

from transformer_lesson.course import files_of_lessons

CONTENT = files("transformer_lesson.exercises")  # texts outside the engine


class Turn(NamedTuple):
    """A wrong turn in words.

    Args:
        name: a noun phrase.
        why: what is wrong, what it does, and a nudge.
    """

    name: str
    why: str


@cache
def words(name: str) -> Mapping[str, Turn]:
    """Return the words for an exercise's wrong turns, by their names at the marks."""
    return MappingProxyType(
        {turn: Turn(**wording) for turn, wording in _all_words().get(name, {}).items()}
    )


@cache
def _all_words() -> dict[str, dict]:
    texts = [file.read_text("utf-8") for file in files_of_lessons("words.toml").values()]
    return {name: wording for text in texts for name, wording in tomllib.loads(text).items()}


class Explanation(NamedTuple):
    """What is wrong with an answer.

    Args:
        mistake: the mistake's name, or both names.
        text: the explanation in sentences.
        lines: of our function: those that do what the answer does, prefixed by a minus, and the
            right ones, by a plus; "" if no turn of the exercise itself fits.
    """

    mistake: str
    text: str
    lines: str = ""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, such as "1 call" or "2 calls"."""
    return f"{number} {noun}{'s' * (number != 1)}"


def explanation(turn: Turn) -> Explanation:
    """Return the explanation of an answer with one mistake."""
    return Explanation(turn.name, f"This comes from {turn.name}. {turn.why}")
