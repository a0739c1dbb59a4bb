"""Named points inside a model where a quantity can be watched or replaced.

A `Tap` does nothing: it returns what it is given. Because it is a module with a name
(`encoder.0.self_attention.weights`), PyTorch's own forward hooks can be put on it, and one
mechanism both observes a quantity and replaces it. `recording.record` uses this.
"""

from torch import nn


class Tap(nn.Identity):
    """An identity that marks a quantity worth seeing.

    Source: the hook points of TransformerLens (Nanda and Bloom, 2022).
    """

    @property
    def watched(self) -> bool:
        """True while somebody records or replaces this quantity."""
        return bool(self._forward_hooks)
