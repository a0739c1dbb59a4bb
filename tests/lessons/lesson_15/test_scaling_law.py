"""The runs that a law is fitted to, as small as they come."""

import pytest
import torch

from transformer_lesson.lessons.lesson_15 import scaling_law as experiment
from transformer_lesson.lessons.lesson_15.scaling_law import batches, run


@pytest.mark.slow
def test_a_run_reads_what_it_says_and_learns_from_it():
    short, longer = (run(8, tokens) for tokens in (256, 12_800))
    assert (longer.d_model, longer.tokens, longer.seed) == (8, 12_800, 0)
    assert longer.size == 2 * 12 * 8**2 + 8 * experiment.texts().tokenizer.vocab_size
    assert longer.loss < short.loss - 0.3


def test_no_window_is_read_twice_and_another_seed_reads_in_another_order():
    text = torch.arange(64 * 9 + 1)
    read = [batch.inputs[0] for batch in batches(text, 64 * 8, seed=0)]
    firsts = torch.cat(read)[:, 0].tolist()
    assert len(read) == 4 and len(set(firsts)) == 8 and all(one % 64 == 0 for one in firsts)
    other = torch.cat([batch.inputs[0] for batch in batches(text, 64 * 8, seed=1)])
    assert other[:, 0].tolist() != firsts
    with pytest.raises(ValueError, match="fewer than 1,000"):
        next(batches(text, 1_000, seed=0))
