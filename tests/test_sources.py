"""From the five source texts to the lessons: each link leads to the place that it names."""

import re

import pytest

from tests.stored_lessons import cells, lesson, read, source
from tools.site_pages import CELL_LINK as LINK
from tools.site_pages import lesson_headings, slug, to_heading, without_number
from transformer_lesson.course import DEEPER, LESSONS

PAGE = read("docs/sources.md")
BUGS = re.compile(r"\[Published bugs · ([^\]]+)\]\(published_bugs\.md#([\w-]+)\)")
CROSSWALK = PAGE.partition("\n## Further reading\n")[0]


def test_a_link_leads_to_the_cell_and_on_the_site_to_the_heading_that_it_names():
    rows = re.findall(r"^\| \d\.\d+ \|.*$", CROSSWALK, re.MULTILINE)
    assert rows and all(LINK.search(row) or BUGS.search(row) for row in rows)
    for title, anchor in BUGS.findall(CROSSWALK):
        assert f"\n## {title}\n" in read("docs/published_bugs.md") and slug(title) == anchor
    for link in LINK.finditer(CROSSWALK):
        label, title, path, file, cell = link.groups()
        files = [one.file for one in (LESSONS[label[:2]], *DEEPER.values())]
        assert path == f"../notebooks/{file}" and file in files and label[:2] in file
        headings = lesson_headings(file)
        (heading,) = [one for one in headings[cell] if without_number(one) == title]
        slugs = [slug(one) for found in headings.values() for one in found]
        assert slugs.count(slug(heading)) == 1
        assert to_heading(link) == f"[{label}]({path}#{slug(heading)})"
        assert "$" not in heading and "`" not in heading, "the site names such a heading otherwise"


@pytest.mark.parametrize("number", [f"{number:02}" for number in range(11)])
def test_a_lesson_of_the_story_is_linked_and_links_back(number):
    assert any(link[0][:2] == number for link in LINK.findall(CROSSWALK))
    sources = map(source, cells(lesson(number)))
    *_, last = [text for text in sources if re.match("#+ Where to go from here", text)]
    assert re.search(r"\[sources\]\(../docs/sources.md\)(\. This lesson [^:]+)?: ", last)
