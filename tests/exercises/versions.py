"""Right versions of every exercise, and functions with places for a bug that wrong ones use."""

import math

import torch
import torch.nn.functional as F

from tests.exercises.generation_versions import GENERATION_RIGHT
from tests.exercises.language_versions import LANGUAGE_RIGHT
from tests.exercises.training_versions import TRAINING_RIGHT
from transformer_lesson.tokenizer import words


def attend(Q, K, V, mask=None, axis=-1, hidden=None):
    scores = Q @ K.mT / math.sqrt(Q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask if hidden is None else hidden(mask), -math.inf)
    weights = scores.softmax(dim=axis)
    return weights @ V, weights


def mask_after_softmax(Q, K, V, mask=None):
    output, weights = attend(Q, K, V)
    weights = weights if mask is None else weights * mask
    return weights @ V, weights


def view_without_transpose(x, n_heads):
    batch, n, d_model = x.shape
    return x.reshape(batch, n_heads, n, d_model // n_heads)


def heads_together(x, W_Q, W_K, W_V, W_O, n_heads, mask=None, split=None, ignore_mask=False):
    """Multi-head attention by einsum, with places for a bug."""
    batch, n, d_model = x.shape
    d_head = d_model // n_heads

    def parts(W):
        if split is not None:
            return split(x @ W, n_heads)
        return torch.einsum("bnd,dhk->bhnk", x, W.view(d_model, n_heads, d_head))

    scores = torch.einsum("bhqd,bhkd->bhqk", parts(W_Q), parts(W_K)) / d_head**0.5
    if mask is not None and not ignore_mask:
        scores = scores.masked_fill(~mask, -math.inf)
    heads = torch.einsum("bhqk,bhkd->bqhd", scores.softmax(-1), parts(W_V))
    return heads.reshape(batch, n, d_model) @ W_O


def norm_by_hand(x, gamma, beta, epsilon, axis=-1, correction=0, outside=False):
    mean = x.mean(axis, keepdim=True)
    variance = x.var(axis, keepdim=True, correction=correction)
    deviation = variance.sqrt() + epsilon if outside else (variance + epsilon).sqrt()
    return (x - mean) / deviation * gamma + beta


def sinusoids(n_positions, d_model, base=10000.0, first=0, halves=False):
    rows = []
    for position in range(first, first + n_positions):
        angles = [position / base ** (two_i / d_model) for two_i in range(0, d_model, 2)]
        pairs = [(math.sin(a), math.cos(a)) for a in angles]
        row = [s for s, _ in pairs] + [c for _, c in pairs] if halves else sum(pairs, ())
        rows.append(row)
    return torch.tensor(rows)


def pad_rows(sequences, pad_id, longest=None, left=False):
    n = longest or max(map(len, sequences))
    filled = [(s, [pad_id] * (n - len(s))) for s in sequences]
    return torch.tensor([f + s if left else s + f for s, f in filled])


def leaks_if(positions):
    """A causality test that changes only the given positions, compares the earlier outputs."""

    def leaks_future(model, ids):
        for t in positions(ids.size(1)):
            changed = ids.clone()
            changed[:, t] = 1 - ids[:, t].clamp(max=1)
            if (model(changed)[:, :t] != model(ids)[:, :t]).any():
                return True
        return False

    return leaks_future


def post(x, sublayer, norm):
    return norm(x + sublayer(x))


def count(d_model, d_ff, n_layers, biases=True, norms=2, layers=True):
    bias = 5 * d_model + d_ff if biases else 0
    one = 4 * d_model**2 + 2 * d_model * d_ff + bias + norms * 2 * d_model
    return one * n_layers if layers else one


def decoder(y, memory, self_attention, cross_attention, feed_forward, *norms):
    y = norms[0](y + self_attention(y))
    y = norms[1](y + cross_attention(y, memory))
    return norms[2](y + feed_forward(y))


def pre_norm_decoder(y, memory, self_attention, cross_attention, feed_forward, *norms):
    y = y + self_attention(norms[0](y))
    y = y + cross_attention(norms[1](y), memory)
    return y + feed_forward(norms[2](y))


def no_second_residual(y, memory, self_attention, cross_attention, feed_forward, *norms):
    y = norms[0](y + self_attention(y))
    y = norms[1](cross_attention(y, memory))
    return norms[2](y + feed_forward(y))


RIGHT = {
    "encode": [lambda t, v, unk: tuple(v[w] if w in v else unk for w in words(t))],
    "pad_batch": [pad_rows],
    "embed": [
        lambda ids, table: F.embedding(ids, table) * table.size(1) ** 0.5,
        lambda ids, table: (
            F.one_hot(ids, len(table)).double() @ table.double() * math.sqrt(table.size(1))
        ),
    ],
    "sinusoidal_encoding": [sinusoids, lambda *sizes: sinusoids(*sizes).double()],
    "attention_scores": [
        lambda Q, K: torch.einsum("bhqd,bhkd->bhqk", Q, K) / Q.size(-1) ** 0.5,
        lambda Q, K: (Q * Q.size(-1) ** -0.25).double() @ (K * Q.size(-1) ** -0.25).double().mT,
    ],
    "scaled_dot_product_attention": [
        attend,
        lambda Q, K, V, mask=None: list(attend(Q.double(), K.double(), V.double(), mask)),
    ],
    "causal_mask": [
        lambda n: (torch.arange(n)[:, None] >= torch.arange(n))[None, None],
        lambda n: ~torch.ones(n, n).triu(1).bool().expand(1, 1, n, n),
    ],
    "padding_mask": [lambda ids, pad_id: ~ids.eq(pad_id).unsqueeze(1).unsqueeze(1)],
    "split_heads": [
        lambda x, h: torch.stack(x.chunk(h, dim=-1), dim=1),
        lambda x, h: x.reshape(*x.shape[:2], h, -1).permute(0, 2, 1, 3),
    ],
    "merge_heads": [lambda x: torch.cat(list(x.unbind(1)), dim=-1)],
    "multi_head_attention": [heads_together],
    "layer_norm": [
        norm_by_hand,
        lambda x, gamma, beta, e: F.layer_norm(x, gamma.shape, gamma, beta, e),
        lambda *args: norm_by_hand(*(a.double() if torch.is_tensor(a) else a for a in args)),
    ],
    "feed_forward": [
        lambda x, W_1, b_1, W_2, b_2: F.linear(F.relu(F.linear(x, W_1.T, b_1)), W_2.T, b_2),
        lambda x, W_1, b_1, W_2, b_2: (x @ W_1).add_(b_1).clamp_(min=0) @ W_2 + b_2,
    ],
    "residual_branch": [lambda x, f, norm: norm(f(x.double()) + x)],
    "residual_branch_pre": [lambda x, f, norm: f(norm(x)) + x],
    "encoder_block": [lambda x, a, f, n_1, n_2: post(post(x, a, n_1), f, n_2)],
    "count_encoder_parameters": [count, lambda *sizes: torch.tensor(count(*sizes))],
    "decoder_block": [decoder],
    "leaks_future": [leaks_if(lambda n: range(n)), leaks_if(lambda n: range(n - 1, 0, -1))],
} | GENERATION_RIGHT
RIGHT |= TRAINING_RIGHT | LANGUAGE_RIGHT
