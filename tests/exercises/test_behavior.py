"""What no known mistake explains still gets a true sentence."""

import math

import pytest
import torch

from transformer_lesson.exercises import check
from transformer_lesson.exercises.catalog import EXERCISES
from transformer_lesson.exercises.engine.behavior import unlike_ours


def keys_turned(Q, K):
    return Q @ K.roll(1, -2).mT / math.sqrt(Q.size(-1))


def one_query_for_all(Q, K):
    return Q[..., :1, :].expand(Q.shape) @ K.mT / math.sqrt(Q.size(-1))


def a_tenth_more(Q, K):
    return 1.1 * (Q @ K.mT / math.sqrt(Q.size(-1)))


def a_half_more(Q, K):
    return Q @ K.mT / math.sqrt(Q.size(-1)) + 0.5


def later_keys_count_more(Q, K):
    return Q @ K.mT / math.sqrt(Q.size(-1)) + torch.arange(K.size(-2)) ** 2


def the_same_for_every_place(x, table):
    return x + table[: x.size(1)].mean(0)


def dropped(x, sublayer, dropout, norm):
    return norm(x + torch.dropout(sublayer(x), 0.5, train=True))


def sentences_meet(x, n_heads):
    heads = x.view(*x.shape[:2], n_heads, -1).transpose(1, 2)
    return heads + 0.3 * heads.roll(1, 0)


@pytest.mark.parametrize(
    ("name", "answer", "said"),
    [
        ("attention_scores", a_tenth_more, "every number of yours is 1.1 times ours."),
        ("attention_scores", a_half_more, "every number of yours is 0.5 more than ours."),
        ("attention_scores", keys_turned, "What belongs to one key reaches another"),
        ("attention_scores", one_query_for_all, "Changing query 0 of `Q` moves your result at"),
        (
            "attention_scores",
            later_keys_count_more,
            "must only change places; yours are others.",
        ),
        ("add_and_norm", dropped, "Called twice with the same inputs, yours gives different"),
        ("split_heads", sentences_meet, "What belongs to one sentence reaches another"),
    ],
)
def test_the_first_sentence_says_how_an_unknown_answer_differs(name, answer, said):
    report = check(name, answer)
    assert report.mistake is None
    assert said in report.message.splitlines()[0]
    assert "Smallest failing example:" in report.message


def test_what_is_overlooked_is_said():
    def last_key_unseen(Q, K):
        K = torch.cat([K[..., :-1, :], torch.ones_like(K[..., -1:, :])], dim=-2)
        return Q @ K.mT / math.sqrt(Q.size(-1))

    said = check("attention_scores", last_key_unseen).message.splitlines()[0]
    assert " of `K` must move the result at " in said


def test_the_line_in_which_a_nan_arises_is_shown():
    def first_row_lost(x, gamma, beta, epsilon):
        centered = x - x.mean(-1, keepdim=True)
        nothing = centered.sum() * 0
        lost = nothing / nothing
        return centered * gamma + beta + lost

    message = check("layer_norm", first_row_lost).message
    assert "The first one arose on line " in message
    assert "in first_row_lost: lost = nothing / nothing" in message


def test_an_order_that_should_matter_is_told():
    told = unlike_ours(EXERCISES["add_positions"], the_same_for_every_place)
    assert told.startswith("With the order turned round, token ")
    assert told.endswith("first, the numbers must be others; yours only change places.")
