"""What learners might write for the exercises of lesson 05."""

import torch
import torch.nn.functional as F
from torch import nn

from tests.exercises.answers import right, wrong

# feed_forward(x, W_1, b_1, W_2, b_2)


@wrong("feed_forward", "usual", "no ReLU")
def _(x, W_1, b_1, W_2, b_2):
    hidden = x @ W_1 + b_1
    return hidden @ W_2 + b_2


@wrong("feed_forward", "usual", "a ReLU on the result too")
def _(x, W_1, b_1, W_2, b_2):
    h = torch.relu(x @ W_1 + b_1)
    return torch.relu(h @ W_2 + b_2)


@wrong("feed_forward", "usual", "GELU instead of ReLU")
def _(x, W_1, b_1, W_2, b_2):
    return F.gelu(x @ W_1 + b_1) @ W_2 + b_2


@wrong("feed_forward", "usual", "b_1 is added after the ReLU")
def _(x, W_1, b_1, W_2, b_2):
    return (F.relu(torch.matmul(x, W_1)) + b_1) @ W_2 + b_2


@wrong("feed_forward", "usual", "forgets b_2")
def _(x, W_1, b_1, W_2, b_2):
    hidden = (x @ W_1 + b_1).clamp(min=0)
    return torch.matmul(hidden, W_2)


@wrong("feed_forward", "usual", "the ReLU stands only behind the second map")
def _(x, W_1, b_1, W_2, b_2):
    return F.relu((x @ W_1 + b_1) @ W_2 + b_2)


@wrong("feed_forward", "usual", "F.linear with matrices that are not transposed")
def _(x, W_1, b_1, W_2, b_2):
    return F.linear(F.relu(F.linear(x, W_1, b_1)), W_2, b_2)


@wrong("feed_forward", "unusual", "max(0, h) as a maximum over axis 0")
def _(x, W_1, b_1, W_2, b_2):
    h = x @ W_1 + b_1
    return torch.max(h, 0).values @ W_2 + b_2


@wrong("feed_forward", "unusual", "ReLU6: the hidden numbers end at 6")
def _(x, W_1, b_1, W_2, b_2):
    return F.relu6(x @ W_1 + b_1) @ W_2 + b_2


@wrong("feed_forward", "unusual", "batch and token axis become one and stay so")
def _(x, W_1, b_1, W_2, b_2):
    x = x.reshape(-1, x.size(-1))
    return torch.addmm(b_2, torch.addmm(b_1, x, W_1).relu(), W_2)


@wrong(
    "feed_forward",
    "unusual",
    "einsum for exactly three axes, an error for (n, d_model)",
)
def _(x, W_1, b_1, W_2, b_2):
    hidden = torch.einsum("bnd,df->bnf", x, W_1) + b_1
    return torch.einsum("bnf,fd->bnd", hidden.relu(), W_2) + b_2


@wrong("feed_forward", "unusual", "a leaky ReLU lets a hundredth of the negative numbers through")
def _(x, W_1, b_1, W_2, b_2):
    hidden = F.leaky_relu(x @ W_1 + b_1)
    return hidden @ W_2 + b_2


@wrong("feed_forward", "unusual", "dropout with nothing that switches it off")
def _(x, W_1, b_1, W_2, b_2):
    dropout = nn.Dropout(0.1)
    return dropout((x @ W_1 + b_1).relu()) @ W_2 + b_2


@wrong("feed_forward", "unusual", "the residual is added already")
def _(x, W_1, b_1, W_2, b_2):
    return x + (x @ W_1 + b_1).relu() @ W_2 + b_2


@wrong("feed_forward", "unusual", "a ReLU on x too, before the first map")
def _(x, W_1, b_1, W_2, b_2):
    layers = [(W_1, b_1), (W_2, b_2)]
    for W, b in layers:
        x = torch.relu(x) @ W + b
    return x


@wrong("feed_forward", "unusual", "squares the ReLU, as the Primer paper does")
def _(x, W_1, b_1, W_2, b_2):
    hidden = F.relu(x @ W_1 + b_1).square()
    return hidden @ W_2 + b_2


@wrong("feed_forward", "unusual", "unpacks exactly three axes, an error for (n, d_model)")
def _(x, W_1, b_1, W_2, b_2):
    batch, n, _ = x.shape
    out = torch.zeros_like(x)
    for b in range(batch):
        for i in range(n):
            out[b, i] = (x[b, i] @ W_1 + b_1).relu() @ W_2 + b_2
    return out


