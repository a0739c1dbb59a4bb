"""The table of published faults names exercises and turns that there are."""

import re
from pathlib import Path

from transformer_lesson.exercises.catalog import EXERCISES
from transformer_lesson.exercises.engine.choosing import turns

TABLE = Path(__file__).parents[2] / "docs" / "faults.md"
LINES = TABLE.read_text(encoding="utf-8").splitlines()
ROWS = [row.groups() for line in LINES if (row := re.match(r"\| ([A-Z]{3}): .* \| (.*) \|$", line))]


def test_every_published_fault_has_a_row():
    assert len(ROWS) == len(dict(ROWS)) == 45


def test_every_row_names_a_wrong_turn_or_says_why_not():
    for fault, where in ROWS:
        named = re.findall(r"`(\w+): (\w+)`", where)
        assert named or "left out: " in where, fault
        for exercise, turn in named:
            assert turn in turns(EXERCISES[exercise].marked), (fault, exercise, turn)
