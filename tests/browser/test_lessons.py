"""Each explorable as a learner meets it: real JupyterLab, real Chromium, no network."""

import time

import pytest

from tests.browser.lab import ERRORS
from tests.stored_lessons import cells, source
from tools.browser import PATIENCE
from tools.lesson_files import lesson_files, place_of
from transformer_lesson import explorables


def showing_something_new() -> list[str]:
    """Each notebook with an explorable that none before it shows: nbval runs the others, too."""
    notebooks, seen = [], set()
    for path in lesson_files():
        code = "\n".join(source(cell) for cell in cells(path, "code"))
        shown = {name for name in explorables.__all__ if f"\n{name}(" in f"\n{code}"} - seen
        seen |= shown
        notebooks += [place_of(path).as_posix()] if shown else []
    assert seen >= {"ModelFlow", "Clinic", "RewardClinic", "PatchingGrid"}
    return notebooks


LESSONS = showing_something_new()
MOVES = {  # a control of each kind, by what takes the focus, and what moves it
    "input[type=checkbox]": "press",
    "input[type=radio]": "press",
    "section button[aria-pressed=false]": "press",
    "section svg [role=button][aria-pressed=false]": "press",
    "section input[type=range]:enabled": "slide",
    "textarea": "type",
    "input[type=text]": "type",
}


@pytest.mark.everything
@pytest.mark.browser
@pytest.mark.parametrize("lesson", LESSONS)
def test_lesson_runs_and_its_explorables_move(lesson, open_lesson):
    """Nothing failed, and every control of every explorable moves its picture."""
    page = open_lesson(lesson)
    assert page.evaluate(ERRORS) == []
    assert page.locator(".jp-OutputArea-output >> text=Error displaying widget").count() == 0
    for explorable in page.locator(".explorable").all():
        _move_every_control(page, explorable)
    for view in page.locator("iframe[srcdoc]").all():
        lines = view.content_frame.locator("svg line, svg path")
        lines.first.wait_for(state="attached")
    assert page.outside == [] and page.problems == []


def _move_every_control(page, explorable):
    explorable.scroll_into_view_if_needed()
    assert explorable.locator("select").count() == 0  # JupyterLab takes a drop-down's arrow keys
    moved, picture = 0, explorable.locator("section")
    for selector, action in MOVES.items():
        for control in explorable.locator(selector).element_handles():
            if not control.is_visible():
                continue
            before = picture.inner_html()
            _act(control, action)
            deadline = time.monotonic() + PATIENCE
            while picture.inner_html() == before:
                assert time.monotonic() < deadline, f"{selector} was moved, the picture stayed"
                page.wait_for_timeout(50)
            moved += 1
    assert moved > 0


def _act(control, action):
    """Move a control with the keyboard, as somebody without a mouse does."""
    control.focus()
    if action == "slide":
        at_end = control.evaluate("it => it.value === it.max")
        control.press("ArrowLeft" if at_end else "ArrowRight")
    elif action == "type":
        control.fill("Save all open documents twice")
        control.press("Tab")
    else:
        control.press("Space")
