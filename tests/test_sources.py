"""From the five source texts to the lessons: each row leads somewhere, each count is true."""

import re

import pytest

from tests.stored_lessons import cells, lesson, read, source
from tools.site_pages import CELL_LINK as LINK
from tools.site_pages import lesson_headings, slug, to_heading, without_number
from transformer_lesson.course import LESSONS

PAGE = read("docs/sources.md")
CROSSWALK, READING = PAGE.split("\n## Further reading\n")
TEXTS = dict(
    re.findall(r"^## (\d) · [^\n]+\n(.+?)(?=^## |\Z)", CROSSWALK, re.MULTILINE | re.DOTALL)
)
KINDS = "formula", "figure", "code"
SECTION = re.compile(r"\| \| \*\*(.+)\*\* \| \| \|")
each_text = pytest.mark.parametrize("number", "12345")


def rows(number: str) -> list[list[str]]:
    """Cells of each row: number, what stands there, links, where the course differs."""
    found = [
        line.split("|")[1:-1] for line in TEXTS[number].splitlines() if re.match(r"\| \d", line)
    ]
    return [[cell.strip() for cell in row] for row in found]


@each_text
def test_rows_are_numbered_whole_and_every_section_has_a_name_and_rows(number):
    for place, row in enumerate(rows(number), 1):
        assert len(row) == 4 and row[0] == f"{number}.{place}"
        assert row[1] and LINK.search(row[2]) and not LINK.sub("", row[2]).strip(", "), row
    lines = [line for line in TEXTS[number].splitlines() if line.startswith("| ")][1:]
    places = [place for place, line in enumerate(lines) if SECTION.fullmatch(line)]
    assert places[0] == 0 and len(places) > 5
    assert len({lines[place] for place in places}) == len(places)
    assert all(re.match(r"\| \d", lines[place + 1]) for place in places)


@each_text
def test_a_link_leads_to_the_cell_and_on_the_site_to_the_heading_that_it_names(number):
    for link in (link for row in rows(number) for link in LINK.finditer(row[2])):
        label, title, path, file, cell = link.groups()
        assert (path, file) == (f"../notebooks/{file}", LESSONS[label[:2]].file)
        headings = lesson_headings(file)
        (heading,) = [one for one in headings[cell] if without_number(one) == title]
        slugs = [slug(one) for found in headings.values() for one in found]
        assert slugs.count(slug(heading)) == 1
        assert to_heading(link) == f"[{label}]({path}#{slug(heading)})"
        assert "$" not in heading and "`" not in heading, "the site names such a heading otherwise"


@each_text
def test_the_counts_in_the_text_are_true(number):
    found = rows(number)
    kinds = [sum(row[1].startswith(f"*{kind}:* ") for row in found) for kind in KINDS]
    different = sum(bool(row[3]) for row in found)
    said = [int(one) for one in re.findall(r"\d+", TEXTS[number].partition("\n| no.")[0])[:5]]
    assert said == [len(found), *kinds, different]
    (summary,) = re.findall(rf"^\| {number} \|.*\| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)
    assert [int(one) for one in summary] == [len(found), different]


def test_the_sums_are_right():
    (sums,) = re.findall(r"^\| \| all five \| \| \| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)
    assert list(TEXTS) == list("12345")
    found = [row for number in TEXTS for row in rows(number)]
    assert [int(one) for one in sums] == [len(found), sum(bool(row[3]) for row in found)]
    (places,) = re.findall(r"point to, (\d+) places", READING)
    assert int(places) == len(re.findall(r"\]\(https?://", READING))
    listed = re.findall(r"^\| (\d+) \|", "\n".join(map(source, cells(lesson("14")))), re.MULTILINE)
    assert sorted(map(int, listed)) == [*range(1, len(listed) + 1)]
    assert f"Lesson 14 lists {len(listed)} of these" in PAGE


@pytest.mark.parametrize("number", [f"{number:02}" for number in range(11)])
def test_a_lesson_of_the_story_is_linked_and_links_back(number):
    assert any(link[0][:2] == number for link in LINK.findall(CROSSWALK))
    sources = map(source, cells(lesson(number)))
    *_, last = [text for text in sources if re.match("#+ Where to go from here", text)]
    assert re.search(r"\[sources\]\(../docs/sources.md\)(\. This lesson [^:]+)?: ", last)
