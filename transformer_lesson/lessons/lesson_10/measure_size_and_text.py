"""Make what lesson 10 draws: models of several widths, each trained on several amounts of text.

python -m transformer_lesson.lessons.lesson_10.measure_size_and_text
    two minutes; writes its file here
"""

import json

import torch

from transformer_lesson.lessons.lesson_10.size_and_text import STORED, size_and_text
from transformer_lesson.text import manual
from transformer_lesson.text.tokenizers import BytePairTokenizer


def main() -> None:
    """Train every width on every amount of text, and store what each came to."""
    torch.set_num_threads(1)
    text = manual.split()
    pieces = BytePairTokenizer.train([text.training], vocab_size=1000)
    ids, unseen = (torch.tensor(pieces.encode(part)) for part in (text.training, text.validation))
    grid = size_and_text(ids, unseen, pieces.vocab_size)
    more = size_and_text(ids, unseen, pieces.vocab_size, (16, 32, 48), (140_000,))
    lines = [
        json.dumps([*outcome[:3], *(round(loss, 4) for loss in outcome[3:])])
        for outcome in [*grid, *more]
    ]
    STORED.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
    print(STORED.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
