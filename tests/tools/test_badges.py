"""Every lesson opens with one click, at the address that stands in one place."""

import json
import tomllib
from pathlib import Path

import pytest

from tools import badges

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted(ROOT.glob("notebooks/*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_lesson_opens_with_one_click(path):
    first = "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"])
    assert first.split("\n\n")[1] == badges.badges(path.name), "run `python -m tools.badges`"
    assert badges.with_badges(first, path.name) == first
    old = first.replace(badges.repository(), "somebody/else")
    assert badges.with_badges(old, path.name) == first


def test_the_address_of_the_repository_stands_in_one_place():
    address = badges.repository()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["urls"]["Repository"] == f"https://github.com/{address}"
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"%pip install git+https://github.com/{address}\n" in readme
    sources = [*ROOT.glob("tools/*.py"), *ROOT.glob("transformer_lesson/**/*.py")]
    assert [path.name for path in sources if address in path.read_text(encoding="utf-8")] == []
