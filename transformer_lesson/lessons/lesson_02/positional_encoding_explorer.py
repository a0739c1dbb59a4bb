"""Sinusoidal positions: clock hands, the whole matrix, one dimension's wave, dot products."""

import traitlets

from transformer_lesson.explorables.in_page import PageExplorable


class PositionalEncodingExplorer(PageExplorable):
    """Turn the hands of a sinusoidal encoding; compare two positions a distance apart.

    Args:
        d_model: numbers per position, even, 2 to 64.
        length: positions drawn, 2 to 64.
        base: the constant of the formula, 10 to 100,000.
        dimension: whose wave is drawn, clipped to the last.
        position: the first of the two positions; moved back if the second would be out of range.
        distance: from the first position to the second.
    """

    d_model = traitlets.Int(16).tag(sync=True)
    length = traitlets.Int(50, min=2, max=64).tag(sync=True)
    base = traitlets.Float(10000.0, min=10, max=100_000).tag(sync=True)
    dimension = traitlets.Int(2, min=0).tag(sync=True)
    position = traitlets.Int(10, min=0).tag(sync=True)
    distance = traitlets.Int(4, min=0).tag(sync=True)

    def __init__(
        self,
        d_model: int = 16,
        length: int = 50,
        base: float = 10000.0,
        dimension: int = 2,
        position: int = 10,
        **values,
    ):
        super().__init__(
            d_model=d_model,
            length=length,
            base=base,
            dimension=dimension,
            position=position,
            **values,
        )

    @traitlets.validate("d_model")
    def _check(self, proposal) -> int:
        d_model = proposal["value"]
        if d_model % 2 or not 2 <= d_model <= 64:
            raise ValueError(f"d_model is {d_model}: choose an even number from 2 to 64.")
        return d_model
