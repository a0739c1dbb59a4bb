"""Checks pass the reference and other right ways of writing it, and fail wrong versions."""

import time

import pytest
import torch

from tests.exercises.versions import RIGHT
from tests.exercises.wrong_versions import WRONG
from transformer_lesson.exercises import check
from transformer_lesson.exercises.catalog import EXERCISES
from transformer_lesson.exercises.specification import Draw

WRONG_CASES = [(name, bug) for name, bugs in WRONG.items() for bug in bugs]


def test_every_exercise_has_right_and_wrong_versions():
    assert set(EXERCISES) == set(RIGHT) == set(WRONG)
    assert all(len(bugs) >= 2 for bugs in WRONG.values())


@pytest.mark.parametrize("name", EXERCISES)
def test_reference_passes_its_own_check_quickly(name):
    reference = EXERCISES[name].load_reference()
    start = time.process_time()  # of this process alone
    report = check(name, reference)
    assert report.status == "passed", report
    assert time.process_time() - start < 1.0


@pytest.mark.parametrize("name", EXERCISES)
def test_other_right_versions_pass(name):
    for answer in RIGHT[name]:
        report = check(name, answer)
        assert report.status == "passed", report


@pytest.mark.parametrize(("name", "bug"), WRONG_CASES)
def test_wrong_version_fails_with_a_message(name, bug):
    report = check(name, WRONG[name][bug])
    assert report.status == "failed", f"{name}: {bug} was not noticed"
    assert len(report.message) > 30
    assert len(report.message) < 3000


@pytest.mark.parametrize(
    ("name", "bug", "message"),
    [
        ("sinusoidal_encoding", "halves", "Row 0 must be 0, 1, 0, 1"),
        ("scaled_dot_product_attention", "softmax over queries", "must sum to 1 over the keys"),
        ("scaled_dot_product_attention", "mask after softmax", "must sum to 1 over the keys"),
        ("scaled_dot_product_attention", "mask ignored", "hides must get weight 0"),
        ("causal_mask", "True = hidden", "query 0 may attend to key 1"),
        ("multi_head_attention", "mask ignored", "must not move earlier outputs"),
        ("layer_norm", "over the tokens", "must have mean 0"),
        ("split_heads", "no transpose", "yours is (batch"),
        ("split_heads", "view without transpose", "Smallest failing example:\nx =\n[[["),
        ("greedy_decode", "no test for <eos>", "Nothing comes after `<eos>`"),
        ("greedy_decode", "<eos> left out", "The length must be 4; yours is 3."),
        ("top_k_filter", "k of the whole batch", "Does each row of the batch get its own k?"),
        ("top_k_filter", "the k lowest", "Largest difference inf at batch 0"),
        ("top_p_filter", "drops the token that crosses p", "Does the token that crosses p stay?"),
        ("beam_search", "sums not normalised", "is the plain sum of 2 log-probabilities"),
        ("append_to_cache", "only the new ones", "must have shape (batch 3, head 13, 12"),
    ],
)
def test_message_says_what_is_wrong(name, bug, message):
    assert message in check(name, WRONG[name][bug]).message


@pytest.mark.parametrize("name", EXERCISES)
def test_every_axis_has_a_size_of_its_own(name):
    """Otherwise a swapped axis could pass."""
    for number in range(5):
        draw = Draw(number)
        EXERCISES[name].make_inputs(draw)
        assert len(set(draw.sizes.values())) == len(draw.sizes)


def test_check_leaves_the_random_numbers_of_the_notebook_alone():
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    check("embed", lambda ids, table: torch.rand(2))
    assert torch.equal(torch.rand(3), expected)
