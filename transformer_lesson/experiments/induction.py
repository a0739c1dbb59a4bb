"""A model just big enough to continue a sequence by looking back: two layers of attention alone.

It is trained on random tokens that repeat. Nothing but the repetition can be predicted, so what
its heads learn can only be how to look back, copied token by token.
"""

import random
from collections.abc import Iterator
from dataclasses import replace

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from transformer_lesson.model.attention import MultiHeadAttention
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.embedding import InputEmbedding
from transformer_lesson.model.hooks import HookPoint
from transformer_lesson.model.masks import causal_mask
from transformer_lesson.model.positions import sinusoidal_encoding
from transformer_lesson.text.batches import Batch, EndlessBatches, shift_right
from transformer_lesson.training.config import TrainConfig

LENGTH, SHORTEST, LONGEST = 48, 6, 24  # tokens read, and in a segment

CONFIG = ModelConfig(
    vocab_size=48,
    d_model=128,
    n_heads=2,
    n_layers=2,
    d_ff=1,  # no feed-forward network here
    max_len=LENGTH,
    dropout=0.0,
    tie_embeddings=False,
    bias=False,
)
TRAINING = TrainConfig(steps=200, learning_rate=8e-3, betas=(0.9, 0.95), epsilon=1e-8)
"""Known to form induction heads; one batch of 32 sequences each step."""


class AttentionBlock(nn.Module):
    """x + attention(x), without norm and feed-forward; positions reach queries and keys only.

    `MultiHeadAttention`'s `rotate` acts after the projections, where a sum of fixed sinusoids
    cannot be learned to mean "the one before". So the sinusoids are added before W_Q and W_K.

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
        """Return what is in the residual stream after this layer."""
        placed = x if self.positions_in_stream else x + self.positions[: x.size(1)]
        return self.output(x + self.self_attention(placed, placed, x, mask))


class AttentionOnlyDecoder(nn.Module):
    """Predicts each next token with attention layers and nothing else between them.

    Everything is linear but the attention weights: each layer adds to the residual stream what
    its heads read, and the logits are one projection of the sum.

    Args:
        config: sizes; d_ff and activation are not used.
        positions_in_stream: add the sinusoids to the embeddings once, as the paper does, instead
            of to every layer's queries and keys.

    Source: Elhage et al., "A Mathematical Framework for Transformer Circuits" (2021).
    Differs: theirs has norms; these are left out, so that what the heads add can be read off.
    """

    def __init__(self, config: ModelConfig = CONFIG, positions_in_stream: bool = False):
        super().__init__()
        self.config = config
        in_stream = "sinusoidal" if positions_in_stream else "rotary"  # rotary: none there
        self.embedding = InputEmbedding(replace(config, positions=in_stream))
        blocks = (AttentionBlock(config, positions_in_stream) for _ in range(config.n_layers))
        self.decoder, self.decoder_norm = nn.ModuleList(blocks), nn.Identity()
        self.projection = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.logits = HookPoint()

    def forward(self, ids: Int64[Tensor, "batch n"]) -> Float[Tensor, "batch n vocab_size"]:
        """Return, at each position, logits for the token that comes next.

        Raises:
            ValueError: a token id outside the vocabulary, or more than max_len tokens.
        """
        x = self.embedding(ids)  # (batch, n, d_model)
        mask = causal_mask(ids.size(1), device=ids.device)
        for block in self.decoder:
            x = block(x, mask)
        return self.logits(self.projection(self.decoder_norm(x)))


def repeated_sequences(
    periods: list[int], length: int, vocab_size: int, seed: int
) -> Int64[Tensor, "batch length"]:
    """Return random sequences, each of which repeats its first tokens again and again.

    The tokens of one segment differ from each other, so that each has one successor.

    Args:
        periods: how long each row's segment is.
        length: tokens in a row.
        vocab_size: how many different tokens there are.
        seed: of the random numbers.

    Raises:
        ValueError: no rows, or a segment longer than the vocabulary or shorter than 1 token.
    """
    if not periods:
        raise ValueError("periods is empty: give the length of at least one segment.")
    for period in periods:
        if not 1 <= period <= vocab_size:
            raise ValueError(
                f"a period is {period}, but a segment has 1 to {vocab_size} different tokens."
            )
    generator = torch.Generator().manual_seed(seed)
    shuffled = torch.rand(len(periods), vocab_size, generator=generator).argsort(dim=1)
    places = torch.arange(length) % torch.tensor(periods)[:, None]  # (batch, length)
    return shuffled.gather(1, places)


class RepeatedSequences(EndlessBatches):
    """Batches of repeated random sequences without end, a segment of random length in each row.

    Args:
        config: of the model that reads them: its vocabulary and its max_len.
        batch_size: rows.
        seed: another seed, other sequences.
        shortest, longest: how many tokens a segment has.

    Raises:
        ValueError: `batch_size` under 1, or lengths between which there is nothing.
    """

    def __init__(
        self,
        config: ModelConfig = CONFIG,
        batch_size: int = 32,
        seed: int = 0,
        shortest: int = SHORTEST,
        longest: int = LONGEST,
    ):
        super().__init__(batch_size, seed)
        if not 1 <= shortest <= longest <= config.vocab_size:
            raise ValueError(
                f"segments of {shortest} to {longest} tokens: they must be in order, from 1 to "
                f"vocab_size = {config.vocab_size}."
            )
        self.config, self.shortest, self.longest = config, shortest, longest

    def _choices(self, generator: random.Random) -> Iterator[list[int]]:
        while True:
            periods = [
                generator.randint(self.shortest, self.longest) for _ in range(self.batch_size)
            ]
            yield [generator.getrandbits(32), *periods]

    def _batch(self, choice: list[int]) -> Batch:
        seed, *periods = choice
        length, vocab_size = self.config.max_len + 1, self.config.vocab_size
        inputs, labels = shift_right(repeated_sequences(periods, length, vocab_size, seed))
        return Batch((inputs,), labels)


def held_out_batch(period: int = LONGEST, batch_size: int = 64, seed: int = 10**6) -> Batch:
    """Return sequences of one period that no training run with a small seed has met."""
    batches = RepeatedSequences(CONFIG, batch_size, seed, period, period)
    return next(iter(batches))


def repeated_part(batch: Batch) -> Bool[Tensor, "batch n"]:
    """Return where a label can be known: the token read there has stood in its row before."""
    (ids,) = batch.inputs
    same = ids[:, :, None] == ids[:, None, :]  # (batch, query, key)
    return same.tril(-1).any(dim=-1)


@torch.no_grad()
def repeated_accuracy(model: nn.Module, batch: Batch) -> float:
    """Return the share of the repeated part's labels that are the model's likeliest token."""
    right = model(*batch.inputs).argmax(dim=-1) == batch.labels  # (batch, n)
    return right[repeated_part(batch)].float().mean().item()
