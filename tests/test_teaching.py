"""The teachers' page names the lessons' own minutes, exercises, commands and statuses."""

import re
from pathlib import Path

import pytest

from transformer_lesson import lessons as lessons_list
from transformer_lesson.exercises.catalog import EXERCISES, LESSONS
from transformer_lesson.grading.sandbox import SECONDS

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/teaching.md").read_text(encoding="utf-8")
COURSES = re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
PLANS = {title: text for title, text in COURSES if "| exercises | minutes |" in text}


def rows(plan: str) -> list[tuple[list[str], list[str], int]]:
    """Lessons, exercises and minutes of each line of a plan."""
    found = []
    for line in PLANS[plan].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and cells[-1].isdigit():
            lessons = re.findall(r"\b\d\d\b", cells[1] if "week" in PLANS[plan] else cells[0])
            found.append((lessons, re.findall(r"`(\w+)`", cells[-2]), int(cells[-1])))
    return found


def test_there_are_three_courses():
    assert [title.split(":")[0] for title in PLANS] == ["Two hours", "One day", "One term"]


@pytest.mark.parametrize("plan", PLANS)
def test_minutes_and_exercises_are_the_lessons_own(plan):
    for lessons, exercises, stated in rows(plan):
        assert stated == sum(lessons_list.LESSONS[lesson].minutes for lesson in lessons)
        assert set(exercises) <= {name for lesson in lessons for name in LESSONS[lesson][1:]}


@pytest.mark.parametrize(("plan", "room"), [("Two hours", 120), ("One day", 390)])
def test_the_sum_is_right_and_fits(plan, room):
    (title,) = [title for title in PLANS if title.startswith(plan)]
    total = sum(row[-1] for row in rows(title))
    assert total < room and f"That is {total} minutes" in PLANS[title]


def test_the_term_has_every_lesson_and_exercise_in_weeks_that_hold_them():
    (title,) = [title for title in PLANS if title.startswith("One term")]
    weeks = rows(title)
    assert len(weeks) == 14
    assert sorted(lesson for lessons, _, _ in weeks for lesson in lessons) == sorted(LESSONS)
    bugs = set(LESSONS["14"][1:])
    assert {name for _, names, _ in weeks for name in names} == set(EXERCISES) - bugs
    assert all(stated <= 90 for lessons, _, stated in weeks if lessons != ["14"])


def test_commands_and_statuses_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"`?make (\w[\w-]*)", PAGE):
        assert f"\n{target}: " in makefile, target
    said = set(re.findall(r"^\| ([a-z ]+) \| ", PAGE, re.MULTILINE)) - {"status", "lesson", "week"}
    own = {"passed", "failed", "not attempted", "missing", "timed out", "crashed", "unreadable"}
    assert said == own | {"imported"}
    assert f"more than {SECONDS:.0f} seconds" in PAGE
