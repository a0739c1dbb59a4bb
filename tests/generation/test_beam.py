"""The batched beam search: equal to the plain one, to exhaustive search, and to greedy."""

import functools
import math

import pytest
import torch

from tests.generation import writers
from tests.generation.writers import BOS, EOS, KINDS, PAD, SENTENCES, lively
from transformer_lesson.generation import Beam, beam_search, generate, length_normalized
from transformer_lesson.model.hooks import record
from transformer_lesson.model.transformers import DecoderOnlyTransformer, EncoderDecoderTransformer

NEW = 4
each_kind = pytest.mark.parametrize("kind", KINDS)
each_penalty = pytest.mark.parametrize("length_penalty", [0.0, 0.6, 2.0])


def log_probs_after(model, sentence):
    logits, start = writers.next_logits(model, sentence), writers.start_of(model, sentence)

    @functools.cache
    def log_probs(new: tuple[int, ...]) -> torch.Tensor:
        return logits([*start, *new]).log_softmax(0)

    return lambda new: log_probs(tuple(new))


def plain_search(model, sentence, width, max_new_tokens, length_penalty):
    """Run `beam_search` for a translation; return its new ids and score."""
    after = log_probs_after(model, sentence)
    given = BOS, EOS, width, max_new_tokens + 1, length_penalty
    ids, score = beam_search(lambda ids: after(ids[1:]), *given)
    return ids[1:], score


def ending(model, favor: float = 2.0):
    """Make `<eos>` likelier, so that hypotheses end at every step."""
    added = torch.zeros(model.config.vocab_size)
    added[EOS] = favor
    return record(model, replace={"logits": lambda x: x + added})


@pytest.mark.slow
@each_penalty
@pytest.mark.parametrize("width", [1, 2, 5])
@pytest.mark.parametrize("seed", range(3))
def test_equals_the_plain_search(seed, width, length_penalty):
    model = lively(EncoderDecoderTransformer, seed)
    with ending(model):
        written = generate(model, SENTENCES, NEW, Beam(width, length_penalty))
        for row, sentence in enumerate(SENTENCES):
            ids, score = plain_search(model, sentence, width, NEW, length_penalty)
            assert written.ids[row] == ids
            total = written.sentence_log_probabilities[row]
            ours = length_normalized(total, len(ids), length_penalty)
            assert ours == pytest.approx(score, abs=1e-5)
            assert written.finished[row] == (ids[-1] == EOS)


@pytest.mark.slow
@each_kind
@pytest.mark.parametrize("width", [1, 3, 4])
def test_the_tree_tells_the_whole_search(kind, width):
    model = lively(kind, seed=3)
    with ending(model):
        written = generate(model, SENTENCES, 5, Beam(width), trees=True)
        for row, (sentence, tree) in enumerate(zip(SENTENCES, written.trees, strict=True)):
            log_probs = log_probs_after(model, sentence)
            running = {0: []}  # index of a kept candidate to its text
            texts = []
            for candidates in tree:
                sums = [candidate.log_probability for candidate in candidates]
                assert sums == sorted(sums, reverse=True)
                assert len(candidates) == len(running) * width
                assert {c.parent for c in candidates} == set(running)
                before, running = running, {}
                for index, candidate in enumerate(candidates):
                    texts.append(text := [*before[candidate.parent], candidate.token])
                    assert candidate.kept == (index < width)
                    assert candidate.finished == (candidate.kept and candidate.token == EOS)
                    if candidate.kept and not candidate.finished:
                        running[index] = text
                    total = sum(log_probs(text[:i])[id_].item() for i, id_ in enumerate(text))
                    assert candidate.log_probability == pytest.approx(total, abs=1e-4)
            assert written.ids[row] in texts


def test_impossible_tokens_are_no_candidates_however_wide_the_beam():
    model = lively(DecoderOnlyTransformer, vocab_size=5)
    only_3 = torch.tensor([0.0, -math.inf, -math.inf, 0.0, -math.inf])
    with record(model, replace={"logits": lambda x: x + only_3}):
        written = generate(model, [4], 3, Beam(99), trees=True)
    assert written.ids == [[3, 3, 3]]
    assert written.finished == [False]
    assert [len(step) for step in written.trees[0]] == [1, 1, 1]
    assert all(candidate.token != PAD for step in written.trees[0] for candidate in step)
