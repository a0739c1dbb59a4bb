"""Type a sentence, see its translation appear, and what the model looked at for each word."""

from collections.abc import Collection
from functools import lru_cache

import ipywidgets
from torch import Tensor

from transformer_lesson.corpora import grammar
from transformer_lesson.explorables.base import Explorable, Rendering, sendable
from transformer_lesson.explorables.base import sentence as say
from transformer_lesson.explorables.player import Player
from transformer_lesson.explorables.trained import MISSING, english_words, trained_translator
from transformer_lesson.explorables.translation import (
    Translation,
    read_sentence,
    watch_translation,
)
from transformer_lesson.explorables.translation_picture import render_translation
from transformer_lesson.generation import alignment_hits
from transformer_lesson.models import EncoderDecoderTransformer
from transformer_lesson.tokenizer import SPECIAL_TOKENS, WordTokenizer
from transformer_lesson.visible import visible

SENTENCE = "Today the old dog sees the small cat."
MAX_WORDS = 24  # of a sentence; a picture has room for no more
CAPTION = (
    "Lines lead from a written word to the words that the model looked at when it chose it: the "
    "thicker, the more. &lt;eos&gt; marks the end of a sentence."
)


class TranslationPlayground(Explorable):
    """Type an English sentence, see German appear word by word, and the attention behind it.

    Without a model it takes the trained translator that comes with the package, whose
    vocabulary is that of `corpora.grammar`.

    Args:
        model: a translator with one vocabulary for both languages, in evaluation mode.
        tokenizer: its `WordTokenizer`.
        sentence: what to start with.
        source_words: the words that the model knows in the source language; by default all of
            the tokenizer's.

    Raises:
        ValueError: a model without its tokenizer, or a damaged file of the trained translator.
    """

    def __init__(
        self,
        model: EncoderDecoderTransformer | None = None,
        tokenizer: WordTokenizer | None = None,
        sentence: str = SENTENCE,
        source_words: Collection[str] | None = None,
    ):
        if (model is None) != (tokenizer is None):
            raise ValueError("a model and its tokenizer belong together: pass both or none.")
        self.closing, examples, best = "", [], None
        if model is None and trained_translator():
            model, tokenizer, _ = trained_translator()
            source_words, self.closing = english_words(), "."
            examples = [(name, pair.source) for name, pair in grammar.examples().items()]
            best = alignment_hits(model, tokenizer, list(grammar.examples().values()))
        self.model, self.tokenizer = model, tokenizer
        known = source_words or getattr(tokenizer, "vocabulary", ())
        sentence = sendable(sentence)
        self.source_words = frozenset(known) - set(SPECIAL_TOKENS)
        self.attempt = lru_cache(maxsize=64)(self._attempt)
        controls = _controls(sentence, examples) | _attention_controls(model, best)
        self.shown, self.word, self.example = map(controls.get, ("shown", "word", "example"))
        # Before the picture is drawn again, the other controls must offer what now exists.
        controls["sentence"].observe(lambda change: self._begin(change.new), "value")
        self.shown.observe(lambda change: self._offer_words(change.new - 1), "value")
        self.example.observe(self._take_example, "value")
        self.controls = controls
        self._begin(sentence)
        super().__init__(controls)
        self.children[0].children += (Player(self.shown),)
        self.children += (ipywidgets.HTML(f'<p style="line-height: 1.4">{CAPTION}</p>'),)

    def render(self) -> Rendering:
        """Draw the chosen word of the present translation."""
        values = self.values
        made = self.attempt(values.pop("sentence"))
        del values["example"]
        return say(made) if isinstance(made, str) else render_translation(made, **values)

    def _attempt(self, sentence: str) -> Translation | str:
        """Return what became of a sentence, or what to change in it."""
        if self.model is None:
            return MISSING
        reading = read_sentence(sentence, self.source_words, self.closing)
        longest = min(MAX_WORDS, self.model.source_config.max_len - 1)
        if not reading.tokens:
            return "There is nothing to translate: type a sentence and press Enter."
        if len(reading.tokens) > longest:
            return (
                f"The sentence has {len(reading.tokens):,} words and marks, but there is room for "
                f"{longest}: shorten it and press Enter."
            )
        pairs = zip(reading.tokens, reading.known, strict=True)
        if not any(known and token.isalnum() for token, known in pairs):
            return f"The translator knows none of these words. {' '.join(reading.offers)}"
        return watch_translation(self.model, self.tokenizer, reading)

    def _begin(self, sentence: str) -> None:
        """Offer the words of a new translation, all of them shown."""
        made = self.attempt(sentence)
        n = 1 if isinstance(made, str) else len(made.written)
        with self.held():
            if self.example.value != sentence:
                self.example.index = None
            self.shown.max = self.shown.value = n
            self._offer_words(n // 2)

    def _offer_words(self, word: int) -> None:
        """Offer the words that are shown, and choose one of them."""
        made = self.attempt(self.controls["sentence"].value)
        written = () if isinstance(made, str) else made.written[: self.shown.value]
        with self.held():
            offered = [(visible(token, 20), i) for i, token in enumerate(written)]
            self.word.options = offered or [("", 0)]
            self.word.index = word

    def _take_example(self, change) -> None:
        if change.new is not None:
            with self.held():
                self.controls["sentence"].value = change.new


def _controls(sentence: str, examples: list[tuple[str, str]]) -> dict[str, ipywidgets.DOMWidget]:
    text = ipywidgets.Text(sentence, description="English sentence", continuous_update=False)
    text.layout.width = "38em"
    buttons = ipywidgets.ToggleButtons(options=examples, index=None, description="Examples")
    buttons.layout.display = None if examples else "none"
    return {
        "sentence": text,
        "example": buttons,
        "shown": ipywidgets.IntSlider(1, 1, 1, description="Words shown"),
        "word": ipywidgets.SelectionSlider(options=[("", 0)], description="Attention of"),
    }


def _attention_controls(model, hits: Tensor | None) -> dict[str, ipywidgets.ToggleButtons]:
    """Offer the model's layers and heads; with `hits` the best head is chosen.

    Args:
        hits: how often each head looks at the right word, shape (layer, head).
    """
    n_layers, n_heads = (model.config.n_layers, model.config.n_heads) if model else (1, 1)
    layer, button = n_layers - 1, 0  # the mean
    if hits is not None:
        layer, head = divmod(int(hits.argmax()), n_heads)
        button = 1 + head
    heads = [("mean", None), *((str(i), i) for i in range(n_heads))]
    return {
        "layer": ipywidgets.ToggleButtons(
            options=range(n_layers), value=layer, description="Layer"
        ),
        "head": ipywidgets.ToggleButtons(options=heads, index=button, description="Head"),
    }
