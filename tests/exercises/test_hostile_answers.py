"""Whatever a learner hands in, `check` answers with a report and the notebook goes on."""

import sys
import warnings
from itertools import cycle

import numpy as np
import pytest
import torch

from tests.exercises.disguises import in_disguise, spread
from transformer_lesson.exercises import Report, check
from transformer_lesson.exercises.engine.catalog import EXERCISES
from transformer_lesson.exercises.engine.checks import run_checks


def right(x, n_heads):
    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)


def then(change):
    """An answer that does something more to the right result."""
    return lambda x, n_heads: change(right(x, n_heads))


def raises(x, n_heads):
    return x.view(7, 7)


def raises_in_a_helper(x, n_heads):
    return raises(x, n_heads)


def raising(error):
    def raises(x, n_heads):
        raise error

    return raises


def recurses(x, n_heads):
    return recurses(x, n_heads)


def unfinished(x, n_heads):
    if x.size(0):
        raise NotImplementedError("for Half")
    return x


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError


def changes_input(x, n_heads):
    x += 1
    return right(x - 1, n_heads)


def closes_stdout(x, n_heads):
    sys.stdout.close()
    return x


def test_untouched_stub_is_not_attempted():
    for body in ("raise NotImplementedError", "...", '"""Split the heads."""', "pass"):
        exec(f"def stub(x, n_heads):\n    {body}", names := {})
        assert repr(check("split_heads", names["stub"])) == "split_heads: not attempted yet", body


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda x, n_heads: sys.exit("bye"), "SystemExit"),
        (raising(ValueError("<script>alert(1)</script>" * 1000)), "ValueError"),
        (raising(Unprintable()), "Unprintable"),
        (recurses, "RecursionError"),
        (closes_stdout, "must have shape"),
        (changes_input, "changes its argument `x`"),
        (then(torch.Tensor.numpy), "numpy array"),
        (then(lambda y: y * torch.nan), "are NaN"),
        (then(torch.Tensor.half), "dtype"),
        (then(lambda y: y.to("meta")), "device"),
        (then(torch.Tensor.to_sparse), "sparse"),
        (then(lambda y: torch.nested.nested_tensor([y])), "nested"),
        (then(lambda y: object()), "an object"),
        (None, "function itself"),
    ],
)
def test_broken_answer_fails_with_a_reason(answer, message):
    report = check("split_heads", answer)
    assert report.status == "failed"
    assert message in report.message
    assert "<script>" not in report._repr_html_()
    assert len(report.message) < 3000


def test_what_an_answer_is_warned_of_stays_out_of_sight_and_its_mistake_is_named(recwarn):
    def turned_around(Q, K):
        warnings.warn("deprecated", stacklevel=1)  # as PyTorch of `.T`, but every time
        return Q @ K.T / Q.size(-1) ** 0.5

    report = check("attention_scores", turned_around)
    assert report.mistake == "all axes turned around" and "`K.mT`" in report.message
    assert not recwarn and "deprecated" not in report.message
    warnings.warn("the notebook's own", stacklevel=1)
    assert len(recwarn) == 1


class Subclass(torch.Tensor):
    pass


def expanded(numbers):
    """With stride 0 along each axis whose places are all alike."""
    for axis in range(numbers.ndim):
        first = numbers.narrow(axis, 0, min(1, numbers.size(axis)))
        if numbers.size(axis) and torch.equal(first.expand_as(numbers), numbers):
            numbers = first.expand_as(numbers)
    return numbers


def turned(numbers):
    turned = numbers.mT.contiguous().mT if numbers.ndim > 1 else numbers
    return turned.as_subclass(Subclass)


def parameter(numbers):
    """A leaf: cut off from its graph."""
    return torch.nn.Parameter(numbers, requires_grad=numbers.is_floating_point())


OF_GRADIENTS = ("residual_branch", "encoder_block", "dpo_loss", "grpo_loss")


@pytest.mark.slow
@pytest.mark.parametrize("name", EXERCISES)
def test_a_right_result_passes_however_it_lies_in_memory(name):
    """And none makes `check` raise. Each call's result lies there in another way."""
    ours, disguises = EXERCISES[name].load_reference(), [expanded, turned, spread, parameter]
    if name in OF_GRADIENTS:
        failure = run_checks(EXERCISES[name], in_disguise(ours, disguises.pop()))
        assert "gradient" in failure.lower()
    turns, used = cycle(disguises), set()

    def disguise(numbers):
        used.add(now := next(turns))
        return now(numbers)

    report = check(name, in_disguise(ours, disguise))
    assert report.status == "passed", report
    assert not used or used == {*disguises}


def added_in_place(x, sublayer, norm):
    total = x.clone()
    total += sublayer(total)
    return norm(total)


@pytest.mark.slow
def test_what_no_number_can_be_compared_with_is_told():
    for name, answer, message in (
        ("residual_branch", added_in_place, "an in-place step that breaks the gradient"),
        ("greedy_decode", lambda *inputs: [10**30], "must fit in 63 bits"),
        ("false_alarms", lambda *inputs: torch.ones((), device="meta"), "must be a float"),
    ):
        assert message in check(name, answer).message


def switches_gradients_off(x, n_heads):
    torch.set_grad_enabled(False)
    return right(x, n_heads)


def test_gradients_that_stay_off_are_a_mistake_and_come_on_again():
    report = check("split_heads", switches_gradients_off)
    assert report.mistake == "gradients switched off for all that follows"
    assert "Your function leaves gradients switched off" in report.message
    assert torch.is_grad_enabled()
    assert check("split_heads", torch.no_grad()(right)).status == "passed"


def test_only_the_learners_own_lines_are_shown():
    message = check("split_heads", raises_in_a_helper).message
    assert "in raises_in_a_helper: return raises(x, n_heads)" in message
    assert "in raises: return x.view(7, 7)" in message
    assert "attempt.py" not in message and "in call" not in message
    assert "n_heads" in message.splitlines()[-1]


def test_an_unfinished_answer_is_not_attempted_and_a_library_gap_is_no_stub():
    def library_gap(x, n_heads):
        return torch.ones(2, dtype=torch.complex64).clamp(0)

    assert check("split_heads", unfinished).status == "not attempted"
    assert check("split_heads", library_gap).status == "failed"
    with pytest.raises(KeyboardInterrupt):
        check("split_heads", raising(KeyboardInterrupt))


def test_prints_are_quoted_not_shown(capsys):
    def chatty(x, n_heads):
        print("<b>shape</b>", tuple(x.shape), "*" * 10**6)
        return right(x, n_heads)

    report = check("split_heads", chatty)
    assert report.status == "passed" and capsys.readouterr().out == ""
    assert "Your function printed:\n<b>shape</b>" in report.message
    assert len(report.message) < 2000 and "<b>" not in report._repr_html_()


def test_a_truth_of_every_kind_counts_as_bool_and_a_number_does_not():
    leaks = EXERCISES["leaks_future"].load_reference()
    for kind, status in ((np.bool_, "passed"), (torch.tensor, "passed"), (int, "failed")):
        report = check("leaks_future", lambda model, ids, kind=kind: kind(leaks(model, ids)))
        assert report.status == status, report


def test_status_stands_in_words_and_signs_not_only_in_color():
    for status, sign in {"passed": "✓", "failed": "✗", "not attempted": "○"}.items():
        page = Report("layer_norm", status, "first\nsecond <b>")._repr_html_()
        assert status in page and sign in page and 'role="status"' in page
        assert "background" not in page and "second &lt;b&gt;" in page
