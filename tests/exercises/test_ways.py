"""What opens below a verdict: our changed line, or all the ways to get it wrong."""

import pytest

from transformer_lesson.exercises import check
from transformer_lesson.exercises.catalog import EXERCISES
from transformer_lesson.exercises.explanation import words

MARKED = [exercise for exercise in EXERCISES.values() if exercise.marked]


@pytest.mark.parametrize("exercise", MARKED, ids=lambda exercise: exercise.name)
def test_a_passed_exercise_unfolds_every_way_to_get_it_wrong(exercise):
    shown = check(exercise.name, exercise.load_reference())._repr_html_()
    known = words(exercise.name)
    assert f"<summary>The {len(known)} ways to get this wrong</summary>" in shown
    assert shown.count("<li>") == len(known) and ">None</pre>" not in shown


def test_a_failed_one_unfolds_our_line_and_hides_it_from_plain_text():
    report = check("attention_scores", lambda Q, K: Q @ K.mT)
    shown = report._repr_html_()
    assert "<details><summary>Our lines" in shown
    assert "\n+ scores = products / math.sqrt(d_head)</pre></details>" in shown
    assert "math.sqrt(d_head)" not in repr(report)


def test_two_mistakes_unfold_both_lines():
    shown = check("attention_scores", lambda Q, K: (Q @ K.mT).softmax(-1))._repr_html_()
    assert "- scores = products / 1.0" in shown and "- return scores.softmax(-1)" in shown


def test_where_nothing_was_recognized_nothing_unfolds():
    shown = check("attention_scores", lambda Q, K: 1.1 * Q @ K.mT)._repr_html_()
    assert "failed" in shown and "<details>" not in shown
