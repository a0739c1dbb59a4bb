"""What learners might write for the exercises of lesson 13."""

import math

import torch
import torch.nn.functional as F

from tests.exercises.answers import right, wrong


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


@wrong("apply_rotary", "unusual", "turns a quarter of the numbers only, as GPT-NeoX does")
def _(x, positions, base=10000.0):
    d = x.size(-1)
    rotary = max(d // 4 // 2 * 2, 2)
    head, rest = x[..., :rotary], x[..., rotary:]
    angle = positions[:, None] * base ** (-torch.arange(0, rotary, 2) / rotary)
    a, b = head.chunk(2, dim=-1)
    turned = [a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()]
    return torch.cat([*turned, rest], dim=-1)


@wrong("apply_rotary", "unusual", "changes its argument")
def _(x, positions, base=10000.0):
    half = x.size(-1) // 2
    for j in range(half):
        angle = positions * base ** (-2 * j / x.size(-1))
        a, b = x[..., j].clone(), x[..., j + half].clone()
        x[..., j] = a * angle.cos() - b * angle.sin()
        x[..., j + half] = a * angle.sin() + b * angle.cos()
    return x


@wrong(
    "apply_rotary",
    "pair",
    "adds the sinusoids where it must turn",
    "the frequencies grow: the sign of the exponent is missing",
)
def _(x, positions, base=10000.0):
    d = x.size(-1)
    angle = positions[:, None] * base ** (torch.arange(0, d, 2) / d)
    return x + torch.cat([angle.cos(), angle.sin()], dim=-1)


@right("apply_rotary")
def _(x, positions, base=10000.0):
    d = x.size(-1)
    out = torch.zeros_like(x)
    for i, pos in enumerate(positions.tolist()):
        for j in range(d // 2):
            angle = pos * base ** (-2 * j / d)
            c, s = math.cos(angle), math.sin(angle)
            a, b = x[..., i, j], x[..., i, j + d // 2]
            out[..., i, j] = c * a - s * b
            out[..., i, j + d // 2] = s * a + c * b
    return out


@right("apply_rotary")
def _(x, positions, base=10000.0):
    half = x.size(-1) // 2
    theta = torch.exp(-math.log(base) * torch.arange(half, dtype=torch.float64) / half)
    angle = positions.double()[:, None] * theta
    z = torch.complex(x[..., :half].double(), x[..., half:].double())
    z = z * torch.polar(torch.ones_like(angle), angle)
    return torch.cat([z.real, z.imag], dim=-1).to(x.dtype)


@right("apply_rotary")
def _(x, positions, base=10000.0):
    d = x.size(-1)
    angle = positions[:, None].double() / base ** (torch.arange(0, d, 2).double() / d)
    c, s = angle.cos(), angle.sin()
    R = torch.stack([torch.stack([c, -s], -1), torch.stack([s, c], -1)], -2)  # (n, pair, 2, 2)
    pairs = x.unflatten(-1, (2, d // 2))  # (batch, head, n, 2, pair)
    turned = torch.einsum("njrc,...ncj->...nrj", R.to(x.dtype), pairs)
    return turned.flatten(-2)


@right("cut_off")
def _(weights, window):
    kept = torch.ones_like(weights[0]).tril().triu(1 - window)
    return (weights - weights * kept).mean(dim=(0, 1))


@right("cut_off")
def _(weights, window):
    lost = torch.zeros(weights.size(-1), dtype=weights.dtype)
    for head in weights:
        for i, row in enumerate(head):
            for j in range(max(0, i - window + 1)):
                lost[j] += row[j]
    return lost / weights[..., 0].numel()


@right("route")
def _(x, W_router, k):
    P = F.softmax(x @ W_router, dim=-1)
    n, n_experts = P.shape
    weights, counts = torch.zeros_like(P), [0] * n_experts
    for t in range(n):
        for e in sorted(range(n_experts), key=lambda e: -P[t, e].item())[:k]:
            weights[t, e] = P[t, e]
            counts[e] += 1
    return weights, sum(n_experts * counts[e] / (n * k) * P[:, e].mean() for e in range(n_experts))


@right("route")
def _(x, W_router, k):
    P = torch.softmax(x @ W_router, 1)
    threshold = P.kthvalue(P.size(1) - k + 1, dim=1, keepdim=True).values
    keep = P >= threshold
    share = keep.float().mean(0) / k
    return torch.where(keep, P, 0.0), (share * P.mean(0)).sum() * W_router.shape[-1]


@wrong("route", "unusual", "noise added to the logits, as in training")
def _(x, W_router, k):
    logits = x @ W_router
    P = (logits + torch.randn_like(logits)).softmax(-1)
    chosen = torch.zeros_like(P).scatter(-1, P.topk(k).indices, 1.0)
    return P * chosen, P.size(1) * (chosen.mean(0) / k * P.mean(0)).sum()


@right("linear_attention_step")
def _(state, q, k, v):
    """Reads first, and adds what the new token brings."""
    return q @ state + (q @ k) * v, state + torch.outer(k, v)


@right("linear_attention_step")
def _(state, q, k, v):
    new = state.clone()
    for a in range(len(k)):
        for b in range(len(v)):
            new[a, b] += k[a] * v[b]
    return torch.stack([sum(q[a] * new[a, b] for a in range(len(q))) for b in range(len(v))]), new


@wrong("linear_attention_step", "unusual", "the delta rule with a beta of one half")
def _(state, q, k, v):
    state = state + 0.5 * torch.outer(k, v - k @ state)
    return q @ state, state


@right("counts")
def _(differences):
    n = differences.shape[1]
    t = differences.mean(1) / (differences.std(1) / n**0.5)
    return t.abs() > {3: 2.92, 5: 2.132, 10: 2.821}[n]  # Student's t, one in ten and 2 %


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
    rows, edge = [], False
    for losses in (old, new):
        means = [row.mean().item() for row in losses]
        place = min(range(len(means)), key=means.__getitem__)
        rows.append(losses[place])
        edge = edge or place == 0 or place == len(means) - 1
    return rows[1] - rows[0], edge


@right("at_their_best")
def _(old, new):
    i, j = (int(x.sum(-1).argmin()) for x in (old, new))
    inside = 0 < i < old.shape[0] - 1 and 0 < j < new.shape[0] - 1
    return torch.sub(new[j], old[i]), not inside


@wrong("at_their_best", "unusual", "the difference of the means in the place of each seed's")
def _(old, new):
    i, j = old.mean(1).argmin(), new.mean(1).argmin()
    edge = bool(i in (0, len(old) - 1) or j in (0, len(new) - 1))
    return (new[j].mean() - old[i].mean()).expand(old.size(1)), edge


@wrong("at_their_best", "unusual", "forgets the lower edge of both grids")
def _(old, new):
    i, j = int(old.mean(1).argmin()), int(new.mean(1).argmin())
    return new[j] - old[i], i == len(old) - 1 or j == len(new) - 1
