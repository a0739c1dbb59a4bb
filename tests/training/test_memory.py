"""A batch in parts gives the gradients of the whole; so do blocks that compute twice."""

import pytest
import torch

from tests.training.small import KINDS, PAD, batch_of, model_of, short
from transformer_lesson.text.batches import Batch
from transformer_lesson.training.history import History
from transformer_lesson.training.loop import backward, training_step
from transformer_lesson.training.memory import checkpointing_activations, split_batch
from transformer_lesson.training.optimizer import make_optimizer


def gradients(kind: str, dropout: float = 0.0, norm_position: str = "pre", **changes):
    model, history = model_of(kind, dropout=dropout, norm_position=norm_position), History()
    config = short(1, clip=None, **changes)
    optimizer = make_optimizer(model, config)
    optimizer.step = lambda: None
    torch.manual_seed(5)
    training_step(model, batch_of(kind), optimizer, config, history)
    found = {name: weight.grad for name, weight in model.named_parameters()}
    told = [history.losses[0], history.tokens]
    return told, {name: grad for name, grad in found.items() if grad is not None}


def assert_equal_gradients(ours, theirs, **tolerance):
    assert ours[0] == pytest.approx(theirs[0], rel=1e-6)
    assert ours[1].keys() == theirs[1].keys() and ours[1]
    for name, gradient in theirs[1].items():
        torch.testing.assert_close(ours[1][name], gradient, **tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("parts", [2, 3, 5, 7])
@pytest.mark.parametrize("kind", KINDS)
def test_accumulated_gradients_are_those_of_the_whole_batch(kind, parts):
    in_parts = gradients(kind, gradient_accumulation_steps=parts)
    assert_equal_gradients(in_parts, gradients(kind), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("norm_position", ["pre", "post"])
@pytest.mark.parametrize("kind", KINDS)
def test_recomputed_gradients_are_the_same_to_the_last_digit(kind, norm_position):
    options = {"kind": kind, "dropout": 0.2, "norm_position": norm_position}
    twice = gradients(**options, activation_checkpointing=True)
    assert_equal_gradients(twice, gradients(**options), rtol=0, atol=0)


def test_recomputing_forgets_what_the_blocks_computed_and_is_undone_after_an_error():
    calls, kept = [], {}
    for activation_checkpointing in (False, True):
        model, saved = model_of("translator", dropout=0.0), []
        model.encoder[0].register_forward_hook(lambda *_: calls.append(1))
        config = short(activation_checkpointing=activation_checkpointing)
        keep = lambda tensor, saved=saved: saved.append(tensor) or tensor  # noqa: E731
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            backward(model, batch_of("translator"), config)
        kept[activation_checkpointing] = sum(tensor.numel() for tensor in saved)
    assert kept[True] < kept[False] / 2
    assert len(calls) == 2  # hooks are not called again when a block computes again
    assert "forward" not in vars(model.encoder[0])
    model = model_of("classifier")
    with pytest.raises(ZeroDivisionError), checkpointing_activations(model):
        assert "forward" in vars(model.encoder[0])
        raise ZeroDivisionError
    assert "forward" not in vars(model.encoder[0])


@pytest.mark.usefixtures("unchecked")
def test_each_row_is_in_one_part_and_the_weights_are_shares_of_the_labels():
    ids = torch.arange(1, 25).view(6, 4)
    labels = ids.clone()
    labels[0], labels[3] = PAD, PAD
    batch = Batch((ids, ids + 100), labels)
    shares = split_batch(batch, 3, PAD)
    assert [part.labels.tolist() for part, _ in shares[1:]] == [
        [labels[1].tolist(), labels[4].tolist()],
        [labels[2].tolist(), labels[5].tolist()],
    ]
    assert torch.equal(shares[1][0].inputs[1], ids[1::3] + 100)
    assert shares[0][0] is batch and [weight for _, weight in shares] == [0.0, 0.5, 0.5]
    many = split_batch(batch, 9)
    assert sum(weight for _, weight in many) == pytest.approx(1) and len(many) == 9
    assert many[8][0] is batch and many[8][1] == 0
    with pytest.raises(ValueError, match="parts is 0, but it must be at least 1"):
        split_batch(batch, 0, PAD)
