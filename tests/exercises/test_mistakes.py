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


MISTAKES = {
    "nearest_neighbors": {
        "each row as its own neighbor": lambda v: (v @ v.mT / v.norm(dim=1)).argmax(1),
        "dot products instead of cosines": lambda v: (v @ v.mT).fill_diagonal_(-1e9).argmax(1),
    },
    "attention_scores": {
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
        "hiding queries instead of keys": lambda ids, pad_id: (ids != pad_id)[:, None, :, None],
    },
    "merge_heads": {
        "a reshape without a transpose": lambda x: x.reshape(len(x), x.shape[2], -1),
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
