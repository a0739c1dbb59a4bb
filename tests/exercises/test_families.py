"""Mistakes that can befall any function get their names in exercises that know nothing of them."""

import math
import re

import pytest
import torch

from transformer_lesson.exercises import check
from transformer_lesson.exercises.engine import behavior, families
from transformer_lesson.exercises.engine.catalog import EXERCISES
from transformer_lesson.exercises.engine.families import of_arguments, of_results
from transformer_lesson.exercises.engine.specification import Draw
from transformer_lesson.model import attention, gpt, masks, positions
from transformer_lesson.text import byte_pairs

Q_K = attention.attention_scores
CROSS = attention.cross_attention
ATTEND = attention.scaled_dot_product_attention


def four_names(Q, K, V, mask=None):
    batch, head, key, d_head = K.shape
    scores = Q @ K.transpose(2, 3) / math.sqrt(d_head)
    if mask is not None:
        scores = scores.masked_fill(~mask, -10000.0)
    weights = scores.softmax(-1)
    return weights @ V, weights


def plus_infinity(Q, K, V, mask=None):
    scores = Q_K(Q, K) if mask is None else Q_K(Q, K).masked_fill(~mask, math.inf)
    weights = scores.softmax(-1)
    return weights @ V, weights


NAMED = {
    "a constant factor": ("attention_scores", lambda Q, K: 1.5 * Q_K(Q, K)),
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
    "a `mask` that is taken for given": (
        "scaled_dot_product_attention",
        lambda Q, K, V, mask=None: ATTEND(Q, K, V, mask if mask.any() else mask),
    ),
    "a softmax of plus infinity": ("scaled_dot_product_attention", plus_infinity),
    "the first key alone": ("attention_scores", lambda Q, K: Q_K(Q, K)[..., 0]),
    "key averaged too much": ("attention_scores", lambda Q, K: Q_K(Q, K).mean(-1)),
    "an axis of size 1 too many": ("attention_scores", lambda Q, K: Q_K(Q, K)[..., None]),
    "a list instead of a tensor": ("attention_scores", lambda Q, K: Q_K(Q, K).tolist()),
    "a missing `return`": ("attention_scores", lambda Q, K: print(Q_K(Q, K).shape)),
    "`torch.int64` instead of True and False": (
        "padding_mask",
        lambda ids, pad_id: masks.padding_mask(ids, pad_id).long()[..., ::1] * 3,
    ),
    "1 value instead of 2": ("linear_attention_step", lambda state, q, k, v: state),
    "`base` taken for its default": (
        "apply_rotary",
        lambda x, places, base: positions.apply_rotary(x, places),
    ),
    "`x` left out": ("layer_norm", lambda x, gamma, beta, epsilon: 0 * x + beta),
    "zeros everywhere": ("cut_off", lambda weights, window: 0 * weights[0, 0]),
    "a first item left out": ("apply_byte_pairs", lambda *x: byte_pairs.apply_byte_pairs(*x)[1:]),
    "`y` in the sum": ("cross_attention", lambda y, *rest: y + CROSS(y, *rest)),
    "`y` taken away": ("cross_attention", lambda y, *rest: CROSS(y, *rest) - y),
    "1 minus the right number": ("attention_scores", lambda Q, K: 1 - Q_K(Q, K)),
}


@pytest.mark.slow
@pytest.mark.parametrize("said", NAMED)
def test_what_befalls_any_function_is_named(said, unchecked):
    name, answer = NAMED[said]
    report = check(name, answer)
    assert (report.status, report.mistake) == ("failed", said), report


@pytest.mark.slow
def test_axes_that_are_joined_in_another_order_are_told(unchecked):
    """Two mistakes at once, but one fact: which axes lay side by side before the cut."""
    report = check("merge_heads", lambda x: x.mT.reshape(len(x), x.size(2), -1))
    assert "its axes as (batch, head, d_head, n), cut to the right shape" in report.message


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


def hidden_on_equal_terms(x, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    """Attention whose fully masked rows look everywhere alike, with x added and a norm."""
    Q, K, V = (attention.split_heads(x @ W, n_heads) for W in (W_Q, W_K, W_V))
    scores = Q_K(Q, K)
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    y = x + attention.merge_heads(scores.softmax(-1) @ V) @ W_O
    return torch.nn.functional.layer_norm(y, y.shape[-1:])


def over_whole_rows(x, gamma, beta, epsilon):
    """Layer norm of the first axis' parts, whatever axes they have, with a small number outside."""
    parts = [(part - part.mean()) / (part.std(unbiased=False) + 1e-8) for part in x]
    return torch.stack(parts) * gamma + beta


def by_the_probabilities(logits, labels, smoothing, pad_id):
    """The derivative by the probabilities, which divides by them."""
    P = logits.softmax(-1)
    return -torch.nn.functional.one_hot(labels, logits.size(-1)) / P / (labels != pad_id).sum()


def in_a_template(word, merges):
    """Byte pairs by a search for text, with the joined piece as a template."""
    text = " ".join(word)
    for pair in merges:
        text = re.sub(rf"(?<!\S){re.escape(' '.join(pair))}(?!\S)", "".join(pair), text)
    return text.split(" ")


SAID = [
    ("multi_head_attention", hidden_on_equal_terms, "a token that is seen although it is hidden"),
    ("layer_norm", over_whole_rows, "`epsilon` without effect"),
    ("loss_gradient", by_the_probabilities, "`smoothing` without effect"),
    (
        "cut_off",
        lambda weights, window: weights.tril(-window).mean(),
        "one number for all of `shares`",
    ),
    ("apply_byte_pairs", in_a_template, None),
    ("bits_per_character", lambda *inputs: -28.0, "`loss_in_nats` without effect"),
    (
        "train_byte_pairs",
        lambda counts, n_merges: [*counts][:1] * n_merges,
        "a str in a list of tuples of 2 str",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "answer", "said"), SAID)
def test_what_is_said_can_be_seen_in_the_example(name, answer, said, unchecked):
    """A cause that shows in a few draws only, beside another, is none that is worth naming."""
    report = check(name, answer)
    assert (report.status, report.mistake) == ("failed", said), report


def test_the_order_of_equal_rows_says_nothing(unchecked):
    """Without residuals all rows of a result may be equal on one draw, and no order matters."""

    def equal_rows(ids, weights):
        return gpt.gpt_forward(ids, weights).mean(1, keepdim=True).expand(-1, ids.size(1), -1) + 0

    exercise, draw = EXERCISES["gpt_forward"], Draw(0)
    exercise.make_inputs(draw)  # names the axes
    orders = [
        behavior._depends_on_order(exercise, function, draw, "n")
        for function in (gpt.gpt_forward, equal_rows)
    ]
    assert orders == [True, None]


def test_a_form_is_blamed_only_where_the_first_wrong_draw_has_it(unchecked):
    """On the first draw the values are wrong, and only without axes in front is one too many."""

    def answer(Q, K):
        return Q_K(Q, K).tanh() if Q.ndim > 2 else Q_K(Q, K)[None]

    assert "axis" not in (check("attention_scores", answer).mistake or "")
