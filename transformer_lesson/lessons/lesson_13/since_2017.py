"""The models of 2017 and of 2026 at the same size, and the rule that compares them.

All models learn to predict the next character of CPython's manual.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from statistics import fmean
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from transformer_lesson.caching import copied
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.parameters import count_parameters
from transformer_lesson.model.transformers import DecoderOnlyTransformer
from transformer_lesson.text import manual
from transformer_lesson.text.batches import Batch, windows_in_order
from transformer_lesson.text.tokenizers import CharacterTokenizer

LENGTH, BATCH_SIZE = 64, 16  # characters in a window, windows in a batch
VALIDATED = 4096  # characters of validation text in a comparison

PAPER_CHOICES = {
    "norm_position": "post",
    "norm": "layer",
    "activation": "relu",
    "positions": "sinusoidal",
    "bias": True,
}
CHANGES = {
    "pre-norm": {"norm_position": "pre"},
    "RMSNorm": {"norm": "rms"},
    "SwiGLU": {"activation": "swiglu"},
    "rotary": {"positions": "rotary"},
    "no biases": {"bias": False},
    "grouped heads": {"n_kv_heads": 2},
}
"""What changed since 2017, in the order in which `ladder` adds it."""
LAST = "+ grouped heads"


class Text(NamedTuple):
    """The manual as character ids, and batches to validate on."""

    tokenizer: CharacterTokenizer
    training: list[int]
    validation: list[Batch]


@copied
def text() -> Text:
    """Return the manual, cut into characters."""
    parts = manual.split()
    tokenizer = CharacterTokenizer.train([parts.training])
    held_out = tokenizer.encode(parts.validation)[: VALIDATED + 1]
    return Text(tokenizer, tokenizer.encode(parts.training), windows_in_order(held_out, 64, LENGTH))


def paper_config() -> ModelConfig:
    """Return the small model of 2017: post-norm, LayerNorm, ReLU, sinusoids, biases."""
    sizes = {"d_model": 64, "n_heads": 4, "n_layers": 2, "d_ff": 256}
    vocab_size = text().tokenizer.vocab_size
    return ModelConfig(vocab_size, max_len=LENGTH, dropout=0.0, **sizes, **PAPER_CHOICES)


def same_size(config: ModelConfig, n_parameters: int) -> ModelConfig:
    """Return the config with the d_ff that brings the model closest to n_parameters."""

    def size(d_ff: int) -> int:
        with torch.device("meta"):  # shapes only
            return count_parameters(DecoderOnlyTransformer(replace(config, d_ff=d_ff)))

    per_column = size(2) - size(1)
    return replace(config, d_ff=max(1, 1 + round((n_parameters - size(1)) / per_column)))


def ladder() -> dict[str, ModelConfig]:
    """Return configs of equal size, from 2017's to 2026's, adding one change at a time."""
    first = paper_config()
    n_parameters = count_parameters(DecoderOnlyTransformer(first))
    choices_so_far = accumulate(CHANGES.values(), lambda before, change: before | change)
    return {"2017": first} | {
        f"+ {name}": same_size(replace(first, **choices), n_parameters)
        for name, choices in zip(CHANGES, choices_so_far, strict=True)
    }


def counts(
    differences: Float[Tensor, "comparison seed"],
) -> Bool[Tensor, " comparison"]:
    """Return which comparisons show a difference: the mean is beyond three standard errors.

    If there is none and seeds scatter normally, it is wrong in 9.5 % of comparisons with three
    seeds, in 1.5 % with ten. A true difference of one standard deviation it finds in 31 % with
    three seeds and in 58 % with ten.

    Args:
        differences: of the losses, seed by seed; at least two seeds.
    """
    error = differences.std(dim=1) / differences.size(1) ** 0.5
    return differences.mean(dim=1).abs() > 3 * error


def verdict(differences: Sequence[float]) -> str:
    """Return "lower loss", "higher loss" or "inside the noise", by `counts`.

    Args:
        differences: new loss minus old one, of each seed.
    """
    if not counts(torch.tensor([differences], dtype=torch.double)).item():
        return "inside the noise"
    return "lower loss" if fmean(differences) < 0 else "higher loss"


def at_their_best(
    old: Float[Tensor, "old_rate seed"], new: Float[Tensor, "new_rate seed"]
) -> tuple[Float[Tensor, " seed"], bool]:
    """Compare two recipes, each at the rate of its own lowest mean loss.

    Args:
        old, new: the loss of each run, one row per rate, from the lowest rate to the highest.

    Returns:
        New minus old of each seed, and whether one of the two best rates is the first or the last
        of its grid, so that a better one may lie beyond.
    """
    best = [int(losses.mean(dim=1).argmin()) for losses in (old, new)]
    edge = any(row in (0, len(one) - 1) for one, row in zip((old, new), best, strict=True))
    return new[best[1]] - old[best[0]], edge