@wrong("feed_forward", "unusual", "leaves axes of size 1 out, (1, n, d_model)")
def _(x, W_1, b_1, W_2, b_2):
    return (F.relu(x.squeeze() @ W_1 + b_1)) @ W_2 + b_2


@wrong("feed_forward", "pair", "GELU instead of ReLU", "b_2 is missing")
def _(x, W_1, b_1, W_2, b_2):
    gelu = nn.GELU()
    return gelu(x @ W_1 + b_1) @ W_2


@wrong("feed_forward", "pair", "no ReLU", "b_1 is missing")
def _(x, W_1, b_1, W_2, b_2):
    return x @ W_1 @ W_2 + b_2


@wrong("feed_forward", "pair", "residual added", "ReLU behind the second map as well")
def _(x, W_1, b_1, W_2, b_2):
    hidden = F.relu(x @ W_1 + b_1)
    return x + F.relu(hidden @ W_2 + b_2)


@wrong("feed_forward", "pair", "b_1 after the ReLU", "b_2 is missing")
def _(x, W_1, b_1, W_2, b_2):
    wide = torch.maximum(x @ W_1, torch.zeros(())) + b_1
    return wide @ W_2


@wrong("feed_forward", "pair", "axis of the batch is flattened away", "leaky ReLU")
def _(x, W_1, b_1, W_2, b_2):
    tokens = x.view(-1, W_1.size(0))
    hidden = tokens @ W_1 + b_1
    hidden = torch.where(hidden > 0, hidden, 0.1 * hidden)
    return hidden @ W_2 + b_2


@right("feed_forward")
def _(x, W_1, b_1, W_2, b_2):
    return (x @ W_1 + b_1).relu() @ W_2 + b_2


@right("feed_forward")
def _(x, W_1, b_1, W_2, b_2):
    return F.linear(F.relu(F.linear(x, W_1.T, b_1)), W_2.T, b_2)


@right("feed_forward")
def _(x, W_1, b_1, W_2, b_2):
    hidden = torch.einsum("...d,df->...f", x, W_1) + b_1
    hidden = torch.where(hidden > 0, hidden, torch.zeros_like(hidden))
    return torch.einsum("...f,fd->...d", hidden, W_2) + b_2


@right("feed_forward")
def _(x, W_1, b_1, W_2, b_2):
    # one hidden number after the other adds its row of W_2
    out = b_2.expand(x.shape).double()
    for j in range(W_1.size(1)):
        fires = ((x.double() * W_1[:, j]).sum(dim=-1, keepdim=True) + b_1[j]).clamp(min=0)
        out = out + fires * W_2[j]
    return out.to(x.dtype)


@right("feed_forward")
def _(x, W_1, b_1, W_2, b_2):
    flat = x.reshape(-1, x.shape[-1])
    rows = [torch.maximum(t @ W_1 + b_1, torch.zeros_like(b_1)) @ W_2 + b_2 for t in flat]
    return torch.stack(rows).reshape(x.shape)


@right("feed_forward")
def _(x, W_1, b_1, W_2, b_2):
    return (x @ W_1).add_(b_1).clamp_(min=0) @ W_2 + b_2


# layer_norm(x, gamma, beta, epsilon)


@wrong("layer_norm", "usual", "the unbiased variance")
def _(x, gamma, beta, epsilon):
    mean = x.mean(dim=-1, keepdim=True)
    var = x.var(dim=-1, keepdim=True)
    return gamma * (x - mean) / torch.sqrt(var + epsilon) + beta


@wrong("layer_norm", "usual", "epsilon outside the root")
def _(x, gamma, beta, epsilon):
    mean = x.mean(-1, keepdim=True)
    std = x.std(-1, keepdim=True, unbiased=False)
    return gamma * (x - mean) / (std + epsilon) + beta


@wrong("layer_norm", "usual", "mean and variance over all tokens")
def _(x, gamma, beta, epsilon):
    mean = x.mean()
    variance = ((x - mean) ** 2).mean()
    return (x - mean) / (variance + epsilon).sqrt() * gamma + beta


@wrong("layer_norm", "usual", "batch norm: along the first axis")
def _(x, gamma, beta, epsilon):
    mu = x.mean(dim=0, keepdim=True)
    sigma2 = x.var(dim=0, keepdim=True, unbiased=False)
    return (x - mu) / torch.sqrt(sigma2 + epsilon) * gamma + beta


@wrong("layer_norm", "usual", "forgets the shift beta")
def _(x, gamma, beta, epsilon):
    centered = x - x.mean(dim=-1, keepdim=True)
    variance = centered.square().mean(dim=-1, keepdim=True)
    return gamma * centered * torch.rsqrt(variance + epsilon)


