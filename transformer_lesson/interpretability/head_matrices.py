"""What a head does, read off its weights: no input, no forward pass.

A head's four matrices act in pairs. W_Q W_K^T says which token looks at which; W_V W_O says what
is written into the stream when it looks.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from transformer_lesson.model.attention import MultiHeadAttention


class HeadMatrices(NamedTuple):
    """The matrices of one head, each multiplied from the right, as the formulas write them."""

    W_Q: Float[Tensor, "d_model d_head"]
    W_K: Float[Tensor, "d_model d_head"]
    W_V: Float[Tensor, "d_model d_head"]
    W_O: Float[Tensor, "d_head d_model"]

    @property
    def QK(self) -> Float[Tensor, "d_model d_model"]:
        """W_Q W_K^T / sqrt(d_head): x QK y^T is the score that a query x gives to a key y."""
        return self.W_Q @ self.W_K.T / math.sqrt(self.W_Q.size(1))

    @property
    def OV(self) -> Float[Tensor, "d_model d_model"]:
        """W_V W_O: x OV is what the head adds where it looks at x with weight 1."""
        return self.W_V @ self.W_O


def head_matrices(attention: MultiHeadAttention, head: int) -> HeadMatrices:
    """Return the matrices of one head of an attention layer without biases.

    Several query heads may share W_K and W_V. Positions that act on scores, norms of queries and
    keys, and caps are in none of the matrices.

    Args:
        attention: of any of the package's models; `nn.Linear` stores the transposes. Where its
            scores have another scale than 1 / sqrt(d_head), W_Q holds the difference.
        head: which head, from 0.

    Raises:
        ValueError: there is no such head.

    Source: Elhage et al., "A Mathematical Framework for Transformer Circuits" (2021).
    """
    if not 0 <= head < attention.n_heads:
        raise ValueError(f"head is {head}, but there are heads 0 to {attention.n_heads - 1}.")
    d_head = attention.W_Q.out_features // attention.n_heads
    columns, shared = (
        slice(i * d_head, (i + 1) * d_head)
        for i in (head, head * attention.n_kv_heads // attention.n_heads)
    )
    W_Q, W_O = attention.W_Q.weight.detach().T[:, columns], attention.W_O.weight.detach().T[columns]
    W_K, W_V = (W.weight.detach().T[:, shared] for W in (attention.W_K, attention.W_V))
    if attention.query_factor is not None:
        W_Q = W_Q * attention.query_factor
    return HeadMatrices(W_Q, W_K, W_V, W_O)


def copying_score(table: Float[Tensor, "token token"]) -> float:
    """Return how much a table raises each token's own column: sum of eigenvalues / sum of sizes.

    Args:
        table: W_E W_V W_O W_U of a head: row s is what reading token s adds to each token's logit.

    Returns:
        1 where every eigenvalue is positive (reading a token raises its own logit), -1 where
        every one is negative (reading it lowers its own), about 0 at random.

    Source: Elhage et al. (2021), "Detecting copying behavior".
    """
    eigenvalues = torch.linalg.eigvals(table)
    return (eigenvalues.real.sum() / eigenvalues.abs().sum()).item()


def composition(
    first: Float[Tensor, "d_model d_model"], second: Float[Tensor, "d_model d_model"]
) -> float:
    """Return how much of what one matrix writes the next one reads.

    Formula: |first second| / (|first| |second|), with Frobenius norms.

    Args:
        first: OV of an earlier head.
        second: of a later head: QK^T for keys (K-composition), QK for queries (Q-composition),
            OV for values (V-composition).

    Returns:
        From 0 to 1; two random ones of rank d_head give about 1 / sqrt(d_model).

    Source: Elhage et al. (2021), "Three kinds of composition".
    """
    return (torch.linalg.norm(first @ second) / first.norm() / second.norm()).item()
