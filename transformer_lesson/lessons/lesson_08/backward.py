"""Back through the last layers by hand, and a step of Adam.

`training.loss.loss_gradient` begins. Each gradient function takes the gradient G of a result, and
returns the gradients of the arguments; the tests compare them with autograd's. `adam_step` then
moves the weights; the tests compare it with PyTorch's Adam.
"""

import math

from jaxtyping import Float
from torch import Tensor


def projection_gradient(
    H: Float[Tensor, "batch n d_model"],
    W_L: Float[Tensor, "d_model vocab_size"],
    G: Float[Tensor, "batch n vocab_size"],
) -> tuple[Float[Tensor, "batch n d_model"], Float[Tensor, "d_model vocab_size"]]:
    """Return the gradients of H and of W_L, where L = H W_L and G is that of L."""
    return G @ W_L.mT, H.flatten(0, 1).mT @ G.flatten(0, 1)


def softmax_gradient(
    weights: Float[Tensor, "*axes query key"], G: Float[Tensor, "*axes query key"]
) -> Float[Tensor, "*axes query key"]:
    """Return the gradient of the scores, where weights = softmax(scores) and G is theirs."""
    mean = (weights * G).sum(-1, keepdim=True)  # of G, weighted
    return weights * (G - mean)


def layer_norm_gradient(
    x: Float[Tensor, "batch n d_model"],
    gamma: Float[Tensor, " d_model"],
    epsilon: float,
    G: Float[Tensor, "batch n d_model"],
) -> tuple[Float[Tensor, "batch n d_model"], Float[Tensor, " d_model"], Float[Tensor, " d_model"]]:
    """Return the gradients of x, gamma and beta, where G is that of the norm's result."""
    deviation = (x.var(-1, keepdim=True, correction=0) + epsilon).sqrt()
    z = (x - x.mean(-1, keepdim=True)) / deviation
    of_z = G * gamma
    through_mean = of_z.mean(-1, keepdim=True)
    through_deviation = z * (of_z * z).mean(-1, keepdim=True)
    of_x = (of_z - through_mean - through_deviation) / deviation
    return of_x, (G * z).sum((0, 1)), G.sum((0, 1))


def head_gradient(
    Q: Float[Tensor, "batch n d_head"],
    K: Float[Tensor, "batch n d_head"],
    V: Float[Tensor, "batch n d_head"],
    weights: Float[Tensor, "batch n n"],
    G: Float[Tensor, "batch n d_head"],
) -> tuple[Float[Tensor, "batch n d_head"], ...]:
    """Return the gradients of Q, K and V, where G is that of weights V.

    weights = softmax(Q K^T / sqrt(d_head)); a masked key's weight is 0, and so is its gradient.
    """
    of_V = weights.mT @ G
    of_scores = softmax_gradient(weights, G @ V.mT) / math.sqrt(Q.size(-1))
    return of_scores @ K, of_scores.mT @ Q, of_V


def adam_step(
    w: Float[Tensor, "*axes"],
    g: Float[Tensor, "*axes"],
    m: Float[Tensor, "*axes"],
    v: Float[Tensor, "*axes"],
    t: int,
    rate: float,
) -> tuple[Float[Tensor, "*axes"], Float[Tensor, "*axes"], Float[Tensor, "*axes"]]:
    """Return weights and Adam's two means after a step, with the paper's betas and epsilon.

    Args:
        w: the weights.
        g: their gradient in this step.
        m, v: the running means of g and of its square, both 0 before the first step.
        t: the step's number, from 1.
        rate: the learning rate of this step.

    Source: Kingma and Ba, "Adam" (2014), algorithm 1.
    """
    m, v = 0.9 * m + 0.1 * g, 0.98 * v + 0.02 * g * g
    m_hat, v_hat = m / (1 - 0.9**t), v / (1 - 0.98**t)  # as if no mean had started at 0
    return w - rate * m_hat / (v_hat.sqrt() + 1e-9), m, v
