"""What learners might write for the exercises of lesson 15."""

import math

import numpy as np
import torch
import torch.nn.functional as F

from tests.exercises.answers import right, wrong


@right("online_softmax")
def _(largest, total, output, scores, values):
    new_largest, new_total, new_output = [], [], []
    for q in range(scores.shape[0]):
        m, length, o = largest[q].item(), total[q].item(), output[q].clone()
        for k in range(scores.shape[1]):
            s = scores[q, k].item()
            if s == -math.inf:
                continue
            if s > m:
                factor = math.exp(m - s)
                length, o, m = length * factor, o * factor, s
            length += math.exp(s - m)
            o = o + math.exp(s - m) * values[k]
        new_largest.append(m)
        new_total.append(length)
        new_output.append(o)
    made = torch.tensor(new_largest), torch.tensor(new_total)
    return *(one.to(scores.dtype) for one in made), torch.stack(new_output)


@right("online_softmax")
def _(largest, total, output, scores, values):
    """The old state is one more key, whose score is the logarithm of its total."""
    new = torch.cat([largest[:, None], scores], dim=1).max(dim=1).values
    safe = torch.nan_to_num(new, neginf=0.0)
    old = torch.exp(largest - safe)
    p = torch.exp(scores - safe.unsqueeze(1))
    return new, old * total + p.sum(1), torch.einsum("q,qv->qv", old, output) + p.mm(values)


@wrong("online_softmax", "usual", "the old sums are multiplied by the factor only where it is > 1")
def _(largest, total, output, scores, values):
    new = torch.maximum(largest, scores.max(-1).values)
    p = (scores - new[:, None]).exp()
    factor = (largest - new).exp().clamp(min=1.0)
    return new, total * factor + p.sum(-1), output * factor[:, None] + p @ values


@wrong("online_softmax", "unusual", "works in place on the state it was given")
def _(largest, total, output, scores, values):
    new = torch.maximum(largest, scores.amax(-1)).clamp(min=-1e30)
    factor = (largest - new).exp()
    p = (scores - new[:, None]).exp()
    total *= factor
    total += p.sum(-1)
    output *= factor[:, None]
    output += p @ values
    return new, total, output


@wrong("online_softmax", "unusual", "a maximum over the whole block, one for all queries")
def _(largest, total, output, scores, values):
    new = torch.maximum(largest, scores.max()).clamp(min=-1e30)
    factor = (largest - new).exp()
    p = (scores - new[:, None]).exp()
    return new, total * factor + p.sum(-1), output * factor[:, None] + p @ values


@right("attention_in_blocks")
def _(Q, K, V, block_size, causal):
    """Query by query, which needs no table either."""
    rows = []
    for i in range(Q.shape[1]):
        stop = i + 1 if causal else K.shape[1]
        scores = torch.einsum("hd,hkd->hk", Q[:, i], K[:, :stop]) / Q.shape[-1] ** 0.5
        rows.append(torch.einsum("hk,hkv->hv", F.softmax(scores, -1), V[:, :stop]))
    return torch.stack(rows, dim=1)


@right("attention_in_blocks")
def _(Q, K, V, block_size, causal):
    """Blocks of keys, and only the queries that see something of them."""
    n = Q.size(1)
    m = torch.full(Q.shape[:2], -torch.inf, dtype=Q.dtype)
    length = torch.zeros(Q.shape[:2], dtype=Q.dtype)
    o = torch.zeros(*Q.shape[:2], V.size(-1), dtype=Q.dtype)
    for number, k in enumerate(K.split(block_size, 1)):
        start = number * block_size
        v = V[:, start : start + block_size]
        first = start if causal else 0
        s = Q[:, first:] @ k.transpose(1, 2) * Q.size(-1) ** -0.5
        if causal:
            i = torch.arange(first, n).unsqueeze(1)
            s = torch.where(torch.arange(start, start + k.size(1)) <= i, s, -torch.inf)
        new = torch.maximum(m[:, first:], s.amax(-1))
        p, shrink = torch.exp(s - new[..., None]), torch.exp(m[:, first:] - new)
        length[:, first:] = length[:, first:] * shrink + p.sum(-1)
        o[:, first:] = o[:, first:] * shrink[..., None] + p @ v
        m[:, first:] = new
    return o / length.unsqueeze(-1)


