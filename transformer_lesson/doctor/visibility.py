"""Probe: which tokens does each output depend on?"""

from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor, nn

from transformer_lesson.doctor.findings import Finding, Picture
from transformer_lesson.doctor.patient import Ids, Patient
from transformer_lesson.doctor.tensors import differ

MIXED = {"sees_future", "sees_next", "mask_inverted", "positions_mixed", "norm_axis"}
Pairs = list[tuple[int, int]]


def visibility(patient: Patient) -> Iterator[Finding]:
    """Change one token after the other, and look which outputs move.

    Also in training mode, and beside a padded text: some masks are made in one case only.
    """
    with patient.shaken():
        texts = patient.texts(3, 9, 7)
        if patient.logits(*texts).isnan().any():
            yield Finding(
                "not_a_number", "A batch without padding was read.", "Its outputs are NaN."
            )
            return
        seen = seen_by(patient, texts)
        if patient.kind == "encoder":
            if not _below(seen).any() and _above(seen).any():
                yield Finding(
                    "encoder_is_causal",
                    "Each token was changed in turn.",
                    "No later token moves an earlier output.",
                    picture=_grid(seen),
                )
            return
        yield from _judge(patient, seen, texts, "")
        if not patient.found & MIXED:
            yield from _in_other_cases(patient, texts)
        if patient.kind == "translator":
            other = (patient.words(3, texts[0].shape[1], 0), texts[1])
            if not differ(patient.logits(*texts), patient.logits(*other)):
                yield Finding(
                    "source_ignored", "Another source, the same target.", "No output moves."
                )


def seen_by(
    patient: Patient, texts: Ids, train: bool = False, tokens: Iterable[int] | None = None
) -> Tensor:
    """Return whether token j moves output i of the first text, as seen[j, i]."""
    ids = texts[-1]
    base = patient.logits(*texts, train=train)
    seen = torch.zeros(ids.shape[1], base.shape[1], dtype=torch.bool)
    for j in tokens if tokens is not None else range(ids.shape[1]):
        moved = patient.logits(*texts[:-1], changed(patient, ids, j), train=train)
        seen[j] = torch.tensor([differ(a, b) for a, b in zip(base[0], moved[0], strict=True)])
    return seen


def changed(patient: Patient, ids: Tensor, j: int, side: int = -1) -> Tensor:
    """Return the ids with another token j in the first text."""
    ids = ids.clone()
    ids[0, j] = patient.other(int(ids[0, j]), side)
    return ids


def _above(seen: Tensor) -> Tensor:
    """Earlier tokens of each output: j < i."""
    return seen.triu(1)


def _below(seen: Tensor, prefix: int = 0) -> Tensor:
    """Later tokens of each output, j > i, apart from outputs within a prefix."""
    later = seen.tril(-1).clone()
    later[:, :prefix] = False
    return later


def _grid(seen: Tensor) -> Picture:
    title = f"In a text of {len(seen)} tokens: which token (row) moves which output (column)"
    return Picture("grid", seen.tolist(), title)


