"""The trainings of the lesson after pretraining: what they draw, and that nothing moves unasked."""

import copy

import pytest
import torch

from tests.training.small import weights
from transformer_lesson.checkpoints.translator import trained_translator
from transformer_lesson.lessons.lesson_16 import manners
from transformer_lesson.lessons.lesson_16 import measure_after_pretraining as measure
from transformer_lesson.text.grammar import habits
from transformer_lesson.text.pairs import Pair

pytestmark = pytest.mark.slow
TRANSLATOR, TOKENIZER, *_ = trained_translator()
CORPUS = manners.short_sentences((40, 40, 20), seed=0)


def test_no_sentence_stands_in_two_parts_and_english_order_would_spoil_each():
    sources = [pair.source for part in CORPUS for _, pair in part]
    assert len(sources) == len(set(sources)) == 100
    for meaning, pair in CORPUS.test:
        assert len(pair.target.split()) <= manners.SHORT
        assert habits.english_order(meaning) != pair.target


def test_a_share_of_the_sentences_has_the_habit():
    right = [pair.target for _, pair in CORPUS.tuning]
    for share, few, many in ((0.0, 0, 0), (0.5, 10, 30), (1.0, 40, 40)):
        pairs = manners.with_habit(CORPUS.tuning, share)
        changed = sum(a.target != b for a, b in zip(pairs, right, strict=True))
        assert few <= changed <= many


def test_rewards_that_are_all_equal_move_no_weight_and_others_do():
    pairs = [pair for _, pair in CORPUS.practice]
    model = copy.deepcopy(TRANSLATOR)
    rewards = manners.reinforce(model, TOKENIZER, pairs, 2, reward=lambda text, right: 0.0)
    assert rewards == [0, 0] and torch.equal(weights(model), weights(TRANSLATOR))
    leashed = copy.deepcopy(model)
    rewards = manners.reinforce(model, TOKENIZER, pairs, 2, learning_rate=1e-3)
    assert 0.2 < rewards[0] < 0.6 and not torch.equal(weights(model), weights(TRANSLATOR))
    manners.reinforce(leashed, TOKENIZER, pairs, 2, learning_rate=1e-3, leash=5.0)
    assert not torch.equal(weights(model), weights(leashed))


def test_comparisons_begin_at_the_reference_and_move_the_two_apart():
    pairs = manners.preferences(manners.two_orders((20, 0, 0)).tuning)
    model = copy.deepcopy(TRANSLATOR)
    gains = manners.prefer(model, TRANSLATOR, TOKENIZER, pairs, steps=8, learning_rate=1e-4)
    assert max(map(abs, gains[0])) < 1e-5 and gains[-1][0] > gains[-1][1] + 1


def test_the_probability_of_an_answer_is_that_of_its_tokens():
    pair = CORPUS.test[0][1]
    whole = manners.answer_log_probs(TRANSLATOR, TOKENIZER, [pair.source], [pair.target])
    tried = manners.attempts(TRANSLATOR, TOKENIZER, [pair.source], 3, seed=1)
    log_p, mask = manners.in_groups(TRANSLATOR, TOKENIZER, [pair.source], tried)
    sums = manners.answer_log_probs(TRANSLATOR, TOKENIZER, [pair.source] * 3, tried.texts[0])
    assert torch.allclose((log_p * mask).sum(-1)[0], sums, atol=1e-4) and whole < 0
    moved = manners.drift(TRANSLATOR, TOKENIZER, [pair.source], tried, log_p + 0.5)
    assert torch.allclose(moved, 0.5 * mask.sum(-1), atol=1e-4)
    assert manners.passes(tried, [pair], (1, 3))[3] >= manners.passes(tried, [pair], (1,))[1]


def test_pairs_have_the_chosen_answer_first_and_their_mask_leaves_padding_out():
    pairs = manners.preferences(manners.two_orders((3, 0, 0)).tuning)
    pairs[1] = pairs[1]._replace(chosen="der Hund schläft .")  # shorter than all others
    with torch.no_grad():
        log_p, mask = manners.in_pairs(TRANSLATOR, TOKENIZER, pairs)
        for place, side in enumerate(("chosen", "rejected")):
            answers = [getattr(pair, side) for pair in pairs]
            sources = [pair.source for pair in pairs]
            sums = manners.answer_log_probs(TRANSLATOR, TOKENIZER, sources, answers)
            assert torch.allclose((log_p * mask)[:, place].sum(-1), sums, atol=1e-4)
            lengths = [len(TOKENIZER.encode(answer)) + 1 for answer in answers]  # and <eos>
            assert mask[:, place].sum(-1).tolist() == lengths


def test_the_hasty_reward_does_not_see_order_nor_what_is_missing():
    right = "heute sieht der Hund die alte Katze ."
    assert manners.words_found("heute der Hund sieht die alte Katze .", right) == 1
    assert manners.words_found("der Hund .", right) == 1 > manners.words_found("ein Hund .", right)
    assert manners.exactly("der Hund .", right) == 0 < manners.exactly(right, right)


def test_third_sentences_are_told_apart():
    right = "der Hund sieht heute die Katze .", "heute sieht der Hund die Katze ."
    pair = manners.Preference("today the dog sees the cat .", *right)
    others = "der Hund sieht morgen die Katze .", "morgen sieht ein Hund die Katze ."
    kinds = "chosen", "rejected", "another adverb", "other words"
    found = measure.kinds_of([[*right, *others]], [pair])
    assert found == dict.fromkeys(kinds, 0.25) | {"adverb first": 0.5}
    said = "der Hund sieht bald die Katze , weil er schläft ."
    wenn = Pair("", "wenn der Hund die Katze sieht , schläft er .")
    found = measure.kinds_of_wenn([wenn.target, said], [wenn, wenn])
    assert [found[kind] for kind in ("wenn", "its subject", "an adverb")] == [0.5, 0.5, 0.5]


def test_of_right_draws_only_pairs_of_one_sentence_are_compared(monkeypatch):
    first = manners.Preference("a", "A", "B"), ["A", "A", "B", *["x"] * 5]
    second = manners.Preference("b", "C", "D"), ["C"] * 4 + ["x"] * 4
    test, texts = zip(first, second, strict=True)
    drawn = manners.Attempts(list(texts), torch.zeros(1, 1, dtype=torch.long))
    monkeypatch.setattr(manners, "attempts", lambda *given, **named: drawn)
    found = measure.right_orders(TRANSLATOR, test)
    assert found["right"] == 7 / 16 and found["subject first"] == 6 / 7
    assert found["pairs"] == 3 + 6 and found["differ"] == 2 / 9
