"""Models that learn in milliseconds, batches for each of them, and runs of a few steps."""

import torch

from tests.parity import small_config
from transformer_lesson import (
    DecoderOnlyTransformer,
    EncoderDecoderTransformer,
    EncoderOnlyTransformer,
)
from transformer_lesson.text.batches import Batch
from transformer_lesson.text.pairs import Pair
from transformer_lesson.training import History, TrainConfig, train
from transformer_lesson.training.recipes import Recipe

PAD, BOS, EOS = 0, 1, 2
SIZES = {"d_model": 8, "n_heads": 2, "n_layers": 1, "d_ff": 8, "max_len": 40}
TINY = Recipe(SIZES, TrainConfig(steps=6, learning_rate=1e-2, warmup_steps=1), batch_size=4)
NOUNS = {"dog": "Hund", "man": "Mann", "boy": "Junge", "king": "König"}
VERBS = {"sleeps": "schläft", "laughs": "lacht", "sings": "singt", "waits": "wartet"}
PAIRS = [Pair(f"the {n} {v}", f"der {m} {w}") for n, m in NOUNS.items() for v, w in VERBS.items()]
KINDS = ("language model", "translator", "classifier", "token head")


def model_of(kind: str, seed: int = 0, **changes):
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
    return [batch_of(kind, seed) for seed in range(n)]


def short(steps: int = 6, **changes) -> TrainConfig:
    settings = {"warmup_steps": 2, "learning_rate": 1e-2, "label_smoothing": 0.1}
    return TrainConfig(steps=steps, **settings | changes)


def run(config: TrainConfig, *more, kind: str = "translator", dropout: float = 0.1, **options):
    """Train a small model on seven batches; return it and its history."""
    model = model_of(kind, dropout=dropout)
    return model, train(model, batches_of(kind), config, *more, **options)


def history_of(config: TrainConfig, *more, **options) -> History:
    return run(config, *more, **options)[1]


def weights(model) -> torch.Tensor:
    return torch.cat([weight.detach().flatten() for weight in model.parameters()])
