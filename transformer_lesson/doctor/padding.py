"""Probes: is padding without effect, and does every other token have one?"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from transformer_lesson.doctor.findings import Finding
from transformer_lesson.doctor.patient import Ids, Patient, Skip
from transformer_lesson.doctor.tensors import differ, gap, logits_of
from transformer_lesson.doctor.visibility import changed

PADS = 3


def padding(patient: Patient) -> Iterator[Finding]:
    """Give <pad> another vector, and a text more of it: no word's output may move."""
    if patient.pad is None:
        raise Skip("hand over pad_id")
    yield from _own_batch(patient)
    with patient.shaken():
        texts, real = _padded(patient)
        base = patient.logits(*texts)
        keep = slice(None) if patient.kind == "translator" else real
        if base[0, keep].isnan().any():
            yield Finding("not_a_number", "A padded text was read.", "NaN at its real words.")
            return
        tables = patient.tables_of(texts[0], *texts)
        content = bool(tables) and _content_matters(patient, texts, keep, tables)
        amount = _amount_matters(patient, texts, keep)
        left = patient.pads_left
        if content or (amount and not left):
            yield _named(patient, texts, real, tables, content)
        elif amount:
            yield Finding(
                "left_padding_positions",
                f"{PADS} more <pad> on the left.",
                f"Its words' outputs moved by {amount:.2g}.",
            )
        if left and not patient.found & {"padding_read", "left_padding_positions"}:
            alone = patient.logits(texts[0][:1, PADS:], *(ids[:1] for ids in texts[1:]))
            if patient.kind != "translator" and differ(alone[0], base[0, real]):
                yield Finding(
                    "left_padding_positions",
                    "A text padded on the left, and alone.",
                    f"Its outputs moved by {gap(alone[0], base[0, real]):.2g}.",
                )


def _own_batch(patient: Patient) -> Iterator[Finding]:
    out = patient.logits(*patient.own_batch())
    text = patient.batch[-1][:, : out.shape[1]]
    if out.dim() == 3 and out.shape[:2] == text.shape and out[text != patient.pad].isnan().any():
        yield Finding("not_a_number", "Your own batch was read.", "NaN at its real words.")


def _padded(patient: Patient) -> tuple[Ids, slice]:
    """Return texts, the first of which is padded, and where its words are."""
    texts = tuple(ids.clone() for ids in patient.texts(patient.some(3), 9, 7))
    n = texts[0].shape[1]
    if patient.pads_left:
        texts[0][0, :PADS] = patient.pad
        return texts, slice(PADS, n)
    texts[0][0, n - PADS :] = patient.pad
    return texts, slice(0, n - PADS)


def _amount_matters(patient: Patient, texts: Ids, keep: slice) -> float:
    """Return by how much words move when there is more padding (0.0: by no more than rounding)."""
    left = patient.pads_left
    more = torch.full((len(texts[0]), PADS), patient.pad).to(texts[0])
    longer = torch.cat([more, texts[0]] if left else [texts[0], more], 1)
    if longer.shape[1] > patient.limit:
        return 0.0
    base, wide = patient.logits(*texts)[0], patient.logits(longer, *texts[1:])[0]
    moves = left and patient.kind != "translator"
    shift = slice(keep.start + PADS, keep.stop + PADS) if moves else keep
    return gap(base[keep], wide[shift]) if differ(base[keep], wide[shift]) else 0.0


def _content_matters(patient: Patient, texts: Ids, keep: slice, tables: list) -> bool:
    """Whether words move when <pad> gets another vector, in evaluation and on training's path.

    PyTorch's fast path for evaluation hides padding that training reads.
    """

    def slow() -> Tensor:
        """Return the logits on the path that training takes."""
        patient.model.eval()
        with torch.enable_grad():
            return logits_of((patient.given.forward or patient.model)(*texts)).detach().float()

    for read in (lambda: patient.logits(*texts), slow):
        before = read()
        with patient.another_vector(tables, patient.pad, texts[0]):
            after = read()
        if differ(before[0, keep], after[0, keep]):
            return True
    return False


