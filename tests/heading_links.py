"""Links of a page to headings of lessons, as `tools.site_pages` finds and turns them."""

import re

from tools.site_pages import lesson_headings, slug, to_heading, without_number
from transformer_lesson.course import DEEPER, LESSONS


def assert_leads_to_its_heading(link: re.Match) -> None:
    """Assert that a `CELL_LINK` names a heading of its cell, and that the site finds it, too."""
    label, title, path, file, cell = link.groups()
    files = [one.file for one in (LESSONS[label[:2]], *DEEPER.values())]
    assert path == f"../notebooks/{file}" and file in files and label[:2] in file
    headings = lesson_headings(file)
    (heading,) = [one for one in headings[cell] if without_number(one) == title]
    slugs = [slug(one) for found in headings.values() for one in found]
    assert slugs.count(slug(heading)) == 1
    assert to_heading(link) == f"[{label}]({path}#{slug(heading)})"
    assert "$" not in heading and "`" not in heading, "the site names such a heading otherwise"
