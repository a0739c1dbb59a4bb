"""What `model.fast` gains over the plain way, while a model learns."""

import os
from collections.abc import Callable

import torch

from benchmarks.results import THREADS, Row, write
from benchmarks.timing import at_most, interleaved, ratios
from benchmarks.training_speed import PAPER, our_step
from transformer_lesson.model.transformers import EncoderDecoderTransformer

ROUNDS, LIMIT = 9, 1.05

NOTES = """
Ours as it is, divided by ours with TRANSFORMER_LESSON_PLAIN=1, in turns: one step of the
encoder-decoder, with dropout at the paper's places.
"""


def plainly(run: Callable[[], object], plain: bool) -> Callable[[], object]:
    """Return the same run with or without plain arithmetic."""

    def with_setting() -> object:
        os.environ["TRANSFORMER_LESSON_PLAIN"] = "1" if plain else "0"
        return run()

    return with_setting


def learning_row(bf16: bool) -> Row:
    """Return the row of a training step in one precision."""
    torch.manual_seed(0)
    model = EncoderDecoderTransformer(PAPER)
    source, target = torch.randint(1000, (32, 32)), torch.randint(1000, (32, 33))
    step = our_step(model, source, target, bf16=bf16)
    runs = {"plain": plainly(step, True), "ours": plainly(step, False)}
    seconds = interleaved(runs, ROUNDS)
    ways = "dropout of 16 bits" + ", attention in float32" * bf16
    peer = f"plain = 1.00 ({1000 * min(seconds['plain']):.0f} ms at best)"
    judged = at_most(LIMIT, ratios(seconds["ours"], seconds["plain"]))
    return Row(f"Learning, {'bf16 autocast' if bf16 else 'float32'} ({ways})", peer, "–", *judged)


def main() -> None:
    torch.set_num_threads(THREADS)
    write("fast", [learning_row(False), learning_row(True)], NOTES)


if __name__ == "__main__":
    main()
