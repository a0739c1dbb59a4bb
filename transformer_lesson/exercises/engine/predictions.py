"""Predictions as a card: choose, commit, read what your choice means."""

from transformer_lesson.exercises.engine.progress import remember
from transformer_lesson.exercises.engine.question_bank import Option, Question
from transformer_lesson.exercises.engine.question_card import Card
from transformer_lesson.exercises.engine.reports import SIGNS, to_html

ASKS = ".jp-Cell:has(.lesson-prediction):not(:has(.lesson-decided))"
DECIDED = ".jp-Cell:has(.lesson-decided)"
FOLDED = ".jp-CodeCell:has(.jp-InputPlaceholder)"  # a cell whose code is hidden
EXPLAINS = ".jp-MarkdownCell:has(details.lesson-answer)"
SHUT_CELLS = f" + :is({FOLDED}, {EXPLAINS})"
ANSWER_CELLS = f" + :is(.jp-CodeCell:not(:has(.lesson-prediction)), {EXPLAINS})"
OUTPUTS = ", ".join(f"{ASKS}{SHUT_CELLS * n} > .jp-Cell-outputWrapper" for n in range(1, 9))
WHYS = ", ".join(f"{DECIDED}{ANSWER_CELLS * n} details.lesson-answer" for n in range(1, 9))
SHUT = f"""
{OUTPUTS} {{ display: none; }}
{ASKS} + {FOLDED}::after {{
    content: "Commit to a prediction, or open this cell, to see the answer.";
    padding-left: calc(var(--jp-cell-prompt-width) + 12px); color: var(--jp-ui-font-color2);
}}
@supports selector(::details-content) {{
    :is({WHYS})::details-content {{ content-visibility: visible; block-size: auto; }}
    :is({WHYS}) > summary {{ display: none; }}
}}
"""
"""JupyterLab opens the output of a cell that runs; an answer stays closed until somebody commits.

Its explanation, a Markdown cell with `<details class="lesson-answer">`, opens with it.
"""


class Prediction(Card):
    """One question whose answer opens when the learner commits to an option.

    Nothing is preselected. Committing locks the choice and shows what it means and what is right.
    Until then the outputs of the folded cells that follow stay closed.
    """

    _css = Card._css + SHUT

    def __init__(self, question: Question):
        self.question = question
        super().__init__([(question.name, question)], verb="Commit", tells=True)
        self.add_class("lesson-prediction")

    def ask(self, number: int, question: Question) -> str:
        return f"<strong>Predict.</strong> {to_html(question.text)}"

    def offer(self, option: Option) -> dict:
        explanation = f"{_verdict(option, f': {option.text}')}<br>{to_html(option.explanation)}"
        return {**super().offer(option), "right": option.right, "told": explanation}

    def take(self, number: int, chosen: Option) -> None:
        remember("predicted", self.question.name, {"chose": chosen.text, "right": chosen.right})

    def __repr__(self) -> str:
        return f"Predict {self.question.name}: {self.question.text}"

    def folded(self) -> str:
        """Return the question with options that open one by one, each with its explanation."""
        (options,) = self.options
        folds = "".join(
            f'<details class="lesson-option"><summary>{to_html(option.text)}</summary>'
            f"{_verdict(option, '.')} {to_html(option.explanation)}</details>"
            for option in options
        )
        return f"<p>{self.ask(0, self.question)}</p>{folds}"


def _verdict(option: Option, more: str) -> str:
    sign, color = SIGNS["passed" if option.right else "failed"]
    words = f"{'Right' if option.right else 'No'}{more}"
    return f'<b style="color: {color}">{sign}</b> <b>{to_html(words)}</b>'
