"""What opens below a verdict, and all the ways to fail."""

import re

from transformer_lesson.exercises import check, ways_to_fail
from transformer_lesson.exercises.catalog import EXERCISES
from transformer_lesson.exercises.engine.checks import VALUES
from transformer_lesson.exercises.engine.explanation import changed_lines, words


def test_every_way_to_fail_is_shown_with_its_smallest_example():
    fold = ways_to_fail("attention_scores")
    shown = re.findall(r"```text\n(.+)\n(.+)", fold.body)
    assert len(shown) == len(words("attention_scores"))
    assert shown.count((VALUES, "Smallest failing example:")) >= 12


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


def test_a_line_that_changes_nothing_is_not_shown():
    """A mark on an argument leaves `Q = Q` where it is right."""
    lines = changed_lines(EXERCISES["attention_scores"].marked, frozenset(["cosine"]))
    assert "- Q = F.normalize(Q, dim=-1)" in lines and "Q = Q" not in lines


def test_sentences_are_set_as_text_and_numbers_keep_their_columns():
    shown = check("attention_scores", lambda Q, K: Q @ K.mT)._repr_html_()
    assert "<div>This is what a product without the scale gives." in shown
    (numbers,) = re.findall(r"<pre[^>]*>(Smallest failing example:.*?)</pre>", shown, re.DOTALL)
    assert "scores, expected:    scores, yours:\n[[" in numbers
    assert "<div>Largest difference " in shown
