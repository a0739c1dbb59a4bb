"""Hints come one by one; solutions pass their checks; ways to fail open below a verdict."""

import re

import pytest
import torch

from transformer_lesson.course import files_of_lessons
from transformer_lesson.exercises import check, hint, solution, ways_to_fail
from transformer_lesson.exercises.engine import hints
from transformer_lesson.exercises.engine.catalog import EXERCISES
from transformer_lesson.exercises.engine.checks import VALUES
from transformer_lesson.exercises.engine.choosing import turns
from transformer_lesson.exercises.engine.explanation import changed_lines, words


@pytest.fixture(autouse=True)
def no_hints_given():
    hints._hints_given.clear()


@pytest.mark.parametrize("name", EXERCISES)
def test_hints_come_in_order_and_the_last_one_stays(name):
    hints = EXERCISES[name].hints
    assert len(hints) >= 3
    for number, text in enumerate(hints, start=1):
        fold = hint(name)
        assert repr(fold) == f"{name}: hint {number} of {len(hints)}"
        assert text in fold._repr_markdown_()
    assert repr(hint(name)) == repr(fold) and f'solution("{name}")' in fold._repr_markdown_()
    other = next(other for other in EXERCISES if other != name)
    assert "hint 1" in repr(hint(other)), "hints of two exercises do not mix"


@pytest.mark.slow
@pytest.mark.parametrize("name", EXERCISES)
def test_solution_runs_and_passes_its_check(name):
    page = solution(name)._repr_markdown_()
    code = page.split("```python\n")[1].split("\n```")[0]
    assert '"""' not in code and "@torch" not in code and "Float[" not in code
    assert max(map(len, code.splitlines())) <= 100
    namespace = {}
    exec(code, namespace)
    report = check(name, namespace[name])
    assert report.status == "passed"
    assert f"{len(turns(EXERCISES[name].marked))} ways to fail" in report.message
    assert f'ways_to_fail("{name}")' in report.message


def test_solution_is_folded_and_brings_the_functions_that_it_leans_on_but_no_argument():
    page = solution("split_heads")._repr_markdown_()
    assert page.startswith("<details><summary>split_heads: solution</summary>\n\n")
    assert "def split_heads(x, n_heads):" in page and "# (batch, head, n, d_head)" in page
    page = solution("apply_rotary")._repr_markdown_()
    assert "def rotary_angles(" in page and "import rotary_angles" not in page
    assert re.search(r"^(import|from) ", page, re.MULTILINE)
    # `blocks` has a function of the same name as encoder_block's argument
    assert "import feed_forward" not in solution("encoder_block")._repr_markdown_()


def test_a_plain_solution_is_the_formula_alone_and_says_where_the_packages_own_is():
    files = {one.parent.name for one in files_of_lessons("solutions.py").values() if one.exists()}
    plain = [one for one in EXERCISES.values() if hints.plain_solution(one)]
    assert {one.marked.__module__.split(".")[-2] for one in plain} == files
    for exercise in plain:
        page, module = solution(exercise.name).body, exercise.reference.split(":")[0]
        assert "raise " not in page and page.count("def ") == 1, exercise.name
        assert f"The package's own, in `{module}`, " in page


def test_unknown_exercise_is_an_error_that_suggests_names():
    for function in (hint, solution, lambda name: check(name, None)):
        with pytest.raises(ValueError, match="merge_heads"):
            function("merge_head")


def unscaled_and_causal(Q, K):
    scores = Q @ K.mT
    return scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -torch.inf)


def test_a_failed_one_unfolds_our_lines_of_one_mistake_or_two_and_numbers_keep_their_columns():
    report = check("attention_scores", lambda Q, K: Q @ K.mT)
    shown = report._repr_html_()
    assert "<details><summary>Our lines" in shown and "math.sqrt(d_head)" not in repr(report)
    assert "\n+ scores = products / math.sqrt(d_head)</pre></details>" in shown
    (numbers,) = re.findall(r"<pre[^>]*>(Smallest failing example:.*?)</pre>", shown, re.DOTALL)
    assert "scores, expected:    scores, yours:\n[[" in numbers
    shown = check("attention_scores", unscaled_and_causal)._repr_html_()
    assert "- scores = products / 1.0" in shown and "- return scores.masked_fill(" in shown
    shown = check("attention_scores", lambda Q, K: 1.1 * Q @ K.mT / Q.size(-1) ** 0.5)._repr_html_()
    assert "a constant factor" in shown and "<details>" not in shown  # no line of ours does that
    shown = re.findall(r"```text\n(.+)\n(.+)", ways_to_fail("attention_scores").body)
    assert len(shown) == len(words("attention_scores"))
    assert shown.count((VALUES, "Smallest failing example:")) >= 8
    # a mark on an argument leaves `Q = Q` where it is right
    lines = changed_lines(EXERCISES["attention_scores"].marked, frozenset(["cosine"]))
    assert "- Q = F.normalize(Q, dim=-1)" in lines and "Q = Q" not in lines
