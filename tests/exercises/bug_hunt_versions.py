"""Lesson 14: other right ways to repair each bug."""

import math

import torch
import torch.nn.functional as F

from transformer_lesson.model.masks import causal_mask


def hide_and_stack(ids, embedding, blocks, projection):
    n = ids.size(1)
    x = embedding(ids)
    for block in blocks:
        x = block(x, torch.arange(n)[:, None] >= torch.arange(n))
    return projection(x)


def block_in_doubles(x, attention_1, attention_2, feed_forward):
    x, mask = x.double(), causal_mask(x.size(1))
    for attention in (attention_1, attention_2):
        x = attention(x, x, x, mask) + x
    return feed_forward(x) + x


def mask_by_loops(ids, pad_id):
    batch, n = ids.shape
    mask = torch.zeros(batch, 1, n, n, dtype=torch.bool)
    for sentence in range(batch):
        for query in range(n):
            for key in range(query + 1):
                mask[sentence, 0, query, key] = ids[sentence, key] != pad_id
    return mask


def infinite_where_some(scores, mask):
    some = mask.any(-1, keepdim=True)
    return scores.masked_fill(~mask & some, -math.inf).softmax(-1) * mask


def infinite_then_zero(scores, mask):
    return scores.masked_fill(~mask, -math.inf).softmax(-1).masked_fill(~mask, 0.0)


def in_single_precision(scores, mask):
    return infinite_then_zero(scores.float(), mask)


def fused(x, W_Q, W_K, W_V):
    Q, K, V = (x[:, None] @ W for W in (W_Q, W_K, W_V))
    return F.scaled_dot_product_attention(Q, K, V)


def side_by_side(x, *matrices):
    Q, K, V = (
        (x @ torch.cat(list(W), dim=1)).unflatten(-1, (len(W), -1)).transpose(1, 2)
        for W in matrices
    )
    return (Q @ K.mT / Q.size(-1) ** 0.5).softmax(-1) @ V


def linear_in_steps(attend, x, y):
    def f(z):
        return attend(z, z, z)

    return bool(((f(x + y) - f(x) - f(y)).abs() < 1e-4).all())


