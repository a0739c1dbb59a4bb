"""The leak probe: who sees the future, in the picture and in words."""

import math
import warnings

import pytest
import torch

from transformer_lesson.explorables import LeakProbe
from transformer_lesson.explorables.leak_probe import example_models, render_leak_probe
from transformer_lesson.interpretability.causality import changed_positions, leaks_future
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.transformers import DecoderOnlyTransformer

CAUSAL = "decoder-only, causal mask"
IDS = torch.arange(7)[None]


@pytest.mark.parametrize("name", example_models())
def test_only_the_causal_example_keeps_the_future_hidden(name):
    assert leaks_future(example_models()[name], IDS) == (name != CAUSAL)


def test_shifted_mask_shows_one_token_more_in_each_of_two_layers():
    changes = changed_positions(example_models()["mask shifted by one"], IDS, 5)
    assert (changes > 1e-5).tolist() == [False] * 3 + [True] * 4


@pytest.mark.slow
@pytest.mark.parametrize("name", example_models())
def test_every_position_is_drawn_and_told(name):
    shown = LeakProbe()
    shown.controls["model"].value = name
    for position in range(len(shown.tokens)):
        shown.controls["position"].value = position
        changes = changed_positions(shown.models[name], shown.ids, position)
        moved = int((changes[:position] > 1e-5).sum())
        assert f"{moved} of {position} earlier outputs moved" in shown.rendering.text
        assert f"token {position} (“{shown.tokens[position]}”)" in shown.rendering.text
        assert ("sees the future" in shown.rendering.text) == (moved > 0)
        assert f"moved by {float(changes[position]):.2g}" in shown.rendering.text


def test_same_arguments_give_the_same_bytes():
    state = ("m", ("a", "b", "c"), 1, (0.0, 2.0, 0.5))
    assert render_leak_probe.__wrapped__(*state) == render_leak_probe.__wrapped__(*state)


@pytest.mark.slow
@pytest.mark.parametrize("position", [0, 1, 2])
def test_hostile_names_tokens_and_numbers_are_drawn(position):
    tokens = ("<script>alert(1)</script>" * 400, "$\\frac{$ 🦄", "שלום")
    for change in (0.0, 1e-30, 1e-5, 1e30, math.inf):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            drawn = render_leak_probe.__wrapped__("$x$<b>" * 900, tokens, position, (change,) * 3)
        assert drawn.png.startswith(b"\x89PNG") and len(drawn.text) < 500


@pytest.mark.parametrize("n", [1, 2, 24, 25, 300])
def test_sentences_of_any_length_are_drawn(n):
    drawn = render_leak_probe("m", ("word",) * n, n - 1, (0.5,) * n)
    assert f"{n - 1} of {n - 1} earlier outputs moved" in drawn.text


def test_a_model_of_your_own():
    shown = LeakProbe(
        {"mean of all": lambda ids: ids.float().mean(1).expand(1, 4)[..., None]}, IDS[:, :4]
    )
    assert shown.tokens == ("0", "1", "2", "3")
    assert "2 of 2 earlier outputs moved: it sees the future" in shown.rendering.text
    shown = LeakProbe({"own": lambda ids: ids[..., None].float()}, IDS[:, :3], ["x", "y", "z"])
    assert "token 1 (“y”)" in shown.rendering.text
    assert "0 of 1 earlier outputs moved: no leak here" in shown.rendering.text
    assert "0 of 1 later outputs moved" in shown.rendering.text


def test_an_output_that_becomes_nan_has_moved():
    def model(ids):
        value = math.nan if ids[0, 2] != 2 else 0.0
        return torch.full((1, ids.size(1), 1), value)

    shown = LeakProbe({"breaks": model}, IDS[:, :4])
    assert "2 of 2 earlier outputs moved: it sees the future" in shown.rendering.text


def test_bad_input_says_what_to_change(unchecked):
    def model(ids):
        return ids[..., None].float()

    with pytest.raises(ValueError, match="models must be a dict"):
        LeakProbe(model, IDS)
    with pytest.raises(ValueError, match="models must be a dict"):
        LeakProbe({}, IDS)
    with pytest.raises(ValueError, match=r"ids have shape None"):
        LeakProbe({"m": model})
    with pytest.raises(ValueError, match=r"ids have shape \(7,\).*ids\[None\]"):
        LeakProbe({"m": model}, IDS[0])
    with pytest.raises(ValueError, match="2 tokens for 7 ids"):
        LeakProbe({"m": model}, IDS, ["a", "b"])
    training = DecoderOnlyTransformer(ModelConfig(7, 4, 2, 1, 8, 7))
    with pytest.raises(ValueError, match="'mine' is in training mode"):
        LeakProbe({"mine": training}, IDS)


def test_leaves_the_learners_random_numbers_alone():
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    example_models.__wrapped__()
    assert torch.rand(1) == expected


def test_repr_is_short():
    assert repr(LeakProbe()) == "LeakProbe(model='decoder-only, causal mask', position=6)"
