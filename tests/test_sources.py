"""From the five source texts to the lessons: each link leads to the place that it names."""

import re

import pytest

from tests.heading_links import assert_leads_to_its_heading
from tests.stored_lessons import cells, lesson, read, source
from tools.site_pages import CELL_LINK as LINK
from tools.site_pages import slug

PAGE = read("docs/sources.md")
BUGS = re.compile(r"\[Published bugs · ([^\]]+)\]\(published_bugs\.md#([\w-]+)\)")
CROSSWALK = PAGE.partition("\n## Further reading\n")[0]


def test_a_link_leads_to_the_cell_and_on_the_site_to_the_heading_that_it_names():
    rows = re.findall(r"^\| \d\.\d+ \|.*$", CROSSWALK, re.MULTILINE)
    assert rows and all(LINK.search(row) or BUGS.search(row) for row in rows)
    for title, anchor in BUGS.findall(CROSSWALK):
        assert f"\n## {title}\n" in read("docs/published_bugs.md") and slug(title) == anchor
    for link in LINK.finditer(CROSSWALK):
        assert_leads_to_its_heading(link)


@pytest.mark.parametrize("number", [f"{number:02}" for number in range(11)])
def test_a_lesson_of_the_story_is_linked_and_links_back(number):
    assert any(link[0][:2] == number for link in LINK.findall(CROSSWALK))
    sources = map(source, cells(lesson(number)))
    *_, last = [text for text in sources if re.match("#+ Where to go from here", text)]
    assert re.search(r"\[sources\]\(../docs/sources.md\)(\. This lesson [^:]+)?: ", last)
