"""Every lesson as a learner meets it: real JupyterLab, real Chromium, no network."""

import re
import time
from pathlib import Path

import nbformat
import pytest

from tests.patience import PATIENCE
from transformer_lesson import explorables

LESSONS = sorted(
    path.name for path in (Path(__file__).parents[2] / "notebooks").glob("[0-9][0-9]_*.ipynb")
)
ERRORS = """() => {
    const cells = [...window.jupyterapp.shell.currentWidget.content.model.cells];
    const code = cells.filter(cell => cell.type === 'code');
    return code.flatMap((cell, i) => cell.executionCount
        ? cell.sharedModel.outputs.filter(output => output.output_type === 'error')
            .map(output => `code cell ${i}: ${output.ename}: ${output.evalue}`)
        : [`code cell ${i} did not run`]);
}"""
IN_THE_PAGE = re.compile(rf"\b({'|'.join([*explorables.__all__, 'head_view', 'model_view'])})\(")
MOVES = {  # a control of each kind, by what takes the focus, and what moves it
    ".widget-toggle-button:not(.mod-active)": "press",
    ".jupyter-button:not(.widget-toggle-button)": "press",
    "input[type=checkbox]": "press",
    "input[type=radio]": "press",
    ".noUi-target:not([disabled]) .noUi-handle": "slide",
    "textarea": "type",
    "input[type=text]": "type",
}


@pytest.mark.browser
@pytest.mark.parametrize("lesson", LESSONS)
def test_lesson_runs_and_its_explorables_move(lesson, course, open_lesson):
    _shorten(course / "notebooks" / lesson)
    page = open_lesson(lesson)
    assert page.evaluate(ERRORS) == []
    assert page.locator(".jp-OutputArea-output >> text=Error displaying widget").count() == 0
    for explorable in page.locator(".explorable").all():
        _move_every_control(page, explorable)
    for view in page.locator("iframe[srcdoc]").all():
        lines = view.content_frame.locator("svg line, svg path")
        lines.first.wait_for(state="attached")
    assert page.outside == [] and page.problems == []


def _shorten(path):
    """Take away the slow cells that no explorable and no view stands behind, and what needs them.

    They run in two other tests; here their training would only delay the page.
    """
    notebook = nbformat.read(path, as_version=4)
    alive, slow = [0], [len(notebook.cells)]
    for i, cell in enumerate(notebook.cells):
        if cell.cell_type == "code" and IN_THE_PAGE.search(cell.source):
            alive.append(i)
        elif "slow" in cell.metadata.get("tags", ()):
            slow.append(i)
    end = min(i for i in slow if i > alive[-1])
    questions = [cell for cell in notebook.cells[end:] if cell.source.startswith("predict(")]
    notebook.cells = notebook.cells[:end] + questions
    nbformat.write(notebook, path)


def _move_every_control(page, explorable):
    explorable.scroll_into_view_if_needed()
    assert explorable.locator("select").count() == 0  # JupyterLab takes a drop-down's arrow keys
    moved = 0
    for selector, action in MOVES.items():
        for control in explorable.locator(selector).element_handles():
            if not control.is_visible():
                continue
            before = _picture(explorable)
            what = control.evaluate("it => (it.closest('.widget-inline-hbox') ?? it).innerText")
            _act(control, action)
            deadline = time.monotonic() + PATIENCE
            while _picture(explorable) == before:
                assert time.monotonic() < deadline, f"{what!r} was moved, the picture stayed"
                page.wait_for_timeout(50)
            moved += 1
    assert moved > 0


def _picture(explorable) -> str:
    return explorable.locator("img").get_attribute("src")


def _act(control, action):
    """Move a control with the keyboard, as somebody without a mouse does."""
    control.focus()
    if action == "slide":
        at_end = control.get_attribute("aria-valuenow") == control.get_attribute("aria-valuemax")
        control.press("ArrowLeft" if at_end else "ArrowRight")
    elif action == "type":
        control.fill("Save all open documents twice")
        control.press("Tab")
    else:
        control.press("Space")
