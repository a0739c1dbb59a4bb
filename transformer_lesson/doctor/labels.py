"""Probes: which token does the loss ask each position for, and how large is it at first?

The gradient of the loss in the logits says it: at each position the most negative entry is the
label's, no matter where the labels were shifted.
"""

import math
from collections import Counter
from collections.abc import Iterator

import torch
from torch import Tensor

from transformer_lesson.doctor.asking import (
    as_probabilities,
    asked,
    by_text,
    live_of,
    with_logits,
)
from transformer_lesson.doctor.findings import Finding, Picture
from transformer_lesson.doctor.hidden_words import of_an_encoder
from transformer_lesson.doctor.patient import Ids, Patient, Skip
from transformer_lesson.doctor.tensors import differ

LEAKS = {"sees_future", "sees_next", "mask_inverted", "norm_axis", "positions_mixed"}
LEAKS |= {"softmax_axis", "mixes_rows", "not_a_number"}
FAR = 0.25  # relative: a first loss is far from ln V from here on


def labels(patient: Patient) -> Iterator[Finding]:
    """Read each position's label off the gradient, and where each token becomes visible.

    Where a token is visible first, minus where it is asked for, must be 1.
    """
    if patient.kind == "encoder":
        yield from of_an_encoder(patient)
        return
    with patient.shaken():
        ids = patient.marked()
        _, logits, gradient = asked(patient, *ids)
        live = live_of(gradient)
        weight = _weights(logits, gradient)
        faint = live & (weight < 0.05 * weight[live].median())  # a share of smoothing, no label
        live &= ~faint
        wanted = gradient.argmin(-1).masked_fill(~live, -1)
        yield from _of_faint_places(patient, ids[-1], faint)
        patient.said |= {"count": int(live.sum()), "first": (logits, wanted)}
        yield from as_probabilities(patient, logits, gradient, live)
        if wanted.dim() == 2 and len(wanted) == len(ids[-1]):
            yield from _judge(patient, ids, wanted, logits)
        patient.said["weight"] = float(weight[live].sum())
        count, total = patient.said["count"], patient.said["weight"]
        if total > 0.3 * count and count > 5 and "probabilities_as_logits" not in patient.found:
            yield Finding(
                "loss_is_a_sum",
                f"{count} tokens are asked for.",
                f"They weigh {total:.1f} in all, where a mean weighs 1.",
            )


def amount(patient: Patient) -> Iterator[Finding]:
    """Pad the batch by three more tokens: the loss must stay."""
    if patient.pad is None:
        raise Skip("hand over pad_id")
    if patient.kind == "encoder":
        raise Skip("an encoder's loss draws other words to hide")
    with patient.shaken(), torch.no_grad():
        ids = patient.marked()
        if patient.pads_left_on(-1) and _asks_padding(patient, ids):
            raise Skip("the last <pad> on the left is asked for a text's first word")
        for side in range(len(ids)):
            wider = _wider(patient, ids, side, 3)
            if wider[side].shape[1] > patient.limit:
                raise Skip("the batch is as long as it can be")
            if patient.found & {"padding_read", "memory_padding_read"}:
                before, after, moved = _weights_before_and_after(patient, ids, wider)
            else:
                before, after = float(patient.loss(*ids)), float(patient.loss(*wider))
                least = max(1e-4, 8 * patient.said.get("rounding", 0.0))
                moved = abs(after / before - 1) > least
            if moved:
                yield Finding(
                    "loss_moves_with_padding",
                    "Three more <pad> were added to each text.",
                    f"The loss, or its words' weight, went from {before:.4f} to {after:.4f}.",
                    apart=_causes_ruled_out(patient, ids, wider),
                )
                return


def _causes_ruled_out(patient: Patient, ids: Ids, wider: Ids) -> tuple[str, ...]:
    """Return the code of shifted positions where they can't explain a loss that padding moves.

    They move the logits, and not what a word weighs.
    """
    shift = "left_padding_positions"
    moved = shift in patient.found and _weights_before_and_after(patient, ids, wider)[2]
    return (shift,) if moved else ()


def _weights_before_and_after(patient: Patient, ids: Ids, wider: Ids) -> tuple[float, float, bool]:
    """Return the total weight of the words in each batch's loss, and whether it differs."""
    before, after = (_whole_weight(patient, some) for some in (ids, wider))
    return before, after, abs(after / before - 1) > 0.05


def _whole_weight(patient: Patient, ids: Ids) -> float:
    """Return what all words weigh in the loss, whatever the logits are."""
    _, logits, gradient = asked(patient, *ids)
    return float(_weights(logits, gradient)[live_of(gradient)].sum())


def _asks_padding(patient: Patient, ids: Ids) -> bool:
    """Whether the loss asks a <pad> for anything."""
    _, logits, gradient = asked(patient, *ids)
    n = min(logits.shape[1], ids[-1].shape[1])
    return bool((live_of(gradient)[:, :n] & (ids[-1][:, :n] == patient.pad)).any())


def _wider(patient: Patient, ids: Ids, side: int, count: int) -> Ids:
    """Return the batch with more padding on one side, where its owner pads."""
    pads = torch.full((len(ids[side]), count), patient.pad).to(ids[side])
    left = patient.pads_left_on(side)
    wider = torch.cat([pads, ids[side]] if left else [ids[side], pads], 1)
    return (*ids[:side], wider, *ids[side + 1 :])


