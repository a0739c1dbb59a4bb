"""Texts that a learner may type, or paste, and that must never raise."""

import warnings

import pytest

from tests.browser.conftest import chromium
from tests.explorables.shown import Shown

__all__ = ["chromium"]  # a fixture here, too

HOSTILE = {
    "empty": "",
    "blank": " \t\n ",
    "long": "word " * 2000,
    "one long word": "a" * 10_000,
    "many lines": "a line\n" * 1000,
    "script": "</script><script>alert(1)</script><img src=x onerror=alert(1)>",
    "quotes": "\"'`&amp;\\",
    "emoji": "hello 😀👩‍👩‍👧 🦄",
    "right to left": "שלום עולם مرحبا",
    "chinese": "注意力机制",
    "mathematics": "$x^2$ \\frac{1}{$",
    "control characters": "a\x00b\x1bc\u200bd\u202ee",
    "half a pair": "broken \ud83d emoji",
}


@pytest.fixture(params=HOSTILE.values(), ids=HOSTILE)
def hostile(request):
    """One such text at a time, with every warning an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield request.param


@pytest.fixture
def show(chromium, tmp_path):
    """Yield a function that shows an explorable in Chromium; nothing may have gone wrong there."""
    pages = []

    def open_page(explorable, **options) -> Shown:
        calm = {
            "reduced_motion": "reduce"
        }  # or Chromium draws a quarter of a second of motion a state
        pages.append(Shown(chromium, explorable, tmp_path, **calm | options))
        return pages[-1]

    yield open_page
    for page in pages:
        page.close()
    assert [problem for page in pages for problem in page.problems] == []