def _named(patient: Patient, texts: Ids, real: slice, tables: list, content: bool) -> Finding:
    where, module = "", None
    places = list(range(texts[0].shape[1]))[real]
    if content:
        same = {texts[0].shape[1]: places, len(texts[0]): [0]}
        where, module = patient.enters(
            texts, texts, same, change=lambda: patient.another_vector(tables, patient.pad, texts[0])
        )
    base = patient.logits(*texts)[0]

    def is_hidden(j: int) -> bool:
        """Whether no other position sees word j."""
        moved = patient.logits(changed(patient, texts[0], j, 0), *texts[1:])[0]
        others = [i for i in range(len(base)) if patient.kind == "translator" or i != j]
        return not differ(base[others], moved[others])

    hidden = [is_hidden(j) for j in places]
    code = "padding_read"
    if all(hidden):
        code = "padding_mask_inverted"
    elif patient.kind == "translator" and content and _in_memory(patient, texts, places, tables):
        code = "memory_padding_read"
    elif module is not None and "norm" in type(module).__name__.lower():
        code = "norm_axis"
    did = "<pad> got another vector." if content else f"{PADS} more <pad> were appended."
    moved = "Outputs at real words moved."
    moved += " And no word moves any." if all(hidden) else ""
    alone = ("mixes_rows",) if "mixes_rows" in patient.found else ()
    return Finding(code, did, moved, where, apart=alone)


def _in_memory(patient: Patient, texts: Ids, places: list[int], tables: list) -> bool:
    """Whether the source's words stay as they are in the encoder, so the decoder reads padding.

    What the target doesn't move is the encoder's.
    """
    n, target = texts[0].shape[1], changed(patient, texts[-1], 1)
    calls = [patient.record(*texts), patient.record(*texts[:-1], target)]
    with patient.another_vector(tables, patient.pad, texts[0]):
        calls.append(patient.record(*texts))
    encoded = False
    for base, other_target, other_padding in zip(*calls, strict=False):
        outputs = (base.outputs, other_target.outputs, other_padding.outputs)
        for x, y, z in zip(*outputs, strict=False):
            axes = [k for k, size in enumerate(x.shape[:-1]) if size == n]
            is_its_own = len(axes) == 1 and x.dim() == 3 and not differ(x, y)
            if not is_its_own or isinstance(base.module, nn.Embedding):
                continue
            encoded = True
            words, moved = (tensor.movedim(axes[0], 1)[0, places] for tensor in (x, z))
            if differ(words, moved):
                return False
    return encoded


def tokens(patient: Patient) -> Iterator[Finding]:
    """Give an ordinary token another vector: other positions must see it."""
    with patient.shaken():
        for side in range(len(patient.batch)):
            special = {token for token in patient.special if token != patient.pad}
            for token in sorted(special | set(patient.ordinary[side].tolist()[:8])):
                if _invisible(patient, side, token):
                    name = "source" if side < len(patient.batch) - 1 else "text"
                    yield Finding(
                        "token_invisible",
                        f"Token {token} got another vector.",
                        f"No other position of the {name} sees it.",
                    )
                    return


def _invisible(patient: Patient, side: int, token: int) -> bool:
    texts = [ids.clone() for ids in patient.texts(2, 9, 7)]
    texts[side][texts[side] == token] = patient.other(token, side)
    texts[side][0, 2] = token
    tables = patient.tables_of(texts[side], *texts)
    if not tables:
        raise Skip("no nn.Embedding reads the ids")
    base = patient.logits(*texts)
    with patient.another_vector(tables, token, texts[side]):
        moved = patient.logits(*texts)
    later = slice(3, None) if side == len(patient.batch) - 1 else slice(None)
    return not differ(base[0, later], moved[0, later])
