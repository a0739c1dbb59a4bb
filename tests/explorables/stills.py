"""The stored pictures of explorables."""

import json

import pytest

from tests.stored_lessons import ROOT

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
