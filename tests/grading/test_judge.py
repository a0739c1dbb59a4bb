"""The verdict is that of `check`, and a record is only as good as the answers in it."""

import inspect
import json
from itertools import product

import nbformat
import pytest
import torch

from tests.exercises.answers import answers
from tests.exercises.disguises import in_disguise, spread
from tests.grading.handed_in import CHECK, FORMULA, HEAD, NAME, RIGHT, SEED, graded_here
from tools.handout import solved_copy, student_copy
from tools.lesson_files import lesson_files
from transformer_lesson.exercises import Report
from transformer_lesson.exercises.engine import catalog, checks
from transformer_lesson.exercises.engine.catalog import EXERCISES
from transformer_lesson.exercises.engine.choosing import turns, variant
from transformer_lesson.exercises.engine.examples import SMALL
from transformer_lesson.exercises.engine.specification import Draw
from transformer_lesson.exercises.engine.wording import words
from transformer_lesson.grading import judge
from transformer_lesson.grading.imported import Watch
from transformer_lesson.grading.judge import UNSEEN, judged, verdict
from transformer_lesson.grading.record import Recorder, pack, unpack
from transformer_lesson.grading.sandbox import Stopped

pytestmark = pytest.mark.slow

LESSONS = lesson_files()
HANDED_OUT = {one: names for one, (_, *names) in (catalog.LESSONS | catalog.DEEPER).items()}
"""The exercises of each notebook, by the lesson's number or the name of what follows it."""

INNER = f"def inner(n):\n    raise NotImplementedError\n\n\n{HEAD}return inner(n_tokens)"
DEEP = f"{HEAD}deep = []\n    deep.append(deep)\n    return deep"
NUMPY = f"import math, numpy\n{HEAD}{FORMULA.replace('return ', 'return numpy.float64(')})"

# What stands in a cell, and the status and the beginning of the mistake or message.
CELLS = {
    "right": (RIGHT, "passed", "Equal to"),
    "nats": (RIGHT.replace(" / math.log(2)", ""), "failed", "nats instead of bits"),
    "half": (f"{HEAD}n_tokens + 1\n    raise NotImplementedError", "not attempted", ""),
    "inner": (INNER, "failed", "Your function raised NotImplementedError"),
    "syntax": (f"def {NAME}(loss, n_tokens:\n    return 1", "failed", "The cells that it needs"),
    "null": (f"{RIGHT}\0", "failed", "The cells that it needs"),
    "name": (f"{HEAD}return loss / n_tokens", "failed", "a name that does not exist yet"),
    "odd": (f"{HEAD}return type('Strange', (), {{}})()", "failed", "a Strange instead of a number"),
    "huge": (f"{HEAD}return 'x' * 10**8", "failed", "a str instead of a number"),
    "deep": (DEEP, "failed", "a list instead of a number"),
    "numpy": (NUMPY, "passed", "Equal to"),
    "mine": (f"{RIGHT}\n{NAME} = mine.function('{NAME}')", "passed", "Equal to"),
}


ANOTHER_WAY = {one.exercise: one.function for one in answers() if one.kind == "right"}


@pytest.mark.parametrize("kind", CELLS)
def test_each_cell_gets_its_verdict(kind):
    source, status, said = CELLS[kind]
    report = graded_here(NAME, ["1", source, CHECK])
    assert report.status == status, report
    assert (report.mistake or report.message).startswith(said), report


def recorded(name: str, function) -> list[dict]:
    recorder = Recorder(function)
    judged(name, SEED, recorder.take)
    return recorder.calls


def verdict_on(name: str, calls: list):
    line = json.dumps({"name": name, "state": "called", "calls": calls})
    try:
        return verdict(name, SEED, line.encode())
    except Stopped as stopped:
        return Report(name, *stopped.args)


@pytest.mark.parametrize("name", EXERCISES)
def test_the_verdict_is_that_of_check(name, unchecked):
    """The right function passes; a wrong turn is called by its name."""
    right = verdict_on(name, recorded(name, EXERCISES[name].load_reference()))
    assert right.status == "passed", right
    *_, turn = turns(EXERCISES[name].marked)
    answer = variant(EXERCISES[name].marked, frozenset([turn]))
    report = verdict_on(name, recorded(name, answer))
    assert (report.status, report.mistake) == ("failed", words(name)[turn].name), report


@pytest.mark.release
@pytest.mark.parametrize("name", ANOTHER_WAY)
def test_another_right_way_passes(name, unchecked):
    """Though its results are of other types that `check` takes; it is not taken for ours."""
    watch = Watch(EXERCISES[name])
    calls = recorded(name, watch.watched(in_disguise(ANOTHER_WAY[name], spread)))
    report = verdict_on(name, calls)
    assert report.status == "passed" and not watch.saw_ours, report


