"""What a vector holds, read by a linear probe; and a push along a line, to see what it changes.

A probe proves that something can be read. Whether the model reads it, only an intervention shows.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def fit_probe(
    vectors: Float[Tensor, "n d_model"], yes: Bool[Tensor, " n"], ridge: float = 0.01
) -> Float[Tensor, " d_model_and_1"]:
    """Return the linear map that comes closest to +1 where yes and to -1 elsewhere.

    Formula: w = (X^T X + ridge n I)^-1 X^T y, X with a column of ones for the bias.

    Args:
        vectors: one per example.
        yes: which of two classes each example has.
        ridge: how much large weights cost, to avoid fitting noise.

    Raises:
        ValueError: examples of one class only.

    Source: Alain and Bengio, "Understanding intermediate layers using linear classifier probes"
        (2016).
    Differs: least squares, for which one formula suffices, instead of logistic regression.
    """
    if yes.all() or not yes.any():
        raise ValueError(f"all {len(yes)} examples have the same class: give examples of both.")
    X = torch.cat([vectors, torch.ones(len(vectors), 1)], dim=1).double()
    y = torch.where(yes, 1.0, -1.0).double()
    squares = X.T @ X + ridge * len(X) * torch.eye(X.size(1), dtype=X.dtype)
    return torch.linalg.solve(squares, X.T @ y).float()


def probe_accuracy(
    weights: Float[Tensor, " d_model_and_1"],
    vectors: Float[Tensor, "n d_model"],
    yes: Bool[Tensor, " n"],
) -> float:
    """Return the share of examples that lie on their class's side of a probe."""
    predicted = vectors @ weights[:-1] + weights[-1] > 0
    return (predicted == yes).float().mean().item()
