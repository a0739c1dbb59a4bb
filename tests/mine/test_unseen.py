"""A change counted on sentences that training lacked, beside the unchanged model."""

import pytest
import torch

from transformer_lesson.checkpoints.translator import trained_translator
from transformer_lesson.generation import translate
from transformer_lesson.mine import translations
from transformer_lesson.mine.unseen import MOST, MOST_WRITTEN, SEED
from transformer_lesson.text import grammar
from transformer_lesson.training.tasks import N_GRAMMAR

pytestmark = pytest.mark.slow


def test_a_change_is_counted_beside_its_control_and_shows_its_failures():
    def sees_all(n):
        return torch.ones(n, n, dtype=torch.bool)

    result = translations(20, causal_mask=sees_all)
    assert result.written.startswith("das Kind") and result.control == 20
    assert 3 < result.right < 17
    shown = repr(result)
    assert f"\n{result.right} of 20 unseen sentences are right (95 % interval: " in shown
    assert "unchanged, 20 of 20" in shown
    failures = result.failures()
    assert len(failures) == 3 == shown.count("wrote: ") and failures == result.failures()
    for source, right, written in failures:
        place = [pair.source for pair in result.pairs].index(source)
        assert (right, written) == (result.pairs[place].target, result.changed[place])
        assert right != written and f"\n  {source}\n  right: {right}\n" in shown


def test_unchanged_it_translates_as_one_sentence_at_a_time():
    result, (model, tokenizer, _) = translations(12), trained_translator()
    assert result.changed == result.unchanged
    alone = [translate(model, tokenizer, [pair.source])[0] for pair in result.pairs]
    assert [*result.changed] == alone
    assert "wrote" not in repr(result)


def test_what_writes_nothing_or_without_end_is_shown_so():
    def nothing(x, sublayer, norm):
        return torch.full_like(x, torch.nan)

    assert "because its logits are NaN" in translations(1, residual_branch=nothing).written
    endless = translations(8, "the dog sees the cat .", residual_branch=lambda x, f, norm: f(x))
    words = [len(text.split()) for text in endless.changed]
    assert endless.right == 0 and max(words) <= MOST_WRITTEN
    assert endless.empty == words.count(0)
    assert ("…" in repr(endless)) == any(
        len(text.split()) == MOST_WRITTEN
        for text in [endless.written, *(written for _, _, written in endless.failures())]
    )


@pytest.mark.parametrize("n", [0, -1, MOST + 1])
def test_a_number_out_of_range_is_a_sentence(n):
    with pytest.raises(ValueError, match="n is a number of sentences, 1 to 500, got"):
        translations(n)


@pytest.mark.everything
def test_training_had_none_of_the_sentences():
    known = {pair.source for pair in grammar.splits(N_GRAMMAR, 0, seed=0).train}
    sample = grammar.splits(0, MOST, SEED).unseen[:MOST]
    assert len(sample) == MOST
    assert [pair.source for pair in sample if pair.source in known] == []
