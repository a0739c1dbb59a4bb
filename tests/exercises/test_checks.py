"""Checks pass the reference and other right ways of writing it, and fail wrong versions."""

import time

import pytest
import torch

from tests.exercises.versions import RIGHT
from tests.patience import AT_ONCE
from transformer_lesson.exercises import check
from transformer_lesson.exercises.catalog import EXERCISES
from transformer_lesson.exercises.mistakes import MISTAKES
from transformer_lesson.exercises.specification import DRAWS, Draw


def test_every_exercise_has_right_versions():
    assert set(EXERCISES) == set(RIGHT)


@pytest.mark.parametrize("name", EXERCISES)
def test_reference_passes_its_own_check_quickly(name):
    reference = EXERCISES[name].load_reference()
    start = time.process_time()  # of this process alone
    report = check(name, reference)
    assert report.status == "passed", report
    assert time.process_time() - start < AT_ONCE


@pytest.mark.parametrize("name", EXERCISES)
def test_other_right_versions_pass(name):
    for answer in RIGHT[name]:
        report = check(name, answer)
        assert report.status == "passed" and report.mistake is None, report


@pytest.mark.parametrize(
    ("name", "bug", "message"),
    [
        ("sinusoidal_encoding", "all sines first, then all cosines", "Row 0 must be 0, 1, 0, 1"),
        (
            "scaled_dot_product_attention",
            "softmax over the query axis",
            "must sum to 1 over the keys",
        ),
        (
            "scaled_dot_product_attention",
            "a mask applied after the softmax",
            "must sum to 1 over the keys",
        ),
        ("scaled_dot_product_attention", "a mask that is never used", "hides must get weight 0"),
        ("causal_mask", "a mask that is True where it hides", "query 0 may attend to key 1"),
        (
            "multi_head_attention",
            "a mask that never reaches the heads",
            "must not move earlier outputs",
        ),
        ("layer_norm", "a norm over the tokens", "must have mean 0"),
        ("split_heads", "heads that stay behind the tokens", "yours is (batch"),
        ("split_heads", "a view without a transpose", "Smallest failing example:\nx =\n[[["),
        ("greedy_decode", "a loop that does not look for <eos>", "Nothing comes after `<eos>`"),
        ("greedy_decode", "a list without its <eos>", "The length must be 4; yours is 3."),
        (
            "top_k_filter",
            "the k best of the whole batch",
            "Does each row of the batch get its own k?",
        ),
        ("top_k_filter", "the k lowest logits", "Largest difference inf at batch 0"),
        (
            "top_p_filter",
            "dropping the token that crosses p",
            "Does the token that crosses p stay?",
        ),
        (
            "beam_search",
            "sums that are not normalized by length",
            "The length must be 7; yours is 2.",
        ),
        ("append_to_cache", "the new tokens alone", "must have shape (batch 3, head 13, 12"),
    ],
)
def test_message_says_what_is_wrong(name, bug, message):
    mistake = next(mistake for mistake in MISTAKES[name] if mistake.name == bug)
    assert message in check(name, mistake.version).message


@pytest.mark.parametrize("name", EXERCISES)
def test_every_axis_has_a_size_of_its_own(name):
    """Otherwise a swapped axis could pass. One draw may make two equal, on purpose."""
    distinct = 0
    for number in range(DRAWS):
        draw = Draw(number)
        EXERCISES[name].make_inputs(draw)
        distinct += len(set(draw.sizes.values())) == len(draw.sizes)
    assert distinct >= DRAWS - 1


def test_check_leaves_the_random_numbers_of_the_notebook_alone():
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    check("embed", lambda ids, table: torch.rand(2))
    assert torch.equal(torch.rand(3), expected)
