"""Bars under two conditions: each count is written, and its interval is Wilson's."""

import pytest

from transformer_lesson.figures.with_and_without import with_and_without
from transformer_lesson.intervals import wilson

COUNTED = {"with it": [0, 53, 97], "without it": [2, 31, 89]}


def test_each_count_stands_at_its_bar_and_its_interval_around_its_end():
    cases = ("none", "some", "all")
    drawn = with_and_without("a claim", cases, COUNTED, 97, "rows", "found", ("chance", 41))
    for axes, (name, counts) in zip(drawn.axes, COUNTED.items(), strict=True):
        assert axes.get_title() == name
        assert [bar.get_width() for bar in axes.patches] == counts
        written = [text.get_text() for text in axes.texts]
        assert written == [*map(str, counts), "chance: 41"]
        lines = axes.containers[1].lines[2][0].get_segments()
        for line, count in zip(lines, counts, strict=True):
            ends = [97 * end for end in wilson(count, 97)]
            assert list(line[:, 0]) == pytest.approx(ends, abs=1e-9)
        short = [
            text.get_position()[0] > count
            for text, count in zip(axes.texts[:-1], counts, strict=True)
        ]
        assert short == [count < 15 for count in counts]  # beside the bar, not on its interval
    assert "with it: none 0, some 53, all 97" in drawn.alt
