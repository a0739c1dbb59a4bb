"""Latent attention: one short vector per token, from which every head makes its keys and values.

The vector c = x W_down is what a cache holds. Keys and values of every head are maps of it, and
those maps can be moved to the other side of each product,

    q . (c W_K) = (q W_K^T) . c,        sum of weight (c W_V) = (sum of weight c) W_V,

so keys and values need not be written out: attention reads the short vectors themselves.

Source: DeepSeek-AI, "DeepSeek-V2" (2024), section 2.1.
Differs: the few extra numbers of each query and key that carry rotary positions are left out here,
because a rotation between q and c would prevent the move.
"""

from jaxtyping import Float
from torch import Tensor

from transformer_lesson.model.attention import scaled_dot_product_attention


def latent_attention(
    Q: Float[Tensor, "batch head query d_head"],
    c: Float[Tensor, "batch key d_latent"],
    W_K: Float[Tensor, "head d_latent d_head"],
    W_V: Float[Tensor, "head d_latent d_head"],
    mask: Tensor | None = None,
) -> Float[Tensor, "batch head query d_head"]:
    """Attention on keys and values written out from the latent vectors.

    Args:
        Q: queries, shape (batch, head, query, d_head).
        c: what is kept of each token, shape (batch, key, d_latent).
        W_K, W_V: each head's maps, shape (head, d_latent, d_head).
        mask: `True` = may attend; broadcasts to (batch, head, query, key).
    """
    K, V = c[:, None] @ W_K, c[:, None] @ W_V  # (batch, head, key, d_head)
    return scaled_dot_product_attention(Q, K, V, mask)[0]


def latent_attention_moved(
    Q: Float[Tensor, "batch head query d_head"],
    c: Float[Tensor, "batch key d_latent"],
    W_K: Float[Tensor, "head d_latent d_head"],
    W_V: Float[Tensor, "head d_latent d_head"],
    mask: Tensor | None = None,
) -> Float[Tensor, "batch head query d_head"]:
    """The same output as `latent_attention`, without any head's keys or values.

    The queries move to the space of the latent vectors, and one key head, c itself, serves all.
    """
    d_latent, d_head = W_K.shape[1:]
    scale = (d_latent / d_head) ** 0.5  # so that scores are divided by sqrt(d_head) in the end
    queries = Q @ W_K.mT * scale  # (batch, head, query, d_latent)
    shared = c[:, None].expand(-1, Q.size(1), -1, -1)  # keys and values of all heads
    means, _ = scaled_dot_product_attention(queries, shared, shared, mask)
    return means @ W_V  # (batch, head, query, d_head)
