"""From the page of sources to a lesson, in JupyterLab: click, and arrive at the heading."""

import shutil
import time

import pytest

from tests.browser.lab import KERNEL_IS_IDLE, REPOSITORY, shut_down_kernel
from tests.patience import PATIENCE
from tools.site_pages import CELL_LINK

pytestmark = [pytest.mark.browser, pytest.mark.everything]
PAGE = (REPOSITORY / "docs/sources.md").read_text(encoding="utf-8")
KINDS = {
    "section": "03 · All queries at once",
}
IS_OPEN = "path => window.jupyterapp.shell.currentWidget?.context?.path === path"
IN_SIGHT = """id => {
    const cells = window.jupyterapp.shell.currentWidget.content.widgets;
    const {top, bottom} = cells.find(it => it.model.id === id).node.getBoundingClientRect();
    return bottom > top && bottom > 0 && top < innerHeight;
}"""
SHOW = """async factory => {
    await window.jupyterapp.commands.execute("docmanager:open", {path: "docs/sources.md", factory});
}"""


@pytest.fixture
def sources(course, lab, page):
    """JupyterLab with the page of sources, its links yet to be clicked."""
    (course / "docs").mkdir(exist_ok=True)
    shutil.copy(REPOSITORY / "docs/sources.md", course / "docs")
    page.goto(f"{lab}/lab?reset")
    page.wait_for_function("() => window.jupyterapp?.shell")
    page.evaluate("async () => { await window.jupyterapp.restored; }")
    yield page
    shut_down_kernel(page)


@pytest.mark.parametrize("label", KINDS.values(), ids=KINDS)
def test_a_link_opens_the_lesson_and_clicked_again_goes_to_the_heading(sources, label):
    file, cell = next(m.groups()[3:] for m in CELL_LINK.finditer(PAGE) if m[1] == label)
    link = sources.locator(".jp-MarkdownViewer").get_by_role("link", name=label, exact=True).first

    def click() -> bool:
        sources.evaluate(SHOW, "Markdown Preview")
        link.click()
        sources.wait_for_function(IS_OPEN, arg=f"notebooks/{file}")
        sources.wait_for_function(KERNEL_IS_IDLE)
        return sources.evaluate(IN_SIGHT, cell)

    click()
    deadline = time.monotonic() + PATIENCE
    while not click():  # once, unless the lesson is still being drawn
        assert time.monotonic() < deadline, f"{label} is not in sight"
    assert sources.problems == []
