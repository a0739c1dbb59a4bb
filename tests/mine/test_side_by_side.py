"""The trained translator on the learner's functions: the same words, or where they part."""

import pytest
import torch

from tests.exercises.test_collection import SCORES, Notebook
from tests.mine.test_mine import write_all
from transformer_lesson.exercises.engine.progress import PLACE
from transformer_lesson.mine import side_by_side, translation
from transformer_lesson.mine.parts import HOMES
from transformer_lesson.mine.side_by_side import SAME
from transformer_lesson.model.attention import split_heads

SENTENCE, GERMAN = "the child opens the window .", "das Kind macht das Fenster auf ."


@pytest.fixture(autouse=True)
def nothing_written(tmp_path, monkeypatch):
    monkeypatch.setenv(PLACE, str(tmp_path / "my_progress.json"))


def test_ours_alone_are_the_same_model():
    result = translation(SENTENCE)
    assert (result.mine, result.packages, result.tried) == (GERMAN, GERMAN, ())
    assert result.largest <= SAME
    assert "all functions are ours" in repr(result)


def test_what_passed_is_named():
    Notebook().check("attention_scores", SCORES)
    result = translation(SENTENCE)
    assert result.mine == GERMAN and result.largest <= SAME
    assert "1 of 17 functions are yours: attention_scores" in repr(result)


def test_with_all_written_no_line_of_ours_is_left():
    write_all()
    result = translation(SENTENCE)
    assert (result.mine, result.packages) == (GERMAN, GERMAN) and result.largest <= SAME
    assert "17 of 17 functions are yours" in repr(result)


def test_a_mistake_shows_in_the_words():
    def no_residual(x, sublayer, norm):
        return norm(sublayer(x))

    result = translation(SENTENCE, residual_branch=no_residual)
    assert result.mine != GERMAN and result.packages == GERMAN
    assert result.largest > 1
    assert "not the same model" in repr(result) and "Tried as they are: residual_branch" in repr(
        result
    )


def test_a_mistake_that_the_words_do_not_show_is_told_by_the_logits():
    def unscaled(Q, K):
        return Q @ K.mT

    result = translation(SENTENCE, attention_scores=unscaled)
    assert result.mine == GERMAN and result.largest > 0.1


def test_what_is_handed_in_is_called_by_the_learners_own_functions_too():
    write_all()
    unscaled = translation(SENTENCE, attention_scores=lambda Q, K: Q @ K.mT)
    assert "17 of 17" in repr(unscaled) and unscaled.mine == GERMAN and unscaled.largest > 0.1
    assert translation(SENTENCE).largest <= SAME  # and only for that one run


def test_numbers_that_are_none_differ_without_end():
    result = translation(SENTENCE, layer_norm=lambda x, *weights: x * torch.nan)
    assert result.largest == float("inf")


def test_wrong_input_is_refused_in_a_sentence():
    with pytest.raises(ValueError, match="'Window' is no word of the translator"):
        translation("the child opens the Window .")
    with pytest.raises(ValueError, match="are no parts of the forward pass"):
        translation(SENTENCE, attention_score=max)


def test_a_missing_translator_is_told(monkeypatch):
    monkeypatch.setattr(side_by_side, "trained_translator", lambda: None)
    with pytest.raises(ValueError, match="The trained translator is missing"):
        translation(SENTENCE)


def test_what_is_tried_reaches_ours_that_theirs_call_and_changes_no_module():
    norms = "def encoder_block(x, attention, network, norm_1, norm_2):\n"
    norms += "    return residual_branch(residual_branch(x, attention, norm_1), network, norm_2)\n"
    notebook = Notebook()
    notebook.run("from transformer_lesson.model.blocks import residual_branch")
    assert notebook.check("encoder_block", norms).startswith("Your version is kept")
    heads = "def multi_head_attention(x, W_Q, W_K, W_V, W_O, n_heads, mask=None):\n"
    heads += "    return attention.cross_attention(x, x, W_Q, W_K, W_V, W_O, n_heads, mask)\n"
    heads = heads.replace("attention.cross", "cross")
    notebook.run("from transformer_lesson.model.attention import cross_attention")
    assert notebook.check("multi_head_attention", heads).startswith("Your version is kept")
    before = [vars(home).copy() for home in HOMES]

    def no_sum(x, sublayer, norm):
        return norm(sublayer(x))

    def first_half(x, n_heads):
        return split_heads(x, n_heads) * 0

    assert translation(SENTENCE, residual_branch=no_sum).mine != GERMAN
    assert translation(SENTENCE, split_heads=first_half).mine != GERMAN
    assert [vars(home) for home in HOMES] == before
    assert translation(SENTENCE).mine == GERMAN
