"""Replace one token and see which outputs move: a model that sees the future gives itself away."""

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Literal

import torch
import traitlets
from jaxtyping import Int
from torch import Tensor, nn

from transformer_lesson.explorables.in_page import PageExplorable
from transformer_lesson.files import printable
from transformer_lesson.interpretability.causality import Model, changed_positions
from transformer_lesson.model.blocks import DecoderBlock
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.masks import causal_mask
from transformer_lesson.model.transformers import DecoderOnlyTransformer, EncoderOnlyTransformer
from transformer_lesson.text.tokenizers import words

SENTENCE = "Every object has an identity, a type and a value."
THRESHOLD = 1e-5
"""Changes up to this are rounding, as in `causality.leaks_future`."""
LONGEST = 24
"""Most tokens in the picture."""


def example_models() -> dict[str, Model]:
    """Return untrained models by name: a causal one, and four that are not.

    All are functions from ids (batch, n) to outputs (batch, n, numbers) for a vocabulary of 16.
    """
    config = ModelConfig(vocab_size=16, d_model=32, n_heads=4, n_layers=2, d_ff=64, max_len=16)
    with torch.random.fork_rng(devices=[]):  # leave the learner's generator alone
        torch.manual_seed(0)
        decoder = DecoderOnlyTransformer(config).eval()
        encoder = EncoderOnlyTransformer(config).eval()
        two_attentions = nn.ModuleList(DecoderBlock(config) for _ in range(2)).eval()

    def masked_by(make_mask):
        """Return the decoder with another mask; make_mask returns it for n tokens."""

        def model(ids):
            x = decoder.embedding(ids)  # (batch, n, d_model)
            for block in decoder.decoder:
                x = block(x, make_mask(ids.size(1)))
            return decoder.projection(decoder.decoder_norm(x))  # (batch, n, vocab_size)

        return model

    def second_unmasked(ids):
        x = decoder.embedding(ids)  # (batch, n, d_model)
        for block in two_attentions:
            x = block(x, memory=x, mask=causal_mask(ids.size(1)))  # no memory_mask
        return decoder.projection(decoder.decoder_norm(x))  # (batch, n, vocab_size)

    return {
        "decoder-only, causal mask": decoder,
        "no mask at all": masked_by(lambda n: None),
        "mask shifted by one": masked_by(lambda n: torch.ones(1, 1, n, n).tril(1).bool()),
        "second attention without a mask": second_unmasked,
        "encoder-only, sees all by design": encoder,
    }


def rounded_changes(model: Model, ids: Int[Tensor, "1 n"]) -> list[list[float | None]]:
    """Return how far each output moves, one row per replaced token.

    Changes have two digits; rounding errors count as 0, NaN and infinity become None.
    """

    def rounded(change: float) -> float | None:
        if not math.isfinite(change):
            return None
        return float(f"{change:.2g}") if change > THRESHOLD else 0.0

    rows = [changed_positions(model, ids, i).tolist() for i in range(ids.size(1))]
    return [[rounded(change) for change in row] for row in rows]


class LeakProbe(PageExplorable):
    """Choose a model, replace one token after another, and see which outputs move.

    Only what was tried is shown: a model's verdict appears once every token was replaced.

    Args:
        models: functions by name, from ids (1, n) to outputs (1, n, anything), in evaluation
            mode; by default a causal model and four that are not.
        ids: the sentence's token ids, at most 24, from the models' vocabulary, which must also
            have ids 0 and 1. Required with your own models; the default ones know 16 ids.
        tokens: the sentence's words, for the labels; by default the ids.
        model, position: the probed model and the replaced token; by default the first.
        tried: pairs of a model and a position tried so far; `True` means all.

    Raises:
        ValueError: sizes that do not fit, or a model in training mode.
    """

    tokens = traitlets.List().tag(sync=True, fact=True)
    changes = traitlets.Dict().tag(sync=True, fact=True)
    threshold = traitlets.Float(THRESHOLD).tag(sync=True, fact=True)
    model = traitlets.Unicode().tag(sync=True)
    position = traitlets.Int(min=0).tag(sync=True)
    tried = traitlets.List().tag(sync=True)

    def __init__(
        self,
        models: Mapping[str, Model] | None = None,
        ids: Int[Tensor, "1 n"] | None = None,
        tokens: list[str] | None = None,
        tried: Sequence[tuple[str, int]] | Literal[True] = (),
        **values,
    ):
        if models is ids is tokens is None:
            tokens = words(SENTENCE)
            vocabulary = sorted(set(tokens))
            ids = torch.tensor([[vocabulary.index(token) for token in tokens]])  # (1, n)
        models = example_models() if models is None else models
        _check(models, ids, tokens)
        changes = {
            printable(name, 60): rounded_changes(model, ids) for name, model in models.items()
        }
        if tried is True:
            tried = list(product(changes, range(ids.size(1))))
        super().__init__(
            tokens=[printable(token, 40) for token in tokens or map(str, ids[0].tolist())],
            changes=changes,
            tried=[list(pair) for pair in tried],
            **({"model": next(iter(changes))} | values),
        )


def _check(models: Mapping[str, Model], ids: Tensor | None, tokens: list[str] | None) -> None:
    if not isinstance(models, Mapping) or not models:
        raise ValueError('models must be a dict of at least one model: {"mine": model}.')
    if ids is None or ids.dim() != 2 or ids.size(0) != 1 or not ids.numel():
        shape = None if ids is None else tuple(ids.shape)
        raise ValueError(f"ids have shape {shape}, but one sentence is (1, n); use ids[None].")
    if ids.size(1) > LONGEST:
        raise ValueError(
            f"ids have {ids.size(1)} tokens, but the picture has room for {LONGEST}: pass "
            f"ids[:, :{LONGEST}]."
        )
    if tokens is not None and len(tokens) != ids.size(1):
        raise ValueError(f"there are {len(tokens)} tokens for {ids.size(1)} ids: give one each.")
    for name, model in models.items():
        if getattr(model, "training", False):
            raise ValueError(
                f"{name!r} is in training mode, where dropout moves everything: "
                "call its .eval() first."
            )
