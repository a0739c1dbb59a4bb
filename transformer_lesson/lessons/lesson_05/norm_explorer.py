"""What a norm does to six tokens, step by step, and which tokens one token's change affects."""

import traitlets

from transformer_lesson.explorables.in_page import PageExplorable

TOKENS = ["the", "child", "opens", "the", "window", "."]
BLOCK = [
    [0.5, -1.0, 2.0, 0.1],
    [1.5, 0.3, -0.6, 2.4],
    [-0.8, 0.9, 0.2, -1.3],
    [-1.2, 2.1, 0.7, 0.4],
    [0.6, -0.5, 1.1, -2.0],
    [2.2, 1.0, -0.9, 0.3],
]
"""The tokens' numbers before any change, (token, d_model)."""
CONTROLS = ("norm", "shift", "scale", "gamma", "beta", "epsilon")


class NormExplorer(PageExplorable):
    """Shift and scale one token, and see which tokens' outputs that affects through a norm.

    Args:
        norm: "layer", "rms" or "batch".
        shift: added to each number of the changed token, -5 to 5.
        scale: factor of each number of the changed token, 0 to 5.
        gamma, beta: factor and summand after normalizing, the same for every dimension; RMSNorm
            has no beta.
        epsilon: added to the variance, 1e-8 to 10.
        token: the changed one, 0 to 5.
        dimension: whose steps are drawn if tokens share statistics, 0 to 3.
        offered: which controls there are, any of "norm", "shift", "scale", "gamma", "beta" and
            "epsilon"; by default all. That of the step is always there.
        step: how much of the norm is done, from 0 (nothing) to 4 (all).
    """

    tokens = traitlets.List(TOKENS).tag(sync=True, fact=True)
    block = traitlets.List(BLOCK).tag(sync=True, fact=True)
    offered = traitlets.List(traitlets.Enum(CONTROLS), list(CONTROLS)).tag(sync=True, fact=True)
    norm = traitlets.Enum(["layer", "rms", "batch"], "layer").tag(sync=True)
    shift = traitlets.Float(2.0, min=-5, max=5).tag(sync=True)
    scale = traitlets.Float(2.0, min=0, max=5).tag(sync=True)
    gamma = traitlets.Float(1.0, min=-2, max=2).tag(sync=True)
    beta = traitlets.Float(0.0, min=-2, max=2).tag(sync=True)
    epsilon = traitlets.Float(1e-5, min=1e-8, max=10).tag(sync=True)
    token = traitlets.Int(1, min=0, max=5).tag(sync=True)
    dimension = traitlets.Int(0, min=0, max=3).tag(sync=True)
    step = traitlets.Int(4, min=0, max=4).tag(sync=True)

    def __init__(
        self,
        norm: str = "layer",
        shift: float = 2.0,
        scale: float = 2.0,
        gamma: float = 1.0,
        beta: float = 0.0,
        epsilon: float = 1e-5,
        **values,
    ):
        super().__init__(
            norm=norm, shift=shift, scale=scale, gamma=gamma, beta=beta, epsilon=epsilon, **values
        )
