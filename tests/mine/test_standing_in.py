"""What fails while a model runs on the learner's functions: a sentence, and ours stands in."""

import sys
import warnings

import pytest
import torch

from tests.exercises.test_collection import Notebook
from tests.mine.test_side_by_side import GERMAN, SENTENCE
from transformer_lesson import mine
from transformer_lesson.exercises.engine.collection import FOLDER
from transformer_lesson.exercises.engine.progress import PLACE
from transformer_lesson.mine import side_by_side
from transformer_lesson.mine.side_by_side import SAME
from transformer_lesson.mine.standing_in import standing_in

NORM = """def layer_norm(x, gamma, beta, epsilon):
    {trouble}
    mean = x.mean(-1, keepdim=True)
    variance = (x - mean).square().mean(-1, keepdim=True)
    return (x - mean) / (variance + epsilon).sqrt() * gamma + beta
"""
WIDE = "if x.size(-1) == 128: "  # as the translator's vectors are, and no draw's
TROUBLES = {
    "raise KeyError('gone')": "`layer_norm` raised KeyError: 'gone' in line 10 of my_transformer/",
    "return None": "yours returned None",
    "return [x, x]": "yours returned a list of 2",
    "return x.numpy(force=True)": "yours returned a ndarray",
    "layer_norm(x[..., :1] * 2, *[1] * 9)": "`layer_norm` raised TypeError: layer_norm() takes 4",
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(PLACE, str(tmp_path / "my_progress.json"))
    return tmp_path / FOLDER


def write(trouble: str) -> None:
    kept = Notebook().check("layer_norm", NORM.format(trouble=WIDE + trouble))
    assert kept.startswith("Your version is kept")


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_failure_is_a_sentence_and_ours_stands_in(trouble):
    write(trouble)
    result = mine.translation(SENTENCE)
    assert result.mine == GERMAN and result.largest <= SAME
    (sentence,) = [line for line in repr(result).splitlines() if line.startswith("Ours stands in")]
    assert sentence.startswith(f"Ours stands in for layer_norm: {TROUBLES[trouble]}"), sentence
    assert "all functions are ours" in repr(result)


def test_what_is_too_small_shows_in_all_of_them_together():
    write("return x[..., :1]")
    result = mine.translation(SENTENCE)
    assert result.mine == GERMAN
    assert "Ours stands in for encoder_forward: with what is yours, it raised Run" in repr(result)


def test_what_does_not_end_is_stopped_once(monkeypatch):
    monkeypatch.setattr(side_by_side, "LONGEST", 3.0)
    write("\n        while True: x = x")
    result = mine.translation(SENTENCE)
    assert result.mine == GERMAN and result.largest <= SAME
    assert "Ours stands in for layer_norm: the translation did not end within 3 s" in repr(result)


def test_what_is_tried_may_fail_too():
    result = mine.translation(SENTENCE, layer_norm=lambda x: x)
    assert result.mine == GERMAN
    assert "Ours stands in for layer_norm: " in repr(result)
    assert "takes 1 positional argument but 4 were given" in repr(result)


def test_a_model_that_runs_on_says_it_once_in_a_warning():
    write("raise KeyError('gone')")
    model = mine.MyTransformer.with_weights_of(side_by_side.trained_translator().model)
    ids = torch.tensor([[5, 6, 7]])
    with pytest.warns(UserWarning, match="^Ours stands in for layer_norm: `layer_norm` raised Key"):
        model(ids, ids)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model(ids, ids)
    assert model.parts.count() == "0 of 17"
    assert "layer_norm                     ours: `layer_norm` raised" in repr(model.parts)


def test_a_function_of_theirs_gives_way_but_a_wrong_call_of_it_raises():
    write("raise KeyError('gone')")
    layer_norm, x = mine.function("layer_norm"), torch.randn(2, 128)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'epsilon'"):
        layer_norm(x, x[0], x[1])
    with pytest.warns(UserWarning, match="Ours stands in for layer_norm"):
        assert layer_norm(x, x[0], x[1], 1e-5).shape == x.shape


def test_an_interrupt_is_handed_on():
    def stopped():
        raise KeyboardInterrupt

    told = []
    with pytest.raises(KeyboardInterrupt):
        standing_in("one", stopped, lambda: 1, lambda *why: told.append(why))()
    assert told == []


def test_a_stub_again_a_lost_function_and_an_endless_file_are_sentences(folder, monkeypatch):
    monkeypatch.setattr(sys.modules[mine.parts.__module__], "LONGEST", 0.5)
    write("pass")
    path = folder / "lesson_05.py"
    for body, why in {
        "def layer_norm(x, gamma, beta, epsilon):\n    raise NotImplementedError": "it is a stub",
        "def layer_norm(x, gamma, beta, epsilon):\n    while True: pass": "it does not end within",
        "def norm(x):\n    return x": "lesson_05.py defines no function `layer_norm`",
        "layer_norm = 3": "lesson_05.py defines no function `layer_norm`",
        "layer_norm = len(3)": "TypeError: object of type 'int' has no len()",
    }.items():
        path.write_text(f"# %% layer_norm\n{body}\n")
        assert why in mine.parts().reasons["layer_norm"]
        assert not mine.is_yours(mine.function("layer_norm"))
        assert mine.translation(SENTENCE).mine == GERMAN
