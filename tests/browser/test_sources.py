"""From the page of sources to a lesson, in JupyterLab: click, and arrive at the heading."""

import shutil
import time

import pytest

from tests.browser.lab import KERNEL_IS_IDLE, REPOSITORY, shut_down_kernel
from tests.patience import PATIENCE
from tools.site_pages import CELL_LINK

pytestmark = [pytest.mark.browser, pytest.mark.everything]
PAGE = (REPOSITORY / "docs/sources.md").read_text(encoding="utf-8")
LABEL = "03 · All queries at once"
IS_OPEN = "path => window.jupyterapp.shell.currentWidget?.context?.path === path"
IN_SIGHT = """id => {
    const cells = window.jupyterapp.shell.currentWidget.content.widgets;
    const {top, bottom} = cells.find(it => it.model.id === id).node.getBoundingClientRect();
    return bottom > top && bottom > 0 && top < innerHeight;
}"""
SHOW = """async factory => {
    await window.jupyterapp.commands.execute("docmanager:open", {path: "docs/sources.md", factory});
}"""


def test_a_link_opens_the_lesson_and_clicked_again_goes_to_the_heading(course, lab, page):
    (course / "docs").mkdir(exist_ok=True)
    shutil.copy(REPOSITORY / "docs/sources.md", course / "docs")
    page.goto(f"{lab}/lab?reset")
    page.wait_for_function("() => window.jupyterapp?.shell")
    page.evaluate("async () => { await window.jupyterapp.restored; }")
    file, cell = next(m.groups()[3:] for m in CELL_LINK.finditer(PAGE) if m[1] == LABEL)
    link = page.locator(".jp-MarkdownViewer").get_by_role("link", name=LABEL, exact=True).first

    def click() -> bool:
        page.evaluate(SHOW, "Markdown Preview")
        link.click()
        page.wait_for_function(IS_OPEN, arg=f"notebooks/{file}")
        page.wait_for_function(KERNEL_IS_IDLE)
        return page.evaluate(IN_SIGHT, cell)

    click()
    deadline = time.monotonic() + PATIENCE
    while not click():  # once, unless the lesson is still being drawn
        assert time.monotonic() < deadline, f"{LABEL} is not in sight"
    assert page.problems == []
    shut_down_kernel(page)
