"""A text field whose sentence the learner's own functions translate."""

import html

import ipywidgets
from ipywidgets import HTML, Button, Layout, Text

from transformer_lesson.checkpoints.translator import MISSING, trained_translator
from transformer_lesson.mine.parts import PARTS, Parts
from transformer_lesson.mine.side_by_side import SAME, Translation, translation
from transformer_lesson.text.tokenizers import words

SENTENCES = (
    "the child opens the window .",
    "the child closes the window .",
    "the teacher says that the child opens the window .",
    "the window opens the child .",
)
LONGEST_TYPED = 20
"""Most words of a sentence; the corpus has none that is longer."""


class Playground(ipywidgets.VBox):
    """Type an English sentence; your forward pass, completed by ours, translates it into German.

    It runs in the kernel, with the functions collected at the time of each translation.

    Args:
        sentence: the initial sentence.
    """

    def __init__(self, sentence: str = SENTENCES[0]):
        wide = Layout(width="auto", max_width="44em")
        self.field = Text(sentence, description="English", continuous_update=False, layout=wide)
        self.answer = HTML()
        examples = [
            Button(description=sentence, layout=Layout(width="auto")) for sentence in SENTENCES
        ]
        for button in examples:
            button.on_click(lambda pressed: self.field.set_trait("value", pressed.description))
        self.field.observe(self._translate, "value")
        self._translate()
        row = Layout(flex_flow="row wrap")
        super().__init__([self.field, ipywidgets.Box(examples, layout=row), self.answer])

    def _translate(self, change=None) -> None:
        self.lines = answer_to(self.field.value)
        first, *others = map(html.escape, self.lines)
        rest = "".join(f"<div>{line}</div>" for line in others)
        self.answer.value = f'<div role="status"><p><b>{first}</b></p>{rest}</div>'

    def __repr__(self) -> str:
        return "\n".join([f"English: {self.field.value}", *self.lines])

    def _repr_mimebundle_(self, **kwargs) -> dict:
        """The widget, plus its current text for viewers without a kernel."""
        bundle = super()._repr_mimebundle_(**kwargs)
        first, *others = map(html.escape, self.lines)
        rows = [f"English: {html.escape(self.field.value)}", f"<b>{first}</b>", *others]
        return {**bundle, "text/plain": repr(self), "text/markdown": f"<p>{'<br>'.join(rows)}</p>"}


def answer_to(typed: str) -> list[str]:
    """Return, in lines, a sentence's translation and whose functions computed it.

    The first line is the translation, or what prevents one.
    """
    if (shipped := trained_translator()) is None:
        return [MISSING]
    known = shipped.tokenizer.vocabulary
    read = [word if word in known else word.lower() for word in words(typed)]
    if not read:
        return ["Type an English sentence, and press Enter."]
    if len(read) > LONGEST_TYPED:
        return [f"That's {len(read)} words. Use at most {LONGEST_TYPED}."]
    if read[-1][-1].isalnum():
        read.append(".")  # like every sentence of the corpus
    if unknown := [word for word in read if word not in known]:
        named = " or ".join(f"“{word}”" for word in dict.fromkeys(unknown))
        return [f"The translator has never learned {named}. Use other words."]
    done = translation(" ".join(read))
    return [f"German: {done.mine or '(nothing)'}", *_whose(done.parts), _beside(done)]


def _whose(parts: Parts) -> list[str]:
    """Return the share of functions that are the learner's, as a bar, and their names."""
    yours = parts.yours_now()
    squares = "".join("■" if name in yours else "□" for name in PARTS)
    lines = [f"{squares} {parts.count()} functions are yours."]
    if len(yours) == len(PARTS):
        lines.append(
            "From the ids to the logits no line of ours is left: you wrote a Transformer, and it "
            "has just translated a sentence for you."
        )
    elif yours:
        ours = [name for name in PARTS if name not in yours]
        lines += [f"Yours: {', '.join(yours)}.", f"Still ours: {', '.join(ours)}."]
    else:
        lines.append("So far, all that runs here is ours. Each exercise you pass replaces one.")
    return lines + [f"Ours stands in for {name}: {why}." for name, why in parts.reasons.items()]


def _beside(done: Translation) -> str:
    if done.largest <= SAME:
        return "The package's own model says the same, number for number."
    return f"The package's own model says: {done.packages}"
