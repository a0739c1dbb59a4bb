"""Every lesson as a learner meets it: real JupyterLab, real Chromium, no network."""

from pathlib import Path

import pytest

LESSONS = sorted(
    path.name for path in (Path(__file__).parents[2] / "notebooks").glob("[0-9][0-9]_*.ipynb")
)
RUN_ALL = """async () => {
    const app = window.jupyterapp;
    await app.commands.execute('notebook:run-all-cells');
}"""
ERRORS = """() => {
    const cells = [...window.jupyterapp.shell.currentWidget.content.model.cells];
    return cells.flatMap((cell, i) => (cell.sharedModel.outputs ?? [])
        .filter(output => output.output_type === 'error')
        .map(output => `cell ${i}: ${output.ename}: ${output.evalue}`));
}"""
MOVES = {  # what to do with a control of each kind; the selector finds what takes the focus
    ".noUi-handle": "slide",
    "input[type=checkbox]": "click",
    "input[type=radio]": "choose",
    "select": "select",
    "textarea": "type",
    "input[type=text]": "type",
    ".widget-toggle-button": "click",
    ".jupyter-button:not(.widget-toggle-button)": "click",
}


@pytest.fixture(params=LESSONS)
def lesson(request, lab, page):
    """Open one lesson and run all its cells."""
    page.goto(f"{lab}/lab/tree/notebooks/{request.param}?reset", wait_until="domcontentloaded")
    page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=60_000)
    page.wait_for_function(
        "() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status"
        " === 'idle'",
        timeout=60_000,
    )
    page.evaluate(RUN_ALL)
    yield page
    page.evaluate("() => window.jupyterapp.commands.execute('kernelmenu:shutdown')")


@pytest.mark.browser
def test_lesson_runs_and_its_explorables_move(lesson):
    page = lesson
    assert page.evaluate(ERRORS) == []
    assert page.locator(".jp-OutputArea-output >> text=Error displaying widget").count() == 0
    for explorable in page.locator(".explorable").all():
        _move_every_control(page, explorable)
    for view in page.locator("iframe[srcdoc]").all():
        lines = view.content_frame.locator("svg line, svg path")
        lines.first.wait_for(state="attached", timeout=10_000)
    assert page.outside == [] and page.problems == []


def _move_every_control(page, explorable):
    explorable.scroll_into_view_if_needed()
    moved = 0
    for selector, action in MOVES.items():
        for control in explorable.locator(selector).all():
            if not control.is_visible() or not control.is_enabled():
                continue
            before = _state(explorable)
            _act(control, action)
            page.wait_for_function(
                "([box, before]) => box.querySelector('img').src + box.innerText !== before",
                arg=[explorable.element_handle(), before],
                timeout=10_000,
            )
            moved += 1
    assert moved > 0


def _state(explorable) -> str:
    return explorable.evaluate("box => box.querySelector('img').src + box.innerText")


def _act(control, action):
    """Move a control with the keyboard, as somebody without a mouse does."""
    control.focus()
    if action == "slide":
        at_end = control.get_attribute("aria-valuenow") == control.get_attribute("aria-valuemax")
        control.press("ArrowLeft" if at_end else "ArrowRight")
    elif action == "select":
        options = control.locator("option").all_text_contents()
        chosen = control.evaluate("select => select.selectedIndex")
        control.select_option(index=(chosen + 1) % len(options))
    elif action == "type":
        control.fill("Save all open documents twice")
        control.blur()
    else:
        control.press("Space")
