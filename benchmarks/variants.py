"""Train what lesson 13 says about the years after Llama: each recipe with three seeds.

python -m benchmarks.variants                    all, ten minutes on one core
python -m benchmarks.variants "QK-norm" nothing  some; the others stay as they are stored
"""

import json
import sys

import torch

from transformer_lesson.experiments.since_2017 import DATA
from transformer_lesson.experiments.variants import RECIPES, trained, validation_loss

STORED, SEEDS = DATA / "variants.json", (0, 1, 2)


def outcome(name: str) -> tuple[list[float], list[list[float]]]:
    """Return a loss per seed and, of the last seed's experts, each one's share, layer by layer."""
    losses = []
    for seed in SEEDS:
        model = trained(RECIPES[name], seed)
        losses.append(round(validation_loss(model), 4))  # the experts' shares are those of it
    layers = [getattr(block.feed_forward, "share", None) for block in model.decoder]
    return losses, [[round(x, 3) for x in share.tolist()] for share in layers if share is not None]


def main() -> None:
    torch.set_num_threads(1)
    kept = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}
    for name in sys.argv[1:] or RECIPES:
        kept[name] = outcome(name)
        print(name, *kept[name], flush=True)
        lines = (
            f" {json.dumps(name)}: {json.dumps(kept[name])}" for name in RECIPES if name in kept
        )
        STORED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
