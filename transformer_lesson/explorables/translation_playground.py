"""Type a sentence, see its translation appear, and what the model looked at for each word."""

from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import accumulate
from textwrap import wrap
from typing import NamedTuple

import ipywidgets
import torch
from jaxtyping import Float, Int
from torch import Tensor

from transformer_lesson.explorables.base import Explorable, Rendering, drawable, sendable
from transformer_lesson.explorables.base import sentence as say
from transformer_lesson.explorables.canvas import Canvas, drawn_width
from transformer_lesson.explorables.player import Player
from transformer_lesson.explorables.trained import MISSING, english_words, trained_translator
from transformer_lesson.explorables.typed_sentence import Reading, read_sentence, source_ids
from transformer_lesson.figures.plots import COLORS
from transformer_lesson.figures.ranking import first_largest, from_largest
from transformer_lesson.files import printable
from transformer_lesson.generation import generate
from transformer_lesson.generation.session import evaluating
from transformer_lesson.interpretability.alignment import alignment_hits
from transformer_lesson.model.hooks import record
from transformer_lesson.model.transformers import EncoderDecoderTransformer
from transformer_lesson.text import grammar
from transformer_lesson.text.tokenizers import SPECIAL_TOKENS, WordTokenizer

LONGEST = 30  # words of a translation: an untrained model does not stop by itself
N_CANDIDATES = 5
WIDTH, READS, WRITES = 940, 72, 222  # of the picture; tops of the two rows of words
Place = tuple[float, float]  # left edge and width of a box
SENTENCE = "Today the old dog sees the small cat."
MAX_WORDS = 24  # of a sentence; a picture has room for no more
CAPTION = (
    "Lines lead from a written word to the words that the model looked at when it chose it: the "
    "thicker, the more. &lt;eos&gt; marks the end of a sentence."
)


class Translation(NamedTuple):
    """What a translator wrote, and what it looked at and thought of at each word.

    Args:
        reading: what it read; `<eos>` came after it.
        written: the tokens of the translation, `<eos>` included if it came to it.
        weights: row t is where the decoder looked in the source when it chose `written[t]`.
        candidates: for each token written the likeliest ones there and their probabilities.
    """

    reading: Reading
    written: tuple[str, ...]
    weights: Float[Tensor, "layer head target source"]
    candidates: tuple[tuple[tuple[str, float], ...], ...]


def watch_translation(
    model: EncoderDecoderTransformer, tokenizer: WordTokenizer, reading: Reading
) -> Translation:
    """Translate greedily, and keep what the model looked at.

    Args:
        model: in evaluation mode, with one vocabulary for both languages.
        tokenizer: of this vocabulary.
        reading: a sentence; words that are not known are read as `<unk>`.
    """
    ids = source_ids(tokenizer, reading)
    longest = min(LONGEST, model.config.max_len - 1)
    written = generate(model, ids, longest).ids[0]
    target_ids = torch.tensor([[tokenizer.bos_id, *written[:-1]]])  # (1, target)
    logits, weights = cross_attention(model, torch.tensor([ids]), target_ids)
    candidates = [
        tuple((tokenizer.token(id_), row[id_].item()) for id_ in from_largest(row, N_CANDIDATES))
        for row in logits[0].softmax(dim=-1)  # of each target word, (vocab_size,)
    ]
    words_written = tuple(map(tokenizer.token, written))
    return Translation(reading, words_written, weights[:, 0], tuple(candidates))


def cross_attention(
    model: EncoderDecoderTransformer,
    source_ids: Int[Tensor, "batch source"],
    target_ids: Int[Tensor, "batch target"],
) -> tuple[
    Float[Tensor, "batch target vocab_size"], Float[Tensor, "layer batch head target source"]
]:
    """Return the model's logits and where each layer's decoder looked in the source.

    Row t belongs to the token that *follows* `target_ids[:, t]`: to choose it the model looked.
    """
    device = model.projection.weight.device
    with evaluating(model), torch.no_grad(), record(model) as run:
        logits = model(source_ids.to(device), target_ids.to(device))  # (batch, target, vocab_size)
    weights = [value for name, value in run.items() if name.endswith("cross_attention.weights")]
    weights = torch.stack(weights)  # (layer, batch, head, target, source)
    return logits.float().cpu(), weights.float().cpu()


