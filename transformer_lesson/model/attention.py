"""Attention: every query takes a weighted mean of the values, weighted by query-key similarity."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer_lesson.model import fast
from transformer_lesson.model.cache import NO_CACHE, LayerCache, NoCache
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.hooks import HookPoint
from transformer_lesson.model.masks import Mask, check_mask, written_out

Rotation = Callable[[Tensor, int], Tensor]


def attention_scores(
    Q: Float[Tensor, "*batch query d_head"], K: Float[Tensor, "*batch key d_head"]
) -> Float[Tensor, "*batch query key"]:
    """Return how well each query matches each key: Q K^T / sqrt(d_head).

    For independent numbers of variance 1 a dot product has variance d_head; the root brings it
    back to 1, so that softmax does not saturate.

    Args:
        Q: queries, shape (..., query, d_head).
        K: keys, shape (..., key, d_head).

    Source: "Attention Is All You Need" (2017), equation 1 and footnote 4.
    """
    if Q.size(-1) != K.size(-1):
        raise ValueError(f"queries have {Q.size(-1)} numbers, keys {K.size(-1)}: they must agree.")
    return Q @ K.transpose(-2, -1) / math.sqrt(Q.size(-1))  # (..., query, key)


def masked_softmax(
    scores: Float[Tensor, "*batch query key"], mask: Tensor | None = None
) -> Float[Tensor, "*batch query key"]:
    """Turn each query's scores into weights that are >= 0 and sum to 1 over the allowed keys.

    Args:
        scores: shape (..., query, key).
        mask: `True` = may attend; any shape that broadcasts to that of scores.

    Returns:
        Weights, shape (..., query, key). A query whose keys are all masked gets zeros, not NaN.

    Raises:
        ValueError: the mask is not boolean or does not broadcast to the scores.
    """
    if mask is None:
        return scores.softmax(dim=-1)
    check_mask(mask, scores.shape)
    lowest = torch.finfo(scores.dtype).min  # finite: a fully masked row passes no NaN on
    return scores.masked_fill(~mask, lowest).softmax(dim=-1).masked_fill(~mask, 0.0)


def scaled_dot_product_attention(
    Q: Float[Tensor, "*batch query d_head"],
    K: Float[Tensor, "*batch key d_head"],
    V: Float[Tensor, "*batch key d_value"],
    mask: Tensor | None = None,
) -> tuple[Float[Tensor, "*batch query d_value"], Float[Tensor, "*batch query key"]]:
    """Attention(Q, K, V) = softmax(Q K^T / sqrt(d_head)) V.

    Args:
        Q: queries, shape (..., query, d_head).
        K: keys, shape (..., key, d_head).
        V: values, shape (..., key, d_value).
        mask: `True` = may attend; broadcasts to (..., query, key).

    Returns:
        The output, shape (..., query, d_value), and the weights, shape (..., query, key).

    Raises:
        ValueError: sizes that do not fit, or a mask that is not boolean.

    Source: "Attention Is All You Need" (2017), equation 1.
    """
    weights = masked_softmax(attention_scores(Q, K), mask)  # (..., query, key)
    return weights @ V, weights  # (..., query, d_value)


def soft_cap(x: Float[Tensor, "*shape"], cap: float) -> Float[Tensor, "*shape"]:
    """Return cap tanh(x / cap): small numbers as they are, and none beyond the cap.

    Args:
        x: scores or logits.
        cap: the largest size that they come near to.

    Source: Gemma Team, "Gemma 2" (2024), section 2.
    """
    return cap * (x / cap).tanh()


def split_heads(
    x: Float[Tensor, "batch n d_model"], n_heads: int
) -> Float[Tensor, "batch head n d_head"]:
    """Give each head its own d_model / n_heads numbers of every token.

    Args:
        x: shape (batch, n, d_model).
        n_heads: must divide d_model.

    Returns:
        Shape (batch, head, n, d_head).

    Source: "Attention Is All You Need" (2017), section 3.2.2.
    """
    batch, n, d_model = x.shape
    if n_heads < 1 or d_model % n_heads:
        raise ValueError(f"d_model = {d_model} cannot be split into {n_heads} equal heads.")
    x = x.view(batch, n, n_heads, d_model // n_heads)  # (batch, n, head, d_head)
    return x.transpose(1, 2)  # (batch, head, n, d_head)


def merge_heads(x: Float[Tensor, "batch head n d_head"]) -> Float[Tensor, "batch n d_model"]:
    """Put the heads' results side by side again: the inverse of `split_heads`.

    Args:
        x: shape (batch, head, n, d_head).

    Returns:
        Shape (batch, n, head * d_head).
    """
    return x.transpose(1, 2).flatten(2)  # (batch, n, d_model)


def multi_head_attention(
    x: Float[Tensor, "batch n d_model"],
    W_Q: Float[Tensor, "d_model d_model"],
    W_K: Float[Tensor, "d_model d_model"],
    W_V: Float[Tensor, "d_model d_model"],
    W_O: Float[Tensor, "d_model d_model"],
    n_heads: int,
    mask: Tensor | None = None,
) -> Float[Tensor, "batch n d_model"]:
    """Multi-head self-attention written as in the formulas: Concat(head_1, ..., head_h) W_O.

    W_Q, W_K and W_V hold the projections of all heads side by side; head i is
    Attention(x W_Q_i, x W_K_i, x W_V_i).

    Args:
        x: shape (batch, n, d_model).
        W_Q, W_K, W_V, W_O: shape (d_model, d_model), multiplied from the right. `nn.Linear`
            stores the transpose.
        n_heads: must divide d_model.
        mask: `True` = may attend; broadcasts to (batch, head, query, key).

    Source: "Attention Is All You Need" (2017), section 3.2.2.
    """
    Q, K, V = (split_heads(x @ W, n_heads) for W in (W_Q, W_K, W_V))  # (batch, head, n, d_head)
    heads, _ = scaled_dot_product_attention(Q, K, V, mask)  # (batch, head, n, d_head)
    return merge_heads(heads) @ W_O  # (batch, n, d_model)


def cross_attention(
    y: Float[Tensor, "batch target d_model"],
    memory: Float[Tensor, "batch source d_model"],
    W_Q: Float[Tensor, "d_model d_model"],
    W_K: Float[Tensor, "d_model d_model"],
    W_V: Float[Tensor, "d_model d_model"],
    W_O: Float[Tensor, "d_model d_model"],
    n_heads: int,
    mask: Tensor | None = None,
) -> Float[Tensor, "batch target d_model"]:
    """Multi-head attention whose queries come from y, and whose keys and values from memory.

    Args:
        y: the target's vectors, shape (batch, target, d_model).
        memory: the encoder's output, shape (batch, source, d_model).
        W_Q, W_K, W_V, W_O: shape (d_model, d_model), multiplied from the right.
        n_heads: must divide d_model.
        mask: `True` = may attend; broadcasts to (batch, head, target, source).

    Source: "Attention Is All You Need" (2017), section 3.2.3.
    """
    Q = split_heads(y @ W_Q, n_heads)  # (batch, head, target, d_head)
    K, V = (split_heads(memory @ W, n_heads) for W in (W_K, W_V))  # (batch, head, source, d_head)
    heads, _ = scaled_dot_product_attention(Q, K, V, mask)  # (batch, head, target, d_head)
    return merge_heads(heads) @ W_O  # (batch, target, d_model)


class MultiHeadAttention(nn.Module):
    """Multi-head attention: n_heads attentions on projections of d_head numbers each.

    Queries may come from another sequence than keys and values (cross-attention). Unless scores or
    weights are watched, or weights dropped, `fast.attention` computes the same output without
    storing them.

    Args:
        d_model: numbers per token.
        n_heads: number of heads; must divide d_model.
        dropout: probability of zeroing a weight in training (none in the paper).
        bias: whether the four projections add a bias.
        rotate: rotates queries or keys, given the position of the first, for rotary positions.
        n_kv_heads: heads of keys and values, a divisor of n_heads; `None` for n_heads.
        d_head: numbers per head; `None` for d_model / n_heads.
        output_bias: whether W_O adds a bias, if the others do.
        norms: of queries and of keys, before they are rotated; `None` for none.
        query_scale, score_cap: see `ModelConfig`.
        relative: gives what is added to scores, for relative positions; see `RelativePositions`.

    Raises:
        ValueError: d_model is not divisible by n_heads, or n_heads by n_kv_heads.

    Source: "Attention Is All You Need" (2017), section 3.2.2.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        rotate: Rotation | None = None,
        n_kv_heads: int | None = None,
        d_head: int | None = None,
        output_bias: bool = True,
        norms: tuple[nn.Module, nn.Module] | None = None,
        query_scale: float | None = None,
        score_cap: float | None = None,
        relative: nn.Module | None = None,
    ):
        super().__init__()
        check_heads(n_heads if d_head else d_model, n_heads, n_kv_heads)
        self.n_heads, self.n_kv_heads = n_heads, n_kv_heads or n_heads
        d_head = d_head or d_model // n_heads
        d_queries, d_keys = n_heads * d_head, self.n_kv_heads * d_head
        self.W_Q = nn.Linear(d_model, d_queries, bias=bias)
        self.W_K, self.W_V = (nn.Linear(d_model, d_keys, bias=bias) for _ in range(2))
        self.W_O = nn.Linear(d_queries, d_model, bias=bias and output_bias)
        self.norm_Q, self.norm_K = norms or (None, None)
        self.query_factor = math.sqrt(d_head / query_scale) if query_scale else None
        self.score_cap, self.relative = score_cap, relative
        self.rotate, self.dropout = rotate or unrotated, nn.Dropout(dropout)
        self.queries, self.keys, self.values = HookPoint(), HookPoint(), HookPoint()
        self.scores, self.weights, self.heads = HookPoint(), HookPoint(), HookPoint()
        for projection in (self.W_Q, self.W_K, self.W_V, self.W_O):
            nn.init.xavier_uniform_(projection.weight)

    @classmethod
    def from_config(
        cls,
        config: ModelConfig,
        rotate: Rotation | None = None,
        relative: nn.Module | None = None,
    ) -> "MultiHeadAttention":
        """Return the attention that a model's config describes."""
        return cls(
            config.d_model,
            config.n_heads,
            config.attention_dropout,
            config.bias,
            rotate,
            config.n_kv_heads,
            config.head_size,
            config.output_bias,
            qk_norms(config),
            config.query_scale,
            config.score_cap,
            relative,
        )

    def forward(
        self,
        query: Float[Tensor, "batch query d_model"],
        key: Float[Tensor, "batch key d_model"],
        value: Float[Tensor, "batch key d_model"],
        mask: Mask = None,
        cache: LayerCache | NoCache = NO_CACHE,
    ) -> Float[Tensor, "batch query d_model"]:
        """Let every query look at the keys it may see and collect their values.

        Args:
            query: shape (batch, query, d_model).
            key, value: shape (batch, key, d_model).
            mask: `True` = may attend; broadcasts to (batch, head, query, key).
            cache: keys and values of earlier tokens, which come before the new ones.
        """
        Q = self.queries(self.rotate(self.projected_queries(query), cache.start))
        if cache.complete:
            K, V = cache.keys, cache.values
        else:
            K = self.keys(self.rotate(self.projected_keys(key), cache.start))
            V = self.values(split_heads(self.W_V(value), self.n_kv_heads))
            K, V = cache.extend(K, V)  # (batch, kv_head, all keys, d_head)
        heads = self.heads(self.attend(Q, K, V, mask, cache.start))  # (batch, head, query, d_head)
        return self.W_O(merge_heads(heads))  # (batch, query, d_model)

    def projected_queries(
        self, x: Float[Tensor, "batch query d_model"]
    ) -> Float[Tensor, "batch head query d_head"]:
        """Return the queries before they are rotated."""
        return normalized_heads(self.W_Q(x), self.norm_Q, self.n_heads)

    def projected_keys(
        self, x: Float[Tensor, "batch key d_model"]
    ) -> Float[Tensor, "batch kv_head key d_head"]:
        """Return the keys before they are rotated."""
        return normalized_heads(self.W_K(x), self.norm_K, self.n_kv_heads)

    def attend(
        self,
        Q: Float[Tensor, "batch head query d_head"],
        K: Float[Tensor, "batch kv_head key d_head"],
        V: Float[Tensor, "batch kv_head key d_head"],
        mask: Mask,
        start: int = 0,
    ) -> Float[Tensor, "batch head query d_head"]:
        """Return what each head collects, from rotated queries, the first at start, and keys."""
        if self.query_factor is not None:
            Q = Q * self.query_factor
        drops = self.training and self.dropout.p > 0
        plain = drops or self.score_cap or self.relative is not None
        if not (plain or self.scores.watched or self.weights.watched):
            return fast.attention(Q, K, V, mask)  # the same output, without storing weights
        if self.n_kv_heads < self.n_heads:
            K, V = (repeat_kv(x, self.n_heads // self.n_kv_heads) for x in (K, V))
        scores = attention_scores(Q, K)  # (batch, head, query, key)
        if self.relative is not None:
            scores = scores + self.relative(Q.size(-2), K.size(-2), start)
        scores = self.scores(soft_cap(scores, self.score_cap) if self.score_cap else scores)
        weights = self.weights(masked_softmax(scores, written_out(mask, scores)))
        return self.dropout(weights) @ V  # (batch, head, query, d_head)


def qk_norms(config: ModelConfig) -> tuple[nn.Module, nn.Module] | None:
    """Return new norms for queries and for keys, or `None` if the config has none.

    Source: Henry et al., "Query-Key Normalization for Transformers" (2020), with a length of 1;
        Dehghani et al., "Scaling Vision Transformers to 22 Billion Parameters" (2023).
    """
    if config.qk_norm == "none":
        return None
    of_all = config.n_heads, config.n_kv_heads or config.n_heads
    heads = of_all if config.qk_norm == "all" else (1, 1)
    return tuple(nn.RMSNorm(n * config.d_head, eps=config.norm_epsilon) for n in heads)


def normalized_heads(
    x: Float[Tensor, "batch n d_heads"], norm: nn.Module | None, n_heads: int
) -> Float[Tensor, "batch head n d_head"]:
    """Split queries or keys into heads, normalized each by itself or all together.

    Args:
        x: all heads' numbers side by side, shape (batch, n, head * d_head).
        norm: of d_head or of head * d_head numbers, or `None`.
        n_heads: heads in x.
    """
    if norm is None:
        return split_heads(x, n_heads)
    if norm.weight.numel() == x.size(-1):
        return split_heads(norm(x), n_heads)
    return norm(split_heads(x, n_heads))  # (batch, head, n, d_head)


def unrotated(x: Tensor, start: int) -> Tensor:
    """Leave queries or keys as they are: their vectors already hold their positions."""
    return x


def check_heads(d_model: int, n_heads: int, n_kv_heads: int | None) -> None:
    """Raise a `ValueError` unless d_model splits into n_heads and these into n_kv_heads groups."""
    if n_heads < 1 or d_model % n_heads:
        raise ValueError(f"d_model = {d_model} cannot be split into {n_heads} equal heads.")
    if n_kv_heads is not None and (n_kv_heads < 1 or n_heads % n_kv_heads):
        raise ValueError(f"n_kv_heads is {n_kv_heads}: make it a divisor of n_heads = {n_heads}.")


def repeat_kv(
    x: Float[Tensor, "batch kv_head n d_head"], n_groups: int
) -> Float[Tensor, "batch head n d_head"]:
    """Give each query head its keys (or values): repeat each head n_groups times, side by side.

    Query heads 0 to n_groups - 1 read key head 0, the next n_groups read key head 1, and so on.

    Args:
        x: keys or values, shape (batch, kv_head, n, d_head).
        n_groups: query heads per key head.

    Returns:
        Shape (batch, kv_head * n_groups, n, d_head).

    Raises:
        ValueError: n_groups is under 1.

    Source: Ainslie et al., "GQA" (2023), section 2.2.
    """
    if n_groups < 1:
        raise ValueError(f"n_groups is {n_groups}, but each key head serves at least 1 query head.")
    return x.repeat_interleave(n_groups, dim=1)  # (batch, head, n, d_head)
