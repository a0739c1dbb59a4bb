"""Masks of a typed batch."""

import pytest

from transformer_lesson.explorables import MaskExplorer
from transformer_lesson.explorables.mask_explorer import render_masks

BATCH = "one two three\none"


@pytest.mark.parametrize(
    "sentence, padding, causal, side, allowed",
    [
        (0, False, False, "right", 9),
        (0, True, True, "right", 6),
        (1, True, False, "right", 3),
        (1, True, True, "right", 3),
        (1, False, True, "left", 6),
        (1, True, True, "left", 1),
    ],
)
def test_allowed_pairs_by_hand(sentence, padding, causal, side, allowed):
    text = render_masks(BATCH, sentence, padding, causal, side).text
    assert text.startswith(f"Sentence {sentence} may use {allowed} of its 9 query-key pairs.")
    assert ("padding (2, 1, 1, 3)" in text) == padding
    assert ("causal (1, 1, 3, 3)" in text) == causal
    assert ("broadcast to (2, 1, 3, 3)" in text) == (padding and causal)
    filled = ["one two three", "one <pad> <pad>" if side == "right" else "<pad> <pad> one"]
    assert f"Its 3 tokens, {2 * sentence} of them padding: {filled[sentence]}." in text


def test_queries_without_any_key_are_told():
    text = render_masks(BATCH, 1, True, True, "left").text
    assert "Queries without any key: 2; attention gives zeros for them." in text
    assert "without any key" not in render_masks(BATCH, 1, True, True, "right").text


def test_every_switch_changes_the_picture():
    explorable = MaskExplorer()
    pictures = {explorable.rendering.png}
    for name, value in [("padding", False), ("side", "left"), ("causal", False), ("sentence", 2)]:
        explorable.controls[name].value = value
        pictures.add(explorable.rendering.png)
    assert len(pictures) == 5


def test_sentence_stays_inside_a_shorter_batch():
    explorable = MaskExplorer(sentence=2)
    explorable.controls["batch"].value = "only one"
    assert explorable.values["sentence"] == 0
    assert explorable.rendering.text.startswith("Sentence 0 may use 3 of its 4")


@pytest.mark.slow
@pytest.mark.parametrize("padding, causal", [(False, False), (True, True)])
def test_typed_batch_is_drawn_or_answered(hostile, padding, causal):
    explorable = MaskExplorer(padding=padding, causal=causal, side="left")
    explorable.controls["batch"].value = hostile
    text = explorable.rendering.text
    if not hostile.strip():
        assert text == "The batch is empty: type one sentence per line and leave the field."
    else:
        assert "may use" in text or "shorten it and leave the field" in text


def test_longest_batch_is_drawn_and_a_longer_one_answered():
    full = "\n".join(["a b c d e f g h i j"] * 5)
    assert "may use 55 of its 100" in render_masks(full, 4, True, True, "right").text
    assert "6 of up to 10" in render_masks(full + "\na", 0, True, True, "right").text
    assert "5 of up to 11" in render_masks(full + " k", 0, True, True, "right").text
