"""A pipeline's schedule keeps its rules, its bubble is the formula's; experts get their tokens."""

import itertools

import pytest
import torch

from tests.parity import randomized, small_config
from transformer_lesson.model.experts import route
from transformer_lesson.model.transformers import DecoderOnlyTransformer
from transformer_lesson.text.batches import Batch
from transformer_lesson.training.loss import batch_loss
from transformer_lesson.training.memory import split_batch
from transformer_lesson.training.pipeline import (
    bubble_share,
    learn_in_stages,
    parts_kept,
    pipeline,
    sent_to_devices,
    waiting_share,
)


@pytest.mark.parametrize("order", ["GPipe", "1F1B"])
def test_nothing_begins_before_what_it_needs_and_the_bubble_is_the_formulas(order):
    for stages, parts in itertools.product(range(1, 8), range(1, 14)):
        line = pipeline(stages, parts, order)
        at = {work[:3]: work for works in line for work in works}
        assert len(at) == stages * parts * 2
        for (stage, part, backward), work in at.items():
            before = at.get((stage + (1 if backward else -1), part, backward))
            if before is None and backward:
                before = at[stage, part, False]
            assert work.start >= (before.end if before else 0)
        assert all(a.end <= b.start for works in line for a, b in itertools.pairwise(works))
        last = max(work.end for work in at.values())
        for stage, works in enumerate(line):
            idle = last - sum(work.end - work.start for work in works)
            assert idle / last == pytest.approx(bubble_share(stages, parts))
            wanted = parts if order == "GPipe" else min(parts, stages - stage)
            assert parts_kept(works) == wanted


@pytest.mark.parametrize("order", ["GPipe", "1F1B"])
@pytest.mark.parametrize("pad_id", [None, 0])
def test_a_pipeline_that_runs_gives_the_gradient_of_the_whole_batch(order, pad_id):
    model = randomized(DecoderOnlyTransformer(small_config(n_layers=6, pad_id=pad_id)))
    ids = torch.randint(1, 13, (7, 6))
    ids[2, 2:] = ids[5, 4:] = 0  # parts have different shares of the labels, if 0 is no token
    batch, found = Batch((ids[:, :-1],), ids[:, 1:]), {}
    for stages in (1, 2, 3, 6):
        model.zero_grad()
        loss = learn_in_stages(model, split_batch(batch, 5, pad_id), stages, order)
        found[stages] = [weight.grad.clone() for weight in model.parameters()]
    model.zero_grad()
    whole = batch_loss(model, batch)[0]
    whole.backward()
    assert loss == pytest.approx(whole.item(), abs=1e-5)
    for gradients in found.values():
        for ours, weight in zip(gradients, model.parameters(), strict=True):
            assert torch.allclose(ours, weight.grad, atol=1e-5)
    with pytest.raises(ValueError, match="stages is 4: make it a divisor of the model's 6 blocks"):
        learn_in_stages(model, split_batch(batch, 2), 4)


def test_each_token_goes_to_the_devices_of_its_experts_and_all_wait_for_the_fullest():
    x, W = torch.randn(17, 5), torch.randn(5, 6)
    weights, _ = route(x, W, 2)
    best = (x @ W).topk(2).indices.sort().values.tolist()
    sent = sent_to_devices(weights, 3)
    for device, pairs in enumerate(sent):
        own = [(t, e) for t, two in enumerate(best) for e in two if e // 2 == device]
        assert pairs == own
    loads = [len(pairs) for pairs in sent]
    assert sum(loads) == 34 and waiting_share(sent) == pytest.approx(1 - 34 / 3 / max(loads))
    assert waiting_share([[(0, 0)], [(1, 1)]]) == 0


def test_bad_input_is_told():
    with pytest.raises(ValueError, match="parts is 0, but it must be an int >= 1"):
        pipeline(2, 0)
    with pytest.raises(ValueError, match="order is 'FIFO', but a pipeline's is one of GPipe, 1F"):
        pipeline(2, 2, "FIFO")
    with pytest.raises(ValueError, match="devices is 4: make it a divisor of the 6 experts"):
        sent_to_devices(torch.ones(2, 6), 4)
