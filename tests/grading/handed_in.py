"""Notebooks as students hand them in, and their grades."""

import csv
import json
from pathlib import Path

from transformer_lesson.exercises import Report
from transformer_lesson.grading.judge import verdict
from transformer_lesson.grading.run_student import record

NAME = "bits_per_character"
HEAD = f"def {NAME}(loss_in_nats, n_tokens, n_characters):\n    "
FORMULA = "return loss_in_nats / math.log(2) * n_tokens / n_characters"
RIGHT = f"import math\n\n\n{HEAD}{FORMULA}"
TITLE = "# 10 · Deeper: Larger pieces"
CHECK = f'check("{NAME}", {NAME})'
SEED = 2017


def notebook(*code: str, title: str = TITLE) -> str:
    def cell(kind: str, source: str) -> dict:
        outputs = {} if kind == "markdown" else {"outputs": [], "execution_count": None}
        return {"cell_type": kind, "metadata": {}, "source": source, **outputs}

    cells = [cell("markdown", title), *(cell("code", source) for source in code)]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def grades(folder: Path) -> list[dict[str, str]]:
    with (folder / "grades.csv").open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def graded_here(name: str, cells: list[str]) -> Report:
    """The verdict on one function of well-meant cells, both halves of it in this process."""
    return verdict(name, SEED, json.dumps(record(name, cells, SEED)).encode())


def all_graded_here(cells: list[str], names: tuple[str, ...]) -> list[Report]:
    """Stands in for `judge._until_stopped`."""
    return [graded_here(name, cells) for name in names]
