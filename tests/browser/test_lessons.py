"""Each explorable as a learner meets it: real JupyterLab, real Chromium, no network."""

import time

import nbformat
import pytest

from tests.browser.accessibility import AXE, CONTRAST, FORM
from tests.browser.lab import (
    ERRORS,
    KERNEL_IS_IDLE,
    behind_lessons_before_a_release,
    open_answers,
    shut_down_kernel,
)
from tests.cells import only_what_shows
from tests.real_weights import skip_without_weights
from tests.stored_lessons import cells, source
from tools.browser import PATIENCE
from tools.lesson_files import NOTEBOOKS, lesson_files, place_of
from transformer_lesson import explorables


def shown_first() -> dict[str, set[str]]:
    """By notebook, the explorables that none before it shows."""
    notebooks, seen = {}, set()
    for path in lesson_files():
        code = "\n".join(source(cell) for cell in cells(path, "code"))
        if new := {name for name in explorables.__all__ if calls(name, code)} - seen:
            notebooks[place_of(path).as_posix()] = new
            seen |= new
    assert seen >= {"ModelFlow", "Clinic", "RewardClinic", "PatchingGrid"}
    return notebooks


def calls(name: str, code: str) -> bool:
    return f"\n{name}(" in f"\n{code}"


SHOWN = shown_first()
SHOWN.pop("08_training.ipynb")  # it replays a training of a minute, which `tests/course` runs
MOST_MOVES = 4  # of the controls that are found in the same way
MOVES = {  # a control of each kind, by what takes the focus, and what moves it
    "input[type=checkbox]": "press",
    "input[type=radio]": "press",
    "section button[aria-pressed=false]": "press",
    "section svg [role=button][aria-pressed=false]": "press",
    "section input[type=range]:enabled": "slide",
    "textarea": "type",
    "input[type=text]": "type",
}


@pytest.mark.browser
@pytest.mark.everything
@pytest.mark.parametrize("lesson", behind_lessons_before_a_release(list(SHOWN)))
def test_explorables_move(lesson, course, open_lesson):
    """Controls of every kind move each explorable's picture.

    Of the other cells, those are left that make what the explorables show.
    """
    notebook = nbformat.read(NOTEBOOKS / lesson, as_version=4)
    only_what_shows(notebook, lambda cell: any(calls(name, cell.source) for name in SHOWN[lesson]))
    for cell in notebook.cells:
        skip_without_weights(cell.source)
    alone = course / "notebooks/alone" / lesson  # the lesson itself stays as it is, for other tests
    alone.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, alone)
    page = open_lesson(f"alone/{lesson}")
    assert page.evaluate(ERRORS) == []
    assert page.locator(".jp-OutputArea-output >> text=Error displaying widget").count() == 0
    assert page.locator(".explorable").count() >= len(SHOWN[lesson])
    for explorable in page.locator(".explorable").all():
        _move_controls(page, explorable)
    page.evaluate(AXE)
    assert page.evaluate(FORM, "div.explorable") == []
    assert page.outside == [] and page.problems == []


def _move_controls(page, explorable):
    explorable.scroll_into_view_if_needed()
    assert explorable.locator("select").count() == 0  # JupyterLab takes a drop-down's arrow keys
    moved, picture = 0, explorable.locator("section")
    for selector, action in MOVES.items():
        there = [one for one in explorable.locator(selector).element_handles() if one.is_visible()]
        for control in there[:: 1 + len(there) // MOST_MOVES]:
            if not control.is_visible():  # since another one was moved
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


IN_LAB = ["00_start_here", "03_attention", "08_training", "14_bug_hunt", "17_your_own"]
THEMES = {"JupyterLab Light": "true", "JupyterLab Dark": "false"}
SET_THEME = "theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})"
OURS = ".jp-Notebook :is(.jp-OutputArea-output, .jp-RenderedMarkdown)"
DRAWN = "([texts, count]) => document.querySelectorAll(texts).length === count"
IN_OURS = f"""async () => {{
    const include = [...document.querySelectorAll("{OURS}")].filter(it => it.checkVisibility());
    return ({FORM})({{include}});
}}"""


@pytest.mark.browser
@pytest.mark.everything
@pytest.mark.parametrize("lesson", IN_LAB)
def test_a_lesson_is_accessible_in_both_themes(lesson, lab, page):
    """What a lesson says and shows, as it is stored; JupyterLab's own parts are left out."""
    page.goto(f"{lab}/lab/tree/notebooks/{lesson}.ipynb?reset", wait_until="domcontentloaded")
    page.wait_for_selector(".jp-Notebook .jp-Cell")
    page.wait_for_function(KERNEL_IS_IDLE)
    open_answers(page)
    texts = list(cells(NOTEBOOKS / f"{lesson}.ipynb", "markdown"))
    texts_drawn = [".jp-MarkdownCell .jp-RenderedMarkdown", len(texts)]
    page.wait_for_function(DRAWN, arg=texts_drawn)  # it renders a notebook bit by bit
    page.evaluate(AXE)
    for theme, light in THEMES.items():
        page.evaluate(SET_THEME, theme)
        page.wait_for_function("light => document.body.dataset.jpThemeLight === light", arg=light)
        assert page.evaluate(IN_OURS) == [], theme
        assert page.evaluate(CONTRAST, f"{OURS} *") == [], theme
    shut_down_kernel(page)
