"""Mistakes that can befall any function get their names in exercises that know nothing of them."""

import math

import pytest
import torch

from transformer_lesson.exercises import check
from transformer_lesson.exercises.catalog import EXERCISES
from transformer_lesson.exercises.engine import families
from transformer_lesson.exercises.engine.families import of_arguments, of_results
from transformer_lesson.model import attention, masks, norm, positions
from transformer_lesson.text import byte_pairs

Q_K = attention.attention_scores
ATTEND = attention.scaled_dot_product_attention


def four_names(Q, K, V, mask=None):
    batch, head, key, d_head = K.shape
    scores = Q @ K.transpose(2, 3) / math.sqrt(d_head)
    if mask is not None:
        scores = scores.masked_fill(~mask, -10000.0)
    weights = scores.softmax(-1)
    return weights @ V, weights


def always_masked(Q, K, V, mask=None):
    return ATTEND(Q, K, V, mask if mask.any() else mask)


def plus_infinity(Q, K, V, mask=None):
    scores = Q_K(Q, K) if mask is None else Q_K(Q, K).masked_fill(~mask, math.inf)
    weights = scores.softmax(-1)
    return weights @ V, weights


def zero_by_zero(x, gamma, beta, epsilon):
    centered = x - x.mean(-1, keepdim=True)
    return centered / (centered.square().mean(-1, keepdim=True).sqrt()) * gamma + beta


NAMED = {
    "a constant factor": ("attention_scores", lambda Q, K: 1.5 * Q_K(Q, K)),
    "a constant summand": ("attention_scores", lambda Q, K: Q_K(Q, K) + 2),
    "a factor of 1 / the root of the number of `key`": (
        "attention_scores",
        lambda Q, K: Q_K(Q, K) / K.size(-2) ** 0.5,
    ),
    "`Q` and `K` exchanged": ("attention_scores", lambda Q, K: Q_K(K, Q)),
    "the opposite sign": ("attention_scores", lambda Q, K: -Q_K(Q, K)),
    "a softmax too many": ("attention_scores", lambda Q, K: Q_K(Q, K).softmax(-1)),
    "the first query for all": (
        "attention_scores",
        lambda Q, K: Q_K(Q[..., :1, :], K).expand(*Q.shape[:-1], K.size(-2)),
    ),
    "code for exactly 3 axes of `Q` and a product without the scale": (
        "attention_scores",
        lambda Q, K: torch.bmm(Q, K.transpose(1, 2)),
    ),
    "code for exactly 4 axes of `Q` and equal weights for a fully masked row": (
        "scaled_dot_product_attention",
        four_names,
    ),
    "a `mask` that is taken for given": ("scaled_dot_product_attention", always_masked),
    "a softmax of plus infinity": ("scaled_dot_product_attention", plus_infinity),
    "an axis missing: key": ("attention_scores", lambda Q, K: Q_K(Q, K)[..., 0].clone() * 2),
    "the first key alone": ("attention_scores", lambda Q, K: Q_K(Q, K)[..., 0]),
    "key averaged too much": ("attention_scores", lambda Q, K: Q_K(Q, K).mean(-1)),
    "an axis of size 1 too many": ("attention_scores", lambda Q, K: Q_K(Q, K)[..., None]),
    "one query too few": ("attention_scores", lambda Q, K: Q_K(Q, K)[..., 1:, :]),
    "a list instead of a tensor": ("attention_scores", lambda Q, K: Q_K(Q, K).tolist()),
    "a missing `return`": ("attention_scores", lambda Q, K: print(Q_K(Q, K).shape)),
    "`torch.int64` instead of True and False": (
        "padding_mask",
        lambda ids, pad_id: masks.padding_mask(ids, pad_id).long()[..., ::1] * 3,
    ),
    "1 value instead of 2": ("accept_and_residual", lambda p, q: p),
    "`base` taken for its default": (
        "shift_matrix",
        lambda k, d_model, base: positions.shift_matrix(k, d_model),
    ),
    "`gamma` left out": (
        "rms_norm",
        lambda x, gamma, epsilon: 0 * norm.rms_norm(x, gamma, epsilon),
    ),
    "a first item left out": ("apply_byte_pairs", lambda *x: byte_pairs.apply_byte_pairs(*x)[1:]),
    "1 minus the right number": (
        "pass_at_k",
        lambda n, c, k: math.comb(n - c, k) / math.comb(n, k) * 1.0,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("said", NAMED)
def test_what_befalls_any_function_is_named(said, unchecked):
    name, answer = NAMED[said]
    report = check(name, answer)
    assert (report.status, report.mistake) == ("failed", said), report
    assert report.message.startswith(f"This comes from {said.split(' and ')[0].split(',')[0]}")


@pytest.mark.slow
@pytest.mark.parametrize("name", EXERCISES)
def test_no_member_of_a_family_is_our_own_and_each_has_words(name, unchecked):
    """What a member says of a result is found anew in it: a draw tells it from the right one."""
    exercise = EXERCISES[name]
    ours = families.Ours(exercise)
    members = [*of_results(exercise, ours), *of_arguments(exercise, ours)]
    assert members
    for member in members:
        assert member.name and member.why.endswith((".", "?")) and "{" not in member.name
        assert member.given or member.gives
