"""Saying in words which mistake an answer makes, or which two."""

import tomllib
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from transformer_lesson.exercises.diagnosis import diagnose
from transformer_lesson.exercises.recognition import recognize
from transformer_lesson.exercises.specification import Exercise


class Turn(NamedTuple):
    """A wrong turn in words: a noun phrase, and what is wrong, what it does, and a nudge."""

    name: str
    why: str


class Explanation(NamedTuple):
    """What is wrong with an answer: the mistake's name, or both names, and it in sentences."""

    mistake: str
    text: str


@cache
def words(name: str) -> dict[str, Turn]:
    """Return the words for an exercise's wrong turns, by the names that stand at its marks."""
    for file in files(__package__).joinpath("words").iterdir():
        of_lesson = tomllib.loads(file.read_text(encoding="utf-8"))
        if name in of_lesson:
            return {turn: Turn(**said) for turn, said in of_lesson[name].items()}
    return {}


def explain(exercise: Exercise, answer: Callable) -> Explanation | None:
    """Return which known mistakes give what the answer gives, if there are any."""
    if exercise.marked is None:
        known = recognize(exercise, answer)
        return known and Explanation(known.name, _one(Turn(known.name, known.explanation)))
    known = words(exercise.name)
    found = [[known[turn] for turn in taken] for taken in diagnose(exercise, answer)]
    if not found:
        return None
    names = [" and ".join(turn.name for turn in turns) for turns in found[:2]]
    said = [_one(*turns) if len(turns) == 1 else _two(*turns) for turns in found[:2]]
    either = "Two explanations fit, and the draws cannot tell which is yours.\n" * (len(said) > 1)
    return Explanation(" or ".join(names), either + "\nOr: ".join(said))


def _one(turn: Turn) -> str:
    return f"This is what {turn.name} gives. {turn.why}"


def _two(first: Turn, second: Turn) -> str:
    return (
        f"Two things at once: {first.name}, and {second.name}.\n"
        f"The first: {first.why}\nThe second: {second.why}"
    )
