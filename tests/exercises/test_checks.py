"""Checks pass the reference, and fail wrong versions with words that help."""

import ast
import math
import re
from itertools import product

import numpy as np
import pytest
import torch

from transformer_lesson.exercises import check, predict
from transformer_lesson.exercises.boss import Boss
from transformer_lesson.exercises.engine.attempt import outcome
from transformer_lesson.exercises.engine.catalog import EXERCISES
from transformer_lesson.exercises.engine.checks import run_checks
from transformer_lesson.exercises.engine.choosing import turns, variant
from transformer_lesson.exercises.engine.compare import same
from transformer_lesson.exercises.engine.examples import SMALL
from transformer_lesson.exercises.engine.specification import DRAWS, Draw
from transformer_lesson.lessons.lesson_07.vision import patches
from transformer_lesson.model.attention import attention_scores

UNUSABLE = {
    "an array": (lambda n: (torch.eye(6 + n).numpy(),) * 3, "`W_Q` must be a torch.Tensor."),
    "places alone": (lambda n: (torch.eye(n),) * 3, "6 facts and 9 places, 15 rows"),
    "two lengths": (
        lambda n: (torch.eye(6 + n), torch.eye(6 + n)[:, :n], torch.eye(6 + n)),
        "`W_Q` makes 15 numbers of a word, `W_K` 9.",
    ),
    "a NaN": (lambda n: (torch.full((6 + n, 1), math.nan),) * 3, "NaN or infinite"),
}


@pytest.mark.parametrize("answer, said", UNUSABLE.values(), ids=UNUSABLE)
def test_what_a_trial_cannot_use_is_told_in_its_own_words(answer, said):
    report = check("role_head", answer)
    assert report.status == "failed" and said in report.message
    assert "raised" not in report.message and "sentence ['the'" in report.message


ATTENTION = "scaled_dot_product_attention"
SAID = [
    ("sinusoidal_encoding", "sines_first", "Row 0 must be 0, 1, 0, 1"),
    (ATTENTION, "mask_ignored", "hides must get weight 0"),
    ("causal_mask", "inverted", "query 0 may attend to key 1"),
    ("multi_head_attention", "mask_ignored", "must not move earlier outputs"),
    ("layer_norm", "over_tokens", "must have mean 0"),
    ("split_heads", "no_transpose", "Smallest failing example:\nx =\n[[["),
    ("greedy_decode", "everything_again", "Call 2 of `read` hands over 3 ids"),
    ("attention_scores", "unscaled", " at query 0, key 0."),
    ("beam_search", "unnormalized", "is the plain sum of the log-probabilities"),
]


@pytest.mark.parametrize(("name", "turn", "message"), SAID)
def test_message_says_what_is_wrong(name, turn, message):
    assert message in check(name, variant(EXERCISES[name].marked, frozenset([turn]))).message


def attention_with_infinity(Q, K, V, mask=None):
    scores = Q @ K.mT / Q.size(-1) ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)
    return weights @ V, weights


def test_a_fully_masked_row_of_nan_is_wrong_and_named():
    report = check(ATTENTION, attention_with_infinity)
    assert report.status == "failed" and "are NaN" in report.message
    assert report.mistake == "a fully masked row of NaN"


def test_the_smallest_text_that_fails_has_few_words():
    """Of what fails by its values: errors and other types come before."""
    shown = {}
    marked = EXERCISES["train_byte_pairs"].marked
    for turn in turns(marked):
        report = check("train_byte_pairs", variant(marked, frozenset([turn])))
        example = re.search(r"Smallest failing example:\ncounts = (.*)", report.message)
        if example:
            shown[turn] = len(ast.literal_eval(example[1]))
    assert len(shown) >= 8 and sum(n <= 2 for n in shown.values()) > 0.6 * len(shown), shown


def test_lists_of_words_and_of_pairs_are_compared_item_by_item():
    report = check("write_translation", lambda next_word, source: "das Kind")
    assert "`words` must be a list of str. Yours is a str." in report.message
    report = check("train_byte_pairs", lambda counts, n_merges: ["th", "he"])
    assert "must hold only tuples of 2 str. Yours has a str at 0." in report.message
    ours = EXERCISES["train_byte_pairs"].load_reference()
    assert check("train_byte_pairs", lambda *inputs: [*map(list, ours(*inputs))]).status == "passed"
    changed = check("train_byte_pairs", lambda *inputs: [*ours(*inputs)[:-1], ("?", "?")])
    assert re.search(r"They differ first at merge \d\.", changed.message)


def test_a_loop_that_never_ends_is_stopped_at_once_and_named():
    def past_the_end(next_word, source):
        written = []
        while True:
            written.append(next_word(source, written))

    report = check("write_translation", past_the_end)
    assert report.status == "failed" and "goes past <eos>" in report.mistake
    assert "'…']" in report.message


