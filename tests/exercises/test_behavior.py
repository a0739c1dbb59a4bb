"""What no known mistake explains gets a true sentence, and PyTorch's words what lies behind."""

import math
import random

import pytest
import torch

from transformer_lesson.exercises import check
from transformer_lesson.exercises.engine.behavior import explain_by_behavior
from transformer_lesson.exercises.engine.catalog import EXERCISES
from transformer_lesson.exercises.engine.choosing import variant
from transformer_lesson.exercises.engine.explanation import explain_error
from transformer_lesson.interpretability.head_scores import cut_off
from transformer_lesson.model.attention import split_heads
from transformer_lesson.text.pretrained import chat_prompt


def scores(Q, K):
    return Q @ K.mT / math.sqrt(Q.size(-1))


def last_key_unseen(Q, K):
    return scores(Q, torch.cat([K[..., :-1, :], torch.ones_like(K[..., -1:, :])], dim=-2))


SCORES = {  # answers, and what the first sentence says
    "What belongs to one key reaches another": (
        lambda Q, K: scores(Q, K) + 0.3 * scores(Q, K.roll(1, -2))
    ),
    "Changing `Q` at query 0 moves your result at": (
        lambda Q, K: scores(Q, K) + scores(Q[..., :1, :].expand(Q.shape), K)
    ),
    "must only trade places; yours change.": (
        lambda Q, K: scores(Q, K) + torch.arange(K.size(-2)) ** 2
    ),
    " must move the result at ": last_key_unseen,
}
OTHERS = {
    "Changing `gamma` changes nothing in what you return.": (
        "layer_norm",
        lambda x, gamma, beta, epsilon: x / (x.var(-1, keepdim=True) + epsilon).sqrt() + beta,
    ),
    "Called twice with the same inputs, yours gives different": (
        "split_heads",
        lambda *inputs: torch.dropout(split_heads(*inputs), 0.5, train=True),
    ),
    "What belongs to one sentence reaches another": (
        "split_heads",
        lambda *inputs: split_heads(*inputs) + 0.3 * split_heads(*inputs).roll(1, 0),
    ),
}


@pytest.mark.parametrize("said", SCORES | OTHERS)
def test_the_first_sentence_says_how_an_unknown_answer_differs(said):
    name, answer = OTHERS.get(said) or ("attention_scores", SCORES[said])
    report = check(name, answer)
    assert report.mistake and said in report.message.splitlines()[0]
    assert "Smallest failing example:" in report.message


def at_random(differences, rule):
    signs = [[random.choice((1, -1)) for _ in differences] for _ in range(50)]
    seen = [rule([a * b for a, b in zip(row, differences, strict=True)]) for row in signs]
    return sum(seen) / len(seen)


def kept(tokenizer, messages, ids=[]):  # noqa: B006
    ids += chat_prompt(tokenizer, messages)
    return ids


@pytest.mark.parametrize(
    "name, answer, mistake",
    [
        ("false_alarms", at_random, "a result that is drawn at random"),
        ("chat_prompt", kept, "something kept from one call to the next"),
    ],
)
def test_what_gives_another_result_at_each_call_is_told_whatever_it_returns(name, answer, mistake):
    report = check(name, answer)
    assert report.mistake == mistake and report.message.startswith("Called twice with the same")


def test_a_rule_that_tells_what_is_random_says_it_alone():
    def dropped(weights, window):
        return torch.dropout(cut_off(weights, window), 0.5, train=True)

    report = check("cut_off", dropped)
    assert report.mistake == "another result at each call"
    assert report.message.count("Called twice") == 1


def kept_and_its_own_share(weights, window):
    n = weights.size(-1)
    far = torch.ones(n, n).tril().triu(1 - window)
    return (weights * far).sum((0, 1)) / weights.sum((0, 1)).square()


def test_a_number_that_never_moves_in_ours_is_no_leak_along_an_axis():
    """What the window takes from the last token is 0, whatever a head looks at."""
    assert explain_by_behavior(EXERCISES["cut_off"], kept_and_its_own_share) is None


def test_the_line_in_which_a_nan_arises_is_shown():
    def first_row_lost(x, gamma, beta, epsilon):
        centered = x - x.mean(-1, keepdim=True)
        nothing = centered.sum() * 0
        lost = nothing / nothing
        return centered * gamma + beta + lost

    message = check("layer_norm", first_row_lost).message
    assert "The first one arose on line " in message
    assert "in first_row_lost: lost = nothing / nothing" in message


def test_an_order_that_should_matter_is_told_and_an_error_that_nobody_knows_quoted_alone():
    assert explain_error("Your function raised ZeroDivisionError: division by zero") is None
    assert check("attention_scores", lambda Q, K: math.sqrt(Q, K, 1)).mistake is None

    forward = EXERCISES["encoder_forward"]
    no_places = variant(forward.marked, frozenset(["no_positions"]))
    told = explain_by_behavior(forward, no_places).text
    assert told.startswith("With the order reversed, source ")


ONE = torch.ones(1).long()
RAISING = {
    "a view after a transpose": lambda Q, K: Q.mT.contiguous().mT.view(-1).view(Q.shape),
    "a shape that does not hold all the numbers": lambda Q, K: Q.reshape(*Q.shape[:-1], 512),
    "a product of matrices that do not fit": lambda Q, K: Q @ K,
    "two shapes that do not broadcast": lambda Q, K: Q.sum(-1) + torch.zeros(997),
    "tensors that do not fit side by side": lambda Q, K: torch.cat([Q, K[..., 1:]], dim=-2),
    "two dtypes in one operation": lambda Q, K: Q.double() @ torch.zeros(Q.size(-1), 3),
    "an index past the end": lambda Q, K: Q[..., Q.size(-1)],
    "a whole tensor where one number is meant": lambda Q, K: Q if Q > 0 else K,
    "an operation that this dtype does not have": lambda Q, K: Q.long().softmax(-1),
    "a None where a value is meant": lambda Q, K: None + Q,
    "a key that the dictionary does not have": lambda Q, K: {}["scale"],
    "arguments that don't match the call": lambda Q: Q,
    "code for exactly 2 axes of `Q`": (
        lambda Q, K: torch.einsum("qd,kd->qk", Q, K) / math.sqrt(Q.size(-1))
    ),
    "a name that this object does not have": lambda Q, K: Q.product(K),
    "labels whose shape does not fit the logits": (
        lambda Q, K: torch.nn.functional.cross_entropy(Q[..., :2, :], ONE)
    ),
    "a call of something that isn't a function": lambda Q, K: list((Q,))(0),
    "a name that does not exist yet": lambda Q, K: q @ K.mT,  # noqa: F821
}


@pytest.mark.parametrize("name", RAISING)
def test_an_error_is_named(name):
    report = check("attention_scores", RAISING[name])
    assert report.status == "failed" and report.mistake == name
    assert "Your function raised" in report.message
