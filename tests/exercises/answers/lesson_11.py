"""What learners might write for the exercises of lesson 11."""

import copy

import torch

from tests.exercises.answers import right, wrong

# -------------------------------------------------------------------------- induction_score


@wrong("induction_score", "usual", "looks at the token itself one period ago, not at what followed")
def _(weights, period):
    n = weights.size(-1)
    queries = torch.arange(period, n)
    return weights[:, :, queries, queries - period].mean(dim=(0, 2))


@wrong("induction_score", "usual", "looks at the token before the earlier occurrence")
def _(weights, period):
    n = weights.shape[-1]
    total = torch.zeros(weights.shape[1])
    count = 0
    for i in range(period + 1, n):
        total += weights[:, :, i, i - period - 1].mean(dim=0)
        count += 1
    return total / count


@wrong("induction_score", "usual", "counts query period - 1 too, which has no such key")
def _(weights, period):
    stripe = weights.diagonal(dim1=-2, dim2=-1, offset=1 - period)
    return stripe.mean(dim=-1).mean(dim=0)


@wrong("induction_score", "usual", "divides by all queries, those of the first period included")
def _(weights, period):
    batch, n_heads, n, _ = weights.shape
    score = torch.zeros(n_heads)
    for h in range(n_heads):
        for i in range(period, n):
            score[h] += weights[:, h, i, i - period + 1].mean()
    return score / n


@wrong("induction_score", "usual", "averages over the heads, so one number per text is left")
def _(weights, period):
    i = torch.arange(period, weights.size(2))
    picked = weights[:, :, i, i - period + 1]  # (batch, head, query)
    return picked.mean(dim=(1, 2))


@wrong("induction_score", "usual", "leaves the batch axis in the result")
def _(weights, period):
    diagonal = torch.diagonal(weights, offset=-(period - 1), dim1=2, dim2=3)
    return diagonal[..., 1:].mean(-1)


@wrong("induction_score", "usual", "reads above the main diagonal: queries and keys are swapped")
def _(weights, period):
    above = weights.diagonal(period - 1, dim1=-2, dim2=-1)[..., 1:]
    return above.mean(dim=(0, -1))


@wrong("induction_score", "usual", "adds the weights up without dividing by the queries")
def _(weights, period):
    q = torch.arange(period, weights.size(-1))
    return weights.mean(dim=0)[:, q, q - period + 1].sum(dim=-1)


@wrong("induction_score", "unusual", "counts how often the key is the most read one")
def _(weights, period):
    q = torch.arange(period, weights.size(-2))
    hits = weights[:, :, period:].argmax(dim=-1) == q - period + 1
    return hits.float().mean(dim=(0, 2))


@wrong(
    "induction_score",
    "unusual",
    "squeezes the result: shape () for weights of one head",
)
def _(weights, period):
    n = weights.size(-1)
    total = sum(weights[:, :, i, i - period + 1] for i in range(period, n))
    return (total / (n - period)).mean(dim=0, keepdim=True).squeeze()


@wrong("induction_score", "unusual", "reads the second period only, of however many there are")
def _(weights, period):
    n = weights.size(-1)
    second = torch.arange(period, min(2 * period, n))
    return weights[..., second, second - period + 1].mean(dim=(0, -1))


@wrong("induction_score", "unusual", "the period of the lesson's test, 24, is built in")
def _(weights, period=24):
    n = weights.size(-1)
    key = torch.arange(n) - 23
    diag = weights[:, :, torch.arange(n), key.clamp(min=0)]
    return diag[:, :, 24:].mean(dim=(0, 2))


@wrong("induction_score", "unusual", "a slice that ends at -0 is empty: NaN for period 1")
def _(weights, period):
    # query period + i meets key 1 + i, so the wanted cells are this block's diagonal
    block = weights[:, :, period:, 1 : -(period - 1)]
    return block.diagonal(dim1=-2, dim2=-1).mean(dim=(0, 2))


@wrong("induction_score", "unusual", "reads the first text of the batch only")
def _(weights, period):
    w = weights[0]
    values = [w[:, i, i - period + 1] for i in range(period, w.size(-1))]
    return torch.stack(values).mean(dim=0)


@wrong("induction_score", "unusual", "changes the weights that it was given")
def _(weights, period):
    n = weights.size(-1)
    rows, columns = torch.meshgrid(torch.arange(n), torch.arange(n), indexing="ij")
    target = (rows >= period) & (columns == rows - period + 1)
    weights *= target
    return weights.sum(dim=(0, 2, 3)) / (target.sum() * weights.size(0))


