"""Questions as a card: a widget whose front end, `card.js`, asks and answers in the page.

The page has all that there is to say about an option, so it answers at once, also while a cell
runs. The kernel hears of an answer when it is free, and keeps it.
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
"""What stands for "I don't know" where the others have their place among the options."""


def shuffled(options: tuple, name: str, seed: int) -> tuple:
    """Return a question's options in the order that follows from its name and a learner's seed."""
    chance = random.Random(f"{seed} {name}")  # text gives the same order everywhere
    return tuple(chance.sample(options, len(options)))


class Card(anywidget.AnyWidget):
    """Questions that are asked one after the other; each answer is final.

    A subclass says how a question and an option look in the page, and what is kept of an answer.

    Options are shuffled for each learner in another way: no place gives the right one away.

    Args:
        asked: the questions, each with a name that no other has.
        verb: what the button says that takes the answer.
        tells: whether the page says what an answer means; then there is one question.
    """

    _esm = (HERE / "card.js").read_text(encoding="utf-8")
    _css = (HERE / "card.css").read_text(encoding="utf-8")
    verb = traitlets.Unicode().tag(sync=True)
    tells = traitlets.Bool().tag(sync=True)
    questions = traitlets.List().tag(sync=True)
    answers = traitlets.List(traitlets.Int()).tag(sync=True)
    note = traitlets.Unicode().tag(sync=True)
    end = traitlets.Unicode().tag(sync=True)

    def __init__(self, asked: Sequence[tuple[str, Question | Item]], verb: str, tells: bool):
        seed = learners_seed()
        self.options = [shuffled(question.options, name, seed) for name, question in asked]
        questions = [
            {"text": self.ask(number, question), "options": list(map(self.offer, options))}
            for number, ((_, question), options) in enumerate(zip(asked, self.options, strict=True))
        ]
        super().__init__(questions=questions, verb=verb, tells=tells)

    def ask(self, number: int, question: Question | Item) -> str:
        """Return a question as HTML; the first one has the number 0."""
        raise NotImplementedError

    def offer(self, option: Option | Choice) -> dict:
        """Return what the page needs of an option."""
        return {"text": to_html(option.text)}

    def take(self, number: int, chosen: Option | Choice | None) -> None:
        """Keep the answer to a question; `None` is "I don't know"."""
        raise NotImplementedError

    @traitlets.observe("answers")
    def _keep(self, change) -> None:
        with warnings.catch_warnings(record=True) as told:  # no cell runs that could show them
            warnings.simplefilter("always")
            for number in range(len(change.old), len(change.new)):
                place = change.new[number]
                self.take(number, None if place == UNKNOWN else self.options[number][place])
        self.note = "".join(f"<p>{to_html(str(one.message))}</p>" for one in told)

    def _repr_mimebundle_(self, **kwargs) -> tuple[dict, dict]:
        """The widget, and its questions for viewers without a kernel."""
        data, metadata = super()._repr_mimebundle_(**kwargs)
        return {**data, "text/markdown": self.folded()}, metadata

    def folded(self) -> str:
        """Return the questions as HTML that works without a kernel and gives nothing away."""
        raise NotImplementedError
