"""Repeated sequences, the model that reads them, and whether induction heads form in it."""

from dataclasses import replace
from itertools import islice

import pytest
import torch

from tests.parity import assert_equal, randomized
from transformer_lesson.interpretability.causality import leaks_future
from transformer_lesson.interpretability.head_scores import induction_score, previous_token_score
from transformer_lesson.lessons.lesson_11 import induction
from transformer_lesson.lessons.lesson_11.induction import RepeatedSequences, repeated_sequences
from transformer_lesson.model.attention import scaled_dot_product_attention, split_heads
from transformer_lesson.model.hooks import hook_point_names, record
from transformer_lesson.model.masks import causal_mask
from transformer_lesson.model.positions import sinusoidal_encoding
from transformer_lesson.training import train

SMALL = replace(induction.CONFIG, vocab_size=13, d_model=12, n_heads=3, max_len=11)
IDS = torch.tensor([[3, 1, 4, 1, 5, 9, 2]])


def test_rows_repeat_their_own_segment_of_different_tokens():
    rows = repeated_sequences([3, 5, 7], 11, 13, seed=0)
    for row, period in zip(rows.tolist(), (3, 5, 7), strict=True):
        assert len(set(row[:period])) == period
        assert row == (4 * row[:period])[:11]
        assert all(0 <= id_ < 13 for id_ in row)
    again, other = (repeated_sequences([3, 5, 7], 11, 13, seed=seed) for seed in (0, 2))
    assert torch.equal(rows, again) and not torch.equal(rows, other)


@pytest.mark.parametrize(("periods", "said"), [([0], "a period is 0"), ([14], "14"), ([], "empty")])
def test_impossible_periods_are_refused(periods, said):
    with pytest.raises(ValueError, match=said):
        repeated_sequences(periods, 9, 13, seed=0)


def test_batches_are_shifted_and_differ_and_segments_have_every_length():
    batches = RepeatedSequences(SMALL, 6, seed=4, shortest=2, longest=4)
    first, second = islice(batches, 2)
    (ids,) = first.inputs
    assert ids.shape == first.labels.shape == (6, 11)
    assert torch.equal(ids[:, 1:], first.labels[:, :-1])
    assert not torch.equal(ids, second.inputs[0])
    skipped = next(batches.starting_at(1))
    assert torch.equal(skipped.inputs[0], second.inputs[0])
    (ids,) = next(iter(RepeatedSequences(SMALL, 60, shortest=2, longest=4))).inputs
    assert {len(set(row)) for row in ids.tolist()} == {2, 3, 4}
    for shortest, longest in ((0, 4), (5, 4), (2, 14)):
        with pytest.raises(ValueError, match=f"segments of {shortest} to {longest}"):
            RepeatedSequences(SMALL, 6, shortest=shortest, longest=longest)


def test_foreign_tokens_may_stand_before_the_first_segment():
    rows = repeated_sequences([3, 5], 11, 13, seed=0, prefixes=[4, 0])
    for row, period, prefix in zip(rows.tolist(), (3, 5), (4, 0), strict=True):
        segment = row[prefix : prefix + period]
        assert len({*row[:prefix], *segment}) == prefix + period
        assert row[prefix:] == (11 * segment)[: 11 - prefix]
    with pytest.raises(ValueError, match="a period is 10, but a segment has 1 to 9 .* prefix of 4"):
        repeated_sequences([10], 11, 13, seed=0, prefixes=[4])
    batches = RepeatedSequences(SMALL, 60, shortest=2, longest=4, longest_prefix=3)
    found = set()
    for row in next(iter(batches)).inputs[0].tolist():
        again = next(i for i in range(11) if row[i] in row[:i])  # where the second copy begins
        found.add(row.index(row[again]))
    assert found == {0, 1, 2, 3}
    with pytest.raises(ValueError, match="vocab_size - longest_prefix = 9"):
        RepeatedSequences(SMALL, 6, shortest=2, longest=10, longest_prefix=4)
    with pytest.raises(ValueError, match="no prefix is shorter than 0"):
        RepeatedSequences(SMALL, 6, shortest=2, longest=4, longest_prefix=-1)


def test_behind_foreign_tokens_a_segment_of_8_stands_twice():
    batch = induction.after_foreign_tokens(5, batch_size=3)
    known = (torch.arange(21) >= 13).expand(3, 21)
    assert batch.inputs[0].shape == (3, 21) and torch.equal(induction.repeated_part(batch), known)
    assert torch.equal(batch.inputs[0][:, 5:13], batch.inputs[0][:, 13:])


