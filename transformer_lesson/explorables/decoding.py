"""A decoding kept step by step, and what its cache spares: what both of its pictures show."""

from collections.abc import Sequence
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor, nn

from transformer_lesson.explorables.canvas import Canvas, drawn_width, fitted
from transformer_lesson.generation import Beam, generate
from transformer_lesson.generation.beam import Tree
from transformer_lesson.generation.strategies import Strategy
from transformer_lesson.model.transformers import EncoderDecoderTransformer
from transformer_lesson.text.tokenizers import Tokenizer

WIDTH, N_TOKENS = 940, 60  # of a picture, in pixels; the most tokens of its strips


class Decoding(NamedTuple):
    """What a strategy wrote, step by step.

    Args:
        strategy: how the tokens were chosen.
        source: the tokens of the source; none for a decoder-only model.
        start: the tokens that the text begins with: the prompt, or `<bos>`.
        written: ids of the new tokens; of a beam search those of the winner.
        probabilities: the model's own at each step, without a strategy; not for a beam search.
        tree: what a beam search considered at each step, else none.
    """

    strategy: Strategy
    source: tuple[str, ...]
    start: tuple[str, ...]
    written: tuple[int, ...]
    probabilities: Float[Tensor, "step vocab_size"] | None
    tree: Tree | None

    @property
    def n_steps(self) -> int:
        """How often the model was asked for the next token."""
        return len(self.tree or self.written)


def watch_decoding(
    model: nn.Module, tokenizer: Tokenizer, ids: list[int], strategy: Strategy, max_new_tokens: int
) -> Decoding:
    """Let a model write one text, and keep what it thought at every step.

    Args:
        model: encoder-decoder or decoder-only.
        tokenizer: of its vocabulary.
        ids: the source with its `<eos>`, or the prompt.
        strategy: how tokens are chosen.
        max_new_tokens: most tokens to write.
    """
    beam = isinstance(strategy, Beam)
    made = generate(model, ids, max_new_tokens, strategy, distributions=not beam, trees=beam)
    given = tuple(map(tokenizer.token, ids))
    translates = isinstance(model, EncoderDecoderTransformer)
    source, start = (given, (tokenizer.token(tokenizer.bos_id),)) if translates else ((), given)
    return Decoding(
        strategy,
        source,
        start,
        tuple(made.ids[0]),
        None if beam else made.distributions[0].float().cpu(),
        made.trees[0] if beam else None,
    )


class CacheUse(NamedTuple):
    """Of how many tokens the keys and values were computed at a step, and of how many reused."""

    computed: int
    reused: int


def cache_use(n_start: int, step: int) -> CacheUse:
    """Return what a cache spares in self-attention. Without one, all would be computed.

    Args:
        n_start: tokens that the text begins with.
        step: from 0. Step 0 reads the start, each later step the one token chosen before it.
    """
    return CacheUse(n_start, 0) if step == 0 else CacheUse(1, n_start + step - 1)


def cache_height(decoding: Decoding) -> int:
    """Return how many of the upper pixels `draw_cache` takes."""
    return 170 if decoding.source else 110


def draw_cache(
    page: Canvas, decoding: Decoding, name: str, text_so_far: Sequence[str], step: int
) -> str:
    """Draw which tokens' keys and values come from the cache; return the same in words.

    Args:
        page: the canvas.
        decoding: what is shown.
        name: of the text.
        text_so_far: everything that is read at this step, `start` included.
        step: from 0.
    """
    use, n = cache_use(len(decoding.start), step), len(text_so_far)
    told = f"reused {use.reused}, computed {use.computed}; without a cache {n}"
    _strip(page, 52, name, text_so_far, use.computed, f"keys and values: {told}")
    words = f"Keys and values of the text: {told}."
    if decoding.source:
        n = len(decoding.source)
        computed = n if step == 0 else 0
        told = f"reused {n - computed}, computed {computed}; without a cache {n}"
        _strip(page, 112, "source", decoding.source, computed, f"keys and values: {told}")
        words += f" Of the source: {told}."
    return words


def _strip(page: Canvas, y: int, name: str, tokens: Sequence[str], n_new: int, note: str) -> None:
    """Draw tokens in a row: "=" and gray for what is in the cache, "+" and yellow for the new."""
    page.text(92, y + 12, name, 12, anchor="rm")
    signs = ["="] * (len(tokens) - n_new) + ["+"] * n_new
    pairs = list(zip(signs, tokens, strict=True))[-N_TOKENS:]
    labels = [fitted(f"{sign} {token}", 12, 110) for sign, token in pairs]
    wide = [drawn_width(label, 12) + 10 for label in labels]
    first = 0
    while sum(wide[first:]) + 4 * len(wide[first:]) > WIDTH - 190:
        first += 1  # the newest stay
    hidden = len(tokens) - len(labels) + first
    x = 100.0
    if hidden:
        page.text(x, y + 12, f"… {hidden} more", 11, "#444444", "lm")
        x += 70
    for label, width in zip(labels[first:], wide[first:], strict=True):
        new = {"fill": "#FFE14D", "edge": "black", "line": 2}
        old = {"fill": "#E8EFF5", "edge": "#999999"}
        page.box(x, y, width, 24, **(new if label[0] == "+" else old))
        page.text(x + width / 2, y + 12, label, 12)
        x += width + 4
    page.text(100, y + 37, note, 11, "#444444", "lm")