def halves(n_positions, d_model):
    encoding = torch.empty(n_positions, d_model, dtype=torch.float64)
    for column in range(d_model):
        angle = torch.arange(n_positions) / 10000 ** (2 * (column // 2) / d_model)
        encoding[:, column] = angle.cos() if column % 2 else angle.sin()
    return encoding


def wide_then_cut(n_positions, d_model):
    two_i = torch.arange(0, d_model, 2)
    angle = torch.arange(n_positions)[:, None] / 10000 ** (two_i / d_model)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :d_model]


def one_token_after_the_other(x, table):
    return torch.stack([token + table[i] for i, token in enumerate(x.unbind(1))], dim=1)


def added_in_steps(x, sublayer, dropout, norm):
    total = dropout(sublayer(x.double()))
    total += x
    return norm(total)


def by_loops(labels, n_classes, smoothing):
    rows = [[smoothing / n_classes] * n_classes for _ in labels]
    for row, label in zip(rows, labels.tolist(), strict=True):
        row[label] += 1 - smoothing
    return torch.tensor(rows)


def loss_by_hand(logits, labels):
    log_p = logits.double() - logits.double().logsumexp(dim=-1, keepdim=True)
    return -log_p.gather(-1, labels[..., None]).mean()


def while_loop(next_logits, prompt, eos_id, max_new_tokens):
    new = []
    while len(new) < max_new_tokens and eos_id not in new:
        logits = next_logits(prompt + new).tolist()
        new.append(logits.index(max(logits)))
    return prompt + new


def with_if(words, vocabulary, unk_id):
    ids = []
    for word in words:
        ids.append(vocabulary[word] if word in vocabulary else unk_id)
    return tuple(ids)


def row_by_row(next_logits, start, length):
    ids = start.clone()
    while ids.shape[1] < length:
        new = [[int(row.argmax())] for row in next_logits(ids)]
        ids = torch.cat([ids, torch.tensor(new)], dim=1)
    return ids


def keepdim(next_logits, start, length):
    n = start.shape[-1]
    for _ in range(n, length):
        start = torch.cat([start, next_logits(start).argmax(-1, keepdim=True)], -1)
    return start


def chained(model, ids):
    x = model.embedding(ids).double()
    for i in range(len(model.layers)):
        x = model.layers[i](x)
    logits = model.out(x)
    return logits


BUG_HUNT_RIGHT = {
    "gpt_block": [block_in_doubles],
    "next_token_logits": [hide_and_stack],
    "mask_for_batch": [mask_by_loops],
    "weights_of_real_keys": [infinite_where_some, infinite_then_zero],
    "half_precision_weights": [infinite_where_some, infinite_then_zero, in_single_precision],
    "cut_into_heads": [
        lambda x, n_heads: torch.stack(x.chunk(n_heads, dim=1)),
        lambda x, n_heads: x.T.reshape(n_heads, -1, len(x)).mT,
    ],
    "all_heads": [fused, side_by_side],
    "is_linear": [linear_in_steps],
    "projection_parameters": [
        lambda d_model, n_heads: 3 * d_model**2,
        lambda d_model, n_heads: torch.tensor(3 * d_model * n_heads * (d_model // n_heads)),
    ],
    "encoding_by_formula": [halves, wide_then_cut],
    "encoding_of_any_width": [halves, wide_then_cut],
    "add_positions": [
        lambda x, table: x + table[None, : x.size(1)],
        one_token_after_the_other,
        lambda x, table: F.embedding(torch.arange(x.size(1)), table).double() + x,
    ],
    "frequencies": [
        lambda d_model: 10000.0 ** (-torch.arange(0, d_model, 2) / d_model),
        lambda d_model: 1 / torch.logspace(0, 4, d_model // 2 + 1)[:-1],
    ],
    "add_and_norm": [added_in_steps, lambda x, f, dropout, norm: norm(dropout(f(x)) + x)],
    "close_branch": [
        lambda x, branch, block: block.norm(block.dropout(branch) + x),
        lambda x, branch, block: block.norm(x.double() + block.dropout(branch.double())),
    ],
    "last_logits": [
        lambda x, W, b: (x @ W + b)[:, -1],
        lambda x, W, b: F.linear(x[:, -1, :].double(), W.T.double(), b.double()),
        lambda x, W, b: torch.einsum("bd,dv->bv", x[:, -1], W) + b,
    ],
    "smoothed_targets": [
        by_loops,
        lambda labels, n, smoothing: torch.lerp(
            F.one_hot(labels, n).float(), torch.full((len(labels), n), 1 / n), smoothing
        ),
        lambda labels, n, smoothing: (
            (1 - smoothing) * F.one_hot(labels, n).double() + smoothing / n
        ),
    ],
    "next_token_loss": [
        loss_by_hand,
        lambda logits, labels: F.cross_entropy(logits.transpose(1, 2), labels),
        lambda logits, labels: F.cross_entropy(logits.log_softmax(dim=-1).mT, labels),
        lambda logits, labels: F.nll_loss(
            logits.log_softmax(dim=-1).reshape(-1, logits.size(-1)), labels.reshape(-1)
        ),
        lambda logits, labels: float(loss_by_hand(logits, labels)) * torch.ones(()),
    ],
    "continue_text": [while_loop],
    "look_up": [with_if],
    "fill_up": [row_by_row, keepdim],
    "width_message": [
        lambda x, table: f"Expected vectors of {table.size(1)} numbers, but got {x.size(-1)}.",
        lambda x, table: (
            "Expected vectors of %d numbers, but got %d." % (len(table[0]), x.shape[2])  # noqa: UP031
        ),
    ],
    "run_listing": [chained],
    "gpt2_d_model": [
        lambda n_heads: 64 * n_heads,
        lambda n_heads: n_heads * (1024 // 16),
        lambda n_heads: {12: 768, 16: 1024, 20: 1280, 25: 1600}.get(n_heads, n_heads << 6),
        lambda n_heads: int(math.prod((n_heads, 768)) / 12),
    ],
}
