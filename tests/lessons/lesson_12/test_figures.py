"""What the drawings of lesson 12 and of what follows it show, and what they say of it."""

import re

import pytest

from transformer_lesson.checkpoints.layer_by_layer import Comparison, Difference
from transformer_lesson.lessons.lesson_12 import asking, figures
from transformer_lesson.lessons.lesson_12.exercises import Letters
from transformer_lesson.text.pretrained import chat_prompt


def test_a_difference_is_a_share_of_a_sublayers_largest_number():
    names = ["embedding", "decoder.0.self_attention", "decoder.0.feed_forward", "decoder.0"]
    parts = [Difference(name, name, 0.2 * i, 4.0) for i, name in enumerate(names)]
    shares = figures.sublayer_differences(Comparison(parts))
    assert shares == pytest.approx([0.05, 0.1])


class Spelled(Letters):
    """Characters and two marks, as tokens that can be read."""

    def token(self, id_: int) -> str:
        marks = {number: mark for mark, number in self.vocabulary.items()}
        return marks.get(id_) or repr(chr(id_ - 100))[1:-1]


def test_each_id_stands_above_its_token():
    spelled = Spelled(1, 2)
    rows = asking.ids_and_tokens(spelled, asking.SHOWN[1]).split("\n")
    assert max(map(len, rows)) <= 100
    shown = []
    for ids, tokens in zip(rows[::2], rows[1::2], strict=True):
        for found in re.finditer(r"\d+", ids):
            shown.append(int(found[0]))
            assert tokens[found.start() :].startswith(spelled.token(shown[-1]))
    assert shown == chat_prompt(spelled, asking.SHOWN[1])
