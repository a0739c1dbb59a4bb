"""Padding: a share of smoothing there, and what shifted positions do to the loss and to a cache."""

import pytest
import torch
from torch.nn import functional as F

from tests.doctor.tiny import PAD, batch, script
from transformer_lesson.doctor import examine


@pytest.mark.parametrize(("everywhere", "codes"), [(False, []), (True, ["padding_in_loss"])])
def test_a_share_of_smoothing_at_padding_is_seen(everywhere, codes):
    handed = script()

    def loss(ids):
        logs, labels = handed["model"](ids)[:, :-1].log_softmax(-1), ids[:, 1:]
        real = labels != PAD
        of_labels = -logs.gather(-1, labels[..., None])[..., 0][real]
        of_all = -logs.mean(-1)
        return (0.9 * of_labels.sum() + 0.1 * of_all[real | everywhere].sum()) / real.sum()

    report = examine(**handed | {"loss": loss}, only={"labels"})
    assert report.codes == codes
    if everywhere:
        count = int((batch()[:, 1:] == PAD).sum())
        assert report.causes[0].moved.startswith(f"{count} places of <pad> are asked for no word")


def padded_on_the_left() -> torch.Tensor:
    """Return the tiny script's batch with its padding in front."""
    ids = batch()
    return torch.stack([row.roll(int((row == PAD).sum())) for row in ids])


@pytest.mark.parametrize("divides", ["by words", "by all"])
def test_what_shifted_positions_do_to_the_loss_is_folded_and_another_cause_is_not(divides):
    handed = script() | {"batch": padded_on_the_left()}

    def loss(ids):
        labels = ids[:, 1:].masked_fill(ids[:, :-1] == PAD, PAD)
        logits, count = handed["model"](ids)[:, :-1], (labels != PAD).sum()
        total = F.cross_entropy(logits.mT, labels, ignore_index=PAD, reduction="sum")
        return total / (count if divides == "by words" else labels.numel())

    report = examine(**handed | {"loss": loss}, only={"padding", "amount"})
    first, *others = (*report.causes, *report.others)
    assert first.code == "left_padding_positions"
    if divides == "by words":
        assert not others and [one.code for one in first.follows] == ["loss_moves_with_padding"]
    else:
        assert [one.code for one in others] == ["loss_moves_with_padding"] and not first.follows


@pytest.mark.parametrize("cache", ["counts words", "reads padding"])
def test_a_cache_that_counts_words_shows_the_shift_and_another_one_its_own_fault(cache):
    handed = script() | {"batch": padded_on_the_left()}

    def cached(ids):
        if cache == "reads padding":
            return handed["model"](ids.masked_fill(ids == PAD, 5))
        logits = torch.zeros(*ids.shape, handed["model"].head.out_features)
        for row, to in zip(ids, logits, strict=True):
            to[row != PAD] = handed["model"](row[row != PAD][None])[0]
        return logits

    report = examine(**handed | {"cached": cached}, only={"padding", "cache"})
    first, *others = (*report.causes, *report.others)
    assert first.code == "left_padding_positions"
    said = first.follows if cache == "counts words" else others
    assert [one.code for one in said] == ["cache_differs"] and len(others) == (said is others)
