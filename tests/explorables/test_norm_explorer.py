"""Which tokens a norm lets one token reach."""

import pytest
import torch

from transformer_lesson.explorables import NormExplorer
from transformer_lesson.explorables.norm_explorer import BLOCK, batch_norm, render_norm


def test_batch_norm_equals_pytorchs_in_training():
    oracle = torch.nn.BatchNorm1d(4, eps=1e-3)
    oracle.weight.data, oracle.bias.data = torch.randn(4), torch.randn(4)
    expected = oracle(BLOCK.transpose(1, 2)).transpose(1, 2)  # wants (batch, d_model, token)
    actual = batch_norm(BLOCK, oracle.weight, oracle.bias, 1e-3)
    torch.testing.assert_close(actual, expected)


def test_layer_norm_takes_a_shift_out_again():
    text = render_norm("layer", 3.0, 1.0, 1.0, 0.0, 1e-5).text
    assert "moves no other token's output" in text and "its output moves by 0.00" in text


def test_batch_norm_lets_one_token_reach_the_others():
    text = render_norm("batch", 3.0, 1.0, 1.0, 0.0, 1e-5).text
    assert "moves other tokens' outputs by up to 0.82" in text


def test_nothing_changed_says_what_is_averaged_over():
    assert "its own mean" in render_norm("layer", 0.0, 1.0, 1.0, 0.0, 1e-5).text
    assert "all tokens' mean" in render_norm("batch", 0.0, 1.0, 1.0, 0.0, 1e-5).text


def test_statistics_are_those_of_the_drawn_block():
    text = render_norm("layer", 0.0, 0.0, 1.0, 0.0, 1e-8).text
    assert "Mean and deviation of each token: 0.40 and 1.07, 0.00 and 0.00" in text


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["layer", "batch"])
@pytest.mark.parametrize("shift", [-5.0, 5.0])
@pytest.mark.parametrize("scale", [0.0, 5.0])
@pytest.mark.parametrize("gamma, beta", [(-2.0, 2.0), (0.0, 0.0)])
@pytest.mark.parametrize("epsilon", [1e-8, 10.0])
def test_extremes(norm, shift, scale, gamma, beta, epsilon):
    rendering = render_norm(norm, shift, scale, gamma, beta, epsilon)
    assert "nan" not in rendering.text and "inf" not in rendering.text
    assert rendering == render_norm(norm, shift, scale, gamma, beta, epsilon)


def test_the_choice_of_norm_changes_the_claim():
    explorable = NormExplorer(norm="layer")
    explorable.controls["norm"].value = "batch"
    assert explorable.rendering.text.startswith(
        "Batch norm: changing “all” moves other tokens' outputs"
    )
