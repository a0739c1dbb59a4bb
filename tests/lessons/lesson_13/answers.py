"""What learners might write for the exercises of lesson 13."""

import torch

from tests.exercises.answers import right, wrong


@right("repeat_kv")  # by an axis of groups
def _(x, n_groups):
    return torch.stack([x] * n_groups, dim=2).flatten(1, 2)


@right("repeat_kv")  # along the tokens, then by a view
def _(x, n_groups):
    return x.repeat(1, 1, n_groups, 1).reshape(x.size(0), -1, *x.shape[2:])


@wrong("apply_rotary", "unusual", "a table of 2048 positions, position 2048 fails")
def _(x, positions, base=10000.0):
    d = x.size(-1)
    t = torch.arange(2048)
    table = torch.outer(t, base ** (-torch.arange(0, d, 2) / d))
    angle = table[positions]
    a, b = torch.tensor_split(x, 2, dim=-1)
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], dim=-1)


@right("apply_rotary")  # by a table of positions from 0
def _(x, positions, base=10000.0):
    d = x.size(-1)
    t = torch.arange(int(positions.max()) + 1)
    angle = torch.outer(t, base ** (-torch.arange(0, d, 2) / d))
    cos, sin = angle.cos()[positions], angle.sin()[positions]
    a, b = x[..., : d // 2], x[..., d // 2 :]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


@right("cut_off")
def _(weights, window):
    kept = torch.ones_like(weights[0]).tril().triu(1 - window)
    return (weights - weights * kept).mean(dim=(0, 1))


@right("route")
def _(x, W_router, k):
    P = torch.softmax(x @ W_router, 1)
    threshold = P.kthvalue(P.size(1) - k + 1, dim=1, keepdim=True).values
    keep = P >= threshold
    share = keep.float().mean(0) / k
    return torch.where(keep, P, 0.0), (share * P.mean(0)).sum() * W_router.shape[-1]


@right("linear_attention_step")
def _(state, q, k, v):
    """Reads first, and adds what the new token brings."""
    return q @ state + (q @ k) * v, state + torch.outer(k, v)


@wrong("counts", "unusual", "Student's t at one in ten, with ten seeds too: finds 90 % there")
def _(differences):
    n = differences.shape[1]
    t = differences.mean(1) / (differences.std(1) / n**0.5)
    return t.abs() > {3: 2.92, 5: 2.132, 10: 1.833}[n]


@right("counts")
def _(differences):
    said = []
    for row in differences.tolist():
        mean = sum(row) / len(row)
        variance = sum((x - mean) ** 2 for x in row) / (len(row) - 1)
        said.append(mean**2 > 9 * variance / len(row))
    return torch.tensor(said)


@right("counts")
def _(differences):  # a rule of distances whose factor falls with the number of seeds
    distance = differences.amax(1) - differences.amin(1)
    factor = {3: 0.95, 5: 0.5, 10: 0.3}[differences.size(1)]
    return differences.mean(1).abs() > factor * distance


@wrong("counts", "unusual", "one rule for all comparisons together")
def _(differences):
    error = differences.std() / differences.numel() ** 0.5
    return (differences.mean() > 3 * error).expand(len(differences))


@wrong("counts", "unusual", "a fixed number of nats, which suits noise of one size")
def _(differences):
    return differences.mean(1).abs() > 0.02


@wrong("counts", "unusual", "the median of three, whatever there are")
def _(differences):
    return differences.sort(1).values[:, 1].abs() > 3 * differences.std(1) / 3**0.5


@right("at_their_best")
def _(old, new):
    i, j = (int(x.sum(-1).argmin()) for x in (old, new))
    inside = 0 < i < old.shape[0] - 1 and 0 < j < new.shape[0] - 1
    return torch.sub(new[j], old[i]), not inside


@wrong("at_their_best", "unusual", "forgets the lower edge of both grids")
def _(old, new):
    i, j = int(old.mean(1).argmin()), int(new.mean(1).argmin())
    return new[j] - old[i], i == len(old) - 1 or j == len(new) - 1


@right("gemma_block")  # with the heads' axes moved by hand, and one function for all norms
def _(x, block, mask, positions):
    def norm(h, gamma):
        return h * torch.rsqrt((h**2).mean(-1, keepdim=True) + 1e-6) * gamma

    def turned(h):
        half = h.size(-1) // 2
        angle = positions[:, None] * block.base ** (-torch.arange(half) / half)
        a, b = h[..., :half], h[..., half:]
        return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)

    (batch, n, _), d_head = x.shape, len(block.norm_Q)
    h = norm(x, block.before_1)
    Q, K, V = (
        (h @ W).reshape(batch, n, -1, d_head).permute(0, 2, 1, 3)
        for W in (block.W_Q, block.W_K, block.W_V)
    )
    Q, K = turned(norm(Q, block.norm_Q)), turned(norm(K, block.norm_K))
    K, V = (one.repeat_interleave(Q.size(1) // K.size(1), dim=1) for one in (K, V))
    scores = (Q @ K.mT / d_head**0.5).masked_fill(~mask, -torch.inf)
    heads = scores.softmax(-1).nan_to_num(0.0) @ V
    x = x + norm(heads.permute(0, 2, 1, 3).reshape(batch, n, -1) @ block.W_O, block.behind_1)
    h = norm(x, block.before_2)
    gate = torch.nn.functional.gelu(h @ block.W_gate, approximate="tanh")
    return x + norm((gate * (h @ block.W_up)) @ block.W_down, block.behind_2)