@pytest.mark.slow
@pytest.mark.parametrize("name", EXERCISES)
def test_every_input_is_one_that_the_exercise_allows(name):
    """The tiny ones of the examples, too: the package's own function takes them all."""
    exercise = EXERCISES[name]
    tried = exercise.tried_reference()
    for number, small in product(range(exercise.draws), [(), *SMALL]):
        once = outcome(tried, exercise.make_inputs(Draw(number, small)))
        assert once.raised is None, (number, small)
        if not small:  # the same draw gives the same
            assert same(once, outcome(tried, exercise.make_inputs(Draw(number)))), number


@pytest.mark.parametrize("name", EXERCISES)
def test_every_axis_has_a_size_of_its_own(name):
    """Otherwise a swapped axis could pass. One draw may make two equal, on purpose."""
    distinct = 0
    for number in range(DRAWS):
        draw = Draw(number)
        EXERCISES[name].make_inputs(draw)
        distinct += len(set(draw.sizes.values())) == len(draw.sizes)
    assert distinct >= DRAWS - 1


def test_an_answer_leaves_the_random_numbers_and_threads_of_the_notebook_alone():
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    check("nearest_neighbors", lambda vectors: torch.rand(2))
    assert torch.equal(torch.rand(3), expected)
    seen = []
    torch.set_num_threads(2)
    try:
        check("nearest_neighbors", lambda vectors: seen.append(torch.get_num_threads()))
        assert set(seen) == {1} and torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)


def turned_by_a_matrix(x, positions, base=10000.0, dtype=None):
    half = x.size(-1) // 2
    R = torch.zeros(len(positions), 2 * half, 2 * half, dtype=dtype)
    for t, j in product(range(len(positions)), range(half)):
        angle = float(positions[t]) / base ** (j / half)
        R[t, j, j] = R[t, j + half, j + half] = math.cos(angle)
        R[t, j, j + half], R[t, j + half, j] = math.sin(angle), -math.sin(angle)
    return (x[..., None, :] @ R)[..., 0, :]


def written_into(x):
    merged = torch.zeros(x.size(0), x.size(2), x.size(1), x.size(3))
    merged[:] = x.transpose(1, 2)
    return merged.flatten(2)


LIMITED = [
    ("apply_rotary", turned_by_a_matrix, "in turned_by_a_matrix)"),
    ("merge_heads", written_into, "`merged` comes back in single"),
]


@pytest.mark.parametrize(("name", "answer", "limit"), LIMITED)
def test_a_formula_that_is_right_in_single_precision_passes_with_a_remark(name, answer, limit):
    report = check(name, answer)
    assert report.status == "passed" and run_checks(EXERCISES[name], answer) is None
    (remark,) = re.findall("^One thing limits.*$", report.message, re.MULTILINE)
    assert limit in remark and "`torch.zeros(..., dtype=x.dtype)`." in remark


def test_a_wrong_formula_fails_and_one_that_is_right_in_double_precision_only_is_called_so():
    report = check("apply_rotary", lambda x, positions, base: turned_by_a_matrix(x, positions + 1))
    assert report.status == "failed" and "One thing limits" not in report.message
    report = check("apply_rotary", lambda *x: turned_by_a_matrix(*x, dtype=torch.float64))
    assert report.status == "failed" and report.mistake is None
    assert report.message.startswith("Your formula is right, but only in double precision.")
    wrong = check("apply_rotary", lambda x, *y: 2 * turned_by_a_matrix(x, *y, dtype=torch.float64))
    assert "is right" not in wrong.message


def test_advice_is_given_only_where_it_helps():
    assert "torch.from_numpy" in check("patches", lambda pictures, size: pictures.numpy()).message
    assert "from_numpy" not in check("fit_power_law", lambda *inputs: np.zeros(3)).message
    one_pixel = check("patches", lambda p, size: (cut := patches(p, size)) - cut.mean(-1, True))
    assert one_pixel.status == "failed" and " times ours" not in one_pixel.message


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: check("split_head", len), "There is no exercise 'split_head'"),
        (lambda: predict("03.two_nuns"), "03.two_nouns"),
        (lambda: Boss(1).probe("initial los"), "There is no probe 'initial los'"),
        (lambda: Boss(1).accuse("_masked"), "accuse `scaled_dot_product_attention`"),
        (lambda: Boss(1, mine=True).accuse("layer_nrm"), "has no exercise 'layer_nrm'"),
    ],
)
def test_a_mistyped_call_is_a_sentence_in_a_notebook_and_no_traceback(call, says):
    with pytest.raises(ValueError, match=re.escape(says)) as caught:
        call()
    assert caught.value._render_traceback_() == [str(caught.value)]
    assert "\n" not in str(caught.value)


def test_a_small_difference_is_seen_in_the_example():
    def a_little_more(Q, K):
        return attention_scores(Q, K) * (1 + 2e-4 * torch.arange(1.0, K.size(-2) + 1))

    message = check("attention_scores", a_little_more).message
    shown = message[message.index("expected:") : message.index("Largest difference")]
    numbers = re.findall(r"-?\d+\.\d+", shown)
    assert len(set(numbers)) > 1 and any(len(one.split(".")[1]) > 3 for one in numbers), shown
