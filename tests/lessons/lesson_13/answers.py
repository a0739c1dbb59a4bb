"""What learners might write for the exercises of lesson 13."""

import math

import torch
import torch.nn.functional as F

from tests.exercises.answers import right, wrong


@wrong("rms_norm", "unusual", "divides its argument in place")
def _(x, gamma, epsilon):
    rms = torch.sqrt(x.square().mean(-1, keepdim=True) + epsilon)
    x /= rms
    x *= gamma
    return x


@right("rms_norm")
def _(x, gamma, epsilon):
    out = torch.empty_like(x)
    for b in range(x.size(0)):
        for t in range(x.size(1)):
            token = x[b, t]
            rms = math.sqrt(torch.dot(token, token).item() / len(token) + epsilon)
            out[b, t] = token / rms * gamma
    return out


@right("rms_norm")
def _(x, gamma, epsilon):
    d_model = x.size(-1)
    length = torch.linalg.vector_norm(x.double(), dim=-1, keepdim=True)
    scale = torch.rsqrt(length**2 / d_model + epsilon)
    return (x * scale * gamma).to(x.dtype)


@wrong("swiglu", "unusual", "F.linear multiplies by the transposed matrices")
def _(x, W_gate, W_up, W_down):
    gate = F.silu(F.linear(x, W_gate))
    return F.linear(gate * F.linear(x, W_up), W_down)


@wrong("swiglu", "unusual", "a dropout that is never switched off")
def _(x, W_gate, W_up, W_down):
    hidden = F.silu(x @ W_gate) * (x @ W_up)
    return F.dropout(hidden, 0.1) @ W_down


@wrong("swiglu", "unusual", "takes the first text's gate for every text")
def _(x, W_gate, W_up, W_down):
    gate = F.silu(x[0] @ W_gate)
    return (gate * (x @ W_up)) @ W_down


@right("swiglu")
def _(x, W_gate, W_up, W_down):
    d_ff = W_gate.shape[1]
    both = x @ torch.cat([W_gate, W_up], dim=1)  # (batch, n, 2 d_ff)
    gate, up = both[..., :d_ff], both[..., d_ff:]
    return (up * gate / (1 + torch.exp(-gate))) @ W_down


@right("swiglu")
def _(x, W_gate, W_up, W_down):
    texts = []
    for text in x.double():
        tokens = []
        for token in text:
            z = token @ W_gate.double()
            tokens.append((z * z.sigmoid() * (token @ W_up.double())) @ W_down.double())
        texts.append(torch.stack(tokens))
    return torch.stack(texts).to(x.dtype)


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


@wrong("repeat_kv", "unusual", "a view of an expanded tensor, which fails")
def _(x, n_groups):
    b, h, n, d = x.shape
    return x.unsqueeze(2).expand(-1, -1, n_groups, -1, -1).view(b, h * n_groups, n, d)


@wrong(
    "repeat_kv",
    "unusual",
    "view refuses an x that is not contiguous, such as a transposed one",
)
def _(x, n_groups):
    b, h, n, d = x.shape
    flat = x.view(b, h, n * d)
    copies = torch.stack([flat] * n_groups, dim=2)
    return copies.reshape(b, h * n_groups, n, d)


@wrong("repeat_kv", "unusual", "returns x as it is for kv_head = 1")
def _(x, n_groups):
    if x.size(1) == 1 or n_groups == 1:
        return x  # broadcasts over the query heads anyway
    return x.repeat_interleave(n_groups, dim=1)


@wrong("repeat_kv", "unusual", "the order of the axes in memory mixes the tokens of the copies")
def _(x, n_groups):
    b, h, n, d = x.shape
    copies = x.unsqueeze(3).expand(b, h, n, n_groups, d)  # the new axis stands after n
    return copies.reshape(b, h * n_groups, n, d)


@right("repeat_kv")
def _(x, n_groups):
    index = torch.arange(x.size(1) * n_groups) // n_groups
    return x.index_select(1, index)


@right("repeat_kv")
def _(x, n_groups):
    b, h, n, d = x.shape
    out = x.new_empty(b, h * n_groups, n, d)
    for g in range(n_groups):
        out[:, g::n_groups] = x
    return out


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
