"""What learners might write for the exercises of lesson 13."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from tests.exercises.answers import right, wrong

# --------------------------------------------------------------------------------- rms_norm


@wrong("rms_norm", "usual", "epsilon is added outside the root")
def _(x, gamma, epsilon):
    rms = x.pow(2).mean(-1, keepdim=True).sqrt()
    return x / (rms + epsilon) * gamma


@wrong("rms_norm", "usual", "subtracts the mean first, so it is a LayerNorm")
def _(x, gamma, epsilon):
    x = x - x.mean(dim=-1, keepdim=True)
    mean_square = (x * x).mean(dim=-1, keepdim=True)
    return gamma * x / torch.sqrt(mean_square + epsilon)


@wrong("rms_norm", "usual", "forgets gamma")
def _(x, gamma, epsilon):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon)


@wrong("rms_norm", "usual", "the sum of squares where the mean is meant")
def _(x, gamma, epsilon):
    sum_of_squares = torch.einsum("bnd,bnd->bn", x, x)
    return x / (sum_of_squares + epsilon).sqrt()[..., None] * gamma


@wrong("rms_norm", "usual", "forgets the root")
def _(x, gamma, epsilon):
    mean_square = torch.mean(x**2, dim=-1, keepdim=True)
    return gamma * (x / (mean_square + epsilon))


@wrong("rms_norm", "usual", "takes the mean over the tokens, axis 1")
def _(x, gamma, epsilon):
    ms = (x**2).mean(dim=1, keepdim=True)
    return x / torch.sqrt(ms + epsilon) * gamma


@wrong("rms_norm", "unusual", "multiplies by 1 + gamma, as Gemma's files want it")
def _(x, gamma, epsilon):
    normed = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + epsilon)
    return normed * (1 + gamma)


@wrong("rms_norm", "unusual", "ignores its epsilon and takes the library's default")
def _(x, gamma, epsilon):
    norm = nn.RMSNorm(x.size(-1), dtype=x.dtype)
    norm.weight.data = gamma
    return norm(x)


@wrong("rms_norm", "unusual", "takes one root mean square for all tokens of a text")
def _(x, gamma, epsilon):
    return F.rms_norm(x, x.shape[1:], eps=epsilon) * gamma


@wrong("rms_norm", "unusual", "epsilon is a lower limit of the mean square, not a summand")
def _(x, gamma, epsilon):
    mean_square = x.square().mean(dim=-1, keepdim=True).clamp(min=epsilon)
    return x / mean_square.sqrt() * gamma


@wrong("rms_norm", "unusual", "the root is divided by d_model, not the sum under it")
def _(x, gamma, epsilon):
    d_model = x.shape[-1]
    rms = torch.sqrt((x * x).sum(-1, keepdim=True) + epsilon) / d_model
    return x / rms * gamma


@wrong("rms_norm", "unusual", "divides by d_model - 1, as a sample's variance does")
def _(x, gamma, epsilon):
    d = x.size(-1)
    mean_square = x.pow(2).sum(dim=-1, keepdim=True) / max(d - 1, 1)
    return x * (mean_square + epsilon).pow(-0.5) * gamma


@wrong("rms_norm", "unusual", "the mean of the amounts where that of the squares is meant")
def _(x, gamma, epsilon):
    return gamma * x / (x.abs().mean(dim=-1, keepdim=True) + epsilon)


@wrong("rms_norm", "unusual", "divides its argument in place")
def _(x, gamma, epsilon):
    rms = torch.sqrt(x.square().mean(-1, keepdim=True) + epsilon)
    x /= rms
    x *= gamma
    return x


@wrong(
    "rms_norm",
    "pair",
    "subtracts the mean first, so it is a LayerNorm",
    "forgets gamma",
)
def _(x, gamma, epsilon):
    return F.layer_norm(x, x.shape[-1:], eps=epsilon)


@wrong(
    "rms_norm",
    "pair",
    "epsilon is added outside the root",
    "the sum of squares where the mean is meant",
)
def _(x, gamma, epsilon):
    length = x.norm(dim=-1, keepdim=True)
    return gamma * (x / (length + epsilon))


@wrong(
    "rms_norm",
    "pair",
    "multiplies by the root mean square where it must divide",
    "forgets gamma",
)
def _(x, gamma, epsilon):
    rms = torch.sqrt(torch.mean(x * x, dim=-1, keepdim=True) + epsilon)
    return x * rms


@wrong(
    "rms_norm",
    "pair",
    "multiplies by gamma before the mean square is taken",
    "leaves epsilon out",
)
def _(x, gamma, epsilon):
    x = x * gamma
    rms = x.square().mean(dim=-1, keepdim=True).sqrt()
    return x / rms


@wrong(
    "rms_norm",
    "pair",
    "takes the mean over the whole batch",
    "forgets the root",
)
def _(x, gamma, epsilon):
    mean_square = (x**2).mean()
    return x / (mean_square + epsilon) * gamma


@wrong(
    "rms_norm",
    "unusual",
    "an epsilon of 0 counts as none given, it matters for a small x",
)
def _(x, gamma, epsilon):
    epsilon = epsilon or 1e-5
    return x * (x.square().mean(dim=-1, keepdim=True) + epsilon).rsqrt() * gamma


@wrong("rms_norm", "unusual", "F.normalize has an epsilon of its own, the argument is ignored")
def _(x, gamma, epsilon):
    return F.normalize(x, dim=-1) * x.size(-1) ** 0.5 * gamma


@right("rms_norm")
def _(x, gamma, epsilon):
    return F.rms_norm(x, gamma.shape, gamma, epsilon)


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


@right("rms_norm")
def _(x, gamma, epsilon):
    mean_square = torch.einsum("...i,...i->...", x, x) / x.shape[-1]
    return torch.einsum("...i,...,i->...i", x, (mean_square + epsilon) ** -0.5, gamma)


# ----------------------------------------------------------------------------------- swiglu


@wrong("swiglu", "usual", "swish is applied to the other map, up")
def _(x, W_gate, W_up, W_down):
    gate = x @ W_gate
    up = F.silu(x @ W_up)
    return (gate * up) @ W_down


@wrong("swiglu", "usual", "the sigmoid alone, without the factor z (GLU)")
def _(x, W_gate, W_up, W_down):
    gate = torch.sigmoid(x @ W_gate)
    return (gate * (x @ W_up)) @ W_down


@wrong("swiglu", "usual", "GELU in place of swish (GEGLU)")
def _(x, W_gate, W_up, W_down):
    hidden = F.gelu(torch.matmul(x, W_gate)) * torch.matmul(x, W_up)
    return torch.matmul(hidden, W_down)


@wrong("swiglu", "usual", "swish is applied to the product of both maps")
def _(x, W_gate, W_up, W_down):
    return F.silu((x @ W_gate) * (x @ W_up)) @ W_down


@wrong("swiglu", "usual", "adds gate and up where it must multiply")
def _(x, W_gate, W_up, W_down):
    z = x @ W_gate
    activated = z * z.sigmoid()
    return (activated + x @ W_up) @ W_down


@wrong("swiglu", "usual", "the gate has no activation")
def _(x, W_gate, W_up, W_down):
    gate, up = x @ W_gate, x @ W_up
    return torch.einsum("bnf,bnf,fd->bnd", gate, up, W_down)


@wrong("swiglu", "unusual", "exp of the gate overflows, NaN where x W_gate is 100")
def _(x, W_gate, W_up, W_down):
    z = x @ W_gate
    swish = z * torch.exp(z) / (1 + torch.exp(z))
    return (swish * (x @ W_up)) @ W_down


@wrong("swiglu", "unusual", "F.linear multiplies by the transposed matrices")
def _(x, W_gate, W_up, W_down):
    gate = F.silu(F.linear(x, W_gate))
    return F.linear(gate * F.linear(x, W_up), W_down)


@wrong("swiglu", "unusual", "the hard swish of mobile networks")
def _(x, W_gate, W_up, W_down):
    return (F.hardswish(x @ W_gate) * (x @ W_up)) @ W_down


@wrong("swiglu", "unusual", "a dropout that is never switched off")
def _(x, W_gate, W_up, W_down):
    hidden = F.silu(x @ W_gate) * (x @ W_up)
    return F.dropout(hidden, 0.1) @ W_down


@wrong("swiglu", "unusual", "adds the residual path, which is the block's business")
def _(x, W_gate, W_up, W_down):
    out = (F.silu(x @ W_gate) * (x @ W_up)) @ W_down
    return x + out


@wrong("swiglu", "unusual", "swish with e^z for e^-z")
def _(x, W_gate, W_up, W_down):
    z = x @ W_gate
    return (z / (1 + z.exp()) * (x @ W_up)) @ W_down


@wrong("swiglu", "unusual", "takes the first text's gate for every text")
def _(x, W_gate, W_up, W_down):
    gate = F.silu(x[0] @ W_gate)
    return (gate * (x @ W_up)) @ W_down


@wrong(
    "swiglu",
    "pair",
    "swish is applied to the other map, up",
    "GELU in place of swish",
)
def _(x, W_gate, W_up, W_down):
    W = torch.cat([W_gate, W_up], dim=1)
    a, b = (x @ W).chunk(2, dim=-1)
    return (a * F.gelu(b)) @ W_down


@wrong(
    "swiglu",
    "pair",
    "adds gate and up where it must multiply",
    "the sigmoid alone, without the factor z",
)
def _(x, W_gate, W_up, W_down):
    return ((x @ W_gate).sigmoid() + x @ W_up) @ W_down


@wrong(
    "swiglu",
    "pair",
    "leaves the third matrix out",
    "ReLU in place of swish (ReGLU)",
)
def _(x, W_gate, W_up, W_down):
    up = x @ W_up
    gate = torch.clamp(x @ W_gate, min=0)
    return gate * up


@wrong(
    "swiglu",
    "pair",
    "swish is applied to the product of both maps",
    "adds the residual path, which is the block's business",
)
def _(x, W_gate, W_up, W_down):
    h = (x @ W_gate).mul(x @ W_up)
    return F.silu(h).matmul(W_down).add(x)


@wrong(
    "swiglu",
    "pair",
    "uses the gate's matrix for up, too",
    "a second swish follows the third matrix",
)
def _(x, W_gate, W_up, W_down):
    hidden = F.silu(x @ W_gate) * (x @ W_gate)
    return F.silu(hidden @ W_down)


@wrong("swiglu", "unusual", "squeezes, so a batch of one text loses its axis")
def _(x, W_gate, W_up, W_down):
    hidden = F.silu(torch.matmul(x, W_gate)) * torch.matmul(x, W_up)
    return hidden.matmul(W_down).squeeze()


@right("swiglu")
def _(x, W_gate, W_up, W_down):
    z = torch.einsum("bnd,df->bnf", x, W_gate)
    up = torch.einsum("bnd,df->bnf", x, W_up)
    return torch.einsum("bnf,bnf,fd->bnd", z * torch.sigmoid(z), up, W_down)


@right("swiglu")
def _(x, W_gate, W_up, W_down):
    gate = F.linear(x, W_gate.T)
    up = F.linear(x, W_up.T)
    return F.linear(nn.SiLU()(gate) * up, W_down.T)


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


# ----------------------------------------------------------------------------- apply_rotary


@wrong("apply_rotary", "usual", "pairs neighbors, the layout of the paper on rotary positions")
def _(x, positions, base=10000.0):
    d_head = x.shape[-1]
    theta = base ** (-torch.arange(0, d_head, 2) / d_head)
    angle = positions[:, None] * theta
    cos, sin = angle.cos(), angle.sin()
    even, odd = x[..., 0::2], x[..., 1::2]
    turned = torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1)
    return turned.flatten(-2)


@wrong("apply_rotary", "usual", "turns the other way round")
def _(x, positions, base=10000.0):
    half = x.size(-1) // 2
    freq = base ** (-torch.arange(half) / half)
    angle = torch.outer(positions.float(), freq)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angle.cos() + b * angle.sin(), b * angle.cos() - a * angle.sin()], dim=-1)


@wrong("apply_rotary", "usual", "ignores base: 10000 is built in")
def _(x, positions, base=10000.0):
    d = x.size(-1)
    inv_freq = 1.0 / (10000 ** (torch.arange(0, d, 2).float() / d))
    freqs = torch.einsum("n,j->nj", positions.float(), inv_freq)
    emb = torch.cat((freqs, freqs), dim=-1)
    x1, x2 = x[..., : d // 2], x[..., d // 2 :]
    return x * emb.cos() + torch.cat((-x2, x1), dim=-1) * emb.sin()


@wrong("apply_rotary", "usual", "the exponent is j / d_head, half of what it should be")
def _(x, positions, base=10000.0):
    d = x.size(-1)
    j = torch.arange(d // 2)
    angle = positions.unsqueeze(1) / base ** (j / d)
    left, right_ = x.chunk(2, dim=-1)
    c, s = torch.cos(angle), torch.sin(angle)
    return torch.cat([left * c - right_ * s, left * s + right_ * c], dim=-1)


@wrong("apply_rotary", "usual", "ignores positions and counts from 0")
def _(x, positions, base=10000.0):
    *_, n, d = x.shape
    theta = torch.pow(base, -torch.arange(0, d, 2) / d)
    angle = torch.arange(n)[:, None] * theta[None]
    first, second = x.split(d // 2, dim=-1)
    return torch.cat(
        (
            first * angle.cos() - second * angle.sin(),
            second * angle.cos() + first * angle.sin(),
        ),
        dim=-1,
    )


@wrong("apply_rotary", "usual", "plus where minus belongs, so it is no rotation")
def _(x, positions, base=10000.0):
    d_head = x.size(-1)
    two_j = torch.arange(0, d_head, 2)
    angle = positions[:, None] * base ** (-two_j / d_head)
    angle = torch.cat([angle, angle], dim=-1)
    swapped = torch.cat([x[..., d_head // 2 :], x[..., : d_head // 2]], dim=-1)
    return x * angle.cos() + swapped * angle.sin()


@wrong("apply_rotary", "usual", "the frequencies grow: the sign of the exponent is missing")
def _(x, positions, base=10000.0):
    half = x.shape[-1] // 2
    frequency = base ** (2 * torch.arange(half) / x.shape[-1])
    angle = positions[:, None] * frequency
    a, b = x[..., :half], x[..., half:]
    cos, sin = angle.cos(), angle.sin()
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


@wrong("apply_rotary", "unusual", "halves are paired, but each angle stands twice side by side")
def _(x, positions, base=10000.0):
    d = x.shape[-1]
    inv_freq = base ** -(torch.arange(0, d, 2) / d)
    angle = (positions[:, None] * inv_freq).repeat_interleave(2, dim=-1)
    x1, x2 = x[..., : d // 2], x[..., d // 2 :]
    rotate_half = torch.cat((-x2, x1), dim=-1)
    return x * angle.cos() + rotate_half * angle.sin()


@wrong("apply_rotary", "unusual", "complex numbers of neighbors, as in the published llama code")
def _(x, positions, base=10000.0):
    d = x.shape[-1]
    freqs = 1.0 / (base ** (torch.arange(0, d, 2)[: (d // 2)].float() / d))
    freqs = torch.outer(positions.float(), freqs)
    freqs_cis = torch.polar(torch.ones_like(freqs), freqs)
    x_ = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(x_ * freqs_cis).flatten(3).type_as(x)


@wrong("apply_rotary", "unusual", "turns by degrees")
def _(x, positions, base=10000.0):
    half = x.size(-1) // 2
    angle = positions[:, None] * base ** (-torch.arange(half) / half)
    angle = torch.deg2rad(angle)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)


@wrong("apply_rotary", "unusual", "the second half is computed from the first, already turned")
def _(x, positions, base=10000.0):
    out = x.clone()
    half = x.size(-1) // 2
    theta = base ** (-2 * torch.arange(half) / x.size(-1))
    m = positions[:, None] * theta
    out[..., :half] = out[..., :half] * m.cos() - out[..., half:] * m.sin()
    out[..., half:] = out[..., half:] * m.cos() + out[..., :half] * m.sin()
    return out


@wrong("apply_rotary", "unusual", "a table of 2048 positions, position 2048 fails")
def _(x, positions, base=10000.0):
    d = x.size(-1)
    t = torch.arange(2048)
    table = torch.outer(t, base ** (-torch.arange(0, d, 2) / d))
    angle = table[positions]
    a, b = torch.tensor_split(x, 2, dim=-1)
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], dim=-1)


@wrong(
    "apply_rotary",
    "unusual",
    "a table of positions from 0, so -1 is looked up at its end",
)
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
    "pairs neighbors, the layout of the paper on rotary positions",
    "turns the other way round",
)
def _(x, positions, base=10000.0):
    d = x.size(-1)
    angle = positions[:, None] * base ** (-torch.arange(0, d, 2) / d)
    z = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    turned = z * torch.exp(-1j * angle)
    return torch.view_as_real(turned).flatten(-2)


@wrong(
    "apply_rotary",
    "pair",
    "ignores base: 10000 is built in",
    "ignores positions and counts from 0",
)
def _(x, positions, base=10000.0):
    n, d = x.shape[-2:]
    out = torch.empty_like(x)
    for pos in range(n):
        for j in range(d // 2):
            a = pos / 10000 ** (2 * j / d)
            u, v = x[..., pos, j], x[..., pos, j + d // 2]
            out[..., pos, j] = math.cos(a) * u - math.sin(a) * v
            out[..., pos, j + d // 2] = math.sin(a) * u + math.cos(a) * v
    return out


@wrong(
    "apply_rotary",
    "pair",
    "the exponent is j / d_head, half of what it should be",
    "sine and cosine are exchanged",
)
def _(x, positions, base=10000.0):
    half = x.size(-1) // 2
    angle = positions[:, None] * base ** (-torch.arange(half) / x.size(-1))
    cos, sin = angle.sin(), angle.cos()
    first, second = x[..., :half], x[..., half:]
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


@wrong(
    "apply_rotary",
    "pair",
    "counts positions from 1",
    "the halves come back in exchanged order",
)
def _(x, positions, base=10000.0):
    d = x.size(-1)
    theta = 1 / base ** (torch.arange(0, d, 2) / d)
    angle = (positions + 1)[:, None] * theta
    x1, x2 = x[..., : d // 2], x[..., d // 2 :]
    new_x1 = x1 * angle.cos() - x2 * angle.sin()
    new_x2 = x1 * angle.sin() + x2 * angle.cos()
    return torch.cat([new_x2, new_x1], dim=-1)


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


@wrong("apply_rotary", "unusual", "takes the first position and counts on from it")
def _(x, positions, base=10000.0):
    n, d = x.shape[-2:]
    start = int(positions[0])
    m = torch.arange(start, start + n)
    angle = torch.outer(m, base ** (-torch.arange(0, d, 2) / d))
    u, v = x[..., : d // 2], x[..., d // 2 :]
    return torch.cat([u * angle.cos() - v * angle.sin(), v * angle.cos() + u * angle.sin()], dim=-1)


@right("apply_rotary")
def _(x, positions, base=10000.0):
    d = x.shape[-1]
    inv_freq = base ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    angle = torch.outer(positions.double(), inv_freq)
    emb = torch.cat((angle, angle), dim=-1)
    x1, x2 = x[..., : d // 2], x[..., d // 2 :]
    rotated = torch.cat((-x2, x1), dim=-1)
    return x * emb.cos().to(x.dtype) + rotated * emb.sin().to(x.dtype)


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


# -------------------------------------------------------------------------------- repeat_kv


@wrong("repeat_kv", "usual", "repeats the whole row of heads: 1, 2, 1, 2")
def _(x, n_groups):
    return x.repeat(1, n_groups, 1, 1)


@wrong("repeat_kv", "usual", "repeats the tokens")
def _(x, n_groups):
    return x.repeat_interleave(n_groups, dim=2)


@wrong("repeat_kv", "usual", "leaves the copies on an axis of their own")
def _(x, n_groups):
    batch, kv_head, n, d_head = x.shape
    return x[:, :, None].expand(batch, kv_head, n_groups, n, d_head)


@wrong("repeat_kv", "usual", "takes n_groups for the number of query heads")
def _(x, n_groups):
    kv_heads = x.size(1)
    times = max(n_groups // kv_heads, 1)
    return torch.repeat_interleave(x, times, dim=1)


@wrong("repeat_kv", "usual", "names no axis, so the tensor becomes flat")
def _(x, n_groups):
    return x.repeat_interleave(n_groups)


@wrong("repeat_kv", "usual", "repeats the texts of the batch")
def _(x, n_groups):
    return torch.cat([row[None] for row in x for _ in range(n_groups)])


@wrong("repeat_kv", "unusual", "takes the layout (batch, n, kv_head, d_head) of the llama code")
def _(x, n_groups):
    bs, slen, n_kv_heads, head_dim = x.shape
    if n_groups == 1:
        return x
    return (
        x[:, :, :, None, :]
        .expand(bs, slen, n_kv_heads, n_groups, head_dim)
        .reshape(bs, slen, n_kv_heads * n_groups, head_dim)
    )


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


@wrong("repeat_kv", "unusual", "the original and n_groups copies, one too many")
def _(x, n_groups):
    heads = []
    for head in x.unbind(1):
        heads.append(head)
        heads.extend(head.clone() for _ in range(n_groups))
    return torch.stack(heads, dim=1)


@wrong("repeat_kv", "unusual", "shares each head out among its copies: divides by n_groups")
def _(x, n_groups):
    return (x / n_groups).repeat_interleave(n_groups, dim=1)


@wrong("repeat_kv", "unusual", "returns x as it is for kv_head = 1")
def _(x, n_groups):
    if x.size(1) == 1 or n_groups == 1:
        return x  # broadcasts over the query heads anyway
    return x.repeat_interleave(n_groups, dim=1)


@wrong("repeat_kv", "unusual", "squeezes, so a batch of one text loses its axis")
def _(x, n_groups):
    index = torch.arange(x.size(1) * n_groups) // n_groups
    return x[:, index].squeeze(0)


@wrong("repeat_kv", "unusual", "the order of the axes in memory mixes the tokens of the copies")
def _(x, n_groups):
    b, h, n, d = x.shape
    copies = x.unsqueeze(3).expand(b, h, n, n_groups, d)  # the new axis stands after n
    return copies.reshape(b, h * n_groups, n, d)


@wrong(
    "repeat_kv",
    "pair",
    "repeats the whole row of heads: 1, 2, 1, 2",
    "the original and n_groups copies, one too many",
)
def _(x, n_groups):
    return torch.cat([x] + [x] * n_groups, dim=1)


@wrong(
    "repeat_kv",
    "pair",
    "repeats the whole row of heads: 1, 2, 1, 2",
    "leaves the copies on an axis of their own",
)
def _(x, n_groups):
    return torch.stack([x for _ in range(n_groups)], dim=1)


@wrong(
    "repeat_kv",
    "pair",
    "repeats the tokens",
    "takes n_groups for the number of query heads",
)
def _(x, n_groups):
    n_rep = max(n_groups // x.shape[1], 1)
    return x.repeat(1, 1, n_rep, 1)


@wrong(
    "repeat_kv",
    "pair",
    "repeats the texts of the batch",
    "divides by n_groups",
)
def _(x, n_groups):
    return torch.tile(x, (n_groups, 1, 1, 1)) / n_groups


@wrong(
    "repeat_kv",
    "pair",
    "puts the heads behind the tokens: (batch, n, head, d_head)",
    "repeats the whole row of heads: 1, 2, 1, 2",
)
def _(x, n_groups):
    x = x.transpose(1, 2)
    return torch.cat([x] * n_groups, dim=2)


@right("repeat_kv")
def _(x, n_groups):
    batch, kv_head, n, d_head = x.shape
    x = x[:, :, None, :, :].expand(batch, kv_head, n_groups, n, d_head)
    return x.reshape(batch, kv_head * n_groups, n, d_head)


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


@right("repeat_kv")
def _(x, n_groups):
    select = torch.eye(x.size(1), dtype=x.dtype).repeat_interleave(n_groups, dim=0)
    return torch.einsum("hk,bknd->bhnd", select, x)


@right("repeat_kv")
def _(x, n_groups):
    return torch.stack([x] * n_groups, dim=2).flatten(1, 2)
