"""A model just big enough to continue a sequence by looking back: two attention-only blocks.

It is trained on random tokens that repeat. Only the repetition can be predicted, so all its heads
can learn is to look back and copy.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from transformer_lesson.model.attention import MultiHeadAttention
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.embedding import InputEmbedding
from transformer_lesson.model.hooks import HookPoint
from transformer_lesson.model.masks import causal_mask
from transformer_lesson.model.positions import sinusoidal_encoding
from transformer_lesson.stored import read_stored
from transformer_lesson.text.batches import Batch, EndlessBatches, shift_right
from transformer_lesson.training.config import TrainConfig

STORED = Path(__file__).with_name("circuits.json")
LENGTH, SHORTEST, LONGEST = 48, 6, 24  # tokens read, and in a segment
HELD_OUT = 10**6  # a seed that no training run uses

CONFIG = ModelConfig(
    vocab_size=48,
    d_model=128,
    n_heads=2,
    n_layers=2,
    d_ff=1,  # unused: no feed-forward network
    max_len=LENGTH,
    dropout=0.0,
    tie_embeddings=False,
    bias=False,
)
TRAINING = TrainConfig(steps=200, learning_rate=8e-3, betas=(0.9, 0.95), epsilon=1e-8)
"""A config known to form induction heads; one batch of 32 sequences per step."""


class AttentionBlock(nn.Module):
    """x + attention(x), without norm and feed-forward; positions reach queries and keys only.

    `MultiHeadAttention`'s `rotate` acts after the projections, where the model could not learn that
    added fixed sinusoids mean "the previous token". So they are added before W_Q and W_K.

    Source: Press et al., "Shortformer" (2020), section 4, position-infused attention.
    """

    def __init__(self, config: ModelConfig, positions_in_stream: bool):
        super().__init__()
        self.self_attention = MultiHeadAttention.from_config(config)
        self.output = HookPoint()
        self.positions_in_stream = positions_in_stream
        encoding = sinusoidal_encoding(config.max_len, config.d_model)
        self.register_buffer("positions", encoding, persistent=False)

    def forward(
        self, x: Float[Tensor, "batch n d_model"], mask: Tensor
    ) -> Float[Tensor, "batch n d_model"]:
        """Return the residual stream after this layer."""
        placed = x if self.positions_in_stream else x + self.positions[: x.size(1)]
        return self.output(x + self.self_attention(placed, placed, x, mask))


class AttentionOnlyDecoder(nn.Module):
    """Predicts each next token with attention layers only.

    Everything except the attention weights is linear: each layer adds its heads' outputs to the
    residual stream, and the logits are a projection of the sum.

    Args:
        config: sizes; d_ff and activation are not used.
        positions_in_stream: add the sinusoids to the embeddings once, as the paper does, instead
            of to every layer's queries and keys.

    Source: Elhage et al., "A Mathematical Framework for Transformer Circuits" (2021).
    Differs: theirs has norms; omitting them makes the heads' contributions additive.
    """

    def __init__(self, config: ModelConfig = CONFIG, positions_in_stream: bool = False):
        super().__init__()
        self.config = config
        # With "rotary", the embedding adds no positions.
        in_stream = "sinusoidal" if positions_in_stream else "rotary"
        self.embedding = InputEmbedding(replace(config, positions=in_stream))
        blocks = (AttentionBlock(config, positions_in_stream) for _ in range(config.n_layers))
        self.decoder, self.decoder_norm = nn.ModuleList(blocks), nn.Identity()
        self.projection = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.logits = HookPoint()

    def forward(self, ids: Int64[Tensor, "batch n"]) -> Float[Tensor, "batch n vocab_size"]:
        """Return, at each position, logits for the next token.

        Raises:
            ValueError: a token id outside the vocabulary, or more than max_len tokens.
        """
        x = self.embedding(ids)  # (batch, n, d_model)
        mask = causal_mask(ids.size(1), device=ids.device)
        for block in self.decoder:
            x = block(x, mask)
        return self.logits(self.projection(self.decoder_norm(x)))


def repeated_sequences(
    periods: list[int], length: int, vocab_size: int, seed: int, prefixes: Sequence[int] = ()
) -> Int64[Tensor, "batch length"]:
    """Return random sequences, each repeating one segment over and over.

    The tokens of a segment are distinct, so each has a unique successor.

    Args:
        periods: the length of each row's segment.
        length: tokens in a row.
        vocab_size: number of different tokens.
        seed: of the random numbers.
        prefixes: number of foreign tokens before each row's first segment: none of them occurs in
            the segment; if empty, no row has a prefix.

    Raises:
        ValueError: no rows, a segment shorter than 1 token, or a segment and prefix together longer
            than the vocabulary.
    """
    if not periods:
        raise ValueError("periods is empty: give the length of at least one segment.")
    prefixes = prefixes or [0] * len(periods)
    for period, prefix in zip(periods, prefixes, strict=True):
        if not 1 <= period <= vocab_size - prefix:
            raise ValueError(
                f"a period is {period}, but a segment has 1 to {vocab_size - prefix} different "
                f"tokens after a prefix of {prefix}."
            )
    generator = torch.Generator().manual_seed(seed)
    shuffled = torch.rand(len(periods), vocab_size, generator=generator).argsort(dim=1)
    before, period = torch.tensor(prefixes)[:, None], torch.tensor(periods)[:, None]
    at = torch.arange(length)
    places = torch.where(at < before, at, before + (at - before) % period)  # (batch, length)
    return shuffled.gather(1, places)


class RepeatedSequences(EndlessBatches):
    """Endless batches of repeated random sequences, with a segment of random length in each row.

    Args:
        config: of the model that reads them: its vocabulary and its max_len.
        batch_size: rows.
        seed: of the random numbers.
        shortest, longest: limits of a segment's length.
        longest_prefix: most foreign tokens before a row's first segment.

    Raises:
        ValueError: `batch_size` under 1, or an empty range of lengths.
    """

    def __init__(
        self,
        config: ModelConfig = CONFIG,
        batch_size: int = 32,
        seed: int = 0,
        shortest: int = SHORTEST,
        longest: int = LONGEST,
        longest_prefix: int = 0,
    ):
        super().__init__(batch_size, seed)
        room = config.vocab_size - longest_prefix
        if not 1 <= shortest <= longest <= room or longest_prefix < 0:
            raise ValueError(
                f"segments of {shortest} to {longest} tokens: they must be in order, from 1 to "
                f"vocab_size - longest_prefix = {room}, and no prefix is shorter than 0."
            )
        self.config, self.shortest, self.longest = config, shortest, longest
        self.longest_prefix = longest_prefix

    def _choices(self, generator: random.Random) -> Iterator[list[int]]:
        while True:
            rows = range(self.batch_size)
            periods = [generator.randint(self.shortest, self.longest) for _ in rows]
            choice = [generator.getrandbits(32), *periods]
            if self.longest_prefix:
                choice += [generator.randint(0, self.longest_prefix) for _ in rows]
            yield choice

    def _batch(self, choice: list[int]) -> Batch:
        seed, *lengths = choice
        periods, prefixes = lengths[: self.batch_size], lengths[self.batch_size :]
        length, vocab_size = self.config.max_len + 1, self.config.vocab_size
        ids = repeated_sequences(periods, length, vocab_size, seed, prefixes)
        inputs, labels = shift_right(ids)
        return Batch((inputs,), labels)


def held_out_batch(period: int = LONGEST, batch_size: int = 64, seed: int = HELD_OUT) -> Batch:
    """Return sequences of one period that no training run with a small seed has seen."""
    batches = RepeatedSequences(CONFIG, batch_size, seed, period, period)
    return next(iter(batches))


def repeated_part(batch: Batch) -> Bool[Tensor, "batch n"]:
    """Return a mask of the predictable labels: the token read there has occurred in its row."""
    (ids,) = batch.inputs
    same = ids[:, :, None] == ids[:, None, :]  # (batch, query, key)
    return same.tril(-1).any(dim=-1)


def after_foreign_tokens(prefix: int, batch_size: int = 64) -> Batch:
    """Return `prefix` foreign tokens followed by a segment of 8 twice, no longer than max_len.

    Args:
        prefix: from 0 to 32.
        batch_size: rows.
    """
    periods, length = [8] * batch_size, prefix + 17
    ids = repeated_sequences(periods, length, CONFIG.vocab_size, HELD_OUT, [prefix] * batch_size)
    inputs, labels = shift_right(ids)
    return Batch((inputs,), labels)


def looking_back(by: int, first: int) -> dict[str, Callable[[Tensor], Tensor]]:
    """Return what `record` takes to make the heads of block 0 look at one fixed distance.

    Args:
        by: how many tokens back they look, with all of their weight.
        first: the first position from which they do; before it they look as they like.
    """

    def replace(weights: Tensor) -> Tensor:
        """Return the weights, (batch, head, query, key), those of late queries replaced."""
        weights = weights.clone()
        late = torch.arange(first, weights.size(-2))
        weights[..., late, :] = F.one_hot(late - by, weights.size(-1)).to(weights.dtype)
        return weights

    return {"decoder.0.self_attention.weights": replace}


@torch.no_grad()
def repeated_accuracy(model: Callable[[Tensor], Tensor], batch: Batch) -> float:
    """Return the share of predictable labels that are the model's likeliest token.

    Args:
        model: from ids to logits: a whole model, or one with parts cut away.
        batch: its inputs and labels.
    """
    right = model(*batch.inputs).argmax(dim=-1) == batch.labels  # (batch, n)
    return right[repeated_part(batch)].float().mean().item()


def stored() -> dict[str, list[dict]]:
    """Return the results of three seeds: "curves" of their training, and the "seeds" themselves.

    Raises:
        ValueError: the file is missing or damaged.
    """
    return read_stored(STORED, f"{__package__}.measure_circuits")
