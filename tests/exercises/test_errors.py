"""What PyTorch says in its own words is followed by what usually lies behind it."""

import math

import pytest
import torch

from transformer_lesson.exercises import check
from transformer_lesson.exercises.engine.explanation import explain_error


def viewed(Q, K):
    return (Q.mT.contiguous().mT.view(-1) * 1.0).view(Q.shape)


def fixed_width(Q, K):
    return Q.reshape(*Q.shape[:-1], 512)


def not_turned(Q, K):
    return Q @ K


def added(Q, K):
    return Q.sum(-1) + torch.zeros(997)


def joined(Q, K):
    return torch.cat([Q, K[..., 1:]], dim=-2)


def in_float(Q, K):
    return Q.double() @ torch.zeros(Q.size(-1), 3)


def one_too_far(Q, K):
    return Q[..., Q.size(-1)]


def asked(Q, K):
    return Q if Q > 0 else K


def whole(Q, K):
    return Q.long().softmax(-1)


def lost(Q, K):
    return None + Q


def keyed(Q, K):
    return {}["scale"]


def called(Q, K):
    return math.sqrt(Q, K, 1)


def one_argument(Q):
    return Q


def for_two_axes(Q, K):
    return torch.einsum("qd,kd->qk", Q, K) / math.sqrt(Q.size(-1))


def dotted(Q, K):
    return Q.product(K)


def one_long_row(Q, K):
    return torch.nn.functional.cross_entropy(Q[..., :2, :], torch.ones(1).long())


def list_called(Q, K):
    queries = [Q]
    return queries(0)


def misspelled(Q, K):
    return q @ K.mT  # noqa: F821


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        (viewed, "a view after a transpose"),
        (fixed_width, "a shape that does not hold all the numbers"),
        (not_turned, "a product of matrices that do not fit"),
        (added, "two shapes that do not broadcast"),
        (joined, "tensors that do not fit side by side"),
        (in_float, "two dtypes in one operation"),
        (one_too_far, "an index past the end"),
        (asked, "a whole tensor where one number is meant"),
        (whole, "an operation that this dtype does not have"),
        (lost, "a None where a value is meant"),
        (keyed, "a key that the dictionary does not have"),
        (one_argument, "other arguments than are handed over"),
        (for_two_axes, "an einsum for another number of axes"),
        (dotted, "a name that this object does not have"),
        (one_long_row, "labels whose shape does not fit the logits"),
        (list_called, "a call of something that is no function"),
        (misspelled, "a name that does not exist yet"),
    ],
)
def test_an_error_is_named(answer, name):
    report = check("attention_scores", answer)
    assert report.status == "failed" and report.mistake == name
    assert report.message.startswith(f"This is what {name} gives.")
    assert "Your function raised" in report.message


def test_an_error_that_nobody_knows_is_quoted_alone():
    assert explain_error("Your function raised ZeroDivisionError: division by zero") is None
    assert check("attention_scores", called).mistake is None
