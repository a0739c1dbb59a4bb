"""The teachers' page names the lessons' own minutes, exercises, commands and statuses."""

import re

from tests.stored_lessons import read
from transformer_lesson import course
from transformer_lesson.exercises.engine.catalog import LESSONS
from transformer_lesson.grading.sandbox import SECONDS

PAGE = read("docs/teaching.md")
LINE_OF_A_PLAN = re.compile(
    r"^\|(?: \d+ \|)? (\d\d(?:, \d\d)*) \|.*?([^|]*)\| (\d+) \|$", re.MULTILINE
)


def test_minutes_and_exercises_are_the_lessons_own():
    lines = LINE_OF_A_PLAN.findall(PAGE)
    assert len(lines) > 14
    for lessons, exercises, stated in lines:
        numbers = lessons.split(", ")
        assert int(stated) == sum(course.LESSONS[number].minutes for number in numbers)
        known = {name for number in numbers for name in LESSONS[number][1:]}
        assert {*re.findall(r"`(\w+)`", exercises)} <= known, lessons


def test_commands_and_statuses_exist():
    for target in re.findall(r"`?make (\w[\w-]*)", PAGE):
        assert f"\n{target}: " in read("Makefile"), target
    said = set(re.findall(r"^\| ([a-z ]+) \| ", PAGE, re.MULTILINE)) - {"status", "lesson", "week"}
    own = {"passed", "failed", "not attempted", "missing", "timed out", "crashed", "unreadable"}
    assert said == own | {"imported"}
    assert f"more than {SECONDS:.0f} seconds" in PAGE
