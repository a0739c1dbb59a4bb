"""Measure how far off `capstone`'s forecasts are; its intervals come from these runs.

python -m transformer_lesson.capstone.measure_own
    a quarter of an hour on one core; writes its file here
"""

import json
from tempfile import TemporaryDirectory

import torch

from transformer_lesson.capstone import own
from transformer_lesson.capstone.plan import STORED, power_law

RUNS = [(depth, minutes) for depth in (1, 2) for minutes in (0.3, 0.6, 1.2)]


def main() -> None:
    """Plan and train on every material, and store what was foreseen and what was reached."""
    torch.set_num_threads(1)
    lines = []
    with TemporaryDirectory() as folder:
        for depth, minutes in RUNS:
            for name in ("manual", "stories", "grammar"):
                plan, reached = (result := own(name, depth, minutes, folder)).plan, result.bits[0]
                sizes = {"name": name, "kind": "pairs" if result.score else "text", "depth": depth}
                foreseen = power_law(plan.pilots, plan.steps)
                facts = {"steps": plan.steps, "foreseen": foreseen, "reached": reached}
                lines.append(json.dumps(sizes | facts | {"pilots": plan.pilots}))
                print(lines[-1], flush=True)
    STORED.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
