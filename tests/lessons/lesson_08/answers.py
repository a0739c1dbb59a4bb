"""What learners might write for the exercises of lesson 08."""

import math

import torch
import torch.nn.functional as F

from tests.exercises.answers import right, wrong


@right("loss_gradient")
def _(logits, labels, smoothing, pad_id):
    # autograd, of PyTorch's own loss
    z = logits.detach().clone().requires_grad_()
    F.cross_entropy(
        z.flatten(0, 1), labels.flatten(), ignore_index=pad_id, label_smoothing=smoothing
    ).backward()
    return z.grad


@right("loss_gradient")
def _(logits, labels, smoothing, pad_id):
    keep = labels.ne(pad_id)
    out = torch.zeros_like(logits)
    rows = logits[keep].softmax(-1) - smoothing / logits.shape[-1]
    rows[torch.arange(len(rows)), labels[keep]] -= 1 - smoothing
    out[keep] = rows / len(rows)
    return out


@right("loss_gradient")
def _(logits, labels, smoothing, pad_id):
    q = torch.eye(logits.size(-1), dtype=logits.dtype)[labels]
    q = q * (1 - smoothing) + smoothing / logits.size(-1)
    weight = (labels != pad_id).to(logits.dtype)
    return torch.einsum("bnv,bn->bnv", torch.exp(logits.log_softmax(-1)) - q, weight / weight.sum())


@wrong("loss_gradient", "unusual", "labels moved up by one, as a language model's are")
def _(logits, labels, smoothing, pad_id):
    labels = torch.cat([labels[:, 1:], torch.full_like(labels[:, :1], pad_id)], dim=1)
    q = F.one_hot(labels, logits.size(-1)) * (1 - smoothing) + smoothing / logits.size(-1)
    real = labels != pad_id
    return (logits.softmax(-1) - q) * real[..., None] / real.sum().clamp(min=1)


def by_autograd(forward, tensors, G):
    """Return autograd's gradients of some tensors, where G is that of the result."""
    leaves = [one.detach().clone().requires_grad_() for one in tensors]
    return torch.autograd.grad(forward(*leaves), leaves, G)


@right("projection_gradient")
def _(H, W_L, G):
    # autograd, of the product itself
    return by_autograd(torch.matmul, (H, W_L), G)


@right("projection_gradient")
def _(H, W_L, G):
    # a sum over the batch of products, one for each sentence
    return torch.einsum("bnv,dv->bnd", G, W_L), (H.mT @ G).sum(0)


@right("softmax_gradient")
def _(weights, G):
    # each row's whole Jacobian
    jacobian = torch.diag_embed(weights) - weights[..., :, None] * weights[..., None, :]
    return (jacobian @ G[..., None])[..., 0]


@right("layer_norm_gradient")
def _(x, gamma, epsilon, G):
    # autograd, of PyTorch's own norm
    def norm(x, gamma, beta):
        return F.layer_norm(x, x.shape[-1:], gamma, beta, epsilon)

    return by_autograd(norm, (x, gamma, torch.zeros_like(gamma)), G)


@right("layer_norm_gradient")
def _(x, gamma, epsilon, G):
    # the two ways through mean and variance, one after the other
    n, centered = x.size(-1), x - x.mean(-1, keepdim=True)
    root = ((centered**2).mean(-1, keepdim=True) + epsilon).sqrt()
    of_z = G * gamma
    of_root = -(of_z * centered).sum(-1, keepdim=True) / root**2
    of_centered = of_z / root + of_root * centered / (n * root)
    of_x = of_centered - of_centered.mean(-1, keepdim=True)
    return of_x, torch.einsum("bnd,bnd->d", G, centered / root), torch.einsum("bnd->d", G)


@right("head_gradient")
def _(Q, K, V, weights, G):
    # the root goes to the queries before the product
    of_weights = torch.einsum("bqd,bkd->bqk", G, V)
    s = weights * (of_weights - torch.einsum("bqk,bqk->bq", weights, of_weights)[..., None])
    root = math.sqrt(K.shape[-1])
    of_K = torch.einsum("bqk,bqd->bkd", s, Q / root)
    return torch.einsum("bqk,bkd->bqd", s, K / root), of_K, torch.einsum("bqk,bqd->bkd", weights, G)
