"""What a small GPT learns from CPython's manual, against counting characters."""

import math
from collections import Counter

import torch

from benchmarks.results import THREADS, Row, write
from transformer_lesson.model.transformers import DecoderOnlyTransformer
from transformer_lesson.text import WindowBatches, manual
from transformer_lesson.text.batches import windows_in_order
from transformer_lesson.text.tokenizers import CharacterTokenizer
from transformer_lesson.training import bits_per_character, train, validation_loss
from transformer_lesson.training.recipes import MANUAL

NOTES = """
Bits per character of the validation topics, none of which training sees. The bigram model counts
pairs of characters and adds one to each count. The recipe is `MANUAL` in
`transformer_lesson/training/recipes.py`, with one token per character. The manual is that of the
Python named above.
"""


def bigram_bits(training: list[int], validation: list[int], vocab_size: int) -> float:
    """Return the bits per character of a model that knows only the character before."""
    pairs, firsts = Counter(zip(training, training[1:], strict=False)), Counter(training[:-1])
    bits = [
        -math.log2((pairs[a, b] + 1) / (firsts[a] + vocab_size))
        for a, b in zip(validation, validation[1:], strict=False)
    ]
    return sum(bits) / len(bits)


def main() -> None:
    torch.set_num_threads(THREADS)
    text = manual.split()
    tokenizer = CharacterTokenizer.train([text.training])
    training, validation = tokenizer.encode(text.training), tokenizer.encode(text.validation)
    bigram = bigram_bits(training, validation, tokenizer.vocab_size)
    torch.manual_seed(0)
    model = DecoderOnlyTransformer(MANUAL.model_config(tokenizer))
    length = MANUAL.sizes["max_len"]
    history = train(model, WindowBatches(training, MANUAL.batch_size, length), MANUAL.training)
    loss = validation_loss(model, windows_in_order(validation, 32, length))
    bits = bits_per_character(loss, len(validation) - 1, len(validation) - 1)
    uniform = math.log2(tokenizer.vocab_size)
    row = Row(
        "GPT on the manual, validation bits per character",
        f"bigram {bigram:.2f} (uniform {uniform:.2f})", "–", "clearly below it within 60 s",
        f"**{bits:.2f}** after {history.seconds:.0f} s",
        bits < 0.9 * bigram and history.seconds <= 60,
    )  # fmt: skip
    write("language_model", [row], NOTES)


if __name__ == "__main__":
    main()