@wrong("attention_in_blocks", "usual", "PyTorch's own with a mask of n x n")
def _(Q, K, V, block_size, causal):
    mask = torch.ones(Q.size(1), K.size(1)).tril().bool() if causal else None
    return F.scaled_dot_product_attention(Q, K, V, attn_mask=mask)


@wrong("attention_in_blocks", "usual", "all scores at once, then cut into blocks")
def _(Q, K, V, block_size, causal):
    scores = Q @ K.mT / math.sqrt(Q.size(-1))
    if causal:
        later = torch.ones(scores.shape[-2:]).triu(1).bool()
        scores = scores.masked_fill(later, -torch.inf)
    weights = scores.softmax(-1)
    blocks = zip(weights.split(block_size, -1), V.split(block_size, 1), strict=True)
    return sum(w @ v for w, v in blocks)


@wrong(
    "attention_in_blocks", "unusual", "blocks of queries instead of keys, each with its own keys"
)
def _(Q, K, V, block_size, causal):
    out = []
    for start in range(0, Q.size(1), block_size):
        cut = slice(start, start + block_size)
        scores = Q[:, cut] @ K[:, cut].mT / math.sqrt(Q.size(-1))
        out.append(scores.softmax(-1) @ V[:, cut])
    return torch.cat(out, dim=1)


@right("accumulate")
def _(model, parts, pad_id):
    n = sum(label != pad_id for _, labels in parts for row in labels.tolist() for label in row)
    loss = 0
    for ids, labels in parts:
        log_p = model(ids).log_softmax(-1)
        picked = -log_p.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
        part = (picked * (labels != pad_id)).sum() / n
        part.backward()
        loss += float(part)
    return loss


@right("accumulate")
def _(model, parts, pad_id):
    """Sums first; the gradients are divided at the end."""
    model.zero_grad()
    loss, n = 0.0, 0
    for ids, labels in parts:
        real = labels != pad_id
        part = F.cross_entropy(model(ids)[real], labels[real], reduction="sum")
        part.backward()
        loss, n = loss + part.item(), n + int(real.sum())
    for weight in model.parameters():
        weight.grad /= n
    return loss / n


@wrong("accumulate", "usual", "the mean of each part, divided by the number of parts")
def _(model, parts, pad_id):
    total = 0.0
    for ids, labels in parts:
        logits = model(ids)
        loss = F.cross_entropy(logits.transpose(1, 2), labels, ignore_index=pad_id) / len(parts)
        loss.backward()
        total += loss.item()
    return total


@wrong("accumulate", "unusual", "keeps all graphs with retain_graph and one sum")
def _(model, parts, pad_id):
    n = sum((labels != pad_id).sum() for _, labels in parts)
    total = 0.0
    for ids, labels in parts:
        logits = model(ids)
        total = total + F.cross_entropy(
            logits.flatten(0, 1), labels.flatten(), ignore_index=pad_id, reduction="sum"
        )
        total.backward(retain_graph=True)
    return (total / n).item()


@wrong("accumulate", "unusual", "puts all parts together again")
def _(model, parts, pad_id):
    ids, labels = (torch.cat(tensors) for tensors in zip(*parts, strict=True))
    loss = F.cross_entropy(model(ids).flatten(0, 1), labels.flatten(), ignore_index=pad_id)
    loss.backward()
    return loss.item()


@right("on_edge")
def _(fits, exponents):
    low, *_, high = sorted(exponents)
    return len([1 for pair in fits if {low, high} & {*pair}])


@right("on_edge")
def _(fits, exponents):
    fits, exponents = np.array(fits), np.array(exponents)
    inside = (exponents.min() < fits) & (fits < exponents.max())
    return int((~inside.all(axis=1)).sum())


@wrong("on_edge", "usual", "asks whether a fit lies beyond the list")
def _(fits, exponents):
    low, high = min(exponents), max(exponents)
    return sum(not low <= one <= high for pair in fits for one in pair)


@wrong("on_edge", "unusual", "counts different fits, each once")
def _(fits, exponents):
    edges = min(exponents), max(exponents)
    return len({pair for pair in fits if pair[0] in edges or pair[1] in edges})
