"""Other right repairs of the functions of lesson 14, second part."""

import math

import torch
import torch.nn.functional as F


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


BUG_HUNT_2_RIGHT = {
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
