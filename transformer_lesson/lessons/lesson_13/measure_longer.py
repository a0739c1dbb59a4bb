"""Train on 64 characters and read 256, in every way that lesson 13 shows; store one model.

python -m transformer_lesson.lessons.lesson_13.measure_longer    three minutes on one core
"""

import json

import torch

from transformer_lesson.checkpoints import save_checkpoint
from transformer_lesson.lessons.lesson_13 import longer, since_2017
from transformer_lesson.lessons.lesson_13.longer import loss_by_position, quarters, read_otherwise
from transformer_lesson.lessons.lesson_13.variants import trained
from transformer_lesson.model.positions import stretched_frequencies

FACTOR, SEEDS = 4, (0, 1, 2)


def ways(model) -> dict:
    """Return variants of the rotary model, some after thirty steps at full length."""
    learned = longer.frequencies_of(model)
    by_parts = stretched_frequencies(16, 10000.0, since_2017.LENGTH, FACTOR)
    pairs = torch.arange(8)
    raised = learned * FACTOR ** (-pairs / 7)  # the base times 4^(16/14): the last pair by 4
    found = {
        "interpolation": read_otherwise(model, learned / FACTOR),
        "raised base (NTK)": read_otherwise(model, raised),
        "by parts": read_otherwise(model, by_parts),
        "window 64": read_otherwise(model, window=64),
        "window 32": read_otherwise(model, window=32),
        "interpolation, 30 steps": read_otherwise(model, learned / FACTOR),
        "by parts, 30 steps": read_otherwise(model, by_parts),
        "unchanged, 30 steps": read_otherwise(model),
    }
    for name, other in found.items():
        if name.endswith("30 steps"):
            longer.practice(other)
    return found


def main() -> None:
    """Train every way to place tokens, and store its losses along a text."""
    torch.set_num_threads(1)
    kept: dict[str, list[list[float]]] = {}
    for seed in SEEDS:
        models = {}
        for name in longer.RECIPES:
            models[name] = trained(longer.recipe_of(name), seed)
            if seed == 0 and name == "rotary":
                half = read_otherwise(models[name]).half()
                save_checkpoint(longer.STORED, half, since_2017.text().tokenizer)
        for name, model in (models | ways(models["rotary"])).items():
            results = [round(loss, 3) for loss in quarters(loss_by_position(model))]
            kept.setdefault(name, []).append(results)
            print(seed, name, results, flush=True)
    lines = (f" {json.dumps(name)}: {json.dumps(runs)}" for name, runs in kept.items())
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    (since_2017.HERE / "longer.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
