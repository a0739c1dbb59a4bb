"""What `model.fast` chooses on this machine, and what it gains over the plain way."""

import copy
import os
from collections.abc import Callable

import torch

from benchmarks.peers import gpt_config
from benchmarks.results import THREADS, Row, write
from benchmarks.timing import at_most, interleaved, ratios
from benchmarks.training_speed import PAPER, our_step
from transformer_lesson.generation import generate
from transformer_lesson.model import fast
from transformer_lesson.model.transformers import DecoderOnlyTransformer, EncoderDecoderTransformer

ROUNDS, N_PROMPT, N_NEW, LIMIT = 9, 16, 64, 1.05

NOTES = """
Ours as it is, divided by ours with TRANSFORMER_LESSON_PLAIN=1, in turns; what was chosen stands
beside it. Writing: the GPT of the training section, 16 tokens read and 64 written; each size of
product, and attention in half precision, is timed while it works, mostly in the rounds that warm
up. Learning: one step of the encoder-decoder, with dropout at the paper's places. Which way is
chosen varies from processor to processor, and where two are nearly equal from run to run; that
nothing is much slower than the plain way does not.
"""


def plainly(run: Callable[[], object], plain: bool) -> Callable[[], object]:
    """Return the same run with or without plain arithmetic."""

    def with_setting() -> object:
        os.environ["TRANSFORMER_LESSON_PLAIN"] = "1" if plain else "0"
        return run()

    return with_setting


def chosen() -> str:
    """Say which ways won, and how often, since `RACES` was last cleared."""
    names = [race.chosen for race in fast.RACES.values() if race.chosen]
    counts = [f"{name} {names.count(name)}" for name in sorted(set(names))]
    return f"chosen: {', '.join(counts)}" if counts else "nothing to choose"


def compare(measure: str, run: Callable[[], object], others: str = "") -> Row:
    """Return the row of one kind of run."""
    fast.RACES.clear()
    runs = {"plain": plainly(run, True), "ours": plainly(run, False)}
    seconds = interleaved(runs, ROUNDS)
    peer = f"plain = 1.00 ({1000 * min(seconds['plain']):.0f} ms at best)"
    judged = at_most(LIMIT, ratios(seconds["ours"], seconds["plain"]))
    return Row(f"{measure} ({others or chosen()})", peer, "–", *judged)


def writing_rows() -> list[Row]:
    """Return the rows of a GPT that writes, for each number format and batch size."""
    torch.manual_seed(0)
    config = gpt_config(dropout=0.0, attention_dropout=0.0)
    model, rows = DecoderOnlyTransformer(config).eval(), []
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        cast = copy.deepcopy(model).to(dtype)
        for batch in (1, 8):
            ids = torch.randint(1, config.vocab_size, (batch, N_PROMPT))
            name = f"Writing, {str(dtype).removeprefix('torch.')}, batch {batch}"
            rows.append(compare(name, lambda c=cast, i=ids: generate(c, i, N_NEW, eos_id=None)))
    return rows


def learning_row(bf16: bool) -> Row:
    """Return the row of a training step in one precision."""
    torch.manual_seed(0)
    model = EncoderDecoderTransformer(PAPER)
    source, target = torch.randint(1000, (32, 32)), torch.randint(1000, (32, 33))
    name = f"Learning, {'bf16 autocast' if bf16 else 'float32'}"
    step = our_step(model, source, target, bf16=bf16)
    return compare(name, step, "dropout of 16 bits" + ", attention in float32" * bf16)


def main() -> None:
    torch.set_num_threads(THREADS)
    write("fast", [*writing_rows(), learning_row(False), learning_row(True)], NOTES)


if __name__ == "__main__":
    main()
