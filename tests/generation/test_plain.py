"""The plain searches, on next-token tables that can be checked by hand."""

import math

import pytest
import torch

from tests.generation.writers import BOS, EOS, all_texts
from transformer_lesson.generation import beam_search, greedy_decode, length_normalized
from transformer_lesson.generation.plain import write_translation

A, B, C = 0, 3, 4

# After <bos> the token a is likelier, but everything after it is unlikely: greedy falls for it.
TABLE = {  # of A, <bos>, <eos>, B, C
    BOS: [0.6, 0.0, 0.0, 0.4, 0.0],
    A: [0.2, 0.0, 0.3, 0.25, 0.25],
    B: [0.0, 0.0, 0.9, 0.0, 0.1],
    C: [0.2, 0.0, 0.5, 0.2, 0.1],
}


def from_table(ids: list[int]) -> torch.Tensor:
    return torch.tensor(TABLE[ids[-1]]).log()


def from_noise(seed: int):
    """Return log-probabilities that depend on all ids so far."""

    def log_probs(ids: list[int]) -> torch.Tensor:
        generator = torch.Generator().manual_seed(hash((seed, *ids)) % 2**31)
        return (2 * torch.randn(5, generator=generator)).log_softmax(0)

    return log_probs


def log_probability(log_probs, ids: list[int]) -> float:
    return sum(log_probs(ids[:i])[ids[i]].item() for i in range(1, len(ids)))


def test_a_translation_is_written_word_by_word_until_eos():
    asked, words = [], ["das", "Kind", "das", "."]

    def next_word(source: str, written: list[str]) -> str:
        asked.append((source, list(written)))
        return [*words, "<eos>"][len(written)]

    assert write_translation(next_word, "the child") == words
    assert asked == [("the child", words[:n]) for n in range(5)]
    assert write_translation(lambda source, written: "<eos>", "") == []


def test_greedy_takes_the_likeliest_token_until_the_end_or_max_len():
    assert greedy_decode(from_table, BOS, EOS, 10) == [BOS, A, EOS]
    assert greedy_decode(from_table, BOS, 99, 2) == [BOS, A]
    assert greedy_decode(lambda ids: torch.tensor([0.0, 1.0]), 0, None, 4) == [0, 1, 1, 1]
    assert greedy_decode(lambda ids: torch.tensor([0.0, 1.0]), 0, 0, 3) == [0, 1, 1]
    assert beam_search(lambda ids: torch.tensor([0.3, 0.7]).log(), 0, 0, 1, 3)[0] == [0, 1, 1]


def test_a_beam_finds_what_greedy_misses_and_prefers_finished_texts():
    ids, score = beam_search(from_table, BOS, EOS, 2, 10, length_penalty=0.0)
    assert ids == [BOS, B, EOS]
    assert score == pytest.approx(math.log(0.4 * 0.9))
    assert beam_search(from_table, BOS, 99, 3, 2)[0] == [BOS, A]

    def log_probs(ids):
        return torch.tensor([0.0, 0.1, 0.9]).log()

    assert beam_search(log_probs, 0, 1, 3, 3, length_penalty=0.0)[0] == [0, 1]


@pytest.mark.parametrize("seed", range(6))
def test_a_beam_of_width_1_is_greedy(seed):
    ids, _ = beam_search(from_noise(seed), BOS, EOS, 1, 6)
    assert ids == greedy_decode(from_noise(seed), BOS, EOS, 6)


@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.0, 2.0])
def test_a_beam_wide_enough_for_everything_finds_the_best_text_of_all(length_penalty):
    lengths = set()
    for seed in range(8):
        log_probs = from_noise(seed)
        scores = {}
        for ids in all_texts([BOS, A, B, C], 3):
            total = log_probability(log_probs, [BOS, *ids])
            scores[BOS, *ids] = length_normalized(total, len(ids), length_penalty)
        best = max(scores, key=scores.get)
        ids, score = beam_search(log_probs, BOS, EOS, 5**3, 4, length_penalty)
        assert tuple(ids) == best
        assert score == pytest.approx(scores[best])
        lengths.add(len(best))
    assert len(lengths) > 1  # the penalty had something to decide


def test_impossible_tokens_are_no_hypotheses_and_an_impossible_end_wins_over_nothing():
    def log_probs(ids):
        return torch.tensor([0.0, 0.0 if len(ids) < 3 else 1.0, 1.0 if len(ids) < 3 else 0.0]).log()

    assert beam_search(log_probs, 0, 1, 4, 5) == ([0, 2, 2, 1], 0.0)
    assert beam_search(log_probs, 0, 1, 4, 3) == ([0, 2, 2], 0.0)
