"""Train lesson 13's models, each at several rates, with three seeds.

python -m transformer_lesson.lessons.lesson_13.measure_variants
    all, half an hour on one core
python -m transformer_lesson.lessons.lesson_13.measure_variants Muon "+ rotary"
    some; the others keep their stored results

The steps of the ladder and Muon get seven more seeds at their best rate.
"""

import json
import sys

import torch

from transformer_lesson.lessons.lesson_13 import variants
from transformer_lesson.lessons.lesson_13.since_2017 import ladder
from transformer_lesson.lessons.lesson_13.variants import RATES, RECIPES, STORED, Stored, rates_of

SEEDS, MORE = range(3), range(3, 10)


def outcome(name: str, rate: float, seed: int) -> tuple[float, list[list[float]]]:
    """Return one run's validation loss, and the share of each expert, layer by layer."""
    changed = {"muon": rate} if name == "Muon" else {"rate": rate}
    model = variants.trained(RECIPES[name]._replace(**changed), seed)
    return round(variants.validation_loss(model), 3), variants.shares_of(model)


def measured(name: str) -> Stored:
    """Train one recipe at all of its rates."""
    runs = {rate: [outcome(name, rate, seed) for seed in SEEDS] for rate in rates_of(name)}
    results = Stored({rate: [loss for loss, _ in outcomes] for rate, outcomes in runs.items()}, [])
    best = results.best_rate()
    if name in (*ladder(), "Muon"):
        results.losses[best] += [outcome(name, best, seed)[0] for seed in MORE]
    if "experts" in name:
        return results._replace(shares=[shares for _, shares in runs[RATES[1]]])
    return results


def main() -> None:
    """Train the recipes that were asked for, or all, and store their losses."""
    torch.set_num_threads(1)
    for name in sys.argv[1:] or RECIPES:
        results = measured(name)
        print(name, *results, flush=True)
        table = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}
        table[name] = results
        lines = (f" {json.dumps(key)}: {json.dumps(table[key])}" for key in RECIPES if key in table)
        STORED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
