"""What lesson 11 says of unknown model 1: what carries the token, and what breaks its rule."""

import pytest
import torch

from transformer_lesson.lessons.lesson_11 import cracked
from transformer_lesson.lessons.lesson_11.hidden_rules import TRAINED_LENGTH, hidden_rule
from transformer_lesson.lessons.lesson_11.unknown import HEADS, unknown

IDS = [5, 0, 9, 11, 3, 7, 1, 8, 2]


def test_the_separator_is_the_token_that_model_1_depends_on():
    assert hidden_rule(1, torch.tensor([IDS]))[0].tolist() == [5, 0, 9, 11, 3, 7, 7, 7, 7]
    assert cracked.SEPARATOR == IDS[4] and cracked.SEPARATOR not in cracked.OTHERS


def test_one_head_carries_the_token_and_no_other_does():
    assert cracked.carried() == {"0.0": 0, "0.1": 0, "1.0": cracked.SEQUENCES, "1.1": 0}
    stranger, other = type(unknown(1))(1), [*IDS[:5], 4, *IDS[6:]]  # not the learner's own
    for head in HEADS:
        guesses = stranger.put_back(IDS, other, head).guesses
        assert guesses[5:] == ([4] * 4 if head == "1.0" else [7] * 4)


def test_a_late_place_or_equal_tokens_alone_do_not_break_the_rule_at_a_3():
    assert cracked.after_equal_tokens(TRAINED_LENGTH - 4) == (11, 11)
    assert cracked.after_equal_tokens(30) == (0, 11)
    held, asked = cracked.after_mixed_tokens(30)
    assert held > 0.97 * asked
    with pytest.raises(ValueError, match="from 0 to 31"):
        cracked.after_mixed_tokens(32)
