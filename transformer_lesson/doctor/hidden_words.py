"""Probe: of a masked language model, which words are asked for, and what stands in their places?"""

from collections import Counter
from collections.abc import Iterator

import torch
from torch import Tensor

from transformer_lesson.doctor.asking import as_probabilities, asked, live_of
from transformer_lesson.doctor.findings import Finding
from transformer_lesson.doctor.patient import Patient, Skip
from transformer_lesson.doctor.tensors import differ
from transformer_lesson.doctor.watching import Lookups

DRAWS, ENOUGH = 40, 200  # of hidden words; places asked for, in all


def of_an_encoder(patient: Patient) -> Iterator[Finding]:
    """Of a masked language model, which words are asked for, and are they hidden?

    Only where labels are the words themselves: a tagger's are not.
    """
    with patient.shaken():
        (ids,) = patient.marked()
        _, logits, gradient = asked(patient, ids)
        live = live_of(gradient)
        if live.shape != ids.shape:
            raise Skip("the loss's logits are not one row for each token")
        yield from as_probabilities(patient, logits, gradient, live)
        wanted = gradient.argmin(-1)
        if patient.pad is not None and bool((live & (ids == patient.pad)).any()):
            count = int((live & (ids == patient.pad)).sum())
            yield Finding(
                "padding_in_loss",
                "The labels were read off the loss's gradient.",
                f"{count} of {int(live.sum())} places asked are <pad>.",
            )
        if float((wanted == ids)[live].float().mean()) < 0.9:
            raise Skip("the labels are not the words themselves")
        patient.said["hides"] = True
        share = float(live.sum()) / int(
            (ids != patient.pad).sum() if patient.pad is not None else ids.numel()
        )
        if share > 0.6:
            yield Finding(
                "all_words_asked",
                "The labels were read off the loss's gradient.",
                f"{share:.0%} of all words are asked for.",
            )
            return
        yield from _visible_answers(patient, ids, live, logits)
        yield from _of_hidden_words(patient)


def _of_hidden_words(patient: Patient) -> Iterator[Finding]:
    """Draw many times: what stands where a word is asked for, and is a text's end ever asked for?

    BERT puts the mask there in 80 % of the cases, another word in 10, and leaves 10 as they are.
    """
    stands, ends, places = Counter(), 0, set()
    special = {patient.given.start_id, patient.given.eos_id} - {None}
    for seed in range(DRAWS):
        if stands.total() >= ENOUGH:
            break
        ids, read = patient.marked()[0], []

        def note(table, looked_up, rows, read=read) -> None:
            """Note what is looked up."""
            read.append(looked_up.detach())

        with Lookups(note):
            live = live_of(asked(patient, ids, seed=seed)[2])
        seen = next((some for some in read if _mostly(some, ids)), None)
        if seen is None:
            return
        places.add(tuple(live.nonzero().flatten().tolist()))
        ends += sum(int((ids[live] == token).sum()) for token in special)
        stands.update(
            "kept" if a == b else int(a) for a, b in zip(seen[live], ids[live], strict=True)
        )
    total, kept = stands.total(), stands.pop("kept", 0)
    mask, masked = next(iter(stands.most_common(1)), (None, 0))
    random, experiment = total - kept - masked, "Again and again, words were hidden in the batch."
    if len(places) < 5 or total < ENOUGH:  # the same places each time, or too few
        return
    if ends:
        moved = f"{ends} of {total} places that are asked for are a text's start or end."
        yield Finding("ends_are_asked_for", experiment, moved)
    if kept > 0.03 * total and random < kept / 3:
        moved = (
            f"Of {total} places, {masked} hold {mask}, {kept} the word itself, {random} another."
        )
        yield Finding("random_words_rare", experiment, moved)


def _mostly(read: Tensor, ids: Tensor) -> bool:
    """Whether these are the ids, with some replaced."""
    return read.shape == ids.shape and float((read == ids).float().mean()) > 0.5


def _visible_answers(
    patient: Patient, ids: Tensor, live: Tensor, logits: Tensor
) -> Iterator[Finding]:
    """Change words that are asked for: few of them (BERT keeps one in ten) may move anything.

    Where others are hidden then, because the draw depends on the words, nothing can be said.
    """
    moved = []
    for row, j in live.nonzero().tolist()[:12]:
        if int(ids[row, j]) not in patient.ordinary[-1]:
            continue
        other = ids.clone()
        other[row, j] = patient.other(int(ids[row, j]))
        _, now, gradient = asked(patient, other)
        if now.shape == logits.shape and torch.equal(live_of(gradient), live):
            moved.append(differ(logits[row], now[row]))
    if len(moved) >= 4 and sum(moved) > 0.6 * len(moved):
        yield Finding(
            "answers_visible",
            f"{len(moved)} words that are asked for were changed.",
            f"{sum(moved)} of them moved the outputs, so the model reads them.",
        )
