"""Measure the runs of lesson 15's scaling law: GPTs of four widths on four amounts of text.

python -m transformer_lesson.lessons.lesson_15.measure_scaling_law
    ten minutes on one core; writes its file here
"""

import json
from itertools import product

import torch

from transformer_lesson.lessons.lesson_15.scaling_law import (
    HELD_OUT,
    SEEDS,
    STORED,
    TOKENS,
    WIDTHS,
    run,
)


def main() -> None:
    """Train every size on every amount of text, and store the losses."""
    torch.set_num_threads(1)
    lines = []
    for seed, (d_model, tokens) in product(SEEDS, [*product(WIDTHS, TOKENS), *HELD_OUT]):
        done = run(d_model, tokens, seed)
        lines.append(json.dumps([*done[:-1], round(done.loss, 4)]))
        print(lines[-1], flush=True)
    STORED.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
