"""Measure the curves that lesson 13 replays: norm position x warm-up x initialization, and 2017
against 2026 one change at a time. Writes two small files here.

    python -m transformer_lesson.lessons.lesson_13.measure_paper_vs_practice
        both files, about a quarter of an hour
    python -m transformer_lesson.lessons.lesson_13.measure_paper_vs_practice ladder   one of them
"""

import json
import sys
from itertools import product

import torch

from transformer_lesson.lessons.lesson_13.since_2017 import (
    HERE,
    INITIALIZATIONS,
    NORM_POSITIONS,
    WARMUPS,
    Setting,
    compare,
    ladder,
    run_setting,
    thinned,
)

SEEDS = (0, 1, 2)


def write_grid() -> None:
    """Run every setting with every seed."""
    curves = {}
    for place in product(NORM_POSITIONS, WARMUPS, INITIALIZATIONS):
        setting = Setting(*place)
        curves[str(setting)] = [thinned(run_setting(setting, seed)) for seed in SEEDS]
        print(setting, [curve[-1] for curve in curves[str(setting)]], flush=True)
    _write("paper_vs_practice.json", curves)


def write_ladder() -> None:
    """Train every rung of the ladder with every seed; store the validation losses."""
    histories = compare(ladder(), SEEDS)
    curves = {
        name: [[round(loss, 3) for _, loss in history.validation] for history in runs]
        for name, runs in histories.items()
    }
    for name, runs in curves.items():
        print(name, [run[-1] for run in runs], flush=True)
    _write("since_2017.json", curves)


def _write(name: str, curves: dict[str, list[list[float]]]) -> None:
    lines = (f" {json.dumps(key)}: {json.dumps(runs)}" for key, runs in curves.items())
    (HERE / name).write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def main() -> None:
    """Train the grid and the ladder, or the one that was asked for, and store the curves."""
    torch.set_num_threads(1)
    for name, write in {"ladder": write_ladder, "grid": write_grid}.items():
        if name in (sys.argv[1:] or [name]):
            write()


if __name__ == "__main__":
    main()
