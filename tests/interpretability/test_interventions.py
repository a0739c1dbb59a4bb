"""Taking heads away and patching: what is changed, what is not, and what it does to a model."""

import pytest
import torch
import torch.nn.functional as F

from tests.parity import assert_equal, randomized, small_config
from transformer_lesson.interpretability.interventions import (
    Head,
    Site,
    ablate_head,
    head_sites,
    heads_of,
    patching_grid,
    put_back,
    stream_sites,
    token_losses,
    without_heads,
)
from transformer_lesson.model.hooks import record
from transformer_lesson.model.transformers import DecoderOnlyTransformer, EncoderDecoderTransformer
from transformer_lesson.text.batches import Batch

IDS = torch.tensor([[3, 1, 4, 1, 5]])
OTHER = torch.tensor([[3, 1, 7, 1, 5]])


def build(kind=DecoderOnlyTransformer, **changes):
    return randomized(kind(small_config(**changes))).eval()


def measure(logits):
    return logits[:, -1].log_softmax(-1)[:, 2]


def test_one_head_is_zero_and_the_others_are_as_they_were():
    outputs = torch.randn(2, 3, 5, 7)
    before = outputs.clone()
    ablated = ablate_head(outputs, 1)
    assert (ablated[:, 1] == 0).all()
    assert torch.equal(ablated[:, [0, 2]], before[:, [0, 2]]) and torch.equal(outputs, before)
    for head in (-1, 3):
        with pytest.raises(ValueError, match=f"head is {head}, but there are heads 0 to 2"):
            ablate_head(outputs, head)


def test_heads_and_sites_are_listed_in_order_and_a_translators_source_is_patched():
    model = build(EncoderDecoderTransformer, n_heads=3)
    assert len(heads_of(model)) == 18
    crossing = "decoder.1.cross_attention"
    assert heads_of(model, "cross")[3:5] == [Head(crossing, 0), Head(crossing, 1)]
    with pytest.raises(ValueError, match="'corss' in its name; there are encoder.0.self_attention"):
        heads_of(model, "corss")
    assert stream_sites(model)[0] == Site("embedding", "target_embedding.output")
    assert stream_sites(build())[0] == Site("embedding", "embedding.output")
    assert head_sites(model, "cross")[4] == Site("block 1, head 1", f"{crossing}.heads", 1)
    sites, target = stream_sites(model, "encoder"), torch.tensor([[1, 6, 2]])
    assert sites[0] == Site("embedding", "source_embedding.output")
    assert sites[2] == Site("after block 1", "encoder.1.output")
    grid = patching_grid(model, (IDS, target), (OTHER, target), sites, measure)
    assert grid.shape == (3, 5) and grid[0, 2] == pytest.approx(1, abs=1e-4)


def test_the_rows_of_W_O_without_their_head_give_the_same_and_several_heads_go_together():
    model = build(n_heads=3)
    with without_heads(model, heads_of(model, "decoder.0")[1:]) as run:
        model(IDS)
    outputs = run["decoder.0.self_attention.heads"]
    assert (outputs[:, 1:] == 0).all() and (outputs[:, 0] != 0).any()
    with without_heads(model, [Head("decoder.1.self_attention", 0)]) as run:
        logits = model(IDS)
    assert (run["decoder.1.self_attention.heads"][:, 0] == 0).all()
    weight = model.decoder[1].self_attention.W_O.weight
    with torch.no_grad():
        weight[:, :4] = 0  # columns of the stored transpose: the first head's four numbers
    assert_equal(model(IDS), logits)


@pytest.mark.parametrize("heads", [[3], ["encoder.0"], Head("decoder.1.self_attention", 0)])
def test_what_is_no_head_is_refused(heads, unchecked):
    model = build()
    told = "A head is .*, but it must be a Head: write"
    with pytest.raises(ValueError, match=told), without_heads(model, heads):
        model(IDS)


def test_losses_are_those_of_each_token():
    model = build(pad_id=0)
    batch = Batch((IDS,), torch.tensor([[1, 4, 1, 5, 0]]))
    losses = token_losses(model, batch)
    expected = F.cross_entropy(model(IDS)[0, :4], batch.labels[0, :4], reduction="none")
    assert_equal(losses[0, :4], expected.detach())
    assert losses[0, 4] == 0
    without = token_losses(model, batch, heads_of(model)[:1])
    assert (without - losses)[:, :4].abs().max() > 1e-3


def assert_alike(shares, expected):
    """A share is a small difference divided by another: rounding leaves it three digits."""
    torch.testing.assert_close(shares, expected, atol=1e-3, rtol=0)


def test_a_cell_is_one_patched_run():
    model, point = build(), "decoder.0.self_attention.heads"
    with torch.no_grad(), record(model) as run:
        high = measure(model(IDS))
    low = measure(model(OTHER))

    grid = patching_grid(model, (IDS,), (OTHER,), head_sites(model, "decoder.0"), measure)
    for position in range(5):

        def patch(outputs, position=position):
            outputs = outputs.clone()
            outputs[0, 1, position] = run[point][0, 1, position]
            return outputs

        with torch.no_grad(), record(model, {point: patch}):
            expected = (measure(model(OTHER)) - low) / (high - low)
        assert_alike(grid[1, position], expected.detach()[0])


def test_bad_pairs_are_refused():
    model = build()
    sites = stream_sites(model)
    with pytest.raises(ValueError, match=r"clean is \[\(1, 5\)\] and corrupted \[\(1, 4\)\]"):
        patching_grid(model, (IDS,), (OTHER[:, :4],), sites, measure)
    with pytest.raises(ValueError, match="for both inputs: corrupt a token that matters"):
        patching_grid(model, (IDS,), (IDS,), sites, measure)


def test_each_row_gets_its_own_position_back_and_heads_alone():
    stored, x = torch.randn(3, 5, 7), torch.randn(3, 5, 7)
    position, before = torch.tensor([4, 0, 2]), x.clone()
    new = put_back(stored, position)(x)
    changed = torch.zeros(3, 5, dtype=torch.bool)
    changed[torch.arange(3), position] = True
    assert torch.equal(new[changed], stored[changed]) and torch.equal(new[~changed], x[~changed])
    assert torch.equal(x, before)
    stored, x = torch.randn(3, 4, 5, 7), torch.randn(3, 4, 5, 7)
    new = put_back(stored, position, heads=[1, 3])(x)
    changed = (new != x).all(dim=-1).nonzero().tolist()
    assert changed == [[0, 1, 4], [0, 3, 4], [1, 1, 0], [1, 3, 0], [2, 1, 2], [2, 3, 2]]
    assert torch.equal(put_back(stored, position, heads=[])(x), x)
