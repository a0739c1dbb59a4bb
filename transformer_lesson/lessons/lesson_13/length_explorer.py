"""A model reads further than it was trained: its loss with other rotary positions, or a window."""

import traitlets
from ipywidgets import widget_serialization
from torch import Tensor, nn

from transformer_lesson.explorables.in_page import PageExplorable, Weights, bare_weights

LENGTH = 256
"""Tokens of each window that is read."""
STRIDE = 64
"""Tokens from one window's beginning to the next: each quarter of a window reads the same text."""


class LengthExplorer(PageExplorable):
    """Turn base, factor and window, and read the loss at each position, in the page.

    The model reads windows of 256 tokens, of which each begins 64 tokens after the one before. No
    weight changes, only how fast each pair of a query and key turns, and how far a token sees.

    Args:
        model: a decoder with rotary positions, in evaluation mode, with room for 256 tokens.
        ids: the text, shape (n,), of at least 257 tokens.
        trained_length: tokens of the texts that the model learned on.
        log10_base: logarithm of the base of the rotary angles, from 2 to 6; at first the model's.
        factor: the positions are divided by it, from 1 to 8.
        by_parts: divide only the positions of pairs that turned slowly in training, as
            `stretched_frequencies` does.
        window: how many tokens each one sees, itself included; 256 for all.

    Raises:
        ValueError: a model in training mode or that no page can repeat, other positions, too short
            a text or too little room.
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
