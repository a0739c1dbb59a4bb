"""Small random models that write different things after different prompts."""

import math

import pytest
import torch
from torch import nn

from tests.parity import small_config
from transformer_lesson.model.transformers import DecoderOnlyTransformer, EncoderDecoderTransformer

PAD, BOS, EOS = 0, 1, 2
KINDS = [DecoderOnlyTransformer, EncoderDecoderTransformer]
SENTENCES = [[4, 7, 5, 9, 12], [3], [8, 8, 6]]


def lively(kind, seed: int = 0, **changes) -> nn.Module:
    """Return a model whose logits hang on what it read: large weights, norms near 1."""
    torch.manual_seed(seed)
    model = kind(small_config(**{"max_len": 20, "pad_id": PAD} | changes)).eval()
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=1.5 * parameter.size(-1) ** -0.5)
        else:
            scale = "norm" in name and name.endswith("weight")
            nn.init.normal_(parameter, mean=float(scale), std=0.2)
    return model


def next_logits(model, sentence: list[int]):
    """Return a function from the ids written so far to the next logits, for one sentence.

    It calls the model anew every time, on one row, without padding and without a cache: what
    `generate` must agree with. `<pad>` is left out.
    """

    @torch.no_grad()
    def logits(ids: list[int]) -> torch.Tensor:
        two = isinstance(model, EncoderDecoderTransformer)
        last = model(*map(torch.tensor, ([sentence], [ids]) if two else ([ids],)))[0, -1]
        last[PAD] = -math.inf
        return last

    return logits


def reading(logits):
    """Return the `read` of a greedy decoder, from the logits as a function of all ids so far."""

    def read(new: list[int], kept: list[int] | None):
        kept = [*(kept or []), *new]
        return logits(kept), kept

    return read


def start_of(model, sentence: list[int]) -> list[int]:
    return [BOS] if isinstance(model, EncoderDecoderTransformer) else sentence


def assert_same(one, other) -> None:
    assert one.ids == other.ids
    assert one.finished == other.finished
    for a, b in zip(one.log_probabilities, other.log_probabilities, strict=True):
        assert a == pytest.approx(b, abs=1e-5)


def padded(sentences: list[list[int]], side: str) -> torch.Tensor:
    n = max(map(len, sentences)) + 1
    fill = [[PAD] * (n - len(sentence)) for sentence in sentences]
    pairs = zip(sentences, fill, strict=True)
    return torch.tensor([s + f if side == "right" else f + s for s, f in pairs])
