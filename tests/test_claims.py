"""The page of claims: rows that lead to a heading, with the numbers that its cells have stored."""

import ast
import re
from functools import cache

import pytest

from tests.heading_links import assert_leads_to_its_heading
from tests.stored_lessons import NOTEBOOKS, cells, read, source
from tools.site_pages import CELL_LINK, lesson_headings
from transformer_lesson.course import DEEPER, LESSONS

PAGE = read("docs/claims.md")
PARTS = dict(re.findall(r"^## (\d\d) · (?:.+)\n([\s\S]*?)(?=^## |\Z)", PAGE, re.MULTILINE))
COLUMNS = PAGE.partition("\n| ")[2].partition("\n")[0].strip("| ").split(" | ")
MEASURED = ("found", "control", "interval")
NUMBER = re.compile(
    r"(?<![\w.])(?:(?<![^\s(\[,])([+−-]))?(\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]\d+)?)(\s?%)?"
)
each_lesson = pytest.mark.parametrize("lesson", PARTS)


def rows(lesson: str) -> list[dict[str, str]]:
    lines = re.findall(r"^\| (.+) \|$", PARTS[lesson], re.MULTILINE)
    split = [line.split(" | ") for line in lines]
    assert all(len(row) == len(COLUMNS) for row in split), "a cell too many or too few"
    return [dict(zip(COLUMNS, row, strict=True)) for row in split[1:]]


def link(row: dict[str, str]) -> re.Match:
    (found,) = CELL_LINK.finditer(row["claim"])
    return found


def section(file: str, cell_id: str) -> list[dict]:
    """The cells under a heading, up to the next one that is not an exercise's."""
    every = cells(NOTEBOOKS / file)
    (start,) = [i for i, cell in enumerate(every) if cell["id"] == cell_id]
    for end in range(start + 1, len(every)):
        headings = lesson_headings(file).get(every[end]["id"], [])
        if any(not heading.startswith("Exercise") for heading in headings):
            return every[start:end]
    return every[start:]


def measured(cell: dict) -> str:
    """What a code cell has printed and drawn, and what it asserts; not questions or solutions."""
    if cell["cell_type"] != "code" or re.match(r"(predict|check|solution)\(", source(cell)):
        return ""
    outputs = [
        "".join(output.get("text") or output.get("data", {}).get("text/plain", ""))
        for output in cell["outputs"]
    ]
    code = re.sub(r"^%.*$", "", source(cell), flags=re.MULTILINE)
    asserts = [one for one in ast.walk(ast.parse(code)) if isinstance(one, ast.Assert)]
    return "\n".join([*outputs, *(ast.get_source_segment(code, one) for one in asserts)])


def numbers(text: str) -> set[tuple[str, str, bool]]:
    """Each number's sign, digits and whether it is in percent."""
    found = NUMBER.findall(text)
    return {(sign.replace("−", "-"), digits, bool(percent)) for sign, digits, percent in found}


@cache
def numbers_of(file: str) -> set[tuple[str, str, bool]]:
    """All that a notebook says, computes with and has measured."""
    every = cells(NOTEBOOKS / file)
    return numbers("\n".join([*map(source, every), *map(measured, every)]))


def figures(file: str) -> set[str]:
    drawn = cells(NOTEBOOKS / file, "code")
    return {
        one["id"] for one in drawn if any("image/png" in o.get("data", "") for o in one["outputs"])
    }


@each_lesson
def test_a_row_leads_to_its_heading_and_leaves_no_column_empty(lesson):
    assert f"\n## {lesson} · {LESSONS[lesson].title}\n" in PAGE
    for row in rows(lesson):
        assert all(cell.strip() for cell in row.values()), row["claim"]
        assert link(row)[1].startswith(lesson)
        assert_leads_to_its_heading(link(row))


@each_lesson
def test_each_number_is_one_that_the_cells_print_or_assert(lesson):
    """Measured ones stand under the heading, others anywhere in the notebook or its lesson."""
    for row in rows(lesson):
        file, cell_id = link(row).group(4, 5)
        under = numbers("\n".join(map(measured, section(file, cell_id))))
        anywhere = numbers_of(file) | numbers_of(LESSONS[lesson].file)
        for column in COLUMNS[1:]:
            stored = under if column in MEASURED else anywhere
            strange = numbers(row[column]) - stored - {("", *one[1:]) for one in stored}
            assert not strange, f"{row['claim']}, {column}: {strange} in {row[column]!r}"


@each_lesson
def test_each_picture_belongs_to_a_row_or_is_said_to_claim_nothing(lesson):
    deeper = [one.file for one in DEEPER.values() if one.lesson == lesson]
    drawn = [cell_id for file in (LESSONS[lesson].file, *deeper) for cell_id in figures(file)]
    argues = {
        cell["id"]
        for row in rows(lesson)
        for cell in section(*link(row).group(4, 5))
        if cell["id"] in drawn
    }
    (silent,) = re.findall(r"^Show, and claim nothing: (.+)$", PARTS[lesson], re.MULTILINE)
    shown = re.findall(r"\(`([\w-]+)`\)", silent)
    assert len({*drawn}) == len(drawn) and {*shown} <= {*drawn}
    assert argues | {*shown} == {*drawn}
