"""Results are compared by what they are, not by how they were made."""

import math

import numpy as np
import pytest
import torch

from transformer_lesson.exercises import check
from transformer_lesson.exercises.recognition import alike

NAN = float("nan")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (torch.ones(2), torch.ones(2).double()),
        (torch.tensor([1.0, NAN]), torch.tensor([1.0, NAN])),
        ((torch.ones(2), 3), [torch.ones(2), 3]),
        (1.0, 1.0 + 1e-9),
        (NAN, NAN),
        (None, None),
        (ValueError, ValueError),
        (np.ones(3), np.ones(3)),
        ({"a": 1}, {"a": 1}),
        (len, print),  # functions among the inputs are never changed
    ],
)
def test_alike(one, other):
    assert alike(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (torch.ones(2), torch.ones(3)),
        (torch.ones(2), torch.ones(2, dtype=torch.int64)),
        (torch.ones(2), torch.ones(2, dtype=torch.bool)),
        (torch.ones(2), torch.tensor([1.0, 1.1])),
        (torch.ones(2), torch.tensor([1.0, NAN])),
        (torch.ones(2), (torch.ones(2),)),
        (torch.ones(2), np.ones(2)),
        (np.ones(3), np.ones(2)),
        ([1, 2], [1, 2, 3]),
        (1, True),
        (1, 1.0),
        (0, None),
        (ValueError, KeyError),
        (math.inf, NAN),
        ({"a": 1}, {"a": 2}),
    ],
)
def test_not_alike(one, other):
    assert not alike(one, other)


def test_a_known_mistake_is_named_before_the_example():
    report = check("attention_scores", lambda Q, K: torch.einsum("bhqd,bhkd->bhqk", Q, K))
    assert report.mistake and "scale" in report.mistake
    first, rest = report.message.split("\n", 1)
    assert first.startswith(f"This is what {report.mistake} gives. ")
    assert "Smallest failing example" in rest


def test_an_unknown_mistake_has_no_name():
    report = check("attention_scores", lambda Q, K: Q @ K.mT / 7.3)
    assert report.status == "failed" and report.mistake is None
    assert not report.message.startswith("This is what")
