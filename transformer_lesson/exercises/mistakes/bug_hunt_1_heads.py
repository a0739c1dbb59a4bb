"""Lesson 14, first part: half repairs and other bugs of heads and projections."""

import torch

from transformer_lesson.exercises.bug_hunt import bugs_1
from transformer_lesson.exercises.specification import Mistake


def heads_with(x, W_Q, W_K, W_V, scale=None, axis=-1, shared=False, values=None):
    """All heads by einsum, with places for a bug."""
    Q, K, V = (torch.einsum("bnd,hdk->bhnk", x, W) for W in (W_Q, W_K, W_V))
    scores = Q @ K.mT / (scale or Q.size(-1)) ** 0.5
    if shared:
        scores = scores.mean(dim=1, keepdim=True)
    return scores.softmax(dim=axis) @ (V if values is None else values(K, V))


def first_values(K, V):
    """The first head's values for every head."""
    return V[:, :1].expand_as(V)


def linear_if(change):
    """A test of linearity in which `change` says which of Q and K become the sum."""

    def is_linear(attend, x, y):
        together = attend(*change(x, x + y), x + y)
        apart = attend(x, x, x) + attend(*change(x, y), y)
        return torch.allclose(together, apart, atol=1e-5)

    return is_linear


def doubles(attend, x, y):
    """A test of f(2x) = 2 f(x) only."""
    return torch.allclose(attend(2 * x, 2 * x, 2 * x), 2 * attend(x, x, x), atol=1e-5)


def exactly_linear(attend, x, y):
    """A test without room for rounding."""
    z = x + y
    return torch.equal(attend(z, z, z), attend(x, x, x) + attend(y, y, y))


BUG_HUNT_1_HEADS_MISTAKES = {
    "cut_into_heads": (
        Mistake(
            "a view without a transpose",
            "The shape is right and the tokens are mixed: `view` deals numbers out in memory "
            "order, so head 0 holds the first tokens cut in pieces. Cut each token first.",
            lambda *inputs: bugs_1.cut_into_heads(*inputs),
        ),
        Mistake(
            "a transpose before the cut",
            "You turn the whole matrix over and cut then: the rows of a head are pieces of "
            "columns. First cut the last axis, then change places of two axes.",
            lambda x, n_heads: x.T.reshape(n_heads, len(x), -1),
        ),
        Mistake(
            "dealing the heads out like cards",
            "Each token keeps its numbers, but head 0 gets every n_heads-th of them, and W_Q "
            "holds the heads side by side. Head 0 gets the first d_head numbers.",
            lambda x, n_heads: x.view(len(x), -1, n_heads).permute(2, 0, 1),
        ),
        Mistake(
            "an order with tokens in front of heads",
            "Each token is cut well, and the axes stand as (n, head, d_head): products would "
            "compare heads instead of tokens. Bring the heads forward.",
            lambda x, n_heads: x.view(len(x), n_heads, -1),
        ),
        Mistake(
            "an order with tokens last",
            "The axes stand as (head, d_head, n). The last one must be the numbers of one token: "
            "`transpose(0, 1)` alone brings the heads forward.",
            lambda x, n_heads: x.view(len(x), n_heads, -1).permute(1, 2, 0),
        ),
    ),
    "all_heads": (
        Mistake(
            "a loop over the heads",
            "Every number is right, and every head waits for the one before: twelve heads take "
            "twelve times the operations. Let the product take all heads at once.",
            lambda *inputs: bugs_1.all_heads(*inputs),
        ),
        Mistake(
            "a scale by d_model",
            "A head compares d_head numbers, so its scores are divided by the root of d_head. "
            "Yours come out too small, and the weights too even.",
            lambda x, *W: heads_with(x, *W, scale=x.size(-1)),
        ),
        Mistake(
            "one set of weights for all heads",
            "The heads' scores are averaged before the softmax: all heads look at the same "
            "tokens. Each needs a row of weights of its own.",
            lambda *inputs: heads_with(*inputs, shared=True),
        ),
        Mistake(
            "a softmax over the heads",
            "The weights of a query must sum to 1 over the keys, the last axis. Yours sum to 1 "
            "over the heads, as if they voted.",
            lambda *inputs: heads_with(*inputs, axis=1),
        ),
        Mistake(
            "collecting keys in place of values",
            "The weights are right, and what they collect is `x @ W_K`. W_V is there to say what "
            "a token hands over.",
            lambda *inputs: heads_with(*inputs, values=lambda K, V: K),
        ),
        Mistake(
            "the first head's values for every head",
            "An index has stayed: each head collects the values of head 0. W_V has an axis for "
            "the heads, as W_Q has.",
            lambda *inputs: heads_with(*inputs, values=first_values),
        ),
    ),
    "is_linear": (
        Mistake(
            "a test that changes the values alone",
            "With queries and keys held still the weights are fixed numbers, and everything is "
            "linear. Self-attention has one x: it is query and key too.",
            lambda *inputs: bugs_1.is_linear(*inputs),
        ),
        Mistake(
            "holding the queries still",
            "Keys and values change, the queries do not, so a part of the weights' dependence "
            "stays unseen. In self-attention all three are the same x.",
            linear_if(lambda x, z: (x, z)),
        ),
        Mistake(
            "holding the keys still",
            "Queries and values change, the keys do not, so a part of the weights' dependence "
            "stays unseen. In self-attention all three are the same x.",
            linear_if(lambda x, z: (z, x)),
        ),
        Mistake(
            "a test of doubling alone",
            "Attention to the best key passes f(2x) = 2 f(x), because doubling leaves the best "
            "key the best. Linear means more: f(x + y) = f(x) + f(y).",
            doubles,
        ),
        Mistake(
            "a test without room for rounding",
            "`torch.equal` calls even a mean not linear: sums in another order differ in the last "
            "digit. `torch.allclose` leaves room for it.",
            exactly_linear,
        ),
    ),
    "projection_parameters": (
        Mistake(
            "a matrix of d_k by d_k",
            "A token comes to a head with d_model numbers and leaves with d_k. A square matrix of "
            "d_k could not even be multiplied with it, unless there is one head.",
            lambda *inputs: bugs_1.projection_parameters(*inputs),
        ),
        Mistake(
            "a matrix of d_model by d_model for every head",
            "So n_heads heads would be n_heads times as large. A head's matrix has d_k columns; "
            "side by side they are d_model.",
            lambda d_model, n_heads: 3 * n_heads * d_model**2,
        ),
        Mistake(
            "a count of two matrices",
            "Queries and keys are there. The values have a matrix of their own, W_V, as large as "
            "the others.",
            lambda d_model, n_heads: 2 * d_model**2,
        ),
        Mistake(
            "counting W_O in",
            "W_O belongs to the module and comes after the heads. Here only W_Q, W_K and W_V are "
            "asked for: three, not four.",
            lambda d_model, n_heads: 4 * d_model**2,
        ),
        Mistake(
            "counting biases in",
            "Three matrices and a bias for each column. The formula x W has no bias; count the "
            "matrices alone.",
            lambda d_model, n_heads: 3 * d_model**2 + 3 * d_model,
        ),
    ),
}
