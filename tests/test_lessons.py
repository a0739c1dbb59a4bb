"""A lesson's title, question and minutes are those of data/lessons.toml; its stubs are blank."""

import inspect
import json
import re
from pathlib import Path

import nbformat
import pytest

from tools.handout import is_stub
from tools.lesson_files import lesson_files
from transformer_lesson.exercises.catalog import find
from transformer_lesson.exercises.engine.standalone import bare_source
from transformer_lesson.lessons import LESSONS

ROOT = Path(__file__).parent.parent
TO_A_LESSON = re.compile(r"\[(\d\d) · ([^\]]+)\]\((\d\d_\w+\.ipynb)\)")
each_lesson = pytest.mark.parametrize("number", LESSONS)


def cells(number: str) -> list[str]:
    path = ROOT / "notebooks" / LESSONS[number].file
    return ["".join(cell["source"]) for cell in json.loads(path.read_text("utf-8"))["cells"]]


def test_every_lesson_has_its_notebook():
    files = [path.name for path in lesson_files()]
    assert files == sorted(lesson.file for lesson in LESSONS.values())
    assert list(LESSONS) == [file[:2] for file in files]


@each_lesson
def test_a_notebook_begins_with_its_title_and_minutes(number):
    first = cells(number)[0]
    assert first.splitlines()[0] == f"# {number} · {LESSONS[number].title}"
    assert re.search(r"\*\*Minutes:\*\* (\d+)", first)[1] == str(LESSONS[number].minutes)


@each_lesson
def test_a_notebook_names_other_lessons_by_their_titles(number):
    for other, title, file in TO_A_LESSON.findall("\n".join(cells(number))):
        assert (title, file) == LESSONS[other][:2]


@each_lesson
def test_a_lesson_leads_to_the_next(number):
    following = f"{int(number) + 1:02}"
    if following in LESSONS:
        assert f"**Next:** [{following} · {LESSONS[following].title}](" in "\n".join(cells(number))


def test_the_readme_lists_them():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[.*\]\(notebooks/.*$", readme, re.MULTILINE)
    assert rows == [
        f"| [{number} {title}](notebooks/{file}) | {question} | {minutes} |"
        for number, (title, file, question, minutes) in LESSONS.items()
    ]
    hours = sum(lesson.minutes for lesson in LESSONS.values()) / 60
    assert f"About {hours:.0f} hours in all" in readme


@each_lesson
def test_a_stub_is_blank_or_the_function_with_the_bug(number):
    lesson = nbformat.read(ROOT / "notebooks" / LESSONS[number].file, as_version=4)
    for cell in filter(is_stub, lesson.cells):
        start = find(re.match(r"def (\w+)\(", cell.source)[1]).load_start()
        if start is not None:
            assert cell.source == bare_source(inspect.unwrap(start))
        else:
            assert cell.source.endswith("raise NotImplementedError")


# The glossary


def glossary_rows() -> list[tuple[str, str]]:
    text = (ROOT / "notebooks" / "glossary.md").read_text(encoding="utf-8")
    return re.findall(r"^\| (.+?) \| .+ \| .* \| \[\d\d\]\((.+)\) \|$", text, re.MULTILINE)


def test_the_glossary_has_every_term_once_and_its_lesson_uses_it():
    rows = glossary_rows()
    names = [name.strip() for row, _ in rows for name in row.split(", ")]
    assert len(rows) > 100 and len(names) == len(set(names))
    for row, lesson in rows:
        notebook = (ROOT / "notebooks" / lesson).read_text(encoding="utf-8").lower()
        for name in row.split(", "):
            word = re.sub(r" \(.*", "", name).strip("`").lower()
            assert word.startswith("$") or word in notebook, f"{lesson} has no {word!r}"


@each_lesson
def test_a_lesson_links_the_glossary(number):
    assert "(glossary.md)" in cells(number)[0]
