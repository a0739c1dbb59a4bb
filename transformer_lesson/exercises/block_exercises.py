"""Lessons 05 to 07: norms, residuals, blocks, and the test for seeing the future."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lesson.exercises.specification import Draw, Exercise


def _norm(draw: Draw) -> Callable:
    gamma, beta = draw.positive("d_model"), draw.normal("d_model")

    def norm(x: Tensor) -> Tensor:
        return F.layer_norm(x, gamma.shape, gamma.to(x.dtype), beta.to(x.dtype))

    return norm


def _linear(draw: Draw) -> Tensor:
    return draw.normal("d_model d_model") / draw.size("d_model") ** 0.5


def _feed_forward(draw: Draw) -> Callable:
    W_1, W_2 = _linear(draw), _linear(draw)

    def feed_forward(x: Tensor) -> Tensor:
        return (x @ W_1.to(x.dtype)).relu() @ W_2.to(x.dtype)

    return feed_forward


def _attention(draw: Draw) -> Callable:
    W_Q, W_V = _linear(draw), _linear(draw)

    def attention(x: Tensor, memory: Tensor | None = None) -> Tensor:
        memory = x if memory is None else memory
        scores = (x @ W_Q.to(x.dtype)) @ memory.transpose(-2, -1)  # (batch, query, key)
        return scores.softmax(dim=-1) @ memory @ W_V.to(x.dtype)

    return attention


def _decoder_inputs(draw: Draw) -> tuple:
    y, memory = draw.normal("batch target d_model"), draw.normal("batch source d_model")
    attentions = _attention(draw), _attention(draw)
    return y, memory, *attentions, _feed_forward(draw), _norm(draw), _norm(draw), _norm(draw)


class Mixer(nn.Module):
    """A model whose output at each position is a sum over the tokens that it is shown.

    Args:
        draw: gives the sizes and the numbers.
        sees: which token (column) each position (row) sees, shape (n, n).
        words: what the model does, for the report.
    """

    def __init__(self, draw: Draw, sees: Tensor, words: str):
        super().__init__()
        self.table = draw.normal("vocab_size d_model")
        self.weights = (0.5 + torch.rand(sees.shape, generator=draw.generator)) * sees
        self.words = words

    def forward(self, ids: Tensor) -> Tensor:
        """Return one vector per position, shape (batch, n, d_model)."""
        return self.weights @ self.table[ids % len(self.table)]

    def __repr__(self) -> str:
        return f"a model in which {self.words}"


def _leak_inputs(draw: Draw) -> tuple:
    n = draw.size("n", at_least=3)
    causal = torch.ones(n, n).tril()
    second_to_first, third_to_second, last_to_first = torch.zeros(3, n, n)
    second_to_first[0, 1] = third_to_second[1, 2] = last_to_first[0, -1] = 1.0
    cases = (
        (causal + third_to_second, "position 1 also sees token 2, nothing else leaks"),
        (causal, "each position sees the tokens up to its own"),
        (causal + second_to_first, "position 0 also sees token 1, nothing else leaks"),
        (torch.ones(n, n).tril(diagonal=1), "each position sees one token ahead"),
        (causal + last_to_first, "position 0 also sees the last token, nothing else leaks"),
    )
    sees, words = cases[draw.number % len(cases)]
    return Mixer(draw, sees, words), draw.integers("batch n", 0, 30)


BLOCK_EXERCISES = (
    Exercise(
        name="decoder_block",
        reference="transformer_lesson.model.blocks:decoder_block",
        make_inputs=_decoder_inputs,
        returns={"output": "batch target d_model"},
        hints=(
            "Three sub-layers, each in a post-norm residual branch: self-attention, "
            "cross-attention, feed-forward.",
            "`cross_attention(y, memory)`: queries come from the target, keys and values from "
            "the encoder. The residual of that branch is y, not memory.",
            "`y = norm_1(y + self_attention(y))`, then `y = norm_2(y + cross_attention(y, "
            "memory))`, then the feed-forward branch with norm_3.",
        ),
    ),
    Exercise(
        name="leaks_future",
        reference="transformer_lesson.interpretability.causality:leaks_future",
        make_inputs=_leak_inputs,
        returns={"leaks": ""},
        hints=(
            "Change one token and run the model again. Which outputs are allowed to move?",
            "After a change at position t, outputs 0 to t - 1 must stay as they were. A leak may "
            "hide at any t, so try each of them.",
            "For t from 1 to n - 1: clone ids, put another id (0, or 1 where a 0 stands) at "
            "column t, and compare `model(changed)[:, :t]` with `model(ids)[:, :t]`. Return "
            "`True` or `False`.",
        ),
        helpers=("transformer_lesson.interpretability.causality:changed_positions",),
    ),
)