def _weights(logits: Tensor, gradient: Tensor) -> Tensor:
    """Return each position's weight in the loss: its gradient over 1 - p of the label."""
    picked = gradient.argmin(-1, keepdim=True)
    rest = 1 - logits.softmax(-1).gather(-1, picked)
    return (-gradient.gather(-1, picked) / rest.clamp(min=1e-3)).squeeze(-1)


def _judge(patient: Patient, ids: Ids, wanted: Tensor, logits: Tensor) -> Iterator[Finding]:
    text = ids[-1]
    shifts = [] if patient.found & LEAKS else _shifts(patient, ids, wanted, logits)
    if shifts:
        shift = Counter(shifts).most_common(1)[0][0]
        if shift != 1:
            code = "labels_not_shifted" if shift < 1 else "labels_shifted_twice"
            picture = Picture(
                "asked", _grid(text, wanted), "Which token (row) each position is asked for"
            )
            yield Finding(
                code,
                "A token was changed, and the loss's gradient read.",
                f"It's visible {shift} positions after the one asked for it.",
                picture=picture,
            )
    yield from _of_other_rows(text, wanted)
    eos = patient.given.eos_id
    if patient.pad is not None and bool((text == patient.pad).any()):
        of_padding = (wanted == patient.pad).sum(1)
        if int(of_padding.max()) > (1 if eos == patient.pad else 0):
            yield Finding(
                "padding_in_loss",
                "The labels were read off the loss's gradient.",
                f"{int(of_padding.sum())} of {patient.said['count']} are <pad>.",
            )
    if eos is not None and bool((text == eos).any()) and not bool((wanted == eos).any()):
        yield Finding(
            "eos_not_in_loss",
            "The labels were read off the loss's gradient.",
            f"The texts end with {eos}, and none of them is {eos}.",
        )


def _grid(text: Tensor, wanted: Tensor) -> list[list[bool]]:
    return [[bool(token == label) for label in wanted[0].tolist()] for token in text[0].tolist()]


def _shifts(patient: Patient, ids: Ids, wanted: Tensor, logits: Tensor) -> list[int]:
    """Return how far behind the position that is asked for it a token becomes visible."""
    text, pool, shifts = ids[-1], patient.ordinary[-1].tolist(), []
    for row in range(min(2, len(text))):
        places = [j for j, token in enumerate(text[row].tolist()) if token in pool]
        for j in places[2:5]:
            token, other = int(text[row, j]), text.clone()
            other[row, j] = pool[(pool.index(token) + 7) % len(pool)]
            with torch.no_grad():
                caught = with_logits(patient, (*ids[:-1], other), retain=False)[1]
            caught = [by_text(tensor.float(), ids) for tensor in reversed(caught)]
            moved = next((tensor for tensor in caught if tensor.shape == logits.shape), None)
            if moved is None:
                continue
            words = (text[row] != patient.pad).nonzero() if patient.pad is not None else text[row:]
            first = int(words[0]) if patient.pad is not None else 0
            moving = [
                i
                for i in range(first, logits.shape[1])
                if wanted[row, i] >= 0 and differ(logits[row, i], moved[row, i])
            ]
            at = (wanted[row] == token).nonzero().flatten().tolist()
            if moving and at:
                shifts.append(moving[0] - at[0])
    return shifts


def _of_faint_places(patient: Patient, text: Tensor, faint: Tensor) -> Iterator[Finding]:
    """Of places that are asked for nothing and have a gradient: are they those of padding?"""
    if patient.pad is None or faint.dim() != 2 or not bool(faint.any()):
        return
    following, faint = text[:, 1 : faint.shape[1] + 1], faint[:, : text.shape[1] - 1]
    if following.shape == faint.shape and bool((following[faint] == patient.pad).all()):
        yield Finding(
            "padding_in_loss",
            "The loss's gradient was read.",
            f"{int(faint.sum())} places of <pad> are asked for no word, and have one all the same.",
        )


def _of_other_rows(text: Tensor, wanted: Tensor) -> Iterator[Finding]:
    for row, position in (wanted >= 0).nonzero().tolist():
        label = int(wanted[row, position])
        if not bool((text[row] == label).any()):
            yield Finding(
                "labels_of_other_rows",
                "The labels were read off the loss's gradient.",
                f"Position {position} of text {row} is asked for {label}, which its text hasn't.",
            )
            return


def first_loss(patient: Patient) -> Iterator[Finding]:
    """Compare a fresh model's cross-entropy with that of even chances, ln V.

    The doctor computes it itself, of the owner's logits and labels: a smoothed or summed loss,
    or a divergence, has another scale.
    """
    if not patient.given.fresh:
        raise Skip("a trained model")
    if patient.kind == "encoder":
        raise Skip("an encoder's loss has no next token")
    _, logits, gradient = asked(patient, *patient.marked())
    live = live_of(gradient)
    picked = gradient.argmin(-1, keepdim=True)
    loss = float(-logits.log_softmax(-1).gather(-1, picked).squeeze(-1)[live].mean())
    even = math.log(logits.shape[-1])
    if abs(loss / even - 1) > FAR:
        code = "initial_loss_high" if loss > even else "initial_loss_low"
        yield Finding(
            code,
            "The loss of the fresh model was computed.",
            f"It's {loss:.2f} nats, where even chances are ln V = {even:.2f}.",
            picture=Picture("bars", {"first loss": loss, "ln V": even}, "Nats a token"),
        )
