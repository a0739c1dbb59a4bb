"""Mistakes written by hand get the name that a reader would give them.

`test_diagnosis.py` takes each mistake from the turns themselves, so it can't see a turn that does
something else than its name says.
"""

import pytest
import torch
import torch.nn.functional as F

from transformer_lesson.exercises import check


def loss_of(logits, labels, **options):
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), **options)


def normed(x, gamma, beta, epsilon, axis=-1, correction=0):
    spread = x.var(axis, correction=correction, keepdim=True)
    return gamma * (x - x.mean(axis, keepdim=True)) / torch.sqrt(spread + epsilon) + beta


def waves(n, d_model, base):
    angles = torch.arange(n)[:, None] / base ** (torch.arange(0, d_model, 2) / d_model)
    return angles.sin(), angles.cos()


MISTAKES = {
    "nearest_neighbors": {
        "each row as its own neighbor": lambda v: (v @ v.mT / v.norm(dim=1)).argmax(1),
        "dot products instead of cosines": lambda v: (v @ v.mT).fill_diagonal_(-1e9).argmax(1),
        "the smallest distance": lambda v: torch.cdist(v, v).fill_diagonal_(1e9).argmin(1),
    },
    "sinusoidal_encoding": {
        "all sines first, then all cosines": lambda *sizes: torch.hstack(waves(*sizes)),
        "sines and cosines swapped": lambda *s: torch.stack(waves(*s)[::-1], -1).flatten(1),
    },
    "attention_scores": {
        "a product without the scale": lambda Q, K: torch.einsum("...qd,...kd->...qk", Q, K),
        "dividing by d_head instead of its root": lambda Q, K: Q @ K.mT / Q.shape[-1],
        "a cosine instead of the dot product": lambda Q, K: F.cosine_similarity(
            Q[..., :, None, :], K[..., None, :, :], dim=-1
        ),
    },
    "causal_mask": {
        "the upper triangle": lambda n: torch.ones(1, 1, n, n).triu().bool(),
        "a token that may not see itself": lambda n: torch.ones(1, 1, n, n).tril(-1).bool(),
    },
    "padding_mask": {
        "padding that is always id 0": lambda ids, pad_id: (ids != 0)[:, None, None, :],
        "an inverted mask": lambda ids, pad_id: ids.eq(pad_id)[:, None, None],
        "hiding queries instead of keys": lambda ids, pad_id: (ids != pad_id)[:, None, :, None],
    },
    "split_heads": {
        "a view without a transpose": lambda x, n: x.reshape(len(x), n, x.shape[1], -1)
    },
    "merge_heads": {
        "a reshape without a transpose": lambda x: x.reshape(len(x), x.shape[2], -1),
        "the mean of the heads": lambda x: sum(x[:, i] for i in range(x.shape[1])) / x.shape[1],
    },
    "layer_norm": {
        "the unbiased deviation": lambda *x: normed(*x, correction=1),
        "a norm over the axis before the last": lambda *x: normed(*x, axis=-2),
        "gamma and beta swapped": lambda x, gamma, beta, e: normed(x, beta, gamma, e),
        "a norm without epsilon": lambda x, gamma, beta, e: normed(x, gamma, beta, 0.0),
    },
    "shifted_loss": {
        "taking id 0 for padding": lambda logits, ids, pad_id: loss_of(
            logits[:, :-1], ids[:, 1:], ignore_index=0
        ),
        "counting padding in the loss": lambda x, ids, _: loss_of(x[:, :-1], ids[:, 1:]),
        "labels that are not shifted": lambda x, i, p: loss_of(x, i, ignore_index=p),
        "a sum over the tokens": lambda x, i, p: loss_of(
            x[:, :-1], i[:, 1:], ignore_index=p, reduction="sum"
        ),
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_called_by_its_name(name, unchecked):
    told = {said: check(name, answer).mistake for said, answer in MISTAKES[name].items()}
    assert told == {said: said for said in MISTAKES[name]}
