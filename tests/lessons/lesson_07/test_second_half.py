"""Sentences that wait for a second half, with a verb of either language exchanged."""

import torch

from transformer_lesson.checkpoints.translator import trained_translator
from transformer_lesson.lessons.lesson_07.second_half import (
    GERMAN_VERBS,
    TWO_PARTS,
    Begun,
    hidden,
    most_frequent_by_verb,
    sentences,
    with_another_verb,
)


def test_another_verb_never_takes_the_half_that_is_due_and_keeps_its_number():
    two_parts, _ = sentences(60, seed=5)
    takes, plural = {}, {}
    for verb in TWO_PARTS:
        for form in (verb.german, verb.german_plural):
            takes.setdefault(form, set()).add(verb.particle)
            plural[form] = form == verb.german_plural
    changed = with_another_verb(two_parts, seed=5)
    assert len(changed) == 60
    for before, after in zip(two_parts, changed, strict=True):
        assert (before.english, before.due) == (after.english, after.due)
        words = zip(before.german.split(), after.german.split(), strict=True)
        ((old, new),) = [pair for pair in words if pair[0] != pair[1]]
        assert before.due in takes[old] and before.due not in takes[new]
        assert plural[old] == plural[new]


def test_a_verbs_most_frequent_half_counts_singular_and_plural_together():
    halves = {
        "das Kind macht das Fenster": ["auf", "zu", "zu"],
        "die Kinder machen das Fenster": ["auf", "auf"],  # of macht, auf leads by one
        "das Kind holt die Frau": ["ab"],
    }
    begun = [Begun("", german, half) for german, dues in halves.items() for half in dues]
    assert most_frequent_by_verb(begun) == 3 + 1


def test_a_hidden_verb_tells_no_later_word_which_one_it_is_and_then_is_seen_again():
    translator, tokenizer, _ = trained_translator()
    source = torch.tensor([[*tokenizer.encode("the child opens the window ."), tokenizer.eos_id]])
    verbs = torch.tensor([tokenizer.encode(verb)[0] for verb in GERMAN_VERBS])

    def after_fenster(verb, hide):
        german = f"das Kind {verb} das Fenster"
        target = torch.tensor([[tokenizer.bos_id, *tokenizer.encode(german)]])
        words = torch.isin(target, verbs)
        assert words.sum() == 1
        with torch.no_grad(), hidden(translator, words & hide):
            return translator(source, target)[0, -1]

    torch.testing.assert_close(after_fenster("macht", True), after_fenster("sieht", True))
    assert (after_fenster("macht", False) - after_fenster("sieht", False)).abs().max() > 1
