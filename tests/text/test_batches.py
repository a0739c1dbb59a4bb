"""Batches show every pair once per epoch, in an order that the seed alone decides."""

import itertools
import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_lesson.text import count_padding, menus
from transformer_lesson.text.batches import (
    TranslationBatches,
    WindowBatches,
    compare_padding,
    epoch,
    shift_right,
    windows_in_order,
)
from transformer_lesson.text.pairs import Pair
from transformer_lesson.text.tokenizers import WordTokenizer

MENUS = menus.pairs()
WORDS = WordTokenizer.train([text for pair in MENUS for text in (pair.source, pair.target)])
FEW = [Pair("a b", "c"), Pair("a", "c c c"), Pair("b a b", "c c")]
LETTERS = WordTokenizer.train(["a b c"])  # a, b, c have the ids 4, 5, 6


def as_lists(batch):
    return [tensor.tolist() for tensor in (*batch.inputs, batch.labels)]


def first(batches, n, start=0):
    return [as_lists(batch) for batch in itertools.islice(batches, start, start + n)]


def pairs_of(batch):
    """The (source, labels) ids of each row, without the padding."""
    rows = zip(batch.inputs[0].tolist(), batch.labels.tolist(), strict=True)
    return [tuple(tuple(id_ for id_ in ids if id_ != 0) for ids in row) for row in rows]


def test_batches_by_hand():
    inputs, labels = shift_right(torch.tensor([[1, 7, 8, 2], [1, 9, 2, 0]]))
    assert inputs.tolist() == [[1, 7, 8], [1, 9, 2]]
    assert labels.tolist() == [[7, 8, 2], [9, 2, 0]]
    (batch,) = epoch(FEW, LETTERS, batch_size=3)
    source, target = batch.inputs
    assert source.tolist() == [[4, 5, 2, 0], [4, 2, 0, 0], [5, 4, 5, 2]]
    assert target.tolist() == [[1, 6, 2, 0], [1, 6, 6, 6], [1, 6, 6, 2]]
    assert batch.labels.tolist() == [[6, 2, 0, 0], [6, 6, 6, 2], [6, 6, 2, 0]]
    assert {tensor.dtype for tensor in (source, target, batch.labels)} == {torch.int64}
    assert [len(batch.labels) for batch in epoch(FEW, LETTERS, 2)] == [2, 1]
    batches = TranslationBatches(FEW, LETTERS, 1)
    assert batches.max_len == 5  # <bos> c c c <eos>
    assert TranslationBatches([Pair("a a a", "c")], LETTERS, 1).max_len == 4  # a a a <eos>


@pytest.mark.slow
@settings(deadline=None)
@given(st.integers(1, 40), st.integers(1, 9), st.booleans(), st.integers(0, 5))
def test_every_epoch_has_every_pair_once(n_pairs, batch_size, group_by_length, seed):
    pairs = [Pair("a " * (i % 7) + "b", "c " * (i + 1)) for i in range(n_pairs)]
    batches = iter(TranslationBatches(pairs, LETTERS, batch_size, seed, group_by_length))
    expected = sorted(pairs_of(epoch(pairs, LETTERS, n_pairs)[0]))
    for _ in range(2):
        n_batches = -(-n_pairs // batch_size)
        parts = list(itertools.islice(batches, n_batches))
        sizes = sorted(len(part.labels) for part in parts)
        assert sizes[1:] == [batch_size] * (n_batches - 1) and sizes[0] > 0
        assert sorted(pair for part in parts for pair in pairs_of(part)) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda seed: TranslationBatches(MENUS, WORDS, 64, seed),
        lambda seed: TranslationBatches(MENUS, WORDS, 64, seed, group_by_length=False),
        lambda seed: WindowBatches(range(500), 4, 20, seed),
    ],
    ids=["by length", "shuffled", "windows"],
)
def test_the_seed_alone_decides(make, unchecked):  # beartype draws random numbers of its own
    before, torch_before = random.getstate(), torch.get_rng_state()
    batches = make(3)
    expected = first(batches, 40)
    assert random.getstate() == before and torch.equal(torch.get_rng_state(), torch_before)
    random.random()
    torch.rand(5)
    assert first(batches, 40) == expected  # a second iter() begins again
    assert first(make(3), 40) == expected
    assert first(make(4), 40) != expected
    assert expected[:17] != expected[17:34]  # the second epoch of 1,067 pairs has a new order
    assert first(batches, 5, start=33) == first(batches.starting_at(33), 5) == expected[33:38]


