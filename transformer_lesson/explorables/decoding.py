"""One text written by one strategy, with everything that a picture of it needs."""

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor, nn

from transformer_lesson.generation import Beam, Sample, generate, top_k_filter, top_p_filter
from transformer_lesson.generation.beams import Tree
from transformer_lesson.generation.strategies import Strategy
from transformer_lesson.models import EncoderDecoderTransformer
from transformer_lesson.tokenizer import Tokenizer


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


class Choice(NamedTuple):
    """What a sampling strategy made of a distribution; all of shape (vocab_size,)."""

    heated: Float[Tensor, " vocab_size"]
    drawn_from: Float[Tensor, " vocab_size"]
    cut_by_k: Tensor
    cut_by_p: Tensor

    def cut_by(self, id_: int) -> str:
        """Return what cut a token: "top-k", "top-p" or, if it stays, nothing."""
        return "top-k" if self.cut_by_k[id_] else "top-p" if self.cut_by_p[id_] else ""


def choose_from(probabilities: Float[Tensor, " vocab_size"], sample: Sample) -> Choice:
    """Return a distribution after its temperature, after all of `sample`, and who cut what.

    Args:
        probabilities: the model's own.
        sample: its temperature, top_k and top_p.
    """
    logits = probabilities.log() / sample.temperature
    after_k = logits if sample.top_k is None else top_k_filter(logits, sample.top_k)
    after_p = after_k if sample.top_p is None else top_p_filter(after_k, sample.top_p)
    cut_by_k = after_k.isneginf() & ~logits.isneginf()
    cut_by_p = after_p.isneginf() & ~after_k.isneginf()
    return Choice(logits.softmax(dim=-1), after_p.softmax(dim=-1), cut_by_k, cut_by_p)


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
