"""Asking the learner to predict, as a widget: choose, commit, read what your choice means."""

import warnings

import ipywidgets
from ipywidgets import HTML, Button, Layout, RadioButtons

from transformer_lesson.exercises.engine.progress import remember
from transformer_lesson.exercises.engine.question_bank import Option, Question
from transformer_lesson.exercises.engine.reports import to_html

STYLE = """<style>
:is(.lesson-prediction, .lesson-inventory) .widget-radio-box { width: 100%; max-width: none; }
:is(.lesson-prediction, .lesson-inventory) .widget-radio-box label {
    display: flex; flex-direction: row-reverse; justify-content: flex-end;
    height: auto; white-space: normal;
}
:is(.lesson-prediction, .lesson-inventory) .widget-html-content {
    line-height: 1.4; white-space: normal;
}
</style>"""

ASKS = ".jp-Cell:has(.lesson-undecided)"
DECIDED = ".jp-Cell:has(.lesson-prediction:not(.lesson-undecided))"
FOLDED = ".jp-CodeCell:has(.jp-InputPlaceholder)"  # a cell whose code is hidden
EXPLAINS = ".jp-MarkdownCell:has(details.lesson-answer)"
SHUT_CELLS = f" + :is({FOLDED}, {EXPLAINS})"
ANSWER_CELLS = f" + :is(.jp-CodeCell:not(:has(.lesson-prediction)), {EXPLAINS})"
OUTPUTS = ", ".join(f"{ASKS}{SHUT_CELLS * n} > .jp-Cell-outputWrapper" for n in range(1, 9))
WHYS = ", ".join(f"{DECIDED}{ANSWER_CELLS * n} details.lesson-answer" for n in range(1, 9))
SHUT = f"""<style>
{OUTPUTS} {{ display: none; }}
{ASKS} + {FOLDED}::after {{
    content: "Commit to a prediction, or open this cell, to see the answer.";
    padding-left: calc(var(--jp-cell-prompt-width) + 12px); color: var(--jp-ui-font-color2);
}}
@supports selector(::details-content) {{
    :is({WHYS})::details-content {{ content-visibility: visible; block-size: auto; }}
    :is({WHYS}) > summary {{ display: none; }}
}}
</style>"""
"""JupyterLab opens the output of a cell that runs; an answer stays shut until somebody commits.

What explains it, a Markdown cell `<details class="lesson-answer">`, opens with it.
"""


class Prediction(ipywidgets.VBox):
    """One question with radio buttons and a button that commits to the choice.

    Nothing is chosen at first. Committing locks the choice and shows, below, what the choice
    would mean and what is right. Until then the outputs of the folded cells behind it stay shut.
    """

    def __init__(self, question: Question):
        self.question = question
        labels = [option.text.replace("`", "") for option in question.options]
        self.options = RadioButtons(options=labels, index=None, layout=Layout(width="auto"))
        self.commit = Button(description="Commit", tooltip="Commit to the chosen answer")
        self.feedback = HTML(_status(""))
        self.commit.on_click(self._show_feedback)
        text = HTML(f"{STYLE}{SHUT}<strong>Predict.</strong> {to_html(question.text)}")
        super().__init__([text, self.options, self.commit, self.feedback])
        self.add_class("lesson-prediction")
        self.add_class("lesson-undecided")

    def _show_feedback(self, button: Button) -> None:
        if self.options.index is None:
            self.feedback.value = _status("Choose an answer first, then commit.")
            return
        self.options.disabled = self.commit.disabled = True
        self.remove_class("lesson-undecided")
        chosen = self.question.options[self.options.index]
        lines = [_verdict(chosen)]
        if not chosen.right:
            lines.append(_verdict(self.question.answer))
        with warnings.catch_warnings(record=True) as told:  # no cell runs that could show them
            warnings.simplefilter("always")
            remember("predicted", self.question.name, {"chose": chosen.text, "right": chosen.right})
        lines += [to_html(str(warning.message)) for warning in told]
        self.feedback.value = _status("".join(f"<p>{line}</p>" for line in lines))

    def __repr__(self) -> str:
        return f"Predict {self.question.name}: {self.question.text}"

    def _repr_mimebundle_(self, **kwargs) -> dict:
        """The widget, and for viewers without a kernel the question with folded answers."""
        bundle = super()._repr_mimebundle_(**kwargs)
        return {**bundle, "text/plain": repr(self), "text/markdown": self._markdown()}

    def _markdown(self) -> str:
        options = "".join(f"<li>{to_html(o.text)}</li>" for o in self.question.options)
        answers = "".join(f"<li>{_verdict(o)}</li>" for o in self.question.options)
        return (
            f"<p><strong>Predict.</strong> {to_html(self.question.text)}</p><ol>{options}</ol>"
            f"<details><summary>Answers</summary><ol>{answers}</ol></details>"
        )


def _verdict(option: Option) -> str:
    sign, word = ("✓", "Right") if option.right else ("✗", "No")
    return f"{sign} <b>{word}: {to_html(option.text)}</b><br>{to_html(option.explanation)}"


def _status(content: str) -> str:
    return f'<div role="status">{content}</div>'
