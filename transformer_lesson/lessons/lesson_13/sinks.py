"""What a window takes from SmolLM2, on passages of the manual; `measure_sinks` stores it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from transformer_lesson.caching import copied
from transformer_lesson.model.hooks import record
from transformer_lesson.model.masks import sink_mask, window_mask
from transformer_lesson.model.transformers import DecoderOnlyTransformer
from transformer_lesson.stored import read_stored
from transformer_lesson.text import manual
from transformer_lesson.text.tokenizers import Tokenizer

TOKENS, WINDOW, TEXTS = 192, 64, 8
STORED = Path(__file__).with_name("sinks.json")
ASKED = torch.arange(128, TOKENS, 2)
"""Places whose next token is predicted."""
ALONE = "the last 64 tokens, as a text of their own"


def passages(tokenizer: Tokenizer) -> Int[Tensor, "text n"]:
    """Return passages of the manual's unseen part, 193 tokens each."""
    text = manual.split().validation
    starts = range(0, TEXTS * 2500, 2500)
    return torch.tensor([tokenizer.encode(text[i : i + 2000])[: TOKENS + 1] for i in starts])


@torch.no_grad()
def all_weights(model: DecoderOnlyTransformer, ids: Int[Tensor, "1 n"]) -> Float[Tensor, "l h n n"]:
    """Return where each head of each block looks, shape (layer, head, query, key)."""
    with record(model) as run:
        model(ids)
    layers = range(len(model.decoder))
    return torch.cat([run[f"decoder.{i}.self_attention.weights"] for i in layers])


@contextmanager
def seeing(model: DecoderOnlyTransformer, mask: Bool[Tensor, "1 1 n n"]) -> Iterator[None]:
    """Apply a mask in every block of a model, inside the `with` block."""

    def exchange(block: nn.Module, inputs: tuple) -> tuple:
        x, _, *rest = inputs
        return x, mask, *rest

    hooks = [block.register_forward_pre_hook(exchange) for block in model.decoder]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


@torch.no_grad()
def losses(model: DecoderOnlyTransformer, ids: Int[Tensor, " n"]) -> dict[str, float]:
    """Return the mean loss at `ASKED` places of a passage, by what a token may see, in nats."""
    inputs, labels = ids[None, :-1], ids[ASKED + 1]
    masks = {"everything": window_mask(TOKENS, TOKENS), "a window of 64": window_mask(TOKENS, 64)}
    masks |= {f"a window of 64, sinks: {k}": sink_mask(TOKENS, WINDOW, k) for k in (1, 4)}
    results = {}
    for name, mask in masks.items():
        with seeing(model, mask):
            results[name] = F.cross_entropy(model(inputs)[0, ASKED], labels).item()
    logits = model(ids.unfold(0, WINDOW, 1)[ASKED - WINDOW + 1])[:, -1]  # none of them sees more
    return results | {ALONE: F.cross_entropy(logits, labels).item()}


class Passage(NamedTuple):
    """What was measured on one passage.

    Args:
        first: its first token.
        cut: the share of all attention that a window of 64 would take.
        firsts: the share of all attention that it would take from the first token.
        losses: see `losses`.
    """

    first: str
    cut: float
    firsts: float
    losses: dict[str, float]


@copied
def stored() -> list[Passage]:
    """Return what was measured on each passage.

    Raises:
        ValueError: the file is missing or damaged.
    """
    made_by = f"{__package__}.measure_sinks"
    return read_stored(STORED, made_by, lambda rows: [Passage(*row) for row in rows])