@pytest.mark.parametrize("group_by_length", [True, False])
def test_padding_is_what_the_tensors_hold(group_by_length):
    made = TranslationBatches(MENUS, WORDS, 50, seed=2, group_by_length=group_by_length)
    batches = itertools.islice(made, 22)  # an epoch
    flat = torch.cat([t.flatten() for b in batches for t in (b.inputs[0], b.labels)])
    assert made.padding == pytest.approx(count_padding(flat[None], WORDS.pad_id))


def test_grouped_batches_are_not_sorted_and_save_most_of_the_padding():
    batches = list(itertools.islice(TranslationBatches(MENUS, WORDS, 32), 33))
    widths = [batch.labels.shape[1] for batch in batches]
    assert widths != sorted(widths) and widths != sorted(widths, reverse=True)
    shares = compare_padding(MENUS, WORDS, batch_size=32)
    assert list(shares) == ["shuffled", "grouped by length"]
    assert 0 < shares["grouped by length"] < shares["shuffled"] / 3


def test_windows_are_pieces_of_the_text_and_labels_come_one_later():
    batches = WindowBatches(range(100, 130), batch_size=3, length=8)
    starts = set()
    for batch in itertools.islice(batches, 200):
        (inputs,) = batch.inputs
        assert inputs.shape == batch.labels.shape == (3, 8)
        assert torch.equal(batch.labels, inputs + 1)
        assert (inputs.diff(dim=1) == 1).all()
        starts |= set(inputs[:, 0].tolist())
    assert starts == set(range(100, 122))  # the last window's label is 129, the last token


@settings(deadline=None)
@given(st.integers(2, 60), st.integers(1, 5), st.integers(1, 59))
def test_validation_windows_predict_every_token_but_the_first_once(n, batch_size, length):
    length = min(length, n - 1)
    batches = windows_in_order(torch.arange(n), batch_size, length)
    labels = torch.cat([batch.labels.flatten() for batch in batches])
    assert labels.tolist() == list(range(1, n))
    assert all(torch.equal(batch.inputs[0] + 1, batch.labels) for batch in batches)
    assert all(batch.labels.shape[0] <= batch_size for batch in batches)
    assert all(batch.labels.shape[1] == length for batch in batches[:-1])


def both(kinds, message, *arguments):
    """Cases of an endless and of a finite kind of batches."""
    return [(lambda kind=kind: kind(*arguments), message) for kind in kinds]


SHORT = "2 tokens or more.*got {}: put <bos> and <eos>"
PAIRED, WINDOWED = (TranslationBatches, epoch), (WindowBatches, windows_in_order)
NO_IDS = [[1, 2.7, 3], torch.tensor([0.5, 1.5, 2.5]), [[1, 2], [3, 4], [5, 6]], "hello"]
WHOLE = "ids of a text must be whole numbers in one row, got "
BAD = [
    *both([shift_right], SHORT.format(0), torch.ones(3, 0, dtype=torch.int64)),
    *both([shift_right], SHORT.format(1), torch.ones(3, 1, dtype=torch.int64)),
    *both(PAIRED, "no pairs to make batches of", [], LETTERS, 4),
    *both(PAIRED, "1 has an empty side, 'a' and ' '", [FEW[0], Pair("a", " ")], LETTERS, 4),
    *both(PAIRED, "Pair 0 has an empty side", [Pair("", "c")], LETTERS, 4),
    *both(
        PAIRED, r"1 is \('a', 'b'\), but it must be a Pair: write", [FEW[0], ("a", "b")], LETTERS, 4
    ),
    *both(PAIRED, "batch_size must be 1 or more, got 0", FEW, LETTERS, 0),
    *both(WINDOWED, "window of 8 tokens and .* need a text of 9 tokens.*got 8", range(8), 2, 8),
    *both(WINDOWED, "got 0: take a longer text", [], 2, 1),
    *both(WINDOWED, "length must be 1 or more tokens, got 0", range(8), 2, 0),
    *both(WINDOWED, "batch_size must be 1 or more, got -1", range(8), -1, 4),
    *(case for ids in NO_IDS for case in both(WINDOWED, WHOLE, ids, 2, 2)),
]


@pytest.mark.parametrize(("make", "message"), BAD)
def test_what_makes_no_batch_is_refused(make, message, unchecked):
    with pytest.raises(ValueError, match=message):
        make()
