"""From the five source texts to the lessons: each row leads somewhere, each count is true."""

import json
import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from transformer_lesson.lessons import LESSONS

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/sources.md").read_text(encoding="utf-8")
CROSSWALK, READING = PAGE.split("\n## Further reading\n")
TEXTS = re.findall(r"^## (\d) · .+?\n(.+?)(?=^## |\Z)", CROSSWALK, re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[(\d\d) · ([^\]]+)\]\(\.\./notebooks/(\w+\.ipynb)#([^)]+)\)")
KINDS = {"formula", "figure", "code", ""}
STORY = [f"{number:02}" for number in range(11)]
each_text = pytest.mark.parametrize(("number", "text"), TEXTS, ids=lambda part: part[:1])


def rows(text: str) -> list[list[str]]:
    """Cells of each row: number, section, kind, what stands there, links, what we say otherwise."""
    found = [line.strip("|").split("|") for line in text.splitlines() if re.match(r"\| \d", line)]
    return [[cell.strip() for cell in row] for row in found]


def headings(file: str) -> list[str]:
    cells = json.loads((ROOT / "notebooks" / file).read_text(encoding="utf-8"))["cells"]
    prose = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    return re.findall(r"^#{1,3} (.+)$", "\n\n".join(prose), re.MULTILINE)


def anchor(heading: str) -> str:
    """The name of a heading, as GitHub and the web site make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_there_are_five_texts():
    assert [number for number, _ in TEXTS] == list("12345")


@each_text
def test_rows_are_numbered_whole_and_lead_somewhere(number, text):
    for place, row in enumerate(rows(text), 1):
        assert len(row) == 6 and row[0] == f"{number}.{place}"
        _, section, kind, what, where, _ = row
        assert section and what and kind in KINDS, row
        assert LINK.search(where) and not LINK.sub("", where).strip(", "), row


@each_text
def test_a_link_names_the_heading_to_which_it_leads(number, text):
    for lesson, title, file, name in (link for row in rows(text) for link in LINK.findall(row[4])):
        assert file == LESSONS[lesson].file
        (heading,) = [one for one in headings(file) if anchor(one) == unquote(name)]
        assert title == re.sub(r"^\d+ · ", "", heading)
        assert "$" not in heading and "`" not in heading, "the site names such a heading otherwise"


@each_text
def test_the_counts_in_the_text_are_true(number, text):
    found = rows(text)
    kinds = [row[2] for row in found]
    otherwise = sum(bool(row[5]) for row in found)
    said = [int(one) for one in re.findall(r"\d+", text.partition("\n| no.")[0])[:5]]
    assert said == [len(found), *map(kinds.count, ("formula", "figure", "code")), otherwise]
    (summary,) = re.findall(rf"^\| {number} \|.*\| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)
    assert [int(one) for one in summary] == [len(found), otherwise]


def test_the_sums_are_right():
    (sums,) = re.findall(r"^\| \| all five \| \| \| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)
    found = [row for _, text in TEXTS for row in rows(text)]
    assert [int(one) for one in sums] == [len(found), sum(bool(row[5]) for row in found)]
    (places,) = re.findall(r"point to, (\d+) places", READING)
    assert int(places) == len(re.findall(r"\]\(https?://", READING))


def test_lesson_14_has_as_many_cases_as_the_page_says():
    cases = {
        re.match(r"Case (\d+)", heading)[1]
        for heading in headings(LESSONS["14"].file)
        if heading.startswith("Case ")
    }
    assert f"Lesson 14 makes {len(cases)} of these" in PAGE


@pytest.mark.parametrize("number", STORY)
def test_a_lesson_of_the_story_is_linked_and_links_back(number):
    assert any(link[0] == number for link in LINK.findall(CROSSWALK))
    cells = json.loads((ROOT / "notebooks" / LESSONS[number].file).read_text("utf-8"))["cells"]
    ends = [
        "".join(c["source"]) for c in cells if re.match(r"#+ Where to go", "".join(c["source"]))
    ]
    assert "[sources](../docs/sources.md), this lesson mirrors: " in ends[-1]
