"""Attention over a sentence of your own, one head at a time, every knob turnable."""

import math
from collections import Counter
from functools import cache, lru_cache
from itertools import chain

import ipywidgets
import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from matplotlib import colormaps
from torch import Tensor

from transformer_lesson.explorables.base import Explorable, Rendering, drawable, sendable
from transformer_lesson.explorables.base import sentence as say
from transformer_lesson.explorables.canvas import Canvas
from transformer_lesson.figures.plots import COLORS, SEQUENTIAL
from transformer_lesson.figures.ranking import from_largest
from transformer_lesson.model.attention import attention_scores, masked_softmax, split_heads
from transformer_lesson.model.masks import causal_mask
from transformer_lesson.text import manual
from transformer_lesson.text.tokenizers import words

SENTENCE = "Every object has an identity, a type and a value."
D_MODEL = 64
HEADS = (1, 2, 4, 8)
MAX_WORDS = 14
NO_WORDS = [("", 0)]
CAPTION = (
    f"Nothing here is trained. Number j of a word's {D_MODEL} says whether the word stands within "
    "two words of the j-th most frequent word of CPython's manual more often than chance; queries "
    "and keys are these numbers, shared out among the heads. Bars: the chosen query's weights. "
    "Cells: every query's weights, brighter is larger, white is masked."
)


@cache
def word_vectors() -> dict[str, Float[Tensor, " d_model"]]:
    """Return a vector for each word of CPython's manual, so that words used alike match.

    Number j is log((count + 1) / (expected + 1)): how often the word stands within two words of
    the manual's j-th most frequent word, against how often it would by chance. Each vector is
    then normalized to mean 0 and variance 1, the case for which the paper divides by √d_head.

    Source: Church and Hanks, "Word Association Norms, Mutual Information, and Lexicography"
        (1990), section 4.
    """
    texts = [words(text.lower()) for text in manual.sentences()]
    counted = Counter(chain.from_iterable(texts))
    row = {word: i for i, word in enumerate(counted)}
    frequent = [word for word, _ in counted.most_common() if word.isalpha()][:D_MODEL]
    column = {word: j for j, word in enumerate(frequent)}
    pairs = [
        (row[text[i]], column[text[j]])
        for text in texts
        for i in range(len(text))
        for j in (i - 2, i - 1, i + 1, i + 2)
        if 0 <= j < len(text) and text[j] in column
    ]
    rows, columns = torch.tensor(pairs).T
    counts = torch.zeros(len(row), D_MODEL)
    counts.index_put_((rows, columns), torch.ones(len(pairs)), accumulate=True)
    expected = counts.sum(dim=1, keepdim=True) * counts.sum(dim=0) / counts.sum()
    x = F.layer_norm(((counts + 1) / (expected + 1)).log(), (D_MODEL,))  # (word, d_model)
    return dict(zip(row, x, strict=True))


