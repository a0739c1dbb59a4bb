"""Texts that a learner may type, or paste, and that must never raise."""

from functools import partial

import pytest

from tests.browser.conftest import chromium
from tests.explorables.shown import Shown

__all__ = ["chromium"]  # a fixture here, too

HOSTILE = {
    "empty": "",
    "blank": " \t\n ",
    "one long word": "a" * 10_000,
    "many lines": "a line\n" * 1000,
    "script": "</script><script>alert(1)</script><img src=x onerror=alert(1)> \"'`&amp;\\ $x^2$",
    "writing": "hello 😀👩\u200d👩\u200d👧 שלום עולם مرحبا 注意力机制",
    "control characters": "a\x00b\x1bc\u200bd\u202ee, half of \ud83d",
}


def pytest_itemcollected(item):
    if "chromium" in item.fixturenames:
        item.add_marker("browser")


@pytest.fixture(scope="module")
def tab(chromium):
    """Yield a page of Chromium: another one for each explorable would take twice as long."""
    tab = Shown(chromium)
    yield tab
    tab.close()


@pytest.fixture
def show(tab, tmp_path):
    """Yield a function that shows an explorable in Chromium; nothing may have gone wrong there."""
    tab.problems.clear()
    yield partial(tab.open, folder=tmp_path)
    assert tab.problems == []