@wrong("layer_norm", "usual", "divides by the variance, without a root")
def _(x, gamma, beta, epsilon):
    mean = x.mean(dim=-1, keepdim=True)
    var = ((x - mean) ** 2).mean(dim=-1, keepdim=True)
    return (x - mean) / (var + epsilon) * gamma + beta


@wrong("layer_norm", "usual", "epsilon is always 1e-5")
def _(x, gamma, beta, epsilon):
    return F.layer_norm(x, (x.size(-1),), gamma, beta)


@wrong("layer_norm", "unusual", "RMSNorm: the mean is not subtracted")
def _(x, gamma, beta, epsilon):
    rms = torch.sqrt(x.pow(2).mean(dim=-1, keepdim=True) + epsilon)
    return x / rms * gamma + beta


@wrong("layer_norm", "unusual", "the factor is 1 + gamma, as in Gemma")
def _(x, gamma, beta, epsilon):
    normed = F.layer_norm(x, x.shape[-1:], eps=epsilon)
    return normed * (1.0 + gamma) + beta


# The same formula by algebra; what cancels in float32 is rounding, of which the text says nothing.
@right("layer_norm")
def _(x, gamma, beta, epsilon):
    mean = x.mean(dim=-1, keepdim=True)
    mean_square = (x * x).mean(dim=-1, keepdim=True)
    var = mean_square - mean * mean
    return (x - mean) / torch.sqrt(var + epsilon) * gamma + beta


@wrong("layer_norm", "unusual", "epsilon is a lower bound of the deviation, not a summand")
def _(x, gamma, beta, epsilon):
    mean = x.mean(-1, keepdim=True)
    std = x.std(-1, keepdim=True, correction=0)
    return (x - mean) / std.clamp(min=epsilon) * gamma + beta


@wrong("layer_norm", "unusual", "normalizes over tokens and numbers, as a shape of two axes asks")
def _(x, gamma, beta, epsilon):
    normed = F.layer_norm(x, x.shape[-2:], eps=epsilon)
    return normed * gamma + beta


@wrong("layer_norm", "unusual", "subtracts the mean in the caller's x")
def _(x, gamma, beta, epsilon):
    x -= x.mean(dim=-1, keepdim=True)
    variance = (x**2).mean(dim=-1, keepdim=True)
    return x / (variance + epsilon).sqrt() * gamma + beta


@wrong("layer_norm", "unusual", "scale and shift before the normalization")
def _(x, gamma, beta, epsilon):
    y = x * gamma + beta
    mean, var = y.mean(-1, keepdim=True), y.var(-1, keepdim=True, correction=0)
    return (y - mean) / (var + epsilon) ** 0.5


@wrong("layer_norm", "unusual", "adds beta before multiplying by gamma")
def _(x, gamma, beta, epsilon):
    var, mean = torch.var_mean(x, dim=-1, keepdim=True, correction=0)
    return gamma * ((x - mean) / torch.sqrt(var + epsilon) + beta)


@wrong("layer_norm", "unusual", "unsqueeze for exactly one leading axis")
def _(x, gamma, beta, epsilon):
    mean = x.mean(dim=-1)[:, None]
    var = x.var(dim=-1, correction=0)[:, None]
    return gamma * (x - mean) / torch.sqrt(var + epsilon) + beta


@wrong("layer_norm", "unusual", "dim=2 needs three axes, an error for (n, d_model)")
def _(x, gamma, beta, epsilon):
    mean = x.mean(dim=2, keepdim=True)
    variance = x.var(dim=2, keepdim=True, unbiased=False)
    return (x - mean) / (variance + epsilon).sqrt() * gamma + beta


@wrong("layer_norm", "unusual", "mean absolute deviation instead of the root of the variance")
def _(x, gamma, beta, epsilon):
    d = x - x.mean(dim=-1, keepdim=True)
    return d / (d.abs().mean(dim=-1, keepdim=True) + epsilon) * gamma + beta


@wrong(
    "layer_norm",
    "unusual",
    "a token of equal numbers comes back as it was, not as beta",
)
def _(x, gamma, beta, epsilon):
    mean = x.mean(dim=-1, keepdim=True)
    var = x.var(dim=-1, keepdim=True, unbiased=False)
    normed = (x - mean) / torch.sqrt(var + epsilon) * gamma + beta
    return torch.where(var == 0, x, normed)


@wrong("layer_norm", "pair", "unbiased variance", "epsilon outside the root")
def _(x, gamma, beta, epsilon):
    mean = x.mean(-1, keepdim=True)
    std = x.std(-1, keepdim=True)
    return gamma * (x - mean) / (std + epsilon) + beta


