"""Saying in words which mistake an answer makes, or which two."""

import difflib
import re
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import NamedTuple

from transformer_lesson.exercises.engine.choosing import as_written
from transformer_lesson.exercises.engine.diagnosis import diagnose
from transformer_lesson.exercises.engine.specification import Exercise

CONTENT = files("transformer_lesson.exercises")  # what lessons say, beside the engine
IDLE = re.compile(r"\s*((\w+) = \2|None)")  # left of a mark that changes an argument, or calls


class Turn(NamedTuple):
    """A wrong turn in words: a noun phrase, and what is wrong, what it does, and a nudge."""

    name: str
    why: str


class Explanation(NamedTuple):
    """What is wrong with an answer.

    Args:
        mistake: the mistake's name, or both names.
        text: it in sentences.
        lines: of our function, first those that do what the answer does, after a minus, then
            those that do it right, after a plus; empty where it was told by an error alone.
    """

    mistake: str
    text: str
    lines: str = ""


@cache
def words(name: str) -> Mapping[str, Turn]:
    """Return the words for an exercise's wrong turns, by the names that stand at its marks."""
    return MappingProxyType({turn: Turn(**said) for turn, said in _said().get(name, {}).items()})


@cache
def _said() -> dict[str, dict]:
    texts = [file.read_text(encoding="utf-8") for file in CONTENT.joinpath("words").iterdir()]
    return {name: said for text in texts for name, said in tomllib.loads(text).items()}


@cache
def _known_errors() -> list[dict[str, str]]:
    text = CONTENT.joinpath("errors.toml").read_text(encoding="utf-8")
    return list(tomllib.loads(text).values())


def explain_error(failure: str) -> Explanation | None:
    """Return what usually lies behind an error, by its text."""
    for known in _known_errors():
        if re.search(known["says"], failure):
            return Explanation(known["name"], _one(Turn(known["name"], known["why"])))
    return None


def explain(exercise: Exercise, answer: Callable) -> Explanation | None:
    """Return which known mistakes give what the answer gives, if there are any."""
    known, found = words(exercise.name), diagnose(exercise, answer)[:2]
    if not found:
        return None
    fitting = [[known[turn] for turn in taken] for taken in found]
    names = [" and ".join(turn.name for turn in turns) for turns in fitting]
    said = [_one(*turns) if len(turns) == 1 else _two(*turns) for turns in fitting]
    either = "Two explanations fit, and the draws cannot tell which is yours.\n" * (len(said) > 1)
    lines = changed_lines(exercise.marked, frozenset(found[0]))
    return Explanation(" or ".join(names), either + "\nOr: ".join(said), lines)


def changed_lines(marked: Callable, taken: frozenset[str]) -> str:
    """Return the lines that make a variant wrong, after a minus; after a plus the right ones."""
    wrong, right = (as_written(marked, turns).splitlines() for turns in (taken, frozenset()))
    changes = [line for line in difflib.ndiff(wrong, right) if line.startswith(("- ", "+ "))]
    told = [line[:2] + line[2:].strip() for line in changes if not IDLE.fullmatch(line[2:])]
    return "\n".join(told)


def _one(turn: Turn) -> str:
    return f"This comes from {turn.name}. {turn.why}"


def _two(first: Turn, second: Turn) -> str:
    return (
        f"Two things at once: {first.name}, and {second.name}.\n"
        f"The first: {first.why}\nThe second: {second.why}"
    )
