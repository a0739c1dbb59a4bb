"""The questions asked before a reveal, stored as data in each lesson's `questions.toml`."""

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from transformer_lesson.course import files_of_lessons
from transformer_lesson.exercises.engine.misuse import Misuse


@dataclass(frozen=True)
class Option:
    """One answer to choose from, and its explanation."""

    text: str
    explanation: str
    right: bool = False


@dataclass(frozen=True)
class Question:
    """A question with options, exactly one of them right.

    Args:
        name: notebook and question, such as "03.two_nouns", or "01_byte_pairs.merges" if it is
            asked behind the lesson.
        text: the question; code is between backticks, as in the options.
        options: in the order shown.
    """

    name: str
    text: str
    options: tuple[Option, ...]

    @property
    def answer(self) -> Option:
        """The right option."""
        return next(option for option in self.options if option.right)


@cache
def load_questions() -> Mapping[str, Question]:
    """Return every question by name, lessons in order."""
    questions = {}
    for lesson, file in files_of_lessons("questions.toml").items():
        for entry in tomllib.loads(file.read_text(encoding="utf-8"))["question"]:
            behind = f"_{entry['deeper']}" if "deeper" in entry else ""
            name = f"{lesson}{behind}.{entry['id']}"
            options = tuple(Option(**option) for option in entry["option"])
            questions[name] = Question(name, entry["text"], options)
    return MappingProxyType(questions)


def find_question(name: str) -> Question:
    """Return the question of that name.

    Raises:
        ValueError: there is none; the message suggests close names.
    """
    questions = load_questions()
    if name in questions:
        return questions[name]
    close = difflib.get_close_matches(str(name), questions)
    hint = f"Did you mean {' or '.join(close)}?" if close else "Its cell names it."
    raise Misuse(f"There is no question {name!r}. {hint}")