def test_what_is_stored_is_three_seeds_and_two_warm_ups():
    stored = induction.stored()
    assert [one["seed"] for one in stored["seeds"]] == [0, 1, 2]
    runs = [(one["warm_up"], one["seed"]) for one in stored["curves"]]
    assert runs == [(50, 0), (50, 1), (50, 2), (5, 0), (5, 1), (5, 2)]


def test_accuracy_counts_from_where_a_token_is_read_again():
    batch = next(iter(RepeatedSequences(SMALL, 3, shortest=4, longest=4)))
    assert torch.equal(induction.repeated_part(batch), (torch.arange(11) >= 4).expand(3, 11))
    batch = induction.held_out_batch()

    class Copies(torch.nn.Module):
        def forward(self, ids):
            return torch.nn.functional.one_hot(ids.roll(23, dims=1), 48).float()

    assert induction.repeated_accuracy(Copies(), batch) == 1.0


@pytest.mark.parametrize("in_stream", [False, True])
def test_it_is_causal_and_can_be_recorded(in_stream):
    model = randomized(induction.AttentionOnlyDecoder(SMALL, in_stream)).eval()
    assert not leaks_future(model, IDS)
    with record(model) as run:
        logits = model(IDS)
    assert sorted(run) == sorted(hook_point_names(model))
    assert_equal(run["decoder.1.output"] @ model.projection.weight.T, logits)


def test_positions_reach_queries_and_keys_and_nothing_else():
    model = randomized(induction.AttentionOnlyDecoder(SMALL)).eval()
    with record(model) as run:
        model(IDS)
    attention, x = model.decoder[0].self_attention, run["embedding.output"]
    placed = x + sinusoidal_encoding(7, 12)
    Q, K = (split_heads(W(placed), 3) for W in (attention.W_Q, attention.W_K))
    V = split_heads(attention.W_V(x), 3)
    heads, weights = scaled_dot_product_attention(Q, K, V, causal_mask(7))
    assert_equal(run["decoder.0.self_attention.weights"], weights)
    assert_equal(run["decoder.0.self_attention.heads"], heads)
    assert_equal(x, run["embedding.tokens"])


def test_positions_in_the_stream_are_added_once():
    model = randomized(induction.AttentionOnlyDecoder(SMALL, positions_in_stream=True)).eval()
    with record(model) as run:
        model(IDS)
    x = run["embedding.output"]
    assert_equal(x, run["embedding.tokens"] + sinusoidal_encoding(7, 12))
    expected = split_heads(model.decoder[0].self_attention.W_Q(x), 3)
    assert_equal(run["decoder.0.self_attention.queries"], expected)


@pytest.mark.everything
def test_induction_heads_form():
    """The recipe, whole: 200 steps, some 5 seconds."""
    torch.manual_seed(0)
    model = induction.AttentionOnlyDecoder()
    train(model, RepeatedSequences(seed=0), induction.TRAINING)
    mixed = next(iter(RepeatedSequences(batch_size=64, seed=77)))
    assert induction.repeated_accuracy(model, mixed) > 0.99
    with torch.no_grad(), record(model) as run:
        model(*induction.held_out_batch().inputs)
    first, second = (run[f"decoder.{i}.self_attention.weights"] for i in (0, 1))
    assert induction_score(second, induction.LONGEST).max() > 0.85
    assert induction_score(first, induction.LONGEST).max() < 0.2
    assert previous_token_score(first).max() > 0.25


def test_looking_back_moves_all_weight_of_late_queries_and_of_block_0_only():
    torch.manual_seed(11)
    model, ids = induction.AttentionOnlyDecoder(SMALL), torch.randint(SMALL.vocab_size, (3, 7))
    with torch.no_grad(), record(model) as free:
        model(ids)
    with torch.no_grad(), record(model, induction.looking_back(2, first=5)) as forced:
        model(ids)
    before, after = (run["decoder.0.self_attention.weights"] for run in (free, forced))
    assert torch.equal(after[:, :, :5], before[:, :, :5])
    for query in (5, 6):
        assert (after[:, :, query, query - 2] == 1).all()
        assert (after[:, :, query].sum(dim=-1) == 1).all()
    later = [run["decoder.1.self_attention.weights"] for run in (free, forced)]
    assert torch.equal(later[0][:, :, :5], later[1][:, :, :5])
    assert not ((later[1] == 0) | (later[1] == 1)).all()
