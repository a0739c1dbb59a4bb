"""Models that learn in milliseconds, and batches for each of the three."""

import torch

from tests.parity import small_config
from transformer_lesson import (
    DecoderOnlyTransformer,
    EncoderDecoderTransformer,
    EncoderOnlyTransformer,
)
from transformer_lesson.text.batches import Batch
from transformer_lesson.training import TrainConfig

PAD, BOS, EOS = 0, 1, 2
KINDS = ("language model", "translator", "classifier", "token head")


def model_of(kind: str, seed: int = 0, **changes):
    """Return a small model with dropout; the same seed gives the same weights."""
    config = small_config(**{"pad_id": PAD, "dropout": 0.1, "d_model": 16} | changes)
    torch.manual_seed(seed)
    return {
        "language model": lambda: DecoderOnlyTransformer(config),
        "translator": lambda: EncoderDecoderTransformer(config),
        "classifier": lambda: EncoderOnlyTransformer(config, n_classes=3),
        "token head": lambda: EncoderOnlyTransformer(config, token_head=True),
    }[kind]()


def batch_of(kind: str, seed: int = 0) -> Batch:
    """Return five sentences of up to 6 tokens, with padding, and something to find out."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(3, 13, (5, 6), generator=generator)
    ids[0, 4:] = ids[1, 5:] = PAD
    shifted = ids.roll(1, dims=1).index_fill(1, torch.tensor([0]), BOS).where(ids != PAD, PAD)
    if kind == "classifier":
        return Batch((ids,), ids[:, 0] % 3)
    if kind == "translator":
        return Batch((ids, shifted), ids)
    if kind == "language model":
        return Batch((shifted,), ids)
    return Batch((ids,), ids.where(torch.arange(6) % 2 == 0, PAD))


def batches_of(kind: str, n: int = 7) -> list[Batch]:
    """Return n different batches."""
    return [batch_of(kind, seed) for seed in range(n)]


def short(steps: int = 6, **changes) -> TrainConfig:
    """Return a config of a few steps."""
    settings = {"warmup_steps": 2, "learning_rate": 1e-2, "label_smoothing": 0.1}
    return TrainConfig(steps=steps, **settings | changes)


def weights(model) -> torch.Tensor:
    """Return all weights as one long vector, copied."""
    return torch.cat([weight.detach().flatten() for weight in model.parameters()])
