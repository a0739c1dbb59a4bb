"""A real Chromium for the browser tests; without one they skip, except where CI must have it."""

import os

import nbformat
import pytest

from tests.browser.lab import (
    offline_page,
    open_answers,
    run_lesson,
    serving,
    shut_down_kernel,
)
from tests.cells import without_slow_cells
from tools.browser import NAMES, chromium_program, headless


@pytest.fixture(scope="module")  # its event loop must not outlive the file: nbval has its own
def chromium():
    """Yield the system's Chromium, headless, as playwright's browser."""
    program = chromium_program()
    if program is None:
        message = f"no browser found under the names {', '.join(NAMES)}: install chromium."
        (pytest.fail if os.environ.get("CI") else pytest.skip)(message)
    with headless(program) as browser:
        yield browser


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """Return the folder that JupyterLab serves."""
    return tmp_path_factory.mktemp("course")


@pytest.fixture(scope="module")
def lab(course):
    """Yield the address of a JupyterLab with copies of the lessons, without long trainings."""
    with serving(course) as address:
        for path in (course / "notebooks").rglob("*.ipynb"):
            lesson = nbformat.read(path, as_version=4)
            without_slow_cells(lesson)
            nbformat.write(lesson, path)
        yield address


@pytest.fixture
def page(chromium):
    """Yield a page whose every request to another machine is cut off and noted."""
    with offline_page(chromium) as page:
        yield page


@pytest.fixture
def open_lesson(lab, page):
    """Yield a function that runs a lesson and returns its page, with all answers open."""

    def open_and_run(lesson: str):
        run_lesson(page, lab, lesson)
        open_answers(page)
        return page

    yield open_and_run
    shut_down_kernel(page)
