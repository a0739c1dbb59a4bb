"""The system's Chromium, driven by playwright: for pictures, measurements and tests."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 600.0
"""Seconds until what never comes is given up. Slowness is no failure."""


def chromium_program() -> str | None:
    """Return the path of the system's Chromium, if it has one."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def headless(program: str) -> Iterator:
    """Yield a headless Chromium as playwright's browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=program, args=flags)
        yield browser
        browser.close()


def new_context(browser, **options):
    """Return a fresh profile of the browser, whose pages wait also where the machine is busy."""
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE * 1000)
    return context
