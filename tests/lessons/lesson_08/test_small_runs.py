"""Small runs: the same beginning for all, and what a rate and a warm-up do."""

import math

import pytest
import torch

from transformer_lesson.lessons.lesson_08.small_runs import losses_of
from transformer_lesson.text import grammar
from transformer_lesson.text.tokenizers import WordTokenizer

PAIRS = grammar.generate(640, seed=0)
TOKENIZER = WordTokenizer.train([text for pair in PAIRS for text in pair[:2]])


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_all_runs_begin_alike_and_can_be_repeated():
    slow, fast = (losses_of(PAIRS, TOKENIZER, rate, steps=5) for rate in (1e-4, 3e-3))
    assert slow[0] == fast[0] and abs(slow[0] - math.log(TOKENIZER.vocab_size)) < 1.5
    assert fast == losses_of(PAIRS, TOKENIZER, 3e-3, steps=5)
    assert fast[-1] < slow[-1]
    assert losses_of(PAIRS, TOKENIZER, 3e-3, warmup_steps=100, steps=5)[-1] > fast[-1]


def test_a_run_that_diverges_ends_there():
    losses = losses_of(PAIRS, TOKENIZER, 1e30, steps=20)
    assert 1 <= len(losses) < 20 and all(map(math.isfinite, losses))
