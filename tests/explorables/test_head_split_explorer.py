"""Where twelve numbers go when they are split into heads."""

import pytest

from transformer_lesson.explorables import HeadSplitExplorer
from transformer_lesson.explorables.head_split_explorer import SIZES, render_head_split


def test_view_alone_mixes_tokens():
    text = render_head_split((3, 4, 2), transposed=False).text
    assert "head 0 only tokens 0, 1; head 1 only tokens 1, 2" in text
    assert "x.view(2, 3, 2): 8 of the 12 numbers stand in the row of another token" in text
    assert "Head 0: 0, 1; 2, 3; 4, 5. Head 1: 6, 7; 8, 9; 10, 11." in text


def test_transpose_puts_each_token_into_its_row():
    text = render_head_split((3, 4, 2), transposed=True).text
    assert text.startswith("Every head gets all 3 tokens, each token in its own row.")
    assert "x.view(3, 2, 2).transpose(0, 1): 0 of the 12" in text
    assert "Head 0: 0, 1; 4, 5; 8, 9. Head 1: 2, 3; 6, 7; 10, 11." in text


@pytest.mark.parametrize("sizes", SIZES)
def test_only_the_transpose_is_right_for_every_size(sizes):
    assert ": 0 of the 12" in render_head_split(sizes, transposed=True).text
    assert "No head gets every token" in render_head_split(sizes, transposed=False).text


def test_the_switch_draws_the_other_way():
    explorable = HeadSplitExplorer(sizes=(4, 3, 3))
    explorable.controls["transposed"].value = True
    assert explorable.rendering == render_head_split((4, 3, 3), True)