def _in_other_cases(patient: Patient, texts: Ids) -> Iterator[Finding]:
    n = texts[-1].shape[1]
    cases = [(True, False, "in training mode")]
    if patient.pad is not None:
        cases.append((False, True, "beside a padded text"))
    for train, padded, when in cases:
        some = tuple(ids.clone() for ids in texts)
        if padded:
            some[0][1, 0 if patient.pads_left else -1] = patient.pad
        tokens = [n - 1, n // 2]
        part = seen_by(patient, some, train, tokens)
        if _below(part, patient.given.prefix)[tokens].any():
            yield from _judge(patient, part, some, when, whole=False)
            return


def _judge(
    patient: Patient, seen: Tensor, texts: Ids, when: str, whole: bool = True
) -> Iterator[Finding]:
    """Name what a table of who sees whom shows; with `whole=False` it has a few rows only."""
    n, prefix = len(seen), patient.given.prefix
    later, earlier = _below(seen, prefix), _above(seen)
    experiment, grid = "Each token was changed in turn.", _grid(seen)
    if whole and not seen.diagonal()[1:].any() and not shifts_itself(patient, texts):
        yield Finding("blind_to_self", experiment, "None moves its own output.", picture=grid)
    if whole and not earlier.any() and not later.any():
        yield Finding("blind_to_past", experiment, "None moves a later output.", picture=grid)
    if not later.any():
        return
    j, i = later.nonzero()[0].tolist()
    same = {n: range(prefix, j), len(texts[-1]): [0]}
    ids = changed(patient, texts[-1], j)
    where, module = patient.enters(texts, (*texts[:-1], ids), same, train="training" in when)
    code = _named(patient, texts, seen, module) if whole else "sees_future"
    moved, level = f"Output {i} moves{f', {when}' if when else ''}.", ""
    first = int(later.any(1).nonzero().max()) + 1
    is_square = first < n and int(later.sum()) == first * (first - 1) // 2
    if code == "sees_future" and whole and is_square:
        moved += (
            f" Only the first {first} tokens see each other: a prefix? Then say prefix={first}."
        )
        level = "suspect"
    yield Finding(code, f"Token {j} was changed.", moved, where, grid, level)


def _named(patient: Patient, texts: Ids, seen: Tensor, module: nn.Module | None) -> str:
    """Return the name of what lets later tokens through, where they enter in this module."""
    prefix = patient.given.prefix
    if not _above(seen).any():
        return "mask_inverted"
    if module is not None and "norm" in type(module).__name__.lower():
        return "norm_axis"
    both = [_pairs(patient, texts, place) for place in (module, None)]
    if any(_only_the_next(ahead, _below(seen, prefix)) for ahead, _ in both):
        return "sees_next"
    irregular = any(_irregular(seen, prefix, ahead, behind) for ahead, behind in both)
    return "positions_mixed" if irregular else "sees_future"


def shifts_itself(patient: Patient, texts: Ids) -> bool:
    """Whether tables read other ids than the text's: a forward that moves its labels by one.

    A mask that hides the diagonal leaves the ids as they are.
    """
    has_tables = any(isinstance(module, nn.Embedding) for module in patient.model.modules())
    return has_tables and not patient.tables_of(texts[-1], *texts)


def _pairs(patient: Patient, texts: Ids, module: nn.Module | None) -> tuple[Pairs, Pairs]:
    """Return (later, earlier) pairs as outputs of this module, else of the first block, see them.

    Behind one layer nothing has added up yet.
    """

    def outputs(*ids: Tensor) -> Tensor | None:
        """Return what it returns first."""
        calls = patient.record(*ids)
        chosen = [call for call in calls if call.module is module] or patient.blocks(calls)[-1:]
        shaped = [
            output
            for call in chosen
            for output in call.outputs
            if output.shape[:2] == ids[-1].shape
        ]
        return shaped[0] if shaped else None

    base = outputs(*texts)
    later, earlier = [], []
    for j in range(texts[-1].shape[1]) if base is not None else ():
        moved = outputs(*texts[:-1], changed(patient, texts[-1], j))
        pairs = [(j, i) for i in range(len(base[0])) if i != j and differ(base[0, i], moved[0, i])]
        later += [(j, i) for j, i in pairs if i < j]
        earlier += [(j, i) for j, i in pairs if i > j]
    return later, earlier


def _only_the_next(pairs: Pairs, later: Tensor) -> bool:
    """Whether each output sees one later token, or, at the end, one for each layer."""
    if pairs:
        return all(j == i + 1 for j, i in pairs)
    ahead = [int((later.diagonal(-k)).all()) for k in range(1, len(later))]
    layers = sum(ahead)
    return layers < len(later) - 2 and int(later.sum()) == sum(
        len(later) - k for k in range(1, layers + 1)
    )


def _irregular(seen: Tensor, prefix: int, later: Sequence, earlier: Sequence) -> bool:
    """Whether some but not all later tokens are seen, and how far outputs see goes up and down.

    Or some but not all earlier ones are seen.
    """
    n = len(seen)
    if not later:
        later, earlier = _below(seen, prefix).nonzero().tolist(), _above(seen).nonzero().tolist()
    possible = int(_below(torch.ones(n, n, dtype=torch.bool), prefix).sum())
    reach = [max([i, *(j for j, at in later if at == i)]) for i in range(n)]
    goes_back = any(b < a for a, b in zip(reach, reach[1:], strict=False))
    return len(later) < possible and (goes_back or len(earlier) < n * (n - 1) // 2)
