"""A model over several devices: a pipeline and its bubble, or experts and the fullest device."""

from random import Random

import traitlets

from transformer_lesson.explorables.in_page import PageExplorable
from transformer_lesson.training.pipeline import ORDERS

TOKENS, EXPERTS = 24, 8
POPULARITY = [0.4, 2.2, -0.6, 1.4, 0.8, -1.2, -0.2, -1.6]
"""How much a router favors each expert regardless of the token, as training tends to produce."""


def affinity() -> list[list[float]]:
    """Return how much each token has in common with each expert, shape (token, expert)."""
    draw = Random(15)
    return [[round(draw.gauss(0, 1), 2) for _ in range(EXPERTS)] for _ in range(TOKENS)]


class PipelineExplorer(PageExplorable):
    """Cut a model into stages and a batch into parts, or send tokens to experts; see who waits.

    Args:
        view: "pipeline" or "experts".
        stages: number of devices, each with some of the blocks.
        parts: number of parts of the batch.
        order: in which a stage works; see `order_of_work`.
        devices: number of devices, each with some of the 8 experts.
        chosen: experts per token.
        favorites: how much the router prefers some experts, from 0 to 1.
        time: how far the work is done, in steps, clipped to the end.
    """

    view = traitlets.Enum(("pipeline", "experts"), "pipeline").tag(sync=True)
    stages = traitlets.Int(4, min=1, max=8).tag(sync=True)
    parts = traitlets.Int(4, min=1, max=16).tag(sync=True)
    order = traitlets.Enum(ORDERS, "GPipe").tag(sync=True)
    devices = traitlets.Enum((2, 4, 8), 4).tag(sync=True)
    chosen = traitlets.Enum((1, 2), 1).tag(sync=True)
    favorites = traitlets.Float(1.0, min=0, max=1).tag(sync=True)
    time = traitlets.Int(99, min=0, max=99).tag(sync=True)
    affinity = traitlets.List(affinity()).tag(sync=True, fact=True)
    popularity = traitlets.List(POPULARITY).tag(sync=True, fact=True)
