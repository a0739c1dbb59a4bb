"""Probes: does a call in eval mode repeat itself, and is each text of a batch independent?"""

from collections.abc import Iterator

import torch

from transformer_lesson.doctor.findings import Finding
from transformer_lesson.doctor.nothing_dropped import NoDropout
from transformer_lesson.doctor.patient import Call, Patient
from transformer_lesson.doctor.tensors import differ, gap

DRAWS = 12


def modes(patient: Patient) -> Iterator[Finding]:
    """Two calls with different seeds agree in eval mode, and dropout acts before and after it."""
    texts = patient.texts()

    def pair(train: bool):
        """Return the logits of two calls with two seeds."""
        return tuple(patient.logits(*texts, train=train, seed=seed) for seed in (1, 2))

    def dropped() -> tuple[int, bool]:
        """Return how many dropouts act in training mode, and whether anything is random."""
        with NoDropout() as dropout:
            patient.logits(*texts, train=True)
        return dropout.would_drop, differ(*pair(True))

    before = dropped()
    first_read, second_read = pair(False)
    if differ(first_read, second_read):
        where, _ = patient.enters(texts, texts, {}, seeds=(1, 2))
        yield Finding(
            "random_in_eval",
            "The same batch was read twice in eval mode.",
            f"The outputs moved by {gap(first_read, second_read):.2g}.",
            where,
        )
        return
    after = dropped()
    if after < before:
        some = f"{before[0]} dropouts acted before eval(), and {after[0]} do now."
        moved = some if after[1] else "Two calls differed before eval(), and no longer do."
        yield Finding("dropout_gone", "Training mode, eval mode, training mode again.", moved)
    first = patient.logits(*texts)
    patient.logits(*patient.texts(4, 11, 9))
    repeated = patient.logits(*texts)
    if differ(first, repeated):
        yield Finding(
            "state_between_calls",
            "A batch, another one, the first one again.",
            f"Its outputs moved by {gap(first, repeated):.2g}.",
        )


def dropout_size(patient: Patient) -> Iterator[Finding]:
    """Average a dropout's output over many draws: it must be as large as in eval mode.

    We compare where the first difference enters: after a norm, sizes are equal again.
    """
    texts = patient.aside()
    in_eval = patient.record(*texts)
    at, shares = None, []
    for seed in range(DRAWS):
        moved = patient.record(*texts, train=True, seed=seed)
        if len(moved) != len(in_eval):
            return
        if at is None:
            at = next(
                (k for k in range(len(in_eval)) if _inputs_differ(in_eval[k], moved[k])), None
            )
        if at is None:
            return
        a, b = in_eval[at].inputs[0], moved[at].inputs[0]
        if a.shape != b.shape:
            return
        shares.append(float((a * b).sum() / a.square().sum()))
    times = sum(shares) / DRAWS
    if not 0.5 < times < 2:
        yield Finding(
            "dropout_size",
            f"A batch was read {DRAWS} times in training mode, and in eval mode.",
            f"On average, numbers are {times:.2g} times as large in training.",
            in_eval[at].name,
        )


def _inputs_differ(a: Call, b: Call) -> bool:
    pairs = zip(a.inputs[:1], b.inputs[:1], strict=False)
    return any(x.dim() > 2 and x.shape == y.shape and differ(x, y) for x, y in pairs)


def rows(patient: Patient) -> Iterator[Finding]:
    """A text's outputs: the same beside other texts, in another row, and alone."""
    with patient.shaken():
        texts, others = patient.texts(3), patient.texts(3)
        mixed = tuple(torch.cat([a[:1], b[1:]]) for a, b in zip(texts, others, strict=True))
        swapped = tuple(ids[[1, 0, 2]] for ids in texts)
        logits = patient.logits(*texts)
        for beside, change in ((mixed, "were exchanged"), (_padded(patient, texts), "were padded")):
            moved = patient.logits(*beside)
            if differ(logits[0], moved[0]):
                where, _ = patient.enters(texts, beside, {3: [0]})
                yield Finding(
                    "mixes_rows",
                    f"The second and third text of a batch {change}.",
                    f"The first one's outputs moved by {gap(logits[0], moved[0]):.2g}.",
                    where,
                )
                return
        moved = patient.logits(*swapped)[1]
        if differ(logits[0], moved):
            yield Finding(
                "position_by_row",
                "The first text and the second changed places.",
                f"The first one's outputs moved by {gap(logits[0], moved):.2g}.",
            )
        yield from _alone(patient, texts)


def _padded(patient: Patient, texts) -> tuple:
    """Return the texts with padding in all but the first."""
    padded = tuple(ids.clone() for ids in texts)
    if patient.pad is not None:
        padded[0][1:, slice(0, 2) if patient.pads_left else slice(-2, None)] = patient.pad
    return padded


def _alone(patient: Patient, texts) -> Iterator[Finding]:
    """A text alone and in a batch of three, without padding and with it."""
    padded = tuple(ids.clone() for ids in texts)
    if patient.pad is not None:
        left = patient.pads_left
        padded[0][0, slice(0, 2) if left else slice(-2, None)] = patient.pad
    for batch in (texts, padded):
        together = patient.logits(*batch)[0]
        alone = patient.logits(*(ids[:1] for ids in batch))[0]
        if together.shape == alone.shape and patient.kind != "translator":
            real = batch[0][0] != (patient.pad if patient.pad is not None else -1)
            together, alone = together[real], alone[real]
        if differ(together, alone):
            yield Finding(
                "depends_on_batch_size",
                "A text was read in a batch of three, and alone.",
                f"Its outputs moved by {gap(together, alone):.2g}.",
            )
            return