def render_translation(
    translation: Translation, shown: int, word: int, layer: int, head: int | None
) -> Rendering:
    """Draw the sentence, what is written so far, and the attention behind one word of it.

    Args:
        translation: of a sentence.
        shown: how many of its words are drawn.
        word: the one whose attention and rivals are drawn, from 0.
        layer: from 0.
        head: from 0; `None` for the mean over the layer's heads.
    """
    tokens, known, changes, offers = translation.reading
    read = [*(drawable(f"{token:.30}") for token in tokens), "<eos>"]
    written = [drawable(f"{token:.30}") for token in translation.written]
    shown = min(shown, len(written))
    word = min(word, shown - 1)
    weights = translation.weights[layer, :, word]  # (head, source)
    weights = weights.mean(0) if head is None else weights[head]  # (source,)
    looked = [f"“{read[i]}” ({weights[i]:.2f})" for i in from_largest(weights, 3)]
    weights = weights.tolist()
    guess = "For a word that it does not know the model reads <unk>: it can only guess."
    notes = [*changes, *offers, *[guess] * (not all(known))]
    page = Canvas(f"For “{written[word]}” the model looked most at {looked[0]}", WIDTH, 430)
    read_at, written_at = _places(read), _places(written)
    _draw_lines(page, written_at[word], read_at, weights)
    _draw_read(page, read, (*known, True), weights, read_at)
    _draw_written(page, written[:shown], word, written_at)
    _draw_candidates(page, translation, word)
    _draw_notes(page, notes)
    rivals = [f"{drawable(f'{token:.30}')} {p:.2f}" for token, p in translation.candidates[word]]
    which = "mean of the heads" if head is None else f"head {head}"
    text = (
        f"Written, {shown} of {len(written)}: “{' '.join(written[:shown])}”. For word {word + 1}, "
        f"“{written[word]}”, the model looked most at {', '.join(looked)} (layer {layer}, "
        f"{which}). Likeliest there: {', '.join(rivals)}."
    )
    return Rendering(page.png(), " ".join([text, *map(drawable, notes)]))


def _places(tokens: Sequence[str]) -> list[Place]:
    """Return left edge and width of each word's box, all in one row."""
    wide = [drawn_width(token, 14) + 20 for token in tokens]
    shrink = min(1.0, (WIDTH - 80) / sum(wide))
    starts = accumulate(wide, initial=0.0)
    return [(70 + shrink * x, shrink * w - 4) for x, w in zip(starts, wide, strict=False)]


def _draw_lines(page: Canvas, chosen: Place, read: list[Place], weights: list[float]) -> None:
    """Draw lines from the chosen word to those it looked at, the thicker the more."""
    for (x, wide), weight in zip(read, weights, strict=True):
        if weight >= 0.02:
            ends = [(chosen[0] + chosen[1] / 2, WRITES), (x + wide / 2, READS + 58)]
            page.curve(ends, COLORS[0], 1 + 7 * weight)


def _draw_read(
    page: Canvas,
    tokens: Sequence[str],
    known: Sequence[bool],
    weights: list[float],
    places: list[Place],
) -> None:
    """Draw the words read; a "?" and a frame mark those that the vocabulary lacks."""
    page.text(62, READS + 14, "read", 13, anchor="rm")
    for token, is_known, weight, (x, wide) in zip(tokens, known, weights, places, strict=True):
        page.box(x, READS, wide, 28, fill=_tint(weight), edge="#888888")
        if not is_known:
            page.box(x, READS, wide, 28, edge=COLORS[1], line=3)
            page.text(x + wide / 2, READS - 12, "? unknown" if wide > 66 else "?", 11)
        page.text(x + wide / 2, READS + 14, token, 14, width=wide - 6)
        if weight >= 0.02:
            page.text(x + wide / 2, READS + 44, f"{weight:.2f}", 11)


def _draw_written(page: Canvas, tokens: Sequence[str], word: int, places: list[Place]) -> None:
    page.text(62, WRITES + 14, "written", 13, anchor="rm")
    for i, (token, (x, wide)) in enumerate(zip(tokens, places, strict=False)):
        marked = {"fill": "#FFE14D", "edge": "black", "line": 3} if i == word else {}
        page.box(x, WRITES, wide, 28, **({"fill": "#F4F4F4", "edge": "#888888"} | marked))
        page.text(x + wide / 2, WRITES + 14, token, 14, width=wide - 6)


def _draw_candidates(page: Canvas, translation: Translation, word: int) -> None:
    """Draw the likeliest words at one place as bars."""
    top = WRITES + 64
    page.text(20, top - 12, f"likeliest at place {word + 1}", 12, "#444444", "lm")
    for i, (token, p) in enumerate(translation.candidates[word]):
        y = top + 16 + 25 * i
        page.text(140, y, token, 13, anchor="rm", width=125)
        page.box(150, y - 9, 200 * p, 18, fill=COLORS[0], edge=COLORS[0])
        sign = "  ◀ written" if token == translation.written[word] else ""
        page.text(158 + 200 * p, y, f"{p:.3f}{sign}", 12, anchor="lm")


def _draw_notes(page: Canvas, notes: list[str]) -> None:
    lines = [line for note in notes for line in wrap(note, 62)]
    for i, line in enumerate(lines[:9]):
        page.text(500, WRITES + 54 + 18 * i, line, 12, anchor="lm", width=430)


def _tint(weight: float) -> str:
    """Mix white with blue, the more the larger the weight."""
    blue = (86, 180, 233)
    return "#" + "".join(f"{round(255 - (255 - part) * weight):02X}" for part in blue)


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
            offered = [(printable(token, 20), i) for i, token in enumerate(written)]
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
        layer, head = divmod(int(first_largest(hits.flatten())), n_heads)
        button = 1 + head
    heads = [("mean", None), *((str(i), i) for i in range(n_heads))]
    return {
        "layer": ipywidgets.ToggleButtons(
            options=range(n_layers), value=layer, description="Layer"
        ),
        "head": ipywidgets.ToggleButtons(options=heads, index=button, description="Head"),
    }
