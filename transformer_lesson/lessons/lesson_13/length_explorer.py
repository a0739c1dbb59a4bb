"""A model reads longer texts than in training: its loss with other rotary angles, or a window."""

import traitlets
from ipywidgets import widget_serialization
from torch import Tensor, nn

from transformer_lesson.explorables.in_page import PageExplorable, Weights, bare_weights

LENGTH = 256
"""Tokens per window."""


class LengthExplorer(PageExplorable):
    """Turn base, factor and window, and read the loss at each position, in the page.

    The model reads windows of 256 tokens, each starting 64 tokens after the previous one. No weight
    changes, only how fast each pair of a query and key turns, and how far a token sees.

    Args:
        model: a decoder with rotary positions, in evaluation mode, with max_len of at least 256.
        ids: the text, shape (n,), of at least 257 tokens.
        trained_length: length of the training texts in tokens.
        log10_base: logarithm of the base of the rotary angles, from 2 to 6; by default the model's.
        factor: positions are divided by it, from 1 to 8.
        by_parts: divide only the positions of pairs that turned slowly in training, as
            `stretched_frequencies` does.
        window: how many tokens each token sees, including itself; 256 for all.

    Raises:
        ValueError: a model in training mode or that a page cannot run, other positions, too short
            a text or too small a max_len.
    """

    weights = traitlets.Instance(Weights).tag(sync=True, fact=True, **widget_serialization)
    missing = traitlets.Unicode().tag(sync=True, fact=True)
    ids = traitlets.List().tag(sync=True, fact=True)
    trained_length = traitlets.Int(64).tag(sync=True, fact=True)
    log10_base = traitlets.Float(4.0, min=2, max=6).tag(sync=True)
    factor = traitlets.Float(1.0, min=1, max=8).tag(sync=True)
    by_parts = traitlets.Bool(False).tag(sync=True)
    window = traitlets.Int(LENGTH, min=8, max=LENGTH).tag(sync=True)

    def __init__(self, model: nn.Module, ids: Tensor, trained_length: int = 64, **values):
        weights = bare_weights(model)
        if model.config.positions != "rotary":
            raise ValueError(f"positions are {model.config.positions!r}: pass a rotary model.")
        if model.config.max_len < LENGTH or len(ids) <= LENGTH:
            raise ValueError(
                f"max_len is {model.config.max_len} and there are {len(ids)} ids: a window needs "
                f"room for {LENGTH} tokens, and a text one more."
            )
        super().__init__(weights=weights, ids=ids.tolist(), trained_length=trained_length, **values)