@wrong("induction_score", "unusual", "adds up all earlier occurrences of the same follower")
def _(weights, period):
    n, scores = weights.size(-1), []
    for i in range(period, n):
        keys = list(range(i - period + 1, -1, -period))
        scores.append(weights[:, :, i, keys].sum(-1))
    return torch.stack(scores).mean(dim=(0, 1))


@wrong(
    "induction_score",
    "pair",
    "looks at the token itself one period ago, not at what followed",
    "divides by all queries, those of the first period included",
)
def _(weights, period):
    back = weights.diagonal(-period, dim1=-2, dim2=-1)  # (batch, head, n - period)
    return back.sum(dim=-1).mean(dim=0) / weights.size(-2)


@wrong(
    "induction_score",
    "pair",
    "counts query period - 1 too, which has no such key",
    "leaves the batch axis in the result",
)
def _(weights, period):
    i = torch.arange(period - 1, weights.shape[-1])
    return weights[:, :, i, i - period + 1].mean(dim=-1)


@wrong(
    "induction_score",
    "pair",
    "queries and keys are swapped",
    "averages over everything, one number for all heads",
)
def _(weights, period):
    weights = weights.transpose(-2, -1)
    diagonal = weights.diagonal(1 - period, dim1=-2, dim2=-1)
    return diagonal[..., 1:].mean()


@wrong(
    "induction_score",
    "pair",
    "takes the highest weight instead of the mean over the queries",
    "looks two places after the earlier occurrence",
)
def _(weights, period):
    found = []
    for query in range(period, weights.size(2)):
        found.append(weights[:, :, query, min(query - period + 2, query)].mean(dim=0))
    return torch.stack(found).amax(dim=0)


@wrong(
    "induction_score",
    "pair",
    "reads the first text of the batch only",
    "leaves out the first query that has such a key",
)
def _(weights, period):
    q = torch.arange(period + 1, weights.size(-1))
    return weights[0][:, q, q - period + 1].mean(dim=-1)


@right("induction_score")
def _(weights, period):
    return weights.diagonal(1 - period, dim1=-2, dim2=-1)[..., 1:].mean(dim=(0, 2))


@right("induction_score")
def _(weights, period):
    batch, n_heads, n, _ = weights.shape
    result = weights.new_zeros(n_heads)
    for b in range(batch):
        for h in range(n_heads):
            for i in range(period, n):
                result[h] += weights[b, h, i, i - period + 1]
    return result / (batch * (n - period))


@right("induction_score")
def _(weights, period):
    n = weights.size(-1)
    i, j = torch.arange(n)[:, None], torch.arange(n)[None, :]
    pattern = ((i >= period) & (j == i - period + 1)).to(weights.dtype)
    return torch.einsum("bhqk,qk->h", weights, pattern) / (len(weights) * pattern.sum())


@right("induction_score")
def _(weights, period):
    later = weights[:, :, period:]  # (batch, head, query, key)
    keys = torch.arange(1, later.size(2) + 1).view(1, 1, -1, 1).expand(*later.shape[:3], 1)
    on_key = later.gather(-1, keys).squeeze(-1)
    return on_key.transpose(0, 1).flatten(1).mean(dim=1)


# ------------------------------------------------------------------------------ ablate_head


@wrong("ablate_head", "usual", "changes its argument")
def _(head_outputs, head):
    head_outputs[:, head] = 0
    return head_outputs


@wrong("ablate_head", "usual", "takes the batch axis for the heads")
def _(head_outputs, head):
    ablated = head_outputs.clone()
    ablated[head] = 0.0
    return ablated


@wrong("ablate_head", "usual", "takes the axis of the positions for the heads")
def _(head_outputs, head):
    result = head_outputs.clone()
    result[:, :, head, :] = 0.0
    return result


@wrong("ablate_head", "usual", "keeps that head and clears all the others")
def _(head_outputs, head):
    alone = torch.zeros_like(head_outputs)
    alone[:, head] = head_outputs[:, head]
    return alone


@wrong("ablate_head", "usual", "counts heads from 1")
def _(head_outputs, head):
    x = head_outputs.clone()
    x[:, head - 1, :, :] = 0
    return x


@wrong("ablate_head", "usual", "removes the head instead of clearing it, one head is missing")
def _(head_outputs, head):
    return torch.cat([head_outputs[:, :head], head_outputs[:, head + 1 :]], dim=1)


