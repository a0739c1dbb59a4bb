"""What learners might write for the exercises of lesson 15."""

import torch
import torch.nn.functional as F

from tests.exercises.answers import right, wrong


@right("online_softmax")
def _(largest, total, output, scores, values):
    """The old state is one more key, whose score is the logarithm of its total."""
    new = torch.cat([largest[:, None], scores], dim=1).max(dim=1).values
    safe = torch.nan_to_num(new, neginf=0.0)
    old = torch.exp(largest - safe)
    p = torch.exp(scores - safe.unsqueeze(1))
    return new, old * total + p.sum(1), torch.einsum("q,qv->qv", old, output) + p.mm(values)


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


@wrong("attention_in_blocks", "usual", "PyTorch's own with a mask of n x n")
def _(Q, K, V, block_size, causal):
    mask = torch.ones(Q.size(1), K.size(1)).tril().bool() if causal else None
    return F.scaled_dot_product_attention(Q, K, V, attn_mask=mask)


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


@wrong("accumulate", "unusual", "ends at a part of nothing but padding")
def _(model, parts, pad_id):
    count, loss = sum(int((labels != pad_id).sum()) for _, labels in parts), 0.0
    for ids, labels in parts:
        if (labels == pad_id).all():
            break
        share = F.cross_entropy(model(ids).mT, labels, ignore_index=pad_id, reduction="sum") / count
        share.backward()
        loss += share.item()
        del share
    return loss


@right("attention_costs")  # product by product
def _(batch, n_queries, n_keys, d_model, n_heads):
    rows, d_head = batch * n_queries, d_model // n_heads
    products = [(1, rows, d_model, d_model)] * 4
    products += [(batch * n_heads, n_queries, d_head, n_keys)]
    products += [(batch * n_heads, n_queries, n_keys, d_head)]
    operations = sum(2 * times * n * k * m for times, n, k, m in products)
    moved = sum(4 * times * (n * k + k * m + n * m) for times, n, k, m in products)
    return operations, 3 * operations, moved


@wrong("attention_costs", "usual", "6 operations for each weight and token, and nothing else")
def _(batch, n_queries, n_keys, d_model, n_heads):
    weights, tokens = 4 * d_model**2, batch * n_queries
    return 2 * weights * tokens, 6 * weights * tokens, 4 * weights


@wrong("attention_costs", "unusual", "half of the scores, as if there were a causal mask")
def _(batch, n_queries, n_keys, d_model, n_heads):
    rows = batch * n_queries
    forward = 8 * rows * d_model**2 + 2 * rows * n_keys * d_model
    table = rows * n_heads * n_keys
    numbers = 4 * d_model**2 + 10 * rows * d_model + 2 * batch * n_keys * d_model + 2 * table
    return forward, 3 * forward, 4 * numbers


@wrong("attention_costs", "unusual", "two bytes a number, as in training with bfloat16")
def _(batch, n_queries, n_keys, d_model, n_heads):
    rows = batch * n_queries
    forward = 8 * rows * d_model**2 + 4 * rows * n_keys * d_model
    table = rows * n_heads * n_keys
    numbers = 4 * d_model**2 + 10 * rows * d_model + 2 * batch * n_keys * d_model + 2 * table
    return forward, 3 * forward, 2 * numbers
