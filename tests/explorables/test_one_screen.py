"""Every explorable of every lesson as it opens: seen at one look, and its task still to do."""

import json

import pytest

from tests.explorables.shown import Shown
from tools.site_pages import STILLS
from tools.site_stills import models_of, stored_weights
from transformer_lesson.explorables.html import whole_page
from transformer_lesson.lessons import LESSONS

TALLEST = 620
WIDTHS = {"JupyterLab in a window of 1280": 884, "the site": 944, "a wide window": 1280}
DRAWN = """() => [...document.querySelectorAll('div.explorable > div')].every(({ shadowRoot }) =>
    shadowRoot.querySelector('.said').textContent && !shadowRoot.querySelector('[aria-busy]'))"""
SECTIONS = """() => [...document.querySelectorAll('div.explorable > div')]
    .map(({ shadowRoot }) => shadowRoot.querySelector('section')).map(section => ({
        height: section.getBoundingClientRect().height,
        wide: section.scrollWidth > section.clientWidth + 1,
        done: Boolean(section.querySelector('.task[data-done]')),
    }))"""


def explorables_of(number: str) -> list[dict]:
    folder = STILLS / LESSONS[number].file.removesuffix(".ipynb")
    stills = [json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))]
    return [still for still in stills if "values" in still]


@pytest.mark.slow
@pytest.mark.parametrize("number", LESSONS)
def test_a_lessons_explorables_fit_on_a_screen(number, chromium, tmp_path):
    stills, weights = explorables_of(number), stored_weights(STILLS)
    named = {key: weights[key] for still in stills for key in models_of(still)}
    (tmp_path / "lesson.html").write_text(whole_page(stills, named), encoding="utf-8")
    shown, measured = Shown(chromium), {}
    shown.page.emulate_media(reduced_motion="reduce")
    for where, width in (WIDTHS | {"a phone": 390}).items():
        shown.page.set_viewport_size({"width": width, "height": 800})
        shown.page.goto((tmp_path / "lesson.html").as_uri())
        shown.page.wait_for_function(DRAWN)
        measured[where] = shown.page.evaluate(SECTIONS)
    shown.close()
    kinds = [still["kind"] for still in stills]
    for where, sections in measured.items():
        most = TALLEST if where in WIDTHS else 1400
        tall = [
            (k, one["height"])
            for k, one in zip(kinds, sections, strict=True)
            if one["height"] > most
        ]
        assert tall == [], where
        assert not any(one["wide"] or one["done"] for one in sections), where
    assert shown.problems == []
