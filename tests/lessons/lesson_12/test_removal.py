"""What is stored about heads and blocks, and how a mean is put in their place."""

from statistics import fmean, variance

import pytest
import torch

from tests.parity import randomized, small_config
from tests.real_weights import needs_weights
from transformer_lesson.checkpoints import from_pretrained
from transformer_lesson.checkpoints.llama_cpp import read_tokenizer
from transformer_lesson.checkpoints.weights import weights
from transformer_lesson.lessons.lesson_12 import removal
from transformer_lesson.lessons.lesson_12.removal import Part
from transformer_lesson.model.hooks import record
from transformer_lesson.model.transformers import DecoderOnlyTransformer

TEXTS = [[1, 5, 7, 2], [3, 3, 8]]


@pytest.fixture
def model():
    torch.manual_seed(12)
    return randomized(
        DecoderOnlyTransformer(small_config(vocab_size=11, d_model=12, n_heads=3))
    ).eval()


@torch.no_grad()
def test_means_are_over_all_tokens_but_the_first_of_each_text(model):
    mean, rows = removal.means(model, TEXTS), []
    for text in TEXTS:
        with record(model) as run:
            model(torch.tensor([text]))
        added = run["decoder.1.output"] - run["decoder.0.output"]
        rows.append((run["decoder.1.self_attention.heads"][0, :, 1:], added[0, 1:]))
    heads, added = (torch.cat([row[i] for row in rows], dim=1 - i) for i in (0, 1))
    assert torch.allclose(mean.heads[1], heads.mean(dim=1), atol=1e-6)
    assert torch.allclose(mean.added[1], added.mean(dim=0), atol=1e-5)


@torch.no_grad()
def test_a_replaced_part_gives_its_mean_to_all_tokens_but_the_first_and_others_stay(model):
    mean, ids = removal.means(model, TEXTS), torch.tensor([[4, 6, 1, 9], [2, 2, 5, 7]])
    with record(model) as whole:
        model(ids)
    with record(model, removal.heads_replaced([Part(1, 2), Part(1, 0), Part(0, 1)], mean)) as run:
        model(ids)
    first, second = (run[f"decoder.{i}.self_attention.heads"] for i in (0, 1))
    assert torch.equal(first[:, 1, 1:], mean.heads[0, 1].expand(2, 3, -1))
    for head in (0, 2):
        assert torch.equal(second[:, head, 1:], mean.heads[1, head].expand(2, 3, -1))
    before = whole["decoder.0.self_attention.heads"]
    assert torch.equal(first[:, [0, 2]], before[:, [0, 2]]) and not torch.equal(first, before)
    assert torch.equal(first[:, 1, 0], before[:, 1, 0])
    stream = whole["decoder.0.output"]
    with record(model, removal.block_replaced(1, mean, stream)) as run:
        model(ids)
    after = run["decoder.1.output"]
    assert torch.equal(after[:, 1:], stream[:, 1:] + mean.added[1])
    assert torch.equal(after[:, 0], whole["decoder.1.output"][:, 0])


def test_every_head_and_block_is_stored_and_a_measure_has_each_in_its_place():
    stored = removal.stored()
    assert list(stored) == [None, *removal.heads(), *map(Part, range(30))]
    assert all(len(one.country) == len(one.capital) == 10 for one in stored.values())
    again = [part for part in removal.heads() if part.block in removal.FRESH_BLOCKS]
    assert [part for part, one in stored.items() if len(one.copies) == 16] == [None, *again]
    assert [part for part, one in stored.items() if len(one.sentences) == 12] == [None, *again]
    tried = [None, *removal.heads(removal.FRESH_FROM)]
    assert [part for part, one in stored.items() if len(one.fresh) == 10] == tried
    first, prose, copying = removal.measures()
    without = stored[Part(23, 4)]
    assert first.heads[23, 4] == pytest.approx(sum(without.capital) / 10) and first.worst == 0
    assert copying.blocks[16] == pytest.approx(stored[Part(16)].copy)
    assert prose.worst == prose.whole + 2


