"""Make what lesson 12 shows: SmolLM2 without each of its heads and each of its blocks.

python -m transformer_lesson.lessons.lesson_12.measure_removal
    an hour, with SmolLM2's weights (`make weights`); writes its file here
"""

import json

import torch

from transformer_lesson.checkpoints import from_pretrained, llama_cpp
from transformer_lesson.checkpoints.weights import weights
from transformer_lesson.lessons.lesson_12.removal import (
    OTHERS,
    STORED,
    Part,
    Runs,
    conversations,
    heads,
    means,
)


def main() -> None:
    """Replace each part by its mean, and store what the model then does."""
    path = weights("SmolLM2")
    model, tokenizer = from_pretrained(path), llama_cpp.read_tokenizer(path)
    with torch.no_grad():
        runs = Runs(model, tokenizer, means(model, conversations(tokenizer, OTHERS.items())))
    lines = []
    for part in (None, *heads(), *map(Part, range(model.config.n_layers))):
        *named, sentences, copies, prose, copy = runs.effects(part)
        rounded = [[round(p, 4) for p in many] for many in named]
        rounded += [[round(loss, 3) for loss in sentences], [round(loss, 2) for loss in copies]]
        lines.append(json.dumps([part, *rounded, round(prose, 3), round(copy, 2)]))
        print(lines[-1], flush=True)
    STORED.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
