"""The trained translator on the learner's functions: where the words part, and what fails."""

import sys
import warnings
from functools import partial
from unittest.mock import Mock

import pytest
import torch

from tests.exercises.notebook import SCORES, Notebook, solved
from tools.browser import PATIENCE
from transformer_lesson import mine
from transformer_lesson.mine import PARTS, side_by_side, translation
from transformer_lesson.mine.fallback import with_fallback
from transformer_lesson.mine.parts import HOMES
from transformer_lesson.mine.playground import answer_to
from transformer_lesson.mine.side_by_side import SAME
from transformer_lesson.model.attention import split_heads

NORM = """def layer_norm(x, gamma, beta, epsilon):
    {trouble}
    mean = x.mean(-1, keepdim=True)
    variance = (x - mean).square().mean(-1, keepdim=True)
    return (x - mean) / (variance + epsilon).sqrt() * gamma + beta
"""
SENTENCE, GERMAN = "the child opens the window .", "das Kind macht das Fenster auf ."
WIDE = "if x.size(-1) == 128: "  # as the translator's vectors are, and no draw's
TROUBLES = {
    "raise KeyError('gone')": "`layer_norm` raised KeyError: 'gone' in line 10 of my_transformer/",
    "return None": "yours returned None",
    "return [x, x]": "yours returned a list of 2",
    "return x.numpy(force=True)": "yours returned a ndarray",
    "layer_norm(x[..., :1] * 2, *[1] * 9)": "`layer_norm` raised TypeError: layer_norm() takes 4",
    "\n        while True: x = x": "the translation did not end within 3 s",
}
pytestmark = pytest.mark.usefixtures("folder")


def write(trouble: str) -> None:
    Notebook().keep("layer_norm", NORM.format(trouble=WIDE + trouble))


@pytest.mark.slow
@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_failure_is_a_sentence_and_ours_stands_in(trouble, monkeypatch):
    monkeypatch.setattr(side_by_side, "LONGEST", 3.0 if "while True" in trouble else PATIENCE)
    write(trouble)
    result = translation(SENTENCE)
    assert result.mine == GERMAN and result.largest <= SAME
    (sentence,) = [line for line in repr(result).splitlines() if line.startswith("Ours stands in")]
    assert sentence.startswith(f"Ours stands in for layer_norm: {TROUBLES[trouble]}"), sentence
    assert "None of your functions is ready yet" in repr(result)


def test_what_is_too_small_shows_in_all_of_them_together():
    write("return x[..., :1]")
    result = translation(SENTENCE)
    assert result.mine == GERMAN
    assert "Ours stands in for encoder_forward: with your functions, it raised Run" in repr(result)


def test_a_model_that_runs_on_says_it_once_in_a_warning():
    write("raise KeyError('gone')")
    model = mine.MyTransformer.with_weights_of(side_by_side.trained_translator().model)
    ids = torch.tensor([[5, 6, 7]])
    with pytest.warns(UserWarning, match="^Ours stands in for layer_norm: `layer_norm` raised Key"):
        model(ids, ids)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("default", ResourceWarning)  # of what others left
        model(ids, ids)
    assert model.parts.count() == "0 of 15"
    assert "layer_norm                     ours: `layer_norm` raised" in repr(model.parts)


def test_a_function_of_theirs_gives_way_but_a_wrong_call_of_it_raises():
    write("raise KeyError('gone')")
    layer_norm, x = mine.function("layer_norm"), torch.randn(2, 128)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'epsilon'"):
        layer_norm(x, x[0], x[1])
    with pytest.warns(UserWarning, match="Ours stands in for layer_norm"):
        assert layer_norm(x, x[0], x[1], 1e-5).shape == x.shape


def test_an_interrupt_is_handed_on():
    stopped, tell = Mock(side_effect=KeyboardInterrupt), Mock()
    with pytest.raises(KeyboardInterrupt):
        with_fallback("one", stopped, lambda: 1, tell)()
    tell.assert_not_called()


