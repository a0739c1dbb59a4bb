"""What there is to say about a mistake: a name, and why it is one."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import NamedTuple

from transformer_lesson.course import files_of_lessons

CONTENT = files("transformer_lesson.exercises")  # what lessons say, beside the engine


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
    """Return the words for an exercise's wrong turns, by the names that stand at its marks."""
    return MappingProxyType({turn: Turn(**said) for turn, said in _said().get(name, {}).items()})


@cache
def _said() -> dict[str, dict]:
    texts = [file.read_text("utf-8") for file in files_of_lessons("words.toml").values()]
    return {name: said for text in texts for name, said in tomllib.loads(text).items()}


class Explanation(NamedTuple):
    """What is wrong with an answer.

    Args:
        mistake: the mistake's name, or both names.
        text: it in sentences.
        lines: of our function, first those that do what the answer does, after a minus, then
            those that do it right, after a plus; empty where no turn of the exercise's own fits.
    """

    mistake: str
    text: str
    lines: str = ""


def explanation(turn: Turn) -> Explanation:
    """Return one mistake as what is wrong with an answer."""
    return Explanation(turn.name, f"This comes from {turn.name}. {turn.why}")
