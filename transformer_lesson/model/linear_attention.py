"""Attention without softmax: a matrix of fixed size remembers everything that was read.

Without softmax a query's output is a sum over the tokens up to it, and its brackets can be moved:

    o_t = sum over s <= t of (q_t . k_s) v_s = q_t (sum over s <= t of k_s^T v_s) = q_t S_t.

So no keys and values need to be kept: the state S_t, a matrix of (d_k, d_v), is all there is.
"""

import torch
from jaxtyping import Float
from torch import Tensor


def linear_attention(
    Q: Float[Tensor, "*batch n d_k"],
    K: Float[Tensor, "*batch n d_k"],
    V: Float[Tensor, "*batch n d_v"],
) -> Float[Tensor, "*batch n d_v"]:
    """Return (Q K^T, zero for keys after the query) V: all tokens at once, as in training.

    Args:
        Q, K: queries and keys, shape (..., n, d_k), whatever map made them.
        V: values, shape (..., n, d_v).

    Source: Katharopoulos et al., "Transformers are RNNs" (2020), section 3.2 and 3.3.
    Differs: they apply elu(x) + 1 to queries and keys and divide by the sum of the weights. Many
        later models leave both out and normalize the output, as RetNet (2023) does.
    """
    return (Q @ K.mT).tril() @ V  # (..., query, key) @ (..., key, d_v)


def linear_attention_step(
    state: Float[Tensor, "d_k d_v"],
    q: Float[Tensor, " d_k"],
    k: Float[Tensor, " d_k"],
    v: Float[Tensor, " d_v"],
) -> tuple[Float[Tensor, " d_v"], Float[Tensor, "d_k d_v"]]:
    """Read one more token: S = S + k^T v, o = q S. The same numbers as `linear_attention`.

    The token is written before it is read, because it sees itself. There is no normalizer.

    Args:
        state: what was read so far; zeros before the first token.
        q, k, v: the new token's query, key and value.

    Returns:
        The output, shape (d_v,), and the new state; the old one stays as it is.

    Source: Katharopoulos et al., "Transformers are RNNs" (2020), equations 16 to 20.
    """
    state = state + torch.outer(k, v)  # (d_k, d_v)
    return q @ state, state


def delta_step(
    state: Float[Tensor, "d_k d_v"],
    q: Float[Tensor, " d_k"],
    k: Float[Tensor, " d_k"],
    v: Float[Tensor, " d_v"],
    beta: float = 1.0,
) -> tuple[Float[Tensor, " d_v"], Float[Tensor, "d_k d_v"]]:
    """Like `linear_attention_step`, but a key that comes again has its value replaced.

    S = S + beta k^T (v - k S): look up what the state holds at this key, and write the difference.

    Args:
        state: what was read so far.
        q, k, v: the new token's query, key and value; k has length 1.
        beta: 1 replaces the old value, 0 keeps it.

    Source: Schlag et al., "Linear Transformers Are Secretly Fast Weight Programmers" (2021),
        section 4.2; with a decay of the state it is the gated delta rule of Yang et al. (2024).
    """
    state = state + beta * torch.outer(k, v - k @ state)  # (d_k, d_v)
    return q @ state, state