@pytest.mark.slow
def test_a_stub_again_a_lost_function_and_an_endless_file_are_sentences(folder, monkeypatch):
    monkeypatch.setattr(sys.modules[mine.parts.__module__], "ANSWER_SECONDS", 0.5)
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
        assert translation(SENTENCE).mine == GERMAN


def is_the_same(whose: str) -> None:
    result = translation(SENTENCE)
    assert (result.mine, result.packages, result.tried) == (GERMAN, GERMAN, ())
    assert result.largest <= SAME and whose in repr(result)


def no_residual(x, sublayer, norm):
    return norm(sublayer(x))


@pytest.mark.slow
def test_ours_and_what_passed_are_the_same_model_until_a_mistake_is_handed_in():
    is_the_same("None of your functions is ready yet")
    Notebook().keep("attention_scores", SCORES)
    is_the_same("1 of 15 functions are yours: attention_scores")
    for name in PARTS:
        Notebook().keep(name, solved(name))
    is_the_same("15 of 15 functions are yours")
    result = translation(SENTENCE, attention_scores=lambda Q, K: Q @ K.mT)
    assert "15 of 15" in repr(result) and result.mine == GERMAN and result.largest > 0.1
    is_the_same("15 of 15")  # that was for one run only
    told = answer_to(SENTENCE)
    assert told[0] == f"German: {GERMAN}" and told[1].startswith("■" * len(PARTS))
    assert "you wrote a Transformer" in told[2]


@pytest.mark.slow
def test_a_mistake_shows_in_the_words_or_the_logits_and_what_fails_is_told():
    result = translation(SENTENCE, residual_branch=no_residual)
    assert result.mine != GERMAN and result.packages == GERMAN and result.largest > 1
    assert "not the same model" in repr(result)
    assert "Used unchecked: residual_branch" in repr(result)
    result = translation(SENTENCE, layer_norm=lambda x, *weights: x * torch.nan)
    assert result.largest == float("inf") and "its logits are NaN" in result.mine
    result = translation(SENTENCE, layer_norm=partial(torch.mul, other=torch.nan))
    assert "Ours stands in for layer_norm: " in repr(result)
    result = translation(SENTENCE, layer_norm=lambda x: x)
    assert result.mine == GERMAN and "Ours stands in for layer_norm: " in repr(result)
    assert "takes 1 positional argument but 4 were given" in repr(result)


def test_wrong_input_and_a_missing_translator_are_told_in_a_sentence(monkeypatch):
    with pytest.raises(ValueError, match="'Window' is not in the translator's vocabulary"):
        translation("the child opens the Window .")
    with pytest.raises(ValueError, match="are not in the forward pass"):
        translation(SENTENCE, attention_score=max)
    monkeypatch.setattr(side_by_side, "trained_translator", lambda: None)
    with pytest.raises(ValueError, match="The trained translator is missing"):
        translation(SENTENCE)


def test_what_is_tried_reaches_ours_that_theirs_call_and_changes_no_module():
    ours = "from transformer_lesson.model.{} import {}".format
    notebook = Notebook(ours("blocks", "residual_branch"))
    notebook.run(ours("attention", "cross_attention"))
    norms = "def encoder_block(x, attention, network, norm_1, norm_2):\n"
    norms += "    return residual_branch(residual_branch(x, attention, norm_1), network, norm_2)\n"
    notebook.keep("encoder_block", norms)
    heads = "def multi_head_attention(x, W_Q, W_K, W_V, W_O, n_heads, mask=None):\n"
    heads += "    return cross_attention(x, x, W_Q, W_K, W_V, W_O, n_heads, mask)\n"
    notebook.keep("multi_head_attention", heads)
    before = [vars(home).copy() for home in HOMES]

    assert translation(SENTENCE, residual_branch=no_residual).mine != GERMAN
    nothing = translation(SENTENCE, split_heads=lambda x, n_heads: split_heads(x, n_heads) * 0)
    assert nothing.mine != GERMAN
    assert [vars(home) for home in HOMES] == before
    assert translation(SENTENCE).mine == GERMAN
