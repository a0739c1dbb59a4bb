"""The batched beam search: equal to the plain one, to exhaustive search, and to greedy."""

import functools
import itertools
import math

import pytest
import torch

from tests.generation.writers import (
    BOS,
    EOS,
    KINDS,
    PAD,
    SENTENCES,
    lively,
    next_logits,
    start_of,
)
from transformer_lesson.generation import Beam, Candidate, beam_search, generate, length_normalized
from transformer_lesson.model.hooks import record
from transformer_lesson.model.transformers import DecoderOnlyTransformer, EncoderDecoderTransformer

NEW = 4
each_kind = pytest.mark.parametrize("kind", KINDS)
each_penalty = pytest.mark.parametrize("length_penalty", [0.0, 0.6, 2.0])


def log_probs_after(model, sentence):
    """Return a function from the new ids to the next log-probabilities, for one sentence."""
    logits, start = next_logits(model, sentence), start_of(model, sentence)

    @functools.cache
    def log_probs(new: tuple[int, ...]) -> torch.Tensor:
        return logits([*start, *new]).log_softmax(0)

    return lambda new: log_probs(tuple(new))


def plain_search(model, sentence, width, max_new_tokens, length_penalty):
    """Run `beam_search` for a translation; return its new ids and score."""
    log_probs = log_probs_after(model, sentence)
    ids, score = beam_search(
        lambda ids: log_probs(ids[1:]), BOS, EOS, width, max_new_tokens + 1, length_penalty
    )
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


def all_texts():
    """Every text over five tokens that ends with its only <eos>, NEW tokens at most."""
    for length in range(NEW):
        for middle in itertools.product([BOS, 3, 4], repeat=length):
            yield (*middle, EOS)


@pytest.mark.slow
@each_kind
def test_a_beam_wide_enough_for_everything_finds_the_best_text_of_all(kind):
    lengths = set()
    for seed in range(4):
        model, sentence = lively(kind, seed, vocab_size=5), [3, 4, 4]
        with ending(model, 0.5):
            log_probs = log_probs_after(model, sentence)
            totals = {
                ids: sum(log_probs(ids[:i])[ids[i]].item() for i in range(len(ids)))
                for ids in all_texts()
            }
            for penalty in (0.0, 0.6, 2.0, 4.0):
                best = max(
                    totals, key=lambda ids: length_normalized(totals[ids], len(ids), penalty)
                )
                written = generate(model, sentence, NEW, Beam(4**NEW, penalty))
                assert tuple(written.ids[0]) == best
                assert written.sentence_log_probabilities[0] == pytest.approx(
                    totals[best], abs=1e-5
                )
                lengths.add(len(best))
    assert len(lengths) > 2  # the penalties had something to decide


@pytest.mark.slow
@each_kind
def test_width_1_is_greedy(kind):
    for seed in range(4):
        model = lively(kind, seed)
        greedy, beam = (generate(model, SENTENCES, 8, s) for s in (Beam(1), Beam(1, 0.0)))
        assert beam.ids == greedy.ids == generate(model, SENTENCES, 8).ids
        for a, b in zip(greedy.log_probabilities, beam.log_probabilities, strict=True):
            assert a == pytest.approx(b, abs=1e-5)


@pytest.mark.slow
@each_kind
def test_a_wider_beam_finds_a_likelier_text(kind):
    totals = []
    for width in (1, 2, 8):
        texts = [generate(lively(kind, seed), SENTENCES, 8, Beam(width, 0.0), eos_id=None)
                 for seed in range(3)]  # fmt: skip
        totals.append(sum(sum(text.sentence_log_probabilities) for text in texts))
    assert totals[0] < totals[1] < totals[2]


def test_a_width_beyond_the_vocabulary_keeps_what_there_is():
    model = lively(DecoderOnlyTransformer, vocab_size=5)
    written = generate(model, [3], 1, Beam(99), trees=True)
    assert len(written.trees[0][0]) == 4  # <pad> is no candidate
    assert all(candidate.kept for candidate in written.trees[0][0])


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


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_beams_of_several_sentences_do_not_mix(seed):
    model = lively(EncoderDecoderTransformer, seed)
    with ending(model, 3.0):
        together = generate(model, SENTENCES, 6, Beam(3), trees=True)
        for row, sentence in enumerate(SENTENCES):
            alone = generate(model, sentence, 6, Beam(3), trees=True)
            assert alone.ids[0] == together.ids[row]
            shapes = [
                [[(c.parent, c.token, c.kept, c.finished) for c in step] for step in tree]
                for tree in (alone.trees[0], together.trees[row])
            ]
            assert shapes[0] == shapes[1]


def test_the_tree_of_a_sentence_ends_when_it_is_done():
    model = lively(EncoderDecoderTransformer)
    row_is_sure = torch.zeros(3, 1, 13)
    row_is_sure[1, :, EOS] = 99.0

    def end_one(logits):
        return logits + row_is_sure.repeat_interleave(len(logits) // 3, dim=0)

    with record(model, replace={"logits": end_one}):
        trees = generate(model, SENTENCES, 6, Beam(3), trees=True).trees
    assert len(trees[1]) == 1
    assert len(trees[0]) > 1


def text_of(tree: list[list[Candidate]], step: int, index: int) -> list[int]:
    """Return the tokens of a candidate, following its parents back."""
    candidate = tree[step][index]
    before = text_of(tree, step - 1, candidate.parent) if step else []
    return [*before, candidate.token]


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
                assert sum(c.kept for c in candidates) == min(width, len(candidates))
                assert [c.kept for c in candidates] == sorted(
                    (c.kept for c in candidates), reverse=True
                )
                for c in candidates:
                    assert c.finished == (c.kept and c.token == EOS)
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


def test_candidates_are_each_beams_best_tokens():
    model = lively(DecoderOnlyTransformer)
    [tree] = generate(model, [3, 4], 1, Beam(3), trees=True).trees
    expected = log_probs_after(model, [3, 4])([]).topk(3)
    assert [candidate.token for candidate in tree[0]] == expected.indices.tolist()
    assert [candidate.parent for candidate in tree[0]] == [0, 0, 0]


def test_impossible_tokens_are_no_candidates():
    model = lively(DecoderOnlyTransformer, vocab_size=5)
    only_3 = torch.tensor([0.0, -math.inf, -math.inf, 0.0, -math.inf])
    with record(model, replace={"logits": lambda x: x + only_3}):
        written = generate(model, [4], 3, Beam(4), trees=True)
    assert written.ids == [[3, 3, 3]]
    assert written.finished == [False]
    assert [len(step) for step in written.trees[0]] == [1, 1, 1]
    assert all(candidate.token != PAD for step in written.trees[0] for candidate in step)
