"""Train lesson 13's variants since Llama: each recipe with three seeds.

python -m transformer_lesson.lessons.lesson_13.measure_variants
    all, ten minutes on one core
python -m transformer_lesson.lessons.lesson_13.measure_variants "QK-norm" nothing
    some; the others keep their stored results
"""

import json
import sys

import torch

from transformer_lesson.lessons.lesson_13.since_2017 import HERE, text
from transformer_lesson.lessons.lesson_13.variants import RECIPES, trained, validation_loss

STORED, SEEDS = HERE / "variants.json", (0, 1, 2)


def outcome(name: str) -> tuple[list[float], list[list[float]]]:
    """Return a loss per seed, and each expert's share, layer by layer, for the last seed."""
    models = [trained(RECIPES[name], seed) for seed in SEEDS]
    return [round(validation_loss(model), 4) for model in models], shares_of(models[-1])


@torch.no_grad()
def shares_of(model) -> list[list[float]]:
    """Return the share of 4,000 characters that each expert gets, layer by layer."""
    model(*text().validation[0].inputs)
    layers = [getattr(block.feed_forward, "share", None) for block in model.decoder]
    return [[round(x, 3) for x in share.tolist()] for share in layers if share is not None]


def main() -> None:
    """Train the recipes that were asked for, or all, and store their losses."""
    torch.set_num_threads(1)
    for name in sys.argv[1:] or RECIPES:
        results = outcome(name)
        print(name, *results, flush=True)
        kept = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}
        kept[name] = results
        lines = (f" {json.dumps(key)}: {json.dumps(kept[key])}" for key in RECIPES if key in kept)
        STORED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
