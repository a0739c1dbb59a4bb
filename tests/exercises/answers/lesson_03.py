"""What learners might write for the exercises of lesson 03."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.exercises.answers import right, wrong
from transformer_lesson.model.attention import attention_scores

# attention_scores(Q, K)


@wrong("attention_scores", "usual", "no scale")
def _(Q, K):
    return Q @ K.transpose(-2, -1)


@wrong("attention_scores", "usual", "divides by d_k, not by its root")
def _(Q, K):
    scores = torch.matmul(Q, K.transpose(-1, -2))
    return scores / Q.size(-1)


@wrong("attention_scores", "usual", "multiplies by the root")
def _(Q, K):
    d_k = K.shape[-1]
    return (Q @ K.mT) * math.sqrt(d_k)


@wrong("attention_scores", "usual", "takes the number of tokens for d_k")
def _(Q, K):
    return Q @ K.transpose(-2, -1) / math.sqrt(K.size(-2))


@wrong("attention_scores", "usual", "K.T turns all axes around")
def _(Q, K):
    return Q @ K.T / math.sqrt(K.size(-1))


@wrong("attention_scores", "usual", "the softmax is already in it")
def _(Q, K):
    scores = Q @ K.transpose(-2, -1) / math.sqrt(Q.size(-1))
    return torch.softmax(scores, dim=-1)


@wrong("attention_scores", "usual", "keys down, queries across")
def _(Q, K):
    return torch.matmul(K, Q.transpose(-2, -1)) / K.size(-1) ** 0.5


@wrong("attention_scores", "unusual", "divides the caller's Q in place")
def _(Q, K):
    Q /= math.sqrt(Q.size(-1))
    return Q @ K.transpose(-2, -1)


@wrong("attention_scores", "unusual", "d_k is always 64")
def _(Q, K):
    return Q @ K.transpose(-2, -1) / 8


@wrong("attention_scores", "unusual", "einsum for exactly one leading axis")
def _(Q, K):
    return torch.einsum("bqd,bkd->bqk", Q, K) / math.sqrt(Q.shape[-1])


@wrong(
    "attention_scores",
    "unusual",
    "einsum for exactly two leading axes, an error for (query, d_k)",
)
def _(Q, K):
    energy = torch.einsum("nhqd,nhkd->nhqk", [Q, K])
    return energy / K.shape[3] ** (1 / 2)


@wrong("attention_scores", "unusual", "view instead of a transpose")
def _(Q, K):
    K_t = K.reshape(*K.shape[:-2], K.size(-1), K.size(-2))
    return Q @ K_t / math.sqrt(K.size(-1))


@wrong("attention_scores", "unusual", "`** 1 / 2` halves d_k instead of taking its root")
def _(Q, K):
    d_k = Q.size(-1)
    return Q @ K.transpose(-2, -1) / (d_k**1 / 2)


@wrong("attention_scores", "unusual", "hides the future, which nobody asked for")
def _(Q, K):
    scores = Q @ K.transpose(-2, -1) / math.sqrt(Q.size(-1))
    future = torch.ones_like(scores, dtype=torch.bool).triu(1)
    return scores.masked_fill(future, -math.inf)


@wrong("attention_scores", "unusual", "cosine similarity: the lengths are divided out")
def _(Q, K):
    return F.normalize(Q, dim=-1) @ F.normalize(K, dim=-1).transpose(-2, -1)


@wrong(
    "attention_scores",
    "unusual",
    "squeezes axes of size 1 away, (1, 2, query, d_k) or one query",
)
def _(Q, K):
    return (Q @ K.transpose(-2, -1)).squeeze() / math.sqrt(Q.size(-1))


@wrong("attention_scores", "unusual", "cuts the root to a whole number")
def _(Q, K):
    scale = int(math.sqrt(Q.size(-1)))
    return torch.matmul(Q, K.transpose(-2, -1)) / scale


@wrong("attention_scores", "pair", "no scale", "softmax already applied")
def _(Q, K):
    return F.softmax(Q @ K.transpose(-2, -1), dim=-1)


@wrong("attention_scores", "pair", "keys down, queries across", "divides by d_k")
def _(Q, K):
    d_k = Q.size(-1)
    return torch.einsum("...kd,...qd->...kq", K, Q).div(d_k)


@wrong("attention_scores", "pair", "bmm: one leading axis only", "multiplies by the root")
def _(Q, K):
    return torch.bmm(Q, K.transpose(1, 2)) * Q.size(2) ** 0.5


@wrong("attention_scores", "pair", "K is reshaped, not transposed", "no scale")
def _(Q, K):
    *leading, n_keys, d_k = K.shape
    return Q.matmul(K.contiguous().view(*leading, d_k, n_keys))


@wrong("attention_scores", "pair", "changes Q in place", "by the root of the token count")
def _(Q, K):
    n = Q.size(-2)
    Q.mul_(n**-0.5)
    return Q @ K.mT


@right("attention_scores")
def _(Q, K):
    return Q @ K.transpose(-2, -1) / math.sqrt(K.size(-1))


@right("attention_scores")
def _(Q, K):
    return torch.einsum("...qd,...kd->...qk", Q, K) * Q.shape[-1] ** -0.5


@right("attention_scores")
def _(Q, K):
    # the scale shared out between both sides
    fourth_root = Q.size(-1) ** 0.25
    return torch.matmul(Q / fourth_root, (K / fourth_root).mT)


@right("attention_scores")
def _(Q, K):
    d_k = Q.size(-1)
    products = Q.double().unsqueeze(-2) * K.double().unsqueeze(-3)  # (..., query, key, d_k)
    return (products.sum(dim=-1) / math.sqrt(d_k)).to(Q.dtype)


@right("attention_scores")
def _(Q, K):
    columns = []
    for j in range(K.size(-2)):
        key = K[..., j, :].unsqueeze(-1)
        columns.append((Q @ key) / math.sqrt(Q.size(-1)))
    return torch.cat(columns, dim=-1)


# causal_mask(n)


@wrong("causal_mask", "usual", "True marks what is hidden")
def _(n):
    return torch.triu(torch.ones(1, 1, n, n), diagonal=1).bool()


@wrong("causal_mask", "usual", "float instead of boolean")
def _(n):
    return torch.tril(torch.ones(n, n)).view(1, 1, n, n)


@wrong("causal_mask", "usual", "the two axes in front are missing")
def _(n):
    return torch.ones(n, n, dtype=torch.bool).tril()


@wrong("causal_mask", "usual", "a token does not see itself")
def _(n):
    mask = torch.ones(n, n).tril(diagonal=-1) == 1
    return mask[None, None]


@wrong("causal_mask", "usual", "every token sees the next one too")
def _(n):
    mask = torch.zeros(1, 1, n, n, dtype=torch.bool)
    for i in range(n):
        mask[0, 0, i, : i + 2] = True
    return mask


@wrong("causal_mask", "usual", "a table of 0 and -inf to be added, not booleans")
def _(n):
    mask = torch.full((n, n), float("-inf"))
    return torch.triu(mask, diagonal=1).unsqueeze(0).unsqueeze(0)


@wrong("causal_mask", "usual", "one axis in front, not two")
def _(n):
    return torch.tril(torch.ones((1, n, n))).bool()


@wrong("causal_mask", "unusual", "~triu without diagonal=1 loses the diagonal")
def _(n):
    blocked = torch.triu(torch.ones(n, n, dtype=torch.bool))
    return ~blocked[None, None, :, :]


@wrong("causal_mask", "unusual", "-inf as a boolean is True: PyTorch's additive mask, inverted")
def _(n):
    additive = nn.Transformer.generate_square_subsequent_mask(n)
    return additive.bool().view(1, 1, n, n)


@wrong("causal_mask", "unusual", "compares the wrong way round: query <= key")
def _(n):
    query = torch.arange(n).view(1, 1, n, 1)
    key = torch.arange(n).view(1, 1, 1, n)
    return query <= key


@wrong("causal_mask", "unusual", "ends at n = 64, GPT's buffer of block_size")
def _(n):
    block_size = 64
    bias = torch.tril(torch.ones(block_size, block_size, dtype=torch.bool))
    return bias.view(1, 1, block_size, block_size)[:, :, :n, :n]


@wrong("causal_mask", "unusual", "uint8, the booleans of old PyTorch")
def _(n):
    return torch.ones((1, 1, n, n), dtype=torch.uint8).tril()


@wrong("causal_mask", "unusual", "a window: only the token itself and the three before it")
def _(n):
    i = torch.arange(n)[:, None]
    j = torch.arange(n)[None, :]
    return ((j <= i) & (i - j < 4))[None, None]


@wrong("causal_mask", "unusual", "the loop begins at 1: row 0 sees nothing")
def _(n):
    mask = torch.zeros(n, n, dtype=torch.bool)
    for i in range(1, n):
        for j in range(i + 1):
            mask[i, j] = True
    return mask.expand(1, 1, n, n)


@wrong("causal_mask", "unusual", "shape (1, 1) for n = 1, because of the squeeze")
def _(n):
    rows = [[j <= i for j in range(n)] for i in range(n)]
    return torch.tensor(rows).squeeze()[None, None]


@wrong("causal_mask", "pair", "True marks what is hidden", "no axes in front")
def _(n):
    return torch.triu(torch.ones(n, n), diagonal=1) == 1


@wrong("causal_mask", "pair", "float", "a token does not see itself")
def _(n):
    m = torch.zeros(1, 1, n, n)
    for i in range(n):
        m[:, :, i, :i] = 1
    return m


@wrong("causal_mask", "pair", "one axis in front only", "sees one token ahead")
def _(n):
    subsequent = torch.triu(torch.ones((1, n, n)), diagonal=2).type(torch.uint8)
    return subsequent == 0


@wrong("causal_mask", "pair", "uint8", "True above the diagonal, itself included")
def _(n):
    return torch.triu(torch.ones(n, n)).to(torch.uint8).reshape(1, 1, n, n)


@right("causal_mask")
def _(n):
    return torch.ones(1, 1, n, n, dtype=torch.bool).tril()


@right("causal_mask")
def _(n):
    position = torch.arange(n)
    return (position[None, :] <= position[:, None]).view(1, 1, n, n)


@right("causal_mask")
def _(n):
    mask = torch.zeros((1, 1, n, n), dtype=torch.bool)
    for query in range(n):
        for key in range(n):
            if key <= query:
                mask[0, 0, query, key] = True
    return mask


@right("causal_mask")
def _(n):
    return (nn.Transformer.generate_square_subsequent_mask(n) == 0)[None, None]


@right("causal_mask")
def _(n):
    return torch.eye(n).cumsum(dim=0).gt(0).unsqueeze(0).unsqueeze(0)


# padding_mask(ids, pad_id)


@wrong("padding_mask", "usual", "True marks the padding")
def _(ids, pad_id):
    return (ids == pad_id).unsqueeze(1).unsqueeze(2)


@wrong("padding_mask", "usual", "shape (batch, key)")
def _(ids, pad_id):
    return ids != pad_id


@wrong("padding_mask", "usual", "one axis short: (batch, 1, key)")
def _(ids, pad_id):
    return (ids != pad_id).unsqueeze(-2)


@wrong("padding_mask", "usual", "padding is always 0")
def _(ids, pad_id):
    return (ids != 0)[:, None, None]


@wrong("padding_mask", "usual", "float instead of boolean")
def _(ids, pad_id):
    mask = torch.ones(ids.shape[0], 1, 1, ids.shape[1])
    mask[:, 0, 0][ids == pad_id] = 0
    return mask


@wrong("padding_mask", "usual", "the ones stand behind: (batch, 1, key, 1) hides queries")
def _(ids, pad_id):
    return (ids != pad_id)[:, None, :, None]


@wrong("padding_mask", "unusual", "hides real ids smaller than pad_id, [5, 3, 9] with 5")
def _(ids, pad_id):
    return (ids > pad_id)[:, None, None, :]


@wrong("padding_mask", "unusual", "ids as booleans: everything but 0 is real")
def _(ids, pad_id):
    batch, n = ids.shape
    return ids.bool().view(batch, 1, 1, n)


@wrong("padding_mask", "unusual", "counts the real ids and takes padding to stand on the right")
def _(ids, pad_id):
    lengths = (ids != pad_id).sum(dim=1)
    positions = torch.arange(ids.size(1))
    return (positions[None, :] < lengths[:, None])[:, None, None, :]


@wrong("padding_mask", "unusual", "hides everything behind the first padding")
def _(ids, pad_id):
    real = (ids != pad_id).long().cumprod(dim=1)
    return real.bool()[:, None, None]


@wrong("padding_mask", "unusual", "expanded to a square, which no cross-attention can use")
def _(ids, pad_id):
    n = ids.size(1)
    return (ids != pad_id)[:, None, None, :].expand(-1, 1, n, n)


@wrong("padding_mask", "unusual", "hides the rows of padding too")
def _(ids, pad_id):
    real = (ids != pad_id).float()
    return torch.einsum("bi,bj->bij", real, real).bool().unsqueeze(1)


@wrong("padding_mask", "unusual", "the numbers -10000 and 0 to be added, as old BERT code does")
def _(ids, pad_id):
    extended = (ids != pad_id)[:, None, None, :].float()
    return (1.0 - extended) * -10000.0


@wrong("padding_mask", "unusual", "the first sentence's mask for all sentences")
def _(ids, pad_id):
    first = [bool(id_ != pad_id) for id_ in ids[0]]
    return torch.tensor(first).view(1, 1, 1, -1).repeat(ids.size(0), 1, 1, 1)


@wrong("padding_mask", "unusual", "hides a column only where every sentence has padding")
def _(ids, pad_id):
    some_real = (ids != pad_id).any(dim=0)
    return some_real.expand(ids.size(0), 1, 1, ids.size(1))


@wrong(
    "padding_mask",
    "unusual",
    "a batch of one sentence gives (1, 1, key), because of the squeeze",
)
def _(ids, pad_id):
    mask = ids.squeeze().ne(pad_id)
    return mask.unsqueeze(-2).unsqueeze(-2)


@wrong(
    "padding_mask", "unusual", "keeps the first padding of each row, as where pad and eos are one"
)
def _(ids, pad_id):
    is_pad = ids == pad_id
    first = is_pad.cumsum(dim=1) == 1
    return (~is_pad | first)[:, None, None, :]


@wrong("padding_mask", "pair", "True marks the padding", "shape (batch, key)")
def _(ids, pad_id):
    key_padding_mask = ids.eq(pad_id)
    return key_padding_mask


@wrong("padding_mask", "pair", "padding is always 0", "float")
def _(ids, pad_id):
    return (ids != 0).float()[:, None, None, :]


@wrong("padding_mask", "pair", "padding taken to stand on the right", "shape (batch, 1, key)")
def _(ids, pad_id):
    mask = torch.zeros(ids.size(0), 1, ids.size(1), dtype=torch.bool)
    for i, row in enumerate(ids.tolist()):
        length = len(row) - row.count(pad_id)
        mask[i, 0, :length] = True
    return mask


@wrong("padding_mask", "pair", "the ones stand behind", "True marks the padding")
def _(ids, pad_id):
    return torch.eq(ids, pad_id).reshape(len(ids), 1, -1, 1)


@wrong("padding_mask", "pair", "real are ids larger than pad_id", "int64")
def _(ids, pad_id):
    return torch.where(ids > pad_id, 1, 0).unsqueeze(1).unsqueeze(1)


@right("padding_mask")
def _(ids, pad_id):
    return (ids != pad_id)[:, None, None, :]


@right("padding_mask")
def _(ids, pad_id):
    batch, n = ids.shape
    mask = torch.ones(batch, 1, 1, n, dtype=torch.bool)
    for b in range(batch):
        for k in range(n):
            if ids[b, k] == pad_id:
                mask[b, 0, 0, k] = False
    return mask


@right("padding_mask")
def _(ids, pad_id):
    return torch.logical_not(torch.eq(ids, pad_id)).unsqueeze(1).unsqueeze(1)


@right("padding_mask")
def _(ids, pad_id):
    return torch.tensor([[[[id_ != pad_id for id_ in row]]] for row in ids.tolist()])


# scaled_dot_product_attention(Q, K, V, mask=None)


@wrong("scaled_dot_product_attention", "usual", "no scale")
def _(Q, K, V, mask=None):
    scores = Q @ K.transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = scores.softmax(dim=-1).nan_to_num(0.0)
    return weights @ V, weights


@wrong("scaled_dot_product_attention", "usual", "softmax over the queries")
def _(Q, K, V, mask=None):
    scores = attention_scores(Q, K)
    if mask is not None:
        scores = scores.masked_fill(mask == 0, float("-inf"))
    weights = torch.nan_to_num(F.softmax(scores, dim=-2))
    return torch.matmul(weights, V), weights


@wrong("scaled_dot_product_attention", "usual", "returns (weights, output)")
def _(Q, K, V, mask=None):
    scores = attention_scores(Q, K)
    if mask is None:
        weights = scores.softmax(-1)
    else:
        weights = scores.masked_fill(~mask, -1e9).softmax(-1) * mask
    return weights, weights @ V


@wrong("scaled_dot_product_attention", "usual", "fills where the mask is True: inverted")
def _(Q, K, V, mask=None):
    scores = Q @ K.transpose(-2, -1) / math.sqrt(Q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(mask, -math.inf)
    weights = torch.softmax(scores, dim=-1)
    weights = torch.where(weights.isnan(), 0.0, weights)
    return weights @ V, weights


@wrong("scaled_dot_product_attention", "usual", "mask after softmax: rows do not sum to 1")
def _(Q, K, V, mask=None):
    weights = F.softmax(attention_scores(Q, K), dim=-1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    return weights @ V, weights


@wrong("scaled_dot_product_attention", "usual", "ignores the mask")
def _(Q, K, V, mask=None):
    d_k = Q.size(-1)
    p_attn = (torch.matmul(Q, K.transpose(-2, -1)) / math.sqrt(d_k)).softmax(dim=-1)
    return torch.matmul(p_attn, V), p_attn


@wrong("scaled_dot_product_attention", "usual", "NaN in a fully masked row")
def _(Q, K, V, mask=None):
    scores = attention_scores(Q, K)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = scores.softmax(dim=-1)
    return weights @ V, weights


@wrong("scaled_dot_product_attention", "usual", "-1e9 makes a fully masked row uniform")
def _(Q, K, V, mask=None):
    d_k = Q.shape[-1]
    scores = torch.einsum("...qd,...kd->...qk", Q, K) / d_k**0.5
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    attention = scores.softmax(dim=-1)
    return torch.einsum("...qk,...kd->...qd", attention, V), attention


@wrong("scaled_dot_product_attention", "usual", "returns the output only")
def _(Q, K, V, mask=None):
    scores = attention_scores(Q, K)
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = scores.softmax(dim=-1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0)
    return weights @ V


@wrong("scaled_dot_product_attention", "usual", "hidden scores become 0, not -inf")
def _(Q, K, V, mask=None):
    scores = attention_scores(Q, K)
    if mask is not None:
        scores = scores * mask
    weights = scores.softmax(dim=-1)
    if mask is not None:
        empty = ~mask.any(dim=-1, keepdim=True)
        weights = weights.masked_fill(empty, 0.0)
    return weights @ V, weights


@wrong(
    "scaled_dot_product_attention",
    "unusual",
    "a naive exponential is inf for scores above 88",
)
def _(Q, K, V, mask=None):
    e = torch.exp(attention_scores(Q, K))
    if mask is not None:
        e = e * mask
    total = e.sum(dim=-1, keepdim=True)
    weights = torch.where(total > 0, e / total, torch.zeros_like(e))
    return weights @ V, weights


@wrong(
    "scaled_dot_product_attention",
    "unusual",
    "one maximum for all rows: zeros in a row 104 below another",
)
def _(Q, K, V, mask=None):
    scores = attention_scores(Q, K)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    e = torch.exp(scores - scores.max())
    weights = (e / e.sum(dim=-1, keepdim=True)).nan_to_num(0.0)
    return weights @ V, weights


@wrong("scaled_dot_product_attention", "unusual", "cleans the output of NaN, not the weights")
def _(Q, K, V, mask=None):
    scores = attention_scores(Q, K)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = F.softmax(scores, dim=-1)
    return torch.nan_to_num(weights @ V), weights


@wrong("scaled_dot_product_attention", "unusual", "weights with dropout, always on")
def _(Q, K, V, mask=None):
    scores = attention_scores(Q, K)
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    weights = scores.softmax(dim=-1)
    if mask is not None:
        weights = weights * mask
    weights = F.dropout(weights, 0.1)
    return weights @ V, weights


@wrong("scaled_dot_product_attention", "unusual", "gives back the scores, not the weights")
def _(Q, K, V, mask=None):
    scores = attention_scores(Q, K)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return scores.softmax(dim=-1).nan_to_num() @ V, scores


@wrong("scaled_dot_product_attention", "unusual", "the returned weights know no mask")
def _(Q, K, V, mask=None):
    output = F.scaled_dot_product_attention(Q, K, V, attn_mask=mask)
    if mask is not None:
        output = output * mask.any(dim=-1, keepdim=True)
    weights = attention_scores(Q, K).softmax(dim=-1)
    return output.nan_to_num(), weights


@wrong("scaled_dot_product_attention", "unusual", "one empty row empties the whole result")
def _(Q, K, V, mask=None):
    scores = attention_scores(Q, K)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)
    if weights.isnan().any():
        weights = torch.zeros_like(weights)
    return weights @ V, weights


@wrong(
    "scaled_dot_product_attention",
    "unusual",
    "softmax(dim=3) needs four axes, an error for (query, d_k)",
)
def _(Q, K, V, mask=None):
    scores = attention_scores(Q, K)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=3).nan_to_num(0.0)
    return weights @ V, weights


@wrong("scaled_dot_product_attention", "unusual", "hides by -10 only: hidden keys keep a share")
def _(Q, K, V, mask=None):
    scores = attention_scores(Q, K)
    if mask is not None:
        scores = scores - 10.0 * (~mask).to(scores.dtype)
    weights = scores.softmax(dim=-1)
    if mask is not None:
        weights = weights * mask.any(dim=-1, keepdim=True)
    return weights @ V, weights


@wrong("scaled_dot_product_attention", "unusual", "adds the boolean mask to the scores as 0 and 1")
def _(Q, K, V, mask=None):
    scores = attention_scores(Q, K)
    if mask is not None:
        scores = scores + mask
    weights = F.softmax(scores, dim=-1)
    if mask is not None:
        weights = weights * mask.any(-1, keepdim=True)
    return weights @ V, weights


@wrong("scaled_dot_product_attention", "unusual", "adds a head axis to every mask")
def _(Q, K, V, mask=None):
    scores = attention_scores(Q, K)
    if mask is not None:
        mask = mask.unsqueeze(1)
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1).nan_to_num(0.0)
    return weights @ V, weights


@wrong("scaled_dot_product_attention", "unusual", "0 times -inf is NaN where the mask is True")
def _(Q, K, V, mask=None):
    scores = attention_scores(Q, K)
    if mask is not None:
        scores = scores + (~mask).float() * float("-inf")
    weights = scores.softmax(dim=-1).nan_to_num(0.0)
    return weights @ V, weights


@wrong("scaled_dot_product_attention", "unusual", "a mask of any kind hides the future as well")
def _(Q, K, V, mask=None):
    scores = attention_scores(Q, K)
    if mask is not None:
        mask = mask & torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1).nan_to_num(0.0)
    return weights @ V, weights


@right("scaled_dot_product_attention")
def _(Q, K, V, mask=None):
    scores = attention_scores(Q, K)
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e4)
    weights = scores.softmax(dim=-1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    return weights @ V, weights


@wrong(
    "scaled_dot_product_attention",
    "unusual",
    "masks after softmax: zeros where a hidden score is 104 higher",
)
def _(Q, K, V, mask=None):
    weights = attention_scores(Q, K).softmax(dim=-1)
    if mask is not None:
        weights = weights * mask
        weights = weights / (weights.sum(dim=-1, keepdim=True) + 1e-12)
    return weights @ V, weights


@wrong("scaled_dot_product_attention", "unusual", "scales the caller's Q in place")
def _(Q, K, V, mask=None):
    scores = Q.div_(math.sqrt(Q.size(-1))) @ K.transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1).nan_to_num(0.0)
    return weights @ V, weights


@wrong("scaled_dot_product_attention", "unusual", "a boolean index of the mask's own shape")
def _(Q, K, V, mask=None):
    scores = attention_scores(Q, K)
    if mask is None:
        weights = scores.softmax(dim=-1)
    else:
        weights = scores.masked_fill(~mask, -math.inf).softmax(dim=-1)
        weights[~mask.any(dim=-1)] = 0.0
    return weights @ V, weights


@wrong("scaled_dot_product_attention", "unusual", "zeros only if the whole mask is empty")
def _(Q, K, V, mask=None):
    scores = attention_scores(Q, K)
    if mask is not None:
        if not mask.any():
            return torch.zeros_like(Q[..., :1] @ V[..., :1, :]), torch.zeros_like(scores)
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)
    return weights @ V, weights


@right("scaled_dot_product_attention")
def _(Q, K, V, mask=None):
    scores = attention_scores(Q, K)
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    weights = F.softmax(scores, dim=-1)
    if mask is not None:
        weights = weights.masked_fill(mask == 0, 0.0)
    return weights @ V, weights


@wrong("scaled_dot_product_attention", "pair", "no scale", "returns (weights, output)")
def _(Q, K, V, mask=None):
    energy = torch.matmul(Q, K.transpose(-1, -2))
    if mask is not None:
        energy = energy.masked_fill(~mask, -1e20)
    weights = energy.softmax(dim=-1)
    if mask is not None:
        weights = weights * mask
    return weights, weights @ V


@wrong("scaled_dot_product_attention", "pair", "softmax over the queries", "mask inverted")
def _(Q, K, V, mask=None):
    scores = attention_scores(Q, K)
    if mask is not None:
        scores = scores.masked_fill(mask, -math.inf)
    weights = scores.softmax(dim=-2).nan_to_num(0.0)
    return weights @ V, weights


@wrong("scaled_dot_product_attention", "pair", "divides by d_k", "a fully masked row is NaN")
def _(Q, K, V, mask=None):
    scores = Q @ K.mT / Q.size(-1)
    if mask is not None:
        scores = torch.where(mask, scores, float("-inf"))
    weights = scores.softmax(dim=-1)
    return weights @ V, weights


@wrong("scaled_dot_product_attention", "pair", "mask ignored", "output only")
def _(Q, K, V, mask=None):
    return F.softmax(attention_scores(Q, K), dim=-1) @ V


@wrong("scaled_dot_product_attention", "pair", "mask after softmax", "no scale")
def _(Q, K, V, mask=None):
    attn = torch.softmax(Q @ K.transpose(-2, -1), dim=-1)
    if mask is not None:
        attn = attn * mask.to(attn.dtype)
    return attn @ V, attn


@wrong("scaled_dot_product_attention", "pair", "naive exponential", "a fully masked row is 0 / 0")
def _(Q, K, V, mask=None):
    scores = attention_scores(Q, K).exp()
    if mask is not None:
        scores = scores * mask
    weights = scores / scores.sum(dim=-1, keepdim=True)
    return weights @ V, weights


@right("scaled_dot_product_attention")
def _(Q, K, V, mask=None):
    scores = attention_scores(Q, K)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = scores.softmax(dim=-1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    return weights @ V, weights


@right("scaled_dot_product_attention")
def _(Q, K, V, mask=None):
    scores = torch.einsum("...qd,...kd->...qk", Q.double(), K.double()) / Q.size(-1) ** 0.5
    allowed = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask
    scores = torch.where(allowed, scores, -math.inf)
    top = scores.amax(dim=-1, keepdim=True)
    top = torch.where(top.isinf(), 0.0, top)
    e = (scores - top).exp()
    weights = e / e.sum(dim=-1, keepdim=True).clamp(min=1e-300)
    output = torch.einsum("...qk,...kd->...qd", weights, V.double())
    return output.to(V.dtype), weights.to(Q.dtype)


@right("scaled_dot_product_attention")
def _(Q, K, V, mask=None):
    scores = attention_scores(Q, K)
    if mask is None:
        log_weights = scores - scores.logsumexp(dim=-1, keepdim=True)
        weights = log_weights.exp()
    else:
        hidden = ~mask.expand(scores.shape)
        scores[hidden] = torch.finfo(scores.dtype).min
        weights = scores.softmax(dim=-1) * mask
    return weights @ V, weights


@right("scaled_dot_product_attention")
def _(Q, K, V, mask=None):
    # query by query
    outputs, rows = [], []
    for i in range(Q.size(-2)):
        q = Q[..., i : i + 1, :]
        s = (q * K).sum(dim=-1) / math.sqrt(K.size(-1))  # (..., key)
        if mask is not None:
            row = mask[..., min(i, mask.size(-2) - 1), :] if mask.dim() > 1 else mask
            s = s.masked_fill(~row, -math.inf)
        w = s.softmax(dim=-1).nan_to_num(nan=0.0)
        rows.append(w)
        outputs.append((w.unsqueeze(-1) * V).sum(dim=-2))
    return torch.stack(outputs, dim=-2), torch.stack(rows, dim=-2)


@right("scaled_dot_product_attention")
def _(Q, K, V, mask=None):
    # the identity as values gives the weights
    n = K.size(-2)
    identity = torch.eye(n, dtype=Q.dtype).expand(*K.shape[:-2], n, n)
    if mask is not None:
        mask = mask.expand(*Q.shape[:-1], n)
    weights = F.scaled_dot_product_attention(Q, K, identity, attn_mask=mask)
    if mask is not None:
        weights = weights.nan_to_num(0.0) * mask.any(dim=-1, keepdim=True)
    return weights @ V, weights
