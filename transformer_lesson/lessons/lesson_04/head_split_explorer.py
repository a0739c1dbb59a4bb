"""Twelve numbers split into heads: the right way, and the way that mixes up tokens."""

import traitlets

from transformer_lesson.explorables.in_page import PageExplorable

SIZES = [[3, 4, 2], [2, 6, 2], [2, 6, 3], [4, 3, 3], [6, 2, 2]]
"""The interesting ways to divide twelve numbers, as [tokens, d_model, n_heads]."""


class HeadSplitExplorer(PageExplorable):
    """Compare `view(heads, n, d_head)` with `view(n, heads, d_head).transpose(0, 1)`.

    Args:
        sizes: (tokens, d_model, n_heads), one of `SIZES`.
        transposed: whether the split is the right one.
        number: which of the twelve to follow, in memory order from 0.
        step: how much of the split is done, from 0 (nothing) to 3 (all).
    """

    all_sizes = traitlets.List(SIZES).tag(sync=True, fact=True)
    sizes = traitlets.List().tag(sync=True)
    transposed = traitlets.Bool(False).tag(sync=True)
    number = traitlets.Int(4, min=0, max=11).tag(sync=True)
    step = traitlets.Int(3, min=0, max=3).tag(sync=True)

    def __init__(self, sizes=(3, 4, 2), transposed: bool = False, **values):
        super().__init__(sizes=list(sizes), transposed=transposed, **values)

    @traitlets.validate("sizes")
    def _check(self, proposal) -> list[int]:
        if proposal["value"] not in SIZES:
            known = ", ".join(f"({n}, {d_model}, {heads})" for n, d_model, heads in SIZES)
            raise ValueError(f"sizes are {proposal['value']}: choose one of {known}.")
        return proposal["value"]