@wrong("ablate_head", "unusual", "detach shares the memory, so the argument changes")
def _(head_outputs, head):
    out = head_outputs.detach()
    out[:, head].zero_()
    return out


@wrong("ablate_head", "unusual", "copy.copy is shallow, so the argument changes")
def _(head_outputs, head):
    new = copy.copy(head_outputs)
    new[:, head, ...] = torch.zeros(())
    return new


@wrong("ablate_head", "unusual", "puts the head's mean there, not zero")
def _(head_outputs, head):
    patched = head_outputs.clone()
    patched[:, head] = head_outputs[:, head].mean(dim=0, keepdim=True)
    return patched


@wrong("ablate_head", "unusual", "scales the other heads up, as dropout does")
def _(head_outputs, head):
    n_heads = head_outputs.size(1)
    mask = torch.ones(1, n_heads, 1, 1, dtype=head_outputs.dtype)
    mask[0, head] = 0
    return head_outputs * mask * n_heads / (n_heads - 1)


@wrong("ablate_head", "unusual", "clears this head and all after it")
def _(head_outputs, head):
    kept = torch.arange(head_outputs.size(1)) < head
    return torch.where(kept[None, :, None, None], head_outputs, 0.0)


@wrong("ablate_head", "unusual", "clears the head in the first text of the batch only")
def _(head_outputs, head):
    result = head_outputs + 0
    result[0, head] = 0
    return result


@wrong("ablate_head", "unusual", "sets the head to minus infinity, as a mask does to scores")
def _(head_outputs, head):
    hidden = torch.zeros(head_outputs.size(1), dtype=torch.bool)
    hidden[head] = True
    return head_outputs.masked_fill(hidden[:, None, None], float("-inf"))


@wrong(
    "ablate_head",
    "pair",
    "changes its argument",
    "takes the axis of the positions for the heads",
)
def _(head_outputs, head):
    head_outputs[:, :, head] = torch.zeros_like(head_outputs[:, :, head])
    return head_outputs


@wrong(
    "ablate_head",
    "pair",
    "returns the one head only",
    "a slice is no copy, so the argument changes",
)
def _(head_outputs, head):
    part = head_outputs[:, head]
    part.fill_(0.0)
    return part


@wrong(
    "ablate_head",
    "pair",
    "keeps that head and clears all the others",
    "counts heads from 1",
)
def _(head_outputs, head):
    mask = torch.arange(1, head_outputs.size(1) + 1) == head
    return head_outputs * mask[None, :, None, None]


@wrong(
    "ablate_head",
    "pair",
    "clears the first position only",
    "takes the batch axis for the heads",
)
def _(head_outputs, head):
    x = head_outputs.clone()
    x[head, :, 0] = 0
    return x


@wrong(
    "ablate_head",
    "pair",
    "removes the head instead of clearing it, one head is missing",
    "scales the other heads up, as dropout does",
)
def _(head_outputs, head):
    h = head_outputs.shape[1]
    others = [i for i in range(h) if i != head]
    return head_outputs[:, others] * (h / max(h - 1, 1))


@right("ablate_head")
def _(head_outputs, head):
    ablated = head_outputs.clone()
    ablated[:, head].fill_(0)
    return ablated


@right("ablate_head")
def _(head_outputs, head):
    is_head = torch.arange(head_outputs.size(1)) == head
    return torch.where(is_head[:, None, None], torch.zeros_like(head_outputs), head_outputs)


@right("ablate_head")
def _(head_outputs, head):
    heads = list(head_outputs.unbind(dim=1))
    heads[head] = torch.zeros_like(heads[head])
    return torch.stack(heads, dim=1)


@right("ablate_head")
def _(head_outputs, head):
    return head_outputs.index_fill(1, torch.tensor([head]), 0.0)


@right("ablate_head")
def _(head_outputs, head):
    before, after = head_outputs[:, :head], head_outputs[:, head + 1 :]
    middle = head_outputs.new_zeros(head_outputs.size(0), 1, *head_outputs.shape[2:])
    return torch.cat((before, middle, after), dim=1)


@right("ablate_head")  # 0 times infinity is NaN, but a head reads finite numbers
def _(head_outputs, head):
    keep = torch.ones(head_outputs.size(1), dtype=head_outputs.dtype)
    keep[head] = 0
    return head_outputs * keep[None, :, None, None]
