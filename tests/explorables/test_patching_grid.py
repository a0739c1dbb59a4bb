"""The patching grid: what comes back, in the picture and in words."""

import io
import warnings

import pytest
import torch
from PIL import Image

from tests.parity import randomized, small_config
from transformer_lesson.explorables import PatchingGrid, patching_grid
from transformer_lesson.explorables.patching_grid import (
    OTHERS,
    SOURCE,
    Patched,
    render_patching_grid,
)
from transformer_lesson.interpretability.interventions import patching_grid as compute
from transformer_lesson.interpretability.interventions import stream_sites
from transformer_lesson.model.transformers import DecoderOnlyTransformer


def example(n=6):
    model = randomized(DecoderOnlyTransformer(small_config(tie_embeddings=False))).eval()
    ids = torch.arange(n)[None]
    return model, ids, (ids + 3) % model.config.vocab_size


def test_grid_and_words_are_those_of_the_model(monkeypatch):
    monkeypatch.setattr(patching_grid, "SMALLEST", 1e-3)
    model, ids, others = example()
    shown = PatchingGrid(model, ids, others, list("abcdef"), position=2, answer=5)
    corrupted = ids.clone()
    corrupted[0, 2] = others[0, 2]
    with torch.no_grad():
        clean = model(ids)[0, 5].softmax(-1)
        best = int(clean.argmax())
        wrong = model(corrupted)[0, 5, :].softmax(-1)[best]
    expected = compute(
        model, (ids,), (corrupted,), stream_sites(model), lambda z: z[:, 5].log_softmax(-1)[:, best]
    )
    torch.testing.assert_close(shown.patched(2, 5, False).grid, expected)
    assert f"went from {clean[best]:.2f} to {wrong:.2f}" in shown.rendering.text
    assert "embedding: 1.00 at 2 “c”" in shown.rendering.text
    assert "after layer 1: 1.00 at 5 “f”" in shown.rendering.text


def test_a_token_that_comes_after_the_answer_has_nothing_to_trace():
    shown = PatchingGrid(*example(), position=4, answer=2)
    assert "too little to trace: replace another token" in shown.rendering.text


@pytest.mark.slow
def test_every_control_draws_a_new_picture(monkeypatch):
    monkeypatch.setattr(patching_grid, "SMALLEST", 1e-3)
    shown = PatchingGrid(*example(), position=1, answer=4)
    for name, value in {"position": 2, "answer": 5, "heads": True}.items():
        before = shown.rendering
        shown.controls[name].value = value
        assert shown.rendering.text != before.text
    assert "head" in shown.rendering.text


@pytest.mark.slow
def test_the_default_replaces_words_of_a_sentence_that_the_translator_knows():
    shown = PatchingGrid()
    assert len(SOURCE.split()) == len(OTHERS.split()) == len(shown.names) - 1
    assert "<unk>" not in shown.names + [shown.name(int(i)) for i in shown.others[0]]
    for position in range(len(shown.names)):
        shown.controls["position"].value = position
        assert shown.rendering.text.startswith(f"Token {position}, ")


@pytest.mark.parametrize("n, n_sites", [(1, 1), (3, 40), (64, 3), (700, 64)])
def test_any_size_fits_the_picture(n, n_sites):
    grid = torch.linspace(-2, 2, n * n_sites).view(n_sites, n)
    sites, tokens = [f"site {i}" for i in range(n_sites)], ["token"] * n
    drawn = render_patching_grid(Patched("x", -0.1, -5.0, grid), sites, tokens, n - 1, "y")
    image = Image.open(io.BytesIO(drawn.png))
    assert image.width <= 950 and image.height < 1000
    assert drawn == render_patching_grid(Patched("x", -0.1, -5.0, grid), sites, tokens, n - 1, "y")


@pytest.mark.slow
def test_hostile_tokens_are_drawn(hostile):
    grid = torch.rand(2, 3)
    for shares in (grid, None):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            drawn = render_patching_grid(
                Patched(hostile, -0.1, -2.0, shares), ["a", "b"], [hostile, "$x$", ""], 0, hostile
            )
        assert len(drawn.text) < 800


def test_bad_input_says_what_to_change(unchecked):
    model, ids, others = example()
    with pytest.raises(ValueError, match="others have shape None"):
        PatchingGrid(model, ids)
    with pytest.raises(ValueError, match=r"ids have shape \(6,\)"):
        PatchingGrid(model, ids[0], others)
    with pytest.raises(ValueError, match="6 ids, 5 others and 6 tokens"):
        PatchingGrid(model, ids, others[:, :5])
    with pytest.raises(ValueError, match="6 ids, 6 others and 2 tokens"):
        PatchingGrid(model, ids, others, ["a", "b"])
    with pytest.raises(ValueError, match="in training mode"):
        PatchingGrid(model.train(), ids, others)


def test_without_the_translator_it_says_what_to_do(monkeypatch):
    monkeypatch.setattr(patching_grid, "trained_translator", lambda: None)
    shown = PatchingGrid()
    assert "translator is missing" in shown.rendering.text
    shown.controls["heads"].value = True


def test_repr_is_short():
    assert repr(PatchingGrid()) == "PatchingGrid(position=2, answer=0, heads=False)"
