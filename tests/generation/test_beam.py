"""The batched beam search: equal to the plain one, to exhaustive search, and to greedy."""

import functools
import math

import pytest
import torch

from tests.generation import writers
from tests.generation.writers import BOS, EOS, KINDS, PAD, SENTENCES, lively
from transformer_lesson.generation import Beam, Candidate, beam_search, generate, length_normalized
from transformer_lesson.model.hooks import record
from transformer_lesson.model.transformers import DecoderOnlyTransformer, EncoderDecoderTransformer

NEW, MORE = 4, pytest.mark.everything
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
@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=MORE) for n in (1, 2))])
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
@pytest.mark.parametrize("length_penalty", [0.6, 1.5])
def test_stopping_early_changes_nothing_and_saves_steps(length_penalty):
    saved = 0
    for seed in range(4):
        model, calls = lively(EncoderDecoderTransformer, seed), []
        with ending(model):
            expected, _ = plain_search(model, [3], 2, 9, length_penalty)
            model.logits.register_forward_hook(lambda *_, calls=calls: calls.append(1))
            written = generate(model, [3], 9, Beam(2, length_penalty))
        assert written.ids[0] == expected
        saved += 9 - len(calls)
    assert saved > 0


def text_of(tree: list[list[Candidate]], step: int, index: int) -> list[int]:
    candidate = tree[step][index]
    return [*(text_of(tree, step - 1, candidate.parent) if step else []), candidate.token]


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
            for step, candidates in enumerate(tree):
                sums = [candidate.log_probability for candidate in candidates]
                assert sums == sorted(sums, reverse=True)
                assert len(candidates) == len(running) * width
                assert {c.parent for c in candidates} == set(running)
                n_kept = min(width, len(candidates))
                assert [c.kept for c in candidates] == [i < n_kept for i in range(len(candidates))]
                assert all(c.finished == (c.kept and c.token == EOS) for c in candidates)
                before, running = running, {}
                for index, candidate in enumerate(candidates):
                    text = text_of(tree, step, index)
                    assert text == [*before[candidate.parent], candidate.token]
                    if candidate.kept and not candidate.finished:
                        running[index] = text
                    if candidate.kept:
                        steps = range(len(text))
                        total = sum(log_probs(text[:i])[text[i]].item() for i in steps)
                        assert candidate.log_probability == pytest.approx(total, abs=1e-4)
            texts = [text_of(tree, s, i) for s, step in enumerate(tree) for i in range(len(step))]
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
