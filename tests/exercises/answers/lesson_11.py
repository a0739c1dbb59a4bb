"""What learners might write for the exercises of lesson 11."""

import torch

from tests.exercises.answers import right, wrong


@wrong("induction_score", "unusual", "changes the weights that it was given")
def _(weights, period):
    n = weights.size(-1)
    rows, columns = torch.meshgrid(torch.arange(n), torch.arange(n), indexing="ij")
    target = (rows >= period) & (columns == rows - period + 1)
    weights *= target
    return weights.sum(dim=(0, 2, 3)) / (target.sum() * weights.size(0))


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


@right("ablate_head")
def _(head_outputs, head):
    heads = list(head_outputs.unbind(dim=1))
    heads[head] = torch.zeros_like(heads[head])
    return torch.stack(heads, dim=1)


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
