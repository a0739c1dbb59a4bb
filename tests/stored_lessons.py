"""The lessons as they are stored, read once, for the tests of what stands in them."""

import json
import re
from functools import cache
from pathlib import Path

import pytest

from tools.address import in_lesson
from tools.lesson_files import NOTEBOOKS, lesson_files
from transformer_lesson.command.hosted import without_cell
from transformer_lesson.course import LESSONS

ROOT = Path(__file__).parents[1]
PATHS = lesson_files()
each_notebook = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@cache
def notebook(path: Path) -> dict:
    """Return a lesson without what `make address` wrote into it."""
    lesson = json.loads(without_cell(path.read_bytes()))
    first = lesson["cells"][0]
    first["source"] = in_lesson(source(first), path.name, None)
    return lesson


def cells(path: Path, kind: str = "") -> list[dict]:
    return [cell for cell in notebook(path)["cells"] if kind in ("", cell["cell_type"])]


def lesson(number: str) -> Path:
    return NOTEBOOKS / LESSONS[number].file


def source(cell: dict) -> str:
    return "".join(cell["source"])


def unfolded(markdown: str) -> str:
    return re.sub(r"<details>.*?</details>", " ", markdown, flags=re.DOTALL)
