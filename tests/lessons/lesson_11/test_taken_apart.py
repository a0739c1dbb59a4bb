"""Sentences of one verb, squeezed features, a sparse dictionary, and a model that was written."""

import pytest
import torch

from transformer_lesson.checkpoints.translator import trained_translator
from transformer_lesson.lessons.lesson_11 import induction, particles, programmed_induction
from transformer_lesson.lessons.lesson_11.sparse_autoencoder import (
    share_explained,
    train_sparse_autoencoder,
)
from transformer_lesson.lessons.lesson_11.superposition import squeeze
from transformer_lesson.model.hooks import record


def test_two_sentences_differ_in_their_verb_and_in_german_in_their_last_word():
    pairs = particles.opened_and_closed(30, seed=3)
    assert len({opens.source for opens, _ in pairs}) == 30
    for opens, closes in pairs:
        words = zip(opens.source.split(), closes.source.split(), strict=True)
        ((one, other),) = [pair for pair in words if pair[0] != pair[1]]
        assert one.replace("open", "close") == other
        assert opens.target.split()[:-2] == closes.target.split()[:-2]
        assert opens.target.endswith(" auf .") and closes.target.endswith(" zu .")


def test_a_batch_knows_where_its_verb_period_and_last_word_are():
    tokenizer = trained_translator().tokenizer
    pairs = particles.opened_and_closed(30, seed=3)
    batch, rows = particles.choices(pairs, tokenizer), torch.arange(30)
    words = {number: word for word, number in tokenizer.vocabulary.items()}
    for row, (opens, _) in enumerate(pairs):
        assert words[batch.opens[row, batch.verb[row]].item()] in ("open", "opens")
        assert words[batch.closes[row, batch.verb[row]].item()] in ("close", "closes")
        assert words[batch.written[row, batch.last[row]].item()] == opens.target.split()[-3]
    ends = batch.opens[rows, batch.period].unique().tolist()
    assert ends == tokenizer.encode(".") and (batch.written[:, 0] == tokenizer.bos_id).all()


@pytest.mark.slow
def test_rare_features_share_two_dimensions_and_dense_ones_do_not():
    dense, rare = squeeze(1.0, steps=1000), squeeze(0.05, steps=600)
    assert dense.kept() == 2 and rare.kept() == 5
    assert rare.loss < dense.loss and rare.W.shape == (5, 2)
    with pytest.raises(ValueError, match="density is 0.0, but a share of the time"):
        squeeze(0.0)


def test_a_dictionary_finds_the_directions_that_vectors_are_made_of():
    generator = torch.Generator().manual_seed(1)
    directions = torch.nn.functional.normalize(torch.randn(11, 7, generator=generator), dim=1)
    which = torch.rand(3000, 11, generator=generator).argsort(dim=1)[:, :2]
    sizes = 0.5 + torch.rand(3000, 2, 1, generator=generator)
    vectors = (sizes * directions[which]).sum(dim=1)
    before = train_sparse_autoencoder(vectors, 15, 2, steps=0)
    learned = train_sparse_autoencoder(vectors, 15, 2, steps=600)
    found = [((directions @ one.W_out.T).amax(dim=1) > 0.9).sum() for one in (before, learned)]
    assert found[0] <= 2 and found[1] >= 9
    assert share_explained(before, vectors) + 0.3 < share_explained(learned, vectors) < 1
    assert (learned.features(vectors) > 0).sum(dim=1).max() <= 2
    torch.testing.assert_close(learned.W_out.norm(dim=1), torch.ones(15))


def test_a_programmed_model_does_what_was_written():
    model, batch = programmed_induction.programmed_model(), induction.held_out_batch(batch_size=8)
    with torch.no_grad(), record(model) as run:
        model(*batch.inputs)
    first, second = (run[f"decoder.{i}.self_attention.weights"] for i in (0, 1))
    assert first[:, 0].diagonal(-1, dim1=-2, dim2=-1).min() > 0.9
    assert first[:, 1].diagonal(-3, dim1=-2, dim2=-1).min() > 0.9
    assert second[:, 0].diagonal(-23, dim1=-2, dim2=-1)[:, 1:].mean() > 0.9
    # position 0 has no token before it and notes its own: where that comes again, it is torn
    assert 0.94 < induction.repeated_accuracy(model, batch) < 1
