"""The loss equals PyTorch's; padding counts for nothing; bad input is answered."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from tests.parity import drawn
from transformer_lesson.training import bits_per_character, label_smoothed_loss
from transformer_lesson.training.loss import loss_gradient


def some(*shape, vocab_size=7, seed=0):
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(*shape, vocab_size, generator=generator)
    return logits, torch.randint(0, vocab_size, shape, generator=generator)


@drawn
@given(
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    vocab_size=st.integers(1, 11),
    smoothing=st.sampled_from([0.0, 0.1, 0.5, 0.99]),
    pad=st.sampled_from([None, 0, -100]),
    seed=st.integers(0, 1000),
)
def test_loss_and_gradient_equal_pytorchs(shape, vocab_size, smoothing, pad, seed):
    logits, labels = some(*shape, vocab_size=vocab_size, seed=seed)
    if pad is not None:
        labels[torch.rand(shape) < 0.3] = pad
        labels.view(-1)[0] = vocab_size - 1
        if vocab_size == 1 and pad == 0:
            return
    ours, theirs = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    loss = label_smoothed_loss(ours, labels, smoothing, pad)
    ignore = {} if pad is None else {"ignore_index": pad}
    wanted = F.cross_entropy(
        theirs.view(-1, vocab_size), labels.view(-1), label_smoothing=smoothing, **ignore
    )
    torch.testing.assert_close(loss, wanted, atol=1e-6, rtol=1e-5)
    loss.backward()
    wanted.backward()
    torch.testing.assert_close(ours.grad, theirs.grad, atol=1e-6, rtol=1e-5)
    if pad != -100:  # which has no place of its own
        by_hand = loss_gradient(logits, labels, smoothing, pad)
        torch.testing.assert_close(by_hand, ours.grad, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("label", [0, 2])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_a_token_that_cannot_be_costs_what_pytorch_says(smoothing, label):
    impossible = torch.tensor([[0.0, 1.0, -math.inf]])
    ours, theirs = (impossible.clone().requires_grad_() for _ in range(2))
    loss = label_smoothed_loss(ours, torch.tensor([label]), smoothing)
    wanted = F.cross_entropy(theirs, torch.tensor([label]), label_smoothing=smoothing)
    loss.backward(), wanted.backward()
    assert loss == wanted and loss.isfinite() == (label == 0 and smoothing == 0)
    torch.testing.assert_close(ours.grad, theirs.grad)


def test_half_precision_logits_get_a_loss_in_float32():
    logits, labels = some(64, vocab_size=1000)
    loss = label_smoothed_loss(logits.bfloat16(), labels, 0.1)
    assert loss.dtype == torch.float32
    assert loss == label_smoothed_loss(logits.bfloat16().float(), labels, 0.1)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda x: x | {"labels": torch.zeros(3, 4, dtype=torch.long)}, "all labels are padding"),
        (lambda x: x | {"labels": x["labels"][:, :2]}, r"logits have shape \(3, 4, 7\), labels"),
        (lambda x: x | {"labels": x["labels"] + 7}, "label 13 is outside the vocabulary of 7"),
        (lambda x: x | {"labels": x["labels"] - 9}, "label -8 is outside the vocabulary of 7"),
        (lambda x: x | {"labels": x["labels"] + 0.5}, "labels have dtype torch.float32, but"),
        (lambda x: x | {"smoothing": 1.0}, "smoothing is 1.0, but"),
        (lambda x: x | {"smoothing": -0.1}, "smoothing is -0.1, but"),
        (lambda x: x | {"smoothing": math.nan}, "smoothing is nan, but"),
    ],
)
def test_bad_input_is_answered_with_a_sentence(change, sentence):
    logits, labels = some(3, 4)
    labels[0, 0], labels[0, 1] = 1, 6
    arguments = {"logits": logits, "labels": labels.clamp(min=1), "smoothing": 0.1, "pad_id": 0}
    assert label_smoothed_loss(**arguments) > 0
    with pytest.raises(ValueError, match=sentence):
        label_smoothed_loss(**change(arguments))


@pytest.mark.parametrize("counts", [(0, 5), (5, 0), (-1, 5)])
def test_bits_per_character_need_both_counts(counts):
    with pytest.raises(ValueError, match="both must be >= 1"):
        bits_per_character(1.0, *counts)