@pytest.mark.everything
@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_every_lesson_is_graded_as_it_was_handed_out(path, unchecked):
    """Each function finds what it needs of its own lesson, and no more."""
    lesson = nbformat.read(path, as_version=4)
    expected = {"not attempted": student_copy(lesson), "passed": solved_copy(lesson)}
    for status, copy in expected.items():
        cells = [cell.source for cell in copy.cells if cell.cell_type == "code"]
        for name in HANDED_OUT[path.stem if path.parent.name == "deeper" else path.stem[:2]]:
            report = graded_here(name, cells)
            assert report.status == status, report


# A record that was not made by the function


def contents(value) -> str:
    """What a table can know an input by, those of functions and objects included."""
    if isinstance(value, torch.Tensor):
        return f"{value.dtype} {value.tolist()}"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {contents(one)}' for key, one in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(contents, value))}]"
    if inspect.isfunction(value):
        held = [cell.cell_contents for cell in value.__closure__ or ()]
        return f"{value.__qualname__} {contents([held, value.__defaults__])}"
    if hasattr(value, "state_dict"):
        return contents(value.state_dict())
    if not hasattr(value, "__dict__"):
        return repr(value)
    return contents({key: one for key, one in vars(value).items() if key != "given"})  # to a Layer


@pytest.mark.release
@pytest.mark.parametrize("name", EXERCISES)
def test_a_table_of_all_that_check_shows_does_not_pass(name, unchecked):
    """Right on every draw, on what the rules make of it, and on every tiny one."""
    exercise, table = EXERCISES[name], set()
    right = exercise.load_reference()

    def shown(*inputs):
        table.add(contents(inputs))
        return right(*inputs)

    def looked_up(*inputs):
        if contents(inputs) not in table:
            raise KeyError("not in the table")
        return right(*inputs)

    assert checks.check_and_diagnose(exercise, shown).status == "passed"
    unseen = {
        contents(exercise.make_inputs(Draw(number, (), SEED + number)))
        for number in range(exercise.draws)
    }
    if unseen <= table:  # it is asked one question, or a few, and the answers are all there is
        return
    for number, small in product(range(exercise.draws), SMALL):
        exercise.tried(shown)(*exercise.make_inputs(Draw(number, small)))
    assert checks.check_and_diagnose(exercise, looked_up).status == "passed"
    for seed in range(SEED, SEED + 3):
        report = judged(name, seed, Recorder(looked_up).take)
        assert (report.status, report.message) == ("failed", UNSEEN)


@pytest.mark.parametrize("name", [NAME, "write_translation"])
def test_a_record_with_one_wrong_call_does_not_pass(name, unchecked):
    """In `check` or in the last further draw; nor does one that ends early."""
    calls = recorded(name, EXERCISES[name].load_reference())
    wrong = {"result": pack(object())}
    for i in (0, len(calls) - 1):
        assert verdict_on(name, [*calls[:i], wrong, *calls[i + 1 :]]).status != "passed"
    assert verdict_on(name, calls[:-1]).status != "passed"
    assert verdict_on(name, calls).status == "passed"


def test_a_record_that_takes_long_to_judge_is_given_up(monkeypatch):
    """A rule of this exercise reads all of the first n ids, for each n."""
    monkeypatch.setattr(judge, "SECONDS", 1.0)
    report = verdict_on("beam_search", [{"result": json.dumps([[1, *10**6 * [4]], -1.0])}])
    assert report.status == "timed out"


def test_a_finite_gradient_that_is_not_the_right_one_does_not_pass():
    def forge(call: dict) -> dict:
        value = unpack(call["result"])
        return {"result": pack([0 * part for part in value])} if type(value) is list else call

    calls = recorded("residual_branch", EXERCISES["residual_branch"].load_reference())
    assert "gradient" in verdict_on("residual_branch", list(map(forge, calls))).message


def test_a_gradient_that_one_of_two_results_cuts_does_not_pass():
    def cut(*inputs):
        weights, balance = EXERCISES["route"].load_reference()(*inputs)
        return weights, balance.detach()

    assert "gradient" in verdict_on("route", recorded("route", cut)).message


def test_a_line_that_is_no_answer_is_refused():
    lines = [
        *(b"", b"\xff\n", b"[]", b"[" * 200_000, b"9" * 5001, b"{}"),
        b'{"name": "causal_mask", "state": "called", "calls": []}',
        b'{"name": "bits_per_character", "state": "passed"}',
        b'{"name": "bits_per_character", "state": "called", "calls": 3}',
    ]
    for line in lines:
        with pytest.raises(Stopped, match="could not be read"):
            verdict(NAME, SEED, line)


RESULTS = [3, "{", '{"__tensor__": "AAAA"}', '{"__tensor__": 3}', '{"__array__": {}}', "[" * 10_000]
RESULTS += ['{"__other__": 3}', '{"code": "print(1)"}']
CALLS = [{}, [], {"state": "passed"}, *({"result": result} for result in RESULTS)]
CALLS += [{"result": "1.5", "after": after} for after in ("3", "[[], {}, null]")]
CALLS += [{"raised": error, "text": "0"} for error in ("SystemExit", "UnicodeDecodeError", 3)]


def test_calls_that_hold_anything_else_do_not_pass():
    for call in CALLS:
        assert verdict_on(NAME, [call] * 40).status != "passed", call