@wrong("layer_norm", "pair", "along the first axis", "beta is missing")
def _(x, gamma, beta, epsilon):
    mean = x.mean(dim=0)
    var = x.var(dim=0, correction=0)
    return gamma * (x - mean) / torch.sqrt(var + epsilon)


@wrong("layer_norm", "pair", "the mean is not subtracted", "the unbiased variance")
def _(x, gamma, beta, epsilon):
    variance = torch.var(x, dim=-1, keepdim=True)
    return x * torch.rsqrt(variance + epsilon) * gamma + beta


@wrong("layer_norm", "pair", "epsilon always 1e-5", "beta is multiplied by gamma too")
def _(x, gamma, beta, epsilon):
    normalized = nn.LayerNorm(x.size(-1), elementwise_affine=False)(x)
    return (normalized + beta) * gamma


@wrong("layer_norm", "pair", "over all tokens", "gamma is missing")
def _(x, gamma, beta, epsilon):
    mean, var = x.mean(), x.var(correction=0)
    return (x - mean) / (var + epsilon).sqrt() + beta


@right("layer_norm")
def _(x, gamma, beta, epsilon):
    mean = x.mean(dim=-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(dim=-1, keepdim=True)
    return (x - mean) / torch.sqrt(variance + epsilon) * gamma + beta


@right("layer_norm")
def _(x, gamma, beta, epsilon):
    return F.layer_norm(x, (x.size(-1),), gamma, beta, epsilon)


@right("layer_norm")
def _(x, gamma, beta, epsilon):
    wide = x.to(torch.float64)
    variance, mean = torch.var_mean(wide, dim=-1, correction=0, keepdim=True)
    normalized = (wide - mean) * torch.rsqrt(variance + epsilon)
    return torch.addcmul(beta.double(), normalized, gamma.double()).to(x.dtype)


@right("layer_norm")
def _(x, gamma, beta, epsilon):
    d_model = x.size(-1)
    rows = []
    for token in x.reshape(-1, d_model):
        mu = sum(token) / d_model
        sigma_squared = sum((number - mu) ** 2 for number in token) / d_model
        rows.append((token - mu) / (sigma_squared + epsilon) ** 0.5 * gamma + beta)
    return torch.stack(rows).reshape(x.shape)


@right("layer_norm")
def _(x, gamma, beta, epsilon):
    # centering is a product with I - 1/d, and the root of a mean square is a length / sqrt(d)
    d = x.size(-1)
    centered = x.double() @ (torch.eye(d, dtype=torch.float64) - 1 / d)
    variance = torch.einsum("...d,...d->...", centered, centered).unsqueeze(-1) / d
    return (centered / (variance + epsilon).sqrt()).to(x.dtype) * gamma + beta


# residual_branch(x, sublayer, norm)


@wrong("residual_branch", "usual", "pre-norm")
def _(x, sublayer, norm):
    return x + sublayer(norm(x))


@wrong("residual_branch", "usual", "forgets to add x")
def _(x, sublayer, norm):
    return norm(sublayer(x))


@wrong("residual_branch", "usual", "forgets the norm")
def _(x, sublayer, norm):
    out = sublayer(x)
    return x + out


@wrong("residual_branch", "usual", "norms the sub-layer's output before the sum")
def _(x, sublayer, norm):
    y = norm(sublayer(x))
    return y + x


@wrong("residual_branch", "usual", "norms x and then adds")
def _(x, sublayer, norm):
    residual = norm(x)
    return residual + sublayer(x)


@wrong("residual_branch", "unusual", "adds into the caller's x")
def _(x, sublayer, norm):
    x += sublayer(x)
    return norm(x)


@wrong("residual_branch", "unusual", "a norm in front as well as behind")
def _(x, sublayer, norm):
    return norm(x + sublayer(norm(x)))


@wrong("residual_branch", "unusual", "x is added twice, the second time behind the norm")
def _(x, sublayer, norm):
    return x + norm(x + sublayer(x))


@wrong("residual_branch", "unusual", "halves the sum, so epsilon weighs more in the norm")
def _(x, sublayer, norm):
    return norm(0.5 * (x + sublayer(x)))


@wrong("residual_branch", "unusual", "dropout that is always on")
def _(x, sublayer, norm):
    return norm(x + F.dropout(sublayer(x), p=0.1))


@wrong("residual_branch", "unusual", "a norm of its own instead of the one given")
def _(x, sublayer, norm):
    return F.layer_norm(x + sublayer(x), x.shape[-1:])


@wrong("residual_branch", "unusual", "ReLU behind the sum, as in a ResNet block")
def _(x, sublayer, norm):
    return torch.relu(norm(x + sublayer(x)))


@wrong("residual_branch", "unusual", "runs the sub-layer twice")
def _(x, sublayer, norm):
    h = sublayer(x)
    return norm(x + sublayer(h))


@wrong(
    "residual_branch",
    "unusual",
    "detaches x, so no gradient takes the straight way down",
)
def _(x, sublayer, norm):
    skip = x.detach()
    return norm(skip + sublayer(x))


@wrong("residual_branch", "pair", "pre-norm", "without the sum")
def _(x, sublayer, norm):
    return sublayer(norm(x))


@wrong("residual_branch", "pair", "the norm is missing", "x comes twice")
def _(x, sublayer, norm):
    return x + (x + sublayer(x))


@wrong("residual_branch", "pair", "a ReLU behind", "x is missing")
def _(x, sublayer, norm):
    return F.relu(norm(sublayer(x)))


@wrong("residual_branch", "pair", "changes x in place", "never norms")
def _(x, sublayer, norm):
    return x.add_(sublayer(x))


@right("residual_branch")
def _(x, sublayer, norm):
    return norm(x + sublayer(x))


@right("residual_branch")
def _(x, sublayer, norm):
    correction = sublayer(x)
    stream = torch.add(correction, x)
    return norm(stream)


@right("residual_branch")
def _(x, sublayer, norm):
    return norm(torch.stack([sublayer(x), x]).sum(dim=0))


# residual_branch_pre(x, sublayer, norm)


@wrong("residual_branch_pre", "usual", "post-norm")
def _(x, sublayer, norm):
    return norm(x + sublayer(x))


@wrong("residual_branch_pre", "usual", "forgets to add x")
def _(x, sublayer, norm):
    normed = norm(x)
    return sublayer(normed)


@wrong("residual_branch_pre", "usual", "adds the normed x instead of x")
def _(x, sublayer, norm):
    x = norm(x)
    return x + sublayer(x)


@wrong("residual_branch_pre", "usual", "the norm stands behind the sub-layer")
def _(x, sublayer, norm):
    return x + norm(sublayer(x))


@wrong("residual_branch_pre", "usual", "no norm")
def _(x, sublayer, norm):
    return x + sublayer(x)


@wrong("residual_branch_pre", "unusual", "a norm on both sides of the sub-layer")
def _(x, sublayer, norm):
    return x + norm(sublayer(norm(x)))


@wrong("residual_branch_pre", "unusual", "adds into the caller's x")
def _(x, sublayer, norm):
    x += sublayer(norm(x))
    return x


@wrong("residual_branch_pre", "unusual", "norms the sum once more")
def _(x, sublayer, norm):
    h = x + sublayer(norm(x))
    return norm(h)


@wrong("residual_branch_pre", "unusual", "adds the normed x and x")
def _(x, sublayer, norm):
    h = norm(x)
    return x + h + sublayer(h)


@wrong("residual_branch_pre", "unusual", "a norm of its own instead of the one given")
def _(x, sublayer, norm):
    layer_norm = nn.LayerNorm(x.size(-1))
    return x + sublayer(layer_norm(x))


@wrong(
    "residual_branch_pre",
    "unusual",
    "scales the branch by the root of 1/2, as some image models do",
)
def _(x, sublayer, norm):
    return (x + sublayer(norm(x))) * 0.5**0.5


@wrong("residual_branch_pre", "pair", "the norm on the output", "x is not added")
def _(x, sublayer, norm):
    return norm(sublayer(x))


@wrong("residual_branch_pre", "pair", "norms behind the sum too", "adds the normed x")
def _(x, sublayer, norm):
    x = norm(x)
    x = x + sublayer(x)
    return norm(x)


@wrong("residual_branch_pre", "pair", "no norm", "changes x in place")
def _(x, sublayer, norm):
    x += sublayer(x)
    return x


@wrong("residual_branch_pre", "pair", "x comes twice", "the norm is behind the sub-layer")
def _(x, sublayer, norm):
    out = norm(sublayer(x)) + x
    return out + x


@right("residual_branch_pre")
def _(x, sublayer, norm):
    return x + sublayer(norm(x))


@right("residual_branch_pre")
def _(x, sublayer, norm):
    residual = x
    out = norm(x)
    out = sublayer(out)
    return torch.add(residual, out)


@right("residual_branch_pre")
def _(x, sublayer, norm):
    return sum([x, sublayer(norm(x))])
