"""Help says what `check` says, and never a line of the solution."""

import ast
import contextlib
import io
import re

import jaxtyping
import pytest

from tests.exercises.answers import PASSES, answers
from tests.stored_lessons import ROOT
from transformer_lesson.exercises import Report
from transformer_lesson.exercises.engine import help
from transformer_lesson.exercises.engine.catalog import EXERCISES
from transformer_lesson.exercises.engine.checks import check_and_diagnose, one_thread
from transformer_lesson.exercises.engine.help import heading_of, help_with, hint_of
from transformer_lesson.exercises.engine.hints import solution, solution_code
from transformer_lesson.exercises.engine.specification import Draw
from transformer_lesson.exercises.engine.wording import words
from transformer_lesson.grading.feedback import said

GIVEN = ("def ", "import ", "from ", "return weights", "else:", "try:")
"""Lines that the stub or any program has."""


def pieces(text: str) -> list[str]:
    return re.findall(r"\w+|[^\w\s]", text)


def solution_lines(name: str) -> set[str]:
    """The lines of both solutions as they are written, without spaces; short ones tell nothing."""
    exercise = EXERCISES[name]
    own = solution_code([*exercise.load_helpers(), exercise.load_reference()])
    shown = solution(name).body.split("```python\n")[1].split("\n```")[0]
    lines = (line.split("  #")[0].strip() for line in f"{own}\n{shown}".splitlines())
    return {"".join(pieces(one)) for one in lines if len(pieces(one)) > 4 and not _given(one)}


def _given(line: str) -> bool:
    return line.startswith(GIVEN) or re.fullmatch(r"return [\w, ]+", line) is not None


def trees(code: str) -> set[str]:
    """The statements of code, as trees."""
    try:
        nodes = ast.walk(ast.parse(code))
    except SyntaxError:
        return set()
    simple = (node for node in nodes if isinstance(node, ast.stmt) and not hasattr(node, "body"))
    shown = (node for node in simple if not _given(ast.unparse(node)))
    return {ast.dump(node) for node in shown if len(pieces(ast.unparse(node))) > 4}


def spoils(name: str, text: str) -> list[str]:
    """What of a solution a text contains."""
    close = "".join(pieces(text))
    lines = [line for line in solution_lines(name) if line in close]
    spans = set().union(*map(trees, [*re.findall(r"`([^`]+)`", text), *text.splitlines()]))
    code = solution(name).body.split("```python\n")[1].split("\n```")[0]
    return [*lines, *(spans & trees(code))]


@pytest.fixture(scope="module")
def checked():
    """Each stored wrong answer, and its report as a learner gets it."""
    wrong = [one for one in answers() if one.kind != "right"]
    with (
        one_thread(),
        contextlib.redirect_stdout(io.StringIO()),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(jaxtyping.config, "jaxtyping_disable", True)
        given = [(EXERCISES[one.exercise], lambda *x, f=one.function: f(*x)) for one in wrong]
        return [(one, check_and_diagnose(*each)) for one, each in zip(wrong, given, strict=True)]


@pytest.fixture
def reports(checked):
    return [report for _, report in checked if report.status == "failed"]


@pytest.mark.slow
def test_wrong_answers_fail_but_those_that_no_draw_reaches_yet_and_say_so(checked):
    for one, report in checked:
        passes = any(clause.startswith(PASSES) for clause in one.what)
        assert report.status == ("passed" if passes else "failed"), one.what


@pytest.mark.slow
def test_the_cause_is_that_of_check_for_every_stored_answer_and_no_line_is_told(reports):
    assert len(reports) > 50 and sum(report.mistake is not None for report in reports) > 20
    for report in reports:
        for number in (1, 3):
            given = help_with(report, number)
            assert given.cause == report.mistake and given.status == report.status
            assert given.why or given.example
            assert spoils(report.name, "\n".join(map(str, given))) == [], report.name
        own = report.message.removeprefix(report.nudge).strip()
        kept = map(re.escape, given.example.split(help.LEFT_OUT))  # a learner's line may be ours
        assert re.fullmatch(".*".join(kept), own, re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXERCISES)
def test_no_hint_and_no_word_for_a_mistake_tells_a_line(name):
    told = [hint_of(name, number) for number in range(1, 1 + len(EXERCISES[name].hints))]
    assert len({*told}) == len(told)
    for turn in words(name).values():
        told += help_with(Report(name, "failed", turn.why, turn.name, nudge=turn.why))
    assert spoils(name, "\n".join(map(str, told))) == []
    code = solution(name).body.split("```python\n")[1].split("\n```")[0]
    assert spoils(name, help.without_solution(name, code)) == []


def test_a_line_is_found_however_it_is_spaced_and_quoted():
    without = help.without_solution
    assert without(
        "causal_mask", "try `torch.ones(n,n, dtype = torch.bool).tril()[None,None]`!"
    ) == ("try `…`!")
    assert without("write_on", "First `ids=list( ids )`.") == "First `…`."
    assert without("write_translation", 'if it is `"<eos>"`, stop') == 'if it is `"<eos>"`, stop'
    assert hint_of("causal_mask", 9).endswith(help.ALL_LEFT_OUT)


def test_what_passed_or_was_imported_needs_no_help():
    for status in ("passed", "imported"):
        assert help_with(Report("causal_mask", status, "Equal to ours"))[2:6] == (None, "", "", "")
    with pytest.raises(ValueError, match="the first is 1"):
        hint_of("causal_mask", 0)


@pytest.mark.parametrize("name", EXERCISES)
def test_the_heading_is_in_the_lesson_before_the_exercise(name):
    heading, file = heading_of(name)
    text = (ROOT / "notebooks" / file).read_text("utf-8")
    before, stub, _ = text.partition(f'"def {name}(')
    assert stub and re.search(rf'"##+ {re.escape(heading)}(\\n)?"', before)
    assert not heading.startswith("Exercise")


def numbers(text: str) -> set[str]:
    """Numbers with a point in them, and those of three digits and more."""
    return {*re.findall(r"\d*\.\d+|\d{3,}", text)}


@pytest.mark.slow
def test_feedback_has_no_number_of_any_draw(reports):
    """Numbers that stand in the words themselves are no draw's."""
    for report in reports:
        told = "\n".join(said(report))
        assert spoils(report.name, told) == [], report.name
        own = " ".join([*EXERCISES[report.name].hints, report.mistake or ""])
        own += " ".join(turn.why for turn in words(report.name).values())
        drawn = set()
        for draw in [*map(Draw, range(5)), *(Draw(n, seed=2017 + n) for n in range(5))]:
            with contextlib.suppress(Exception):
                drawn |= numbers(repr(EXERCISES[report.name].make_inputs(draw)))
        assert numbers(told) & drawn <= numbers(own), (report.name, told)