def test_what_the_lesson_claims_of_single_heads_holds_for_what_is_stored():
    stored = removal.stored()
    capital = {part: fmean(stored[part].capital) for part in removal.heads()}
    copying = {part: removal.change(part, "copy") for part in removal.heads()}
    whole = fmean(stored[None].capital)
    assert [part for part, P in capital.items() if P < whole / 2] == [Part(23, 4)]
    assert sorted(copying, key=copying.get)[-2:] == [Part(1, 4), Part(16, 0)]
    change, low, high = removal.mean_change(Part(23, 4), "capital")
    assert change == pytest.approx(capital[Part(23, 4)] - whole) and low < change < high < -0.3
    early = [whole - capital[part] for part in removal.heads() if part.block < removal.FRESH_FROM]
    assert max(early) < 0.06
    tried = removal.heads(removal.FRESH_FROM)
    fresh = sorted((fmean(stored[part].fresh), part) for part in tried)
    assert [part for _, part in fresh[:2]] == [Part(23, 4), Part(29, 1)]
    assert not [P for P, _ in fresh if P < fmean(stored[None].fresh) / 2]
    assert removal.mean_change(Part(23, 4), "fresh")[2] < -0.1


@pytest.mark.parametrize(("head", "less"), [(Part(23, 4), True), (Part(29, 1), False)])
def test_the_two_tens_of_countries_differ_by_more_than_their_noise(head, less):
    stored = removal.stored()
    first, fresh = (
        [b - a for a, b in zip(*(getattr(stored[key], name) for key in (None, head)), strict=True)]
        for name in ("capital", "fresh")
    )
    difference, low, high = removal.fresh_minus_first(head)
    assert difference == pytest.approx(fmean(fresh) - fmean(first))
    error = ((variance(first) + variance(fresh)) / 10) ** 0.5
    assert high - difference == pytest.approx(2.262 * error) == difference - low
    assert low > 0 if less else high < 0


def test_what_copying_needs_holds_on_sequences_that_picked_no_head():
    again = [part for part in removal.heads() if part.block in removal.FRESH_BLOCKS]
    costs = {part: removal.mean_change(part, "copies") for part in again}
    assert sorted(costs, key=lambda part: costs[part][0])[-2:] == [Part(1, 4), Part(16, 0)]
    assert costs[Part(16, 0)][1] > 5 and costs[Part(18, 6)][1] > 1.5 and costs[Part(1, 4)][1] > 0.5
    beside = [costs[Part(16, head)][0] for head in range(1, 9)]
    assert max(beside) < 0.3
    assert costs[Part(23, 4)][2] < 0
    for part in (Part(23, 4), Part(16, 0), Part(18, 6), Part(29, 1)):  # prose hardly needs them
        mean, low, high = removal.mean_change(part, "sentences")
        assert low < 0 < high and abs(mean) < 0.03


def test_fresh_sequences_are_others_than_those_that_picked_a_head():
    first, fresh = removal.random_twice(), removal.random_twice(*removal.FRESH_COPIES)
    assert first.shape == (4, 64) and fresh.shape == (16, 64)
    assert not {tuple(row) for row in first.tolist()} & {tuple(row) for row in fresh.tolist()}
    assert torch.equal(fresh[:, :32], fresh[:, 32:])


@pytest.mark.everything
@pytest.mark.slow
@needs_weights("SmolLM2")
@torch.no_grad()
def test_what_is_stored_is_what_the_model_does():
    path = weights("SmolLM2")
    model, tokenizer = from_pretrained(path), read_tokenizer(path)
    others = removal.conversations(tokenizer, removal.OTHERS.items())
    runs = removal.Runs(model, tokenizer, removal.means(model, others))
    for part in (None, Part(29, 1), Part(28)):
        for found, kept in zip(runs.effects(part), removal.stored()[part], strict=True):
            assert found == pytest.approx(kept, abs=0.006), part
