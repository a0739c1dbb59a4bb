"""The stored pictures of explorables."""

import json
from types import SimpleNamespace

import pytest

from tests.stored_lessons import ROOT
from tools.site_stills import models_of, stored_weights
from transformer_lesson.explorables.html import whole_page

STILLS = ROOT / "docs" / "stills"


def stills() -> dict[str, dict]:
    """The explorables of all lessons, by lesson and cell."""
    paths = STILLS.glob("*/*.json")
    found = {f"{path.parent.name[:2]}/{path.stem}": json.loads(path.read_text()) for path in paths}
    return {name: one for name, one in found.items() if "values" in one}  # no attention view


def one_of_each_kind() -> list:
    """The names of all stills; those of kinds that came before are left to `test-everything`."""
    kinds, found = set(), []
    for name, still in sorted(stills().items()):
        marks = [pytest.mark.everything] * (still["kind"] in kinds)
        found.append(pytest.param(name, marks=marks))
        kinds.add(still["kind"])
    return found


def as_stored(name: str) -> SimpleNamespace:
    """A lesson's explorable as the site shows it, to be shown as one that was just made."""
    still, weights = stills()[name], stored_weights(STILLS)
    page = whole_page([still], {key: weights[key] for key in models_of(still)})
    return SimpleNamespace(save_html=lambda path: path.write_text(page, "utf-8"))
