"""The teachers' page names the lessons' own minutes, exercises, commands and statuses."""

import re

from tests.stored_lessons import read
from transformer_lesson import course
from transformer_lesson.exercises.engine.catalog import EXERCISES, LESSONS
from transformer_lesson.grading.sandbox import SECONDS

PAGE = read("docs/teaching.md")
COURSES = re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
TWO_HOURS, ONE_DAY, ONE_TERM = (text for _, text in COURSES if "| exercises | minutes |" in text)


def rows(plan: str) -> list[tuple[list[str], list[str], int]]:
    """Lessons, exercises and minutes of each line of a plan."""
    found = []
    for line in plan.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and cells[-1].isdigit():
            lessons = re.findall(r"\b\d\d\b", cells[1] if "week" in plan else cells[0])
            found.append((lessons, re.findall(r"`(\w+)`", cells[-2]), int(cells[-1])))
    return found


def test_minutes_and_exercises_are_the_lessons_own():
    for lessons, exercises, stated in [*rows(TWO_HOURS), *rows(ONE_DAY), *rows(ONE_TERM)]:
        assert stated == sum(course.LESSONS[lesson].minutes for lesson in lessons)
        assert set(exercises) <= {name for lesson in lessons for name in LESSONS[lesson][1:]}


def test_the_sum_is_right_and_fits_and_the_term_has_every_lesson_and_exercise():
    titles = [title.split(":")[0] for title, text in COURSES if "| minutes |" in text]
    assert titles == ["Two hours", "One day", "One term"]
    for plan, room in ((TWO_HOURS, 120), (ONE_DAY, 390)):
        total = sum(row[-1] for row in rows(plan))
        assert 0 < total < room and f"That is {total} minutes" in plan
    weeks = rows(ONE_TERM)
    assert len(weeks) == 14
    assert sorted(lesson for lessons, _, _ in weeks for lesson in lessons) == sorted(LESSONS)
    bugs = set(LESSONS["14"][1:])
    assert {name for _, names, _ in weeks for name in names} == set(EXERCISES) - bugs
    assert all(stated <= 90 for lessons, _, stated in weeks if lessons != ["14"])


def test_commands_and_statuses_exist():
    for target in re.findall(r"`?make (\w[\w-]*)", PAGE):
        assert f"\n{target}: " in read("Makefile"), target
    said = set(re.findall(r"^\| ([a-z ]+) \| ", PAGE, re.MULTILINE)) - {"status", "lesson", "week"}
    own = {"passed", "failed", "not attempted", "missing", "timed out", "crashed", "unreadable"}
    assert said == own | {"imported"}
    assert f"more than {SECONDS:.0f} seconds" in PAGE
