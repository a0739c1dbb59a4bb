"""What a block computes for each token by itself: the paper's network, and today's gated one."""

from functools import partial

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.hooks import HookPoint

ACTIVATIONS = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "swish": F.silu,
}
GATES = {"swiglu": ACTIVATIONS["swish"], "geglu": ACTIVATIONS["gelu_tanh"]}


def feed_forward(
    x: Float[Tensor, "*batch d_model"],
    W_1: Float[Tensor, "d_model d_ff"],
    b_1: Float[Tensor, " d_ff"],
    W_2: Float[Tensor, "d_ff d_model"],
    b_2: Float[Tensor, " d_model"],
) -> Float[Tensor, "*batch d_model"]:
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, the same for every token, each token by itself.

    Args:
        x: shape (..., d_model).
        W_1, b_1: shapes (d_model, d_ff) and (d_ff,).
        W_2, b_2: shapes (d_ff, d_model) and (d_model,).

    Source: "Attention Is All You Need" (2017), equation 2.
    """
    return (x @ W_1 + b_1).relu() @ W_2 + b_2


class FeedForward(nn.Module):
    """Two linear maps with an activation between them, applied to each token by itself.

    Source: "Attention Is All You Need" (2017), equation 2.
    Differs: GPT and BERT use GELU instead of ReLU, and T5 has no biases.
    """

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.W_1 = nn.Linear(config.d_model, config.d_ff, bias=config.feed_forward_bias)
        self.W_2 = nn.Linear(config.d_ff, config.d_model, bias=config.feed_forward_bias)
        self.activation = ACTIVATIONS[config.activation]
        self.dropout = nn.Dropout(config.feed_forward_dropout)
        self.hidden = HookPoint()

    def forward(self, x: Float[Tensor, "batch n d_model"]) -> Float[Tensor, "batch n d_model"]:
        """Widen to d_ff, activate, narrow back to d_model."""
        hidden = self.hidden(self.activation(self.W_1(x)))  # (batch, n, d_ff)
        return self.W_2(self.dropout(hidden))


def swiglu(
    x: Float[Tensor, "*batch d_model"],
    W_gate: Float[Tensor, "d_model d_ff"],
    W_up: Float[Tensor, "d_model d_ff"],
    W_down: Float[Tensor, "d_ff d_model"],
) -> Float[Tensor, "*batch d_model"]:
    """(swish(x W_gate) * x W_up) W_down, with swish(z) = z * sigmoid(z).

    One map decides how much of the other passes. There are three matrices instead of two: with
    d_ff at two thirds, as many numbers as in the paper's network.

    Args:
        x: shape (..., d_model).
        W_gate, W_up: shape (d_model, d_ff), multiplied from the right.
        W_down: shape (d_ff, d_model).

    Source: Shazeer, "GLU Variants Improve Transformer" (2020), equation 6.
    """
    return (F.silu(x @ W_gate) * (x @ W_up)) @ W_down


class GatedFeedForward(nn.Module):
    """SwiGLU or GeGLU: a gate decides how much of each hidden number passes. No biases.

    Source: Shazeer, "GLU Variants Improve Transformer" (2020); Llama's feed-forward network, and
        Gemma's.
    """

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.W_gate = nn.Linear(config.d_model, config.d_ff, bias=False)
        self.W_up = nn.Linear(config.d_model, config.d_ff, bias=False)
        self.W_down = nn.Linear(config.d_ff, config.d_model, bias=False)
        self.gate = GATES[config.activation]
        self.dropout = nn.Dropout(config.feed_forward_dropout)
        self.hidden = HookPoint()

    def forward(self, x: Float[Tensor, "batch n d_model"]) -> Float[Tensor, "batch n d_model"]:
        """Widen to d_ff twice, let one gate the other, narrow back to d_model."""
        hidden = self.hidden(self.gate(self.W_gate(x)) * self.W_up(x))  # (batch, n, d_ff)
        return self.W_down(self.dropout(hidden))


def make_feed_forward(config: ModelConfig) -> nn.Module:
    """Return the feed-forward network that the config's activation asks for."""
    return (GatedFeedForward if config.activation in GATES else FeedForward)(config)
