"""A real Chromium for the browser tests; without one they skip, except where CI must have it."""

import os

import pytest

from tests.browser.lab import (
    NAMES,
    chromium_program,
    headless,
    offline_page,
    open_answers,
    run_lesson,
    serving,
    shut_down_kernel,
)


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
    """Yield the address of a JupyterLab that serves a copy of the lessons."""
    with serving(course) as address:
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
