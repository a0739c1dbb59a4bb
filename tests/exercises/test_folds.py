"""Hints come one by one; solutions are the package's own source and pass their checks."""

import pytest

from transformer_lesson.exercises import check, hint, solution
from transformer_lesson.exercises.catalog import EXERCISES
from transformer_lesson.exercises.engine import folds


@pytest.fixture(autouse=True)
def no_hints_given():
    folds._hints_given.clear()


@pytest.mark.parametrize("name", EXERCISES)
def test_hints_come_in_order_and_the_last_one_stays(name):
    hints = EXERCISES[name].hints
    assert len(hints) >= 3
    for number, text in enumerate(hints, start=1):
        fold = hint(name)
        assert repr(fold) == f"{name}: hint {number} of {len(hints)}"
        assert text in fold._repr_markdown_()
    assert repr(hint(name)) == repr(fold)
    assert f'solution("{name}")' in fold._repr_markdown_()


def test_hints_of_two_exercises_do_not_mix():
    assert "hint 1" in repr(hint("embed"))
    assert "hint 1" in repr(hint("split_heads"))
    assert "hint 2" in repr(hint("embed"))


@pytest.mark.slow
@pytest.mark.parametrize("name", EXERCISES)
def test_solution_runs_and_passes_its_check(name):
    page = solution(name)._repr_markdown_()
    code = page.split("```python\n")[1].split("\n```")[0]
    assert '"""' not in code and "@torch" not in code and "Float[" not in code
    assert max(map(len, code.splitlines())) <= 100
    namespace = {}
    exec(code, namespace)
    assert check(name, namespace[name]).status == "passed"


def test_solution_is_folded_and_its_plain_text_gives_nothing_away():
    fold = solution("split_heads")
    assert repr(fold) == "split_heads: solution"
    page = fold._repr_markdown_()
    assert "def split_heads(x, n_heads):" in page
    assert page.startswith("<details><summary>split_heads: solution</summary>\n\n")
    assert page.endswith("\n\n</details>")
    assert "# (batch, head, n, d_head)" in page


def decorate(function):
    return function


@decorate
@decorate
def documented(x: int, *rest: str, y: float = 2.0) -> str:
    """A docstring.

    On several lines.
    """
    # a comment stays
    return """text"""


def test_source_loses_docstring_and_annotations_and_keeps_comments():
    assert folds.bare_source(documented) == (
        'def documented(x, *rest, y=2.0):\n    # a comment stays\n    return """text"""'
    )


def test_solution_brings_the_functions_that_it_leans_on():
    page = solution("scaled_dot_product_attention")._repr_markdown_()
    assert "def masked_softmax(scores, mask=None):" in page
    assert "import torch\nfrom transformer_lesson.model.attention import attention_scores" in page
    assert "import masked_softmax" not in page


def test_solution_does_not_import_what_it_gets_as_an_argument():
    """`blocks` has a function of the same name as decoder_block's argument."""
    assert "import feed_forward" not in solution("decoder_block")._repr_markdown_()


@pytest.mark.parametrize("function", [hint, solution])
def test_unknown_exercise_is_an_error_that_suggests_names(function):
    with pytest.raises(ValueError, match="merge_heads"):
        function("merge_head")
