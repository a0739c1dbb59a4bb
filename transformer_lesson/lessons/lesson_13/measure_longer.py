"""Train on 64 characters and read 256, in every way that lesson 13 shows; store one model.

python -m transformer_lesson.lessons.lesson_13.measure_longer    about eight minutes on one core
"""

import json

import torch

from transformer_lesson.checkpoints import save_checkpoint
from transformer_lesson.lessons.lesson_13 import longer, since_2017
from transformer_lesson.lessons.lesson_13.longer import (
    FACTOR,
    interpolated_beyond,
    loss_by_position,
    pieces,
    quarters,
    read_otherwise,
    stopped,
)
from transformer_lesson.lessons.lesson_13.variants import trained
from transformer_lesson.model.positions import stretched_frequencies

SEEDS, PAIRS = (0, 1, 2), range(8)


def ways(model) -> dict:
    """Return variants of the rotary model, some after thirty steps at full length."""
    learned = longer.frequencies_of(model)
    turned = {
        "unchanged": learned,
        "interpolation": learned / FACTOR,
        "raised base": learned * FACTOR ** (-torch.arange(len(PAIRS)) / 7),  # the last pair by 4
        "by parts": stretched_frequencies(16, 10000.0, since_2017.LENGTH, FACTOR),
    }
    models = {name: read_otherwise(model, f) for name, f in turned.items() if name != "unchanged"}
    models |= {f"window {n}": read_otherwise(model, window=n) for n in (64, 32, 16)}
    for name, frequencies in turned.items():
        for rate in longer.RATES:
            other = models[f"{name}, 30 steps at {rate}"] = read_otherwise(model, frequencies)
            longer.practice(other, rate)
    return models


def causes(model) -> dict:
    """Return the rotary model with one thing changed that may be to blame."""
    models = {f"pair {j} stopped": stopped(model, [j]) for j in PAIRS}
    models["all but pair 3 stopped"] = stopped(model, [j for j in PAIRS if j != 3])
    models |= {f"pair 3 stopped at {at}": stopped(model, [3], at) for at in (95, 127, 159, 191)}
    models |= {f"interpolation beyond {n}": interpolated_beyond(model, n) for n in (1, 2, 4, 8)}
    for rate in longer.RATES:
        other = models[f"unchanged, 30 steps on 64 at {rate}"] = read_otherwise(model)
        longer.practice(other, rate, length=since_2017.LENGTH)
    return models


def main() -> None:
    """Train every way to place tokens, and store its losses along a text."""
    torch.set_num_threads(1)
    table: dict[str, list[list[float]]] = {}
    for seed in SEEDS:
        models = {}
        for name in longer.KINDS:
            models[name] = trained(longer.recipe_of(name), seed)
            if seed == 0 and name == "rotary":
                half = read_otherwise(models[name]).half()
                save_checkpoint(longer.STORED, half, since_2017.text().tokenizer)
        rotary = models["rotary"]
        for name, model in (models | ways(rotary) | causes(rotary)).items():
            losses = loss_by_position(model)
            results = [round(loss, 3) for loss in quarters(losses)]
            table.setdefault(name, []).append(results)
            if name in longer.KINDS:
                fine = [round(loss, 3) for loss in pieces(losses)]
                table.setdefault(f"{name}, in pieces", []).append(fine)
            print(seed, name, results, flush=True)
    lines = (f" {json.dumps(name)}: {json.dumps(runs)}" for name, runs in table.items())
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    longer.TABLE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
