"""Questions as a card: a widget whose front end, `question_card.js`, asks and answers in the page.

The page has every option's explanation, so it answers at once, even while a cell runs. The kernel
stores an answer when it is free.
"""

import random
import warnings
from collections.abc import Sequence
from importlib import resources

import anywidget
import traitlets

from transformer_lesson.exercises.engine.inventory import Choice, Item
from transformer_lesson.exercises.engine.progress import learners_seed
from transformer_lesson.exercises.engine.question_bank import Option, Question
from transformer_lesson.exercises.engine.reports import to_html

HERE = resources.files("transformer_lesson.exercises.engine")
UNKNOWN = -1
"""Stands for "I don't know" where other answers have an option's index."""


def shuffled(options: tuple, name: str, seed: int) -> tuple:
    """Return a question's options, shuffled by its name and a learner's seed."""
    chance = random.Random(f"{seed} {name}")  # a string seeds alike everywhere
    return tuple(chance.sample(options, len(options)))


class Card(anywidget.AnyWidget):
    """Questions asked one after another; each answer is final.

    A subclass defines how questions and options look and how answers are stored.

    Options are shuffled for each learner, so no position gives the right one away.

    Args:
        asked: the questions, with unique names.
        verb: the label of the button that commits.
        tells: whether the page explains an answer; then there is one question.
    """

    _esm = (HERE / "question_card.js").read_text(encoding="utf-8")
    _css = (HERE / "question_card.css").read_text(encoding="utf-8")
    verb = traitlets.Unicode().tag(sync=True)
    tells = traitlets.Bool().tag(sync=True)
    questions = traitlets.List().tag(sync=True)
    answers = traitlets.List(traitlets.Int()).tag(sync=True)
    note = traitlets.Unicode().tag(sync=True)
    end = traitlets.Unicode().tag(sync=True)

    def __init__(self, entries: Sequence[tuple[str, Question | Item]], verb: str, tells: bool):
        seed = learners_seed()
        self.options = [shuffled(question.options, name, seed) for name, question in entries]
        questions = [
            {"text": self.ask(number, question), "options": list(map(self.offer, options))}
            for number, ((_, question), options) in enumerate(
                zip(entries, self.options, strict=True)
            )
        ]
        super().__init__(questions=questions, verb=verb, tells=tells)

    def ask(self, number: int, question: Question | Item) -> str:
        """Return a question as HTML; numbers start at 0."""
        raise NotImplementedError

    def offer(self, option: Option | Choice) -> dict:
        """Return what the page needs to know about an option."""
        return {"text": to_html(option.text)}

    def take(self, number: int, chosen: Option | Choice | None) -> None:
        """Store the answer to a question; `None` is "I don't know"."""
        raise NotImplementedError

    @traitlets.observe("answers")
    def _keep(self, change) -> None:
        with warnings.catch_warnings(record=True) as warned:  # no cell is running to show them
            warnings.simplefilter("always")
            for number in range(len(change.old), len(change.new)):
                place = change.new[number]
                self.take(number, None if place == UNKNOWN else self.options[number][place])
        self.note = "".join(f"<p>{to_html(str(warning.message))}</p>" for warning in warned)

    def _repr_mimebundle_(self, **kwargs) -> tuple[dict, dict]:
        """The widget, plus its questions for viewers without a kernel."""
        data, metadata = super()._repr_mimebundle_(**kwargs)
        return {**data, "text/markdown": self.folded()}, metadata

    def folded(self) -> str:
        """Return the questions as HTML that works without a kernel and gives nothing away."""
        raise NotImplementedError
