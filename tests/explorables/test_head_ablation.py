"""Heads switched off: what the picture says is what the model does without them."""

import warnings

import pytest
import torch

from tests.explorables.tiny_models import grammar_translator, language_model
from transformer_lesson.explorables import HeadAblation, head_ablation
from transformer_lesson.explorables.head_ablation import render_head_ablation
from transformer_lesson.interpretability.interventions import Head, heads_of, token_losses
from transformer_lesson.text.batches import Batch, shift_right


def example():
    model, _ = language_model()
    inputs, labels = shift_right(torch.randint(model.config.vocab_size, (3, 8)))
    return model, Batch((inputs,), labels)


@pytest.mark.slow
def test_switching_heads_off_shows_the_loss_without_them():
    model, batch = example()
    shown = HeadAblation(model, batch)
    heads = heads_of(model)
    assert len(shown.controls) == len(heads) == 6
    before = shown.rendering
    for i in (4, 1):
        list(shown.controls.values())[i].value = True
    loss = token_losses(model, batch).mean()
    without = token_losses(model, batch, [heads[1], heads[4]]).mean()
    assert shown.rendering.png != before.png
    assert shown.rendering.text.startswith(
        "Taken away: layer 0, self head 1, layer 1, self head 1. "
        f"Mean loss {without:.2f} nats per token, with all heads {loss:.2f}."
    )


def test_the_head_that_is_needed_most_is_named():
    model, batch = example()
    shown = HeadAblation(model, batch)
    costs = [token_losses(model, batch, [head]).mean() for head in heads_of(model)]
    worst = max(range(6), key=lambda i: costs[i])
    layer, number = divmod(worst, 3)
    assert f"layer {layer}, self head {number} is needed most" in shown.rendering.text
    assert f"without it too, {costs[worst]:.2f}." in shown.rendering.text


def test_only_what_counts_is_counted():
    model, batch = example()
    counted = torch.zeros(3, 7, dtype=torch.bool)
    counted[:, 5:] = True
    shown = HeadAblation(model, batch, counted=counted)
    loss = token_losses(model, batch)[:, 5:].mean()
    assert f"with all heads {loss:.2f}" in shown.rendering.text
    points, _ = shown.losses(frozenset())
    expected = token_losses(model, batch)[:, 5:].mean(dim=0)
    assert [place for place, _ in points] == [5, 6]
    assert [value for _, value in points] == pytest.approx(expected.tolist())


@pytest.mark.slow
def test_a_translators_heads_of_one_attention():
    model, _ = grammar_translator()
    batch = Batch(
        (torch.tensor([[5, 6, 7, 0]]), torch.tensor([[1, 8, 9]])), torch.tensor([[8, 9, 0]])
    )
    shown = HeadAblation(model, batch, "encoder")
    assert list(shown.controls)[0] == "encoder 0, self head 0" and len(shown.controls) == 6
    assert shown.losses(frozenset())[1] == pytest.approx(
        float(token_losses(model, batch)[0, :2].mean())
    )


@pytest.mark.slow
def test_everything_can_be_taken_away():
    shown = HeadAblation(*example())
    for control in shown.controls.values():
        control.value = True
    assert "is needed most" not in shown.rendering.text
    assert shown.rendering.png.startswith(b"\x89PNG")


def test_same_arguments_give_the_same_bytes():
    heads = (Head("decoder.0.self_attention", 0), Head("decoder.0.self_attention", 1))
    state = (
        heads,
        frozenset(heads[:1]),
        (1.0, 2.0),
        ((0, 1.0), (1, 0.5)),
        ((0, 2.0), (1, 0.5)),
        0.7,
        1.2,
    )
    assert render_head_ablation.__wrapped__(*state) == render_head_ablation.__wrapped__(*state)


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 300])
@pytest.mark.parametrize("loss", [0.0, 1e-9, 50.0])
def test_losses_of_any_size_and_number_are_drawn(n, loss):
    heads = tuple(Head(f"decoder.{i}.self_attention", h) for i in range(4) for h in range(12))
    points = tuple((i, loss) for i in range(n))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn = render_head_ablation(
            heads, frozenset(heads[:9]), (loss,) * 48, points, points, loss, loss
        )
    assert drawn.png.startswith(b"\x89PNG")


def test_bad_input_says_what_to_change():
    model, batch = example()
    with pytest.raises(ValueError, match="batch is missing"):
        HeadAblation(model)
    with pytest.raises(ValueError, match="no attention has 'corss'"):
        HeadAblation(model, batch, "corss")
    with pytest.raises(ValueError, match="in training mode"):
        HeadAblation(model.train(), batch)


def test_without_the_translator_it_says_what_to_do(monkeypatch):
    monkeypatch.setattr(head_ablation, "trained_translator", lambda: None)
    shown = HeadAblation()
    assert "translator is missing" in shown.rendering.text and shown.controls == {}


def test_repr_is_short():
    shown = HeadAblation(*example())
    assert repr(shown) == "HeadAblation(without=nothing)"
    list(shown.controls.values())[0].value = True
    assert repr(shown) == "HeadAblation(without=layer 0, self head 0)"