def sentence_weights(
    tokens: tuple[str, ...], n_heads: int, scaled: bool, temperature: float, causal: bool
) -> Float[Tensor, "head query key"]:
    """Return softmax(Q Kᵀ / (√d_head · temperature)) with Q = K = the words' vectors, by head.

    Args:
        tokens: the words; one that the manual lacks gets a vector of zeros.
        n_heads: shares the vectors' numbers out among the heads.
        scaled: divide by √d_head.
        temperature: divides the scores; above 1 it evens the weights out.
        causal: hide later words.
    """
    zeros = torch.zeros(D_MODEL)
    x = torch.stack([word_vectors().get(token.lower(), zeros) for token in tokens])
    Q = split_heads(x[None], n_heads)  # (1, head, n, d_head)
    scores = attention_scores(Q, Q) / temperature  # (1, head, query, key)
    if not scaled:
        scores = scores * math.sqrt(D_MODEL // n_heads)
    return masked_softmax(scores, causal_mask(len(tokens)) if causal else None)[0]


@lru_cache(maxsize=64)
def render_attention(
    sentence: str,
    query: int | None,
    n_heads: int,
    head: int,
    scaled: bool,
    temperature: float,
    mask: str,
) -> Rendering:
    """Draw one head's weights, and the chosen query's row as bars above them.

    Args:
        sentence: split into words; the first `MAX_WORDS` are used.
        query: number of the row whose weights are drawn as bars, from 0.
        n_heads, scaled, temperature: see `sentence_weights`.
        head: which head, from 0.
        mask: "none" or "causal".
    """
    tokens = tuple(words(sentence)[:MAX_WORDS])
    if not tokens:
        return say("There is no word to attend to: type a sentence and press Enter.")
    query, causal = min(query or 0, len(tokens) - 1), mask == "causal"
    weights = sentence_weights(tokens, n_heads, scaled, temperature, causal)[head]  # (query, key)
    labels = [drawable(f"{token:.20}") for token in tokens]
    ranked = from_largest(weights[query], 3)
    strongest = [f"{weights[query, key]:.2f} to “{labels[key]}”" for key in ranked]
    d_head = D_MODEL // n_heads
    scores = f"scores divided by √{d_head} and" if scaled else "scores not scaled, but divided"
    text = (
        f"Head {head} of {n_heads}, d_head {d_head}, {scores} by temperature {temperature:.2g}, "
        f"mask {mask}. The query “{labels[query]}” gives {', '.join(strongest)}."
    )
    unknown = [label for label in labels if label.lower() not in word_vectors()]
    if unknown:
        text += f" Not in the manual, so all zeros: {', '.join(dict.fromkeys(unknown))}."
    if len(words(sentence)) > MAX_WORDS:
        text += f" Only the first {MAX_WORDS} words of the sentence are used."
    if causal:
        weights = weights.where(causal_mask(len(tokens))[0, 0], torch.nan)  # nothing is drawn
    title = f"“{labels[query]}” gives {' and '.join(strongest[:2])}"
    return Rendering(_draw(title, weights, query, labels), text)


def _draw(title: str, weights: Tensor, query: int, labels: list[str]) -> bytes:
    n = len(labels)
    left, top, wide, high = 130, 140, min(90, 840 // n), 24  # of the cells, in pixels
    middle, bottom, tall = left + wide * n / 2, top + high * n, 75
    page = Canvas(title, max(600, left + wide * n + 20), bottom + 50)
    colors = colormaps[SEQUENTIAL](weights.sqrt().numpy(), bytes=True)  # (query, key, 4)
    hidden = colors[..., 3:] == 0  # no number, no color
    page.picture(left, top, wide * n, high * n, np.where(hidden, np.uint8(255), colors[..., :3]))
    page.box(left, top + high * query, wide * n, high, edge=COLORS[1], line=3)
    for i, label in enumerate(labels):
        weight, x = weights[query, i].nan_to_num().item(), left + wide * i
        page.box(x + 4, top - 8 - tall * weight, wide - 8, tall * weight, fill=COLORS[1])
        page.text(x + wide / 2, top - 18 - tall * weight, f"{weight:.2f}")
        row = f"▶ {label}" if i == query else label
        page.text(left - 8, top + high * (i + 0.5), row, anchor="rm", width=left - 34)
        page.text(x + wide / 2, bottom + 12, label, width=wide - 4)
    page.turned(12, (top + bottom) / 2, "query")
    page.text(middle, bottom + 34, "key")
    return page.png()


class AttentionExplorer(Explorable):
    """Type a sentence, choose a query, and see which words it attends to.

    Args:
        sentence: what to start with.
        n_heads: 1, 2, 4 or 8.
    """

    def __init__(self, sentence: str = SENTENCE, n_heads: int = 4):
        sentence = sendable(sentence)
        text = ipywidgets.Text(sentence, description="Sentence", continuous_update=False)
        text.layout.width = "34em"
        query = ipywidgets.ToggleButtons(description="Query")
        _offer(query, sentence)
        query.style.button_width = "auto"
        query.layout.width = "100%"
        heads = ipywidgets.ToggleButtons(options=HEADS, value=n_heads, description="n_heads")
        head = ipywidgets.IntSlider(0, 0, n_heads - 1, description="Head")
        # Before the picture is drawn again, the other controls must offer what now exists.
        text.observe(lambda change: _offer(query, change.new), "value")
        heads.observe(lambda change: setattr(head, "max", change.new - 1), "value")
        super().__init__(
            {
                "sentence": text,
                "query": query,
                "n_heads": heads,
                "head": head,
                "scaled": ipywidgets.Checkbox(True, description="divide by √d_head", indent=False),
                "temperature": ipywidgets.FloatLogSlider(
                    1, min=-1, max=1, step=0.05, description="Temperature"
                ),
                "mask": ipywidgets.ToggleButtons(options=("none", "causal"), description="Mask"),
            }
        )
        caption = ipywidgets.HTML(f'<p style="line-height: 1.4; max-width: 44em">{CAPTION}</p>')
        self.children += (caption,)

    def render(self) -> Rendering:
        """Draw the chosen head and row."""
        return render_attention(**self.values)


def _offer(query: ipywidgets.ToggleButtons, sentence: str) -> None:
    """Offer the sentence's words, none of them where there are none."""
    rows = _rows(sentence)
    query.options = rows or NO_WORDS  # without any, the page would keep its old buttons
    query.index = 0
    query.layout.display = None if rows else "none"


def _rows(sentence: str) -> list[tuple[str, int]]:
    """Name each word; a label that stands twice would mark none of its two buttons."""
    used = words(sendable(sentence))[:MAX_WORDS]
    labels = [f"{word:.12}" for word in used]
    times = [labels[: i + 1].count(label) for i, label in enumerate(labels)]
    named = [label if n == 1 else f"{label} ({n})" for label, n in zip(labels, times, strict=True)]
    return [(label, i) for i, label in enumerate(named)]
