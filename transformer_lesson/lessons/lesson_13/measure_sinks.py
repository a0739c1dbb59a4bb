"""Let SmolLM2 read passages through a window, with and without sinks.

python -m transformer_lesson.lessons.lesson_13.measure_sinks    five minutes on one core
"""

import json

import torch

from transformer_lesson.checkpoints import from_pretrained, llama_cpp
from transformer_lesson.checkpoints.weights import weights
from transformer_lesson.interpretability.head_scores import cut_off
from transformer_lesson.lessons.lesson_13 import sinks


def main() -> None:
    """Measure each passage and store what was found."""
    torch.set_num_threads(1)
    path = weights("SmolLM2")
    model, tokenizer = from_pretrained(path).eval(), llama_cpp.read_tokenizer(path)
    rows = []
    for ids in sinks.passages(tokenizer):
        shares = cut_off(sinks.all_weights(model, ids[None, :-1]).flatten(0, 1), sinks.WINDOW)
        assert shares.argmax() == 0
        losses = {name: round(loss, 3) for name, loss in sinks.losses(model, ids).items()}
        first = tokenizer.decode([int(ids[0])])
        rows.append([first, round(shares.sum().item(), 3), round(shares[0].item(), 3), losses])
        print(*rows[-1], flush=True)
    text = "[\n" + ",\n".join(f" {json.dumps(row)}" for row in rows) + "\n]\n"
    sinks.STORED.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
