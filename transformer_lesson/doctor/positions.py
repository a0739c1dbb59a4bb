"""Probes: does order matter, are relative positions relative, does the longest text pass?"""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from transformer_lesson.doctor.attention import watch
from transformer_lesson.doctor.findings import Finding
from transformer_lesson.doctor.patient import Ids, Patient
from transformer_lesson.doctor.tensors import differ, noise_like, tensors_in
from transformer_lesson.doctor.watching import PRODUCTS

READS = (*PRODUCTS, "linear", "addmm", "conv1d")
AT = 2  # the position that is disturbed
FLAT = 0.5  # of the numbers of a position


def positions(patient: Patient) -> Iterator[Finding]:
    """Put three tokens in another order: the first block's last outputs must move.

    Only the first block: behind a causal mask, later ones see the order by how much they see.
    """
    with patient.shaken():
        texts = patient.texts(2, 9, 7)
        for side in range(len(patient.batch)):
            if _order_is_lost(patient, texts, side):
                name = "source" if side == 0 and patient.kind == "translator" else "text"
                level = "suspect" if patient.kind == "causal" else "fault"  # a causal mask counts
                yield Finding(
                    "no_positions",
                    f"Three tokens of the {name} in another order.",
                    "The first block's outputs at later tokens stay.",
                    level=level,
                )
                return
        if patient.kind != "translator":
            yield from _relative(patient, texts)


def table(patient: Patient) -> Iterator[Finding]:
    """Look whether the columns of a fixed table of positions differ, and change with the position.

    Of sines whose wavelengths go up to 10,000 positions, a quarter hardly change in fifty.
    """
    for name, module in patient.model.named_modules():
        values = {**module._buffers, **vars(module)}.items()
        tables = [(key, x) for key, x in values if torch.is_tensor(x) and x.is_floating_point()]
        for key, tensor in tables:
            rows = tensor.squeeze()
            sines = rows.dim() == 2 and min(rows.shape) >= 16 and 0.9 < float(rows.max()) < 1.01
            if not sines or float(rows.min()) < -1.01 or rows.shape[0] < patient.limit // 2:
                continue
            first = rows[: min(len(rows), 48)]
            near = F.cosine_similarity(first[1:], first[:-1], dim=-1).mean()
            if float(near) < 0.3:  # of the paper's it is above 0.9
                yield Finding(
                    "positions_unlike",
                    "Each row of a fixed table of positions was compared with the next.",
                    f"Their cosine is {float(near):.2f} on average.",
                    f"{name}.{key}".lstrip("."),
                )
                return
            fast = first[:, (first.amax(0) - first.amin(0)) > 1].T
            apart = torch.cdist(fast, fast, p=float("inf")) > 0.02
            distinct = int(apart.tril(-1).sum(1).eq(torch.arange(len(fast))).sum())
            if len(fast) >= 8 and distinct < len(fast) / 4:  # rotary ones hold each twice
                yield Finding(
                    "positions_repeat",
                    f"{len(fast)} columns of a fixed table of positions were compared.",
                    f"Only {distinct} of them differ.",
                    f"{name}.{key}".lstrip("."),
                )
                return
            flat = (first[1:].amax(0) - first[1:].amin(0)) < 0.01
            if float(flat.float().mean()) > FLAT:
                yield Finding(
                    "positions_hardly_change",
                    f"The first {len(first)} rows of a fixed table were compared.",
                    f"{int(flat.sum())} of {len(flat)} numbers are the same in all of them.",
                    f"{name}.{key}".lstrip("."),
                )
                return


def heads(patient: Patient) -> Iterator[Finding]:
    """Disturb what one position gets of an attention: the next matrix reads it at that position."""
    if patient.found & {"positions_mixed", "random_in_eval"}:
        return
    texts = patient.aside(1)
    patient.model.eval()
    with torch.enable_grad():
        reads = []
        for disturbed in (False, True):
            with Disturbed(texts[0].shape[1], disturbed) as run:
                (patient.given.forward or patient.model)(*texts)
            reads.append(run.read)
    for a, b in zip(*reads, strict=False):
        n = texts[0].shape[1]
        axes = [k for k, size in enumerate(a.shape[:-1]) if size == n]
        if a.shape != b.shape or len(axes) != 1:
            continue
        rows = a.movedim(axes[0], 0).flatten(1), b.movedim(axes[0], 0).flatten(1)
        places = [k for k, (x, y) in enumerate(zip(*rows, strict=True)) if differ(x, y)]
        if places and places != [AT]:
            yield Finding(
                "positions_mixed",
                f"What position {AT} gets of an attention was disturbed.",
                f"The next matrix reads it at {places}.",
            )
        return  # behind the first one, the next attention has spread it


class Disturbed(TorchFunctionMode):
    """Adds noise to what a position gets of the first attention; notes what a matrix reads next."""

    def __init__(self, n: int, disturbs: bool):
        super().__init__()
        self.n, self.disturbs = n, disturbs
        self.weights: list[Tensor] = []
        self.returned: Tensor | None = None
        self.read: list[Tensor] = []
        self.over = False

    def __torch_function__(self, function, types, args=(), kwargs=None):
        """Call the function, and disturb or note what it is."""
        kwargs = kwargs or {}
        name = getattr(function, "__name__", "")
        tensors = list(tensors_in((args, kwargs)))
        known = any(tensor is weight for tensor in tensors for weight in self.weights)
        if self.returned is not None:
            same = [tensor for tensor in tensors if tensor.numel() == self.returned.numel()]
            self.over |= name in ("softmax", "scaled_dot_product_attention")
            if name in READS and not self.over:
                self.read += [tensor.detach() for tensor in same[:1]]
                self.over = True
            return function(*args, **kwargs)
        result = function(*args, **kwargs)
        if not torch.is_tensor(result):
            return result
        if name == "softmax" and tuple(result.shape[-2:]) == (self.n, self.n):
            self.weights.append(result)
        elif name == "scaled_dot_product_attention" or (known and name in PRODUCTS):
            return self._returns(result)
        elif known and result.shape == self.weights[-1].shape:
            self.weights.append(result)
        return result

    def _returns(self, result: Tensor) -> Tensor:
        axes = [k for k, size in enumerate(result.shape) if size == self.n]
        if len(axes) != 1:
            return result
        if self.disturbs:
            noise = torch.zeros_like(result)
            noise.select(axes[0], AT).copy_(noise_like(result.select(axes[0], AT)))
            result = result + noise
        self.returned = result
        return result


def _order_is_lost(patient: Patient, texts: Ids, side: int) -> bool:
    starts = patient.kind == "translator" and side == 1 and patient.given.start_id is not None
    first = 1 if starts else 0
    turned = [ids.clone() for ids in texts]
    turned[side][:, first : first + 3] = texts[side][:, [first + 2, first + 1, first]]
    usual, moved = (patient.blocks(patient.record(*ids)) for ids in (texts, turned))
    for a, b in zip(usual, moved, strict=False):
        if a.inputs[0].shape != b.inputs[0].shape or not differ(a.inputs[0], b.inputs[0]):
            continue
        x, y = a.outputs[0], b.outputs[0]
        if x.shape[0] != len(texts[side]) == x.shape[1]:  # (token, text, number)
            x, y = x.transpose(0, 1), y.transpose(0, 1)
        later, still = x[:, first + 4 :], y[:, first + 4 :]  # none, where few places are left
        return later.numel() > 0 and not differ(later, still)
    if patient.kind == "translator":
        return False
    same = [ids.clone() for ids in texts]
    same[side][:] = same[side][:, 4:5]
    out = patient.logits(*same)
    return not differ(out[:, 1:], out[:, :-1]) and _all_scores_equal(patient, tuple(same))


def _scores(patient: Patient, texts: Ids) -> list[Tensor]:
    """Return the scores of every attention over the last text."""
    watched, n = watch(patient, texts), texts[-1].shape[1]
    all_scores = [
        call.scores for call in watched.softmaxes if tuple(call.scores.shape[-2:]) == (n, n)
    ]
    return all_scores + [
        scores for call in watched.attentions if (scores := call.scores()) is not None
    ]


def _all_scores_equal(patient: Patient, texts: Ids) -> bool:
    """Whether the first attention's scores differ nowhere: of one token, only positions could."""
    all_scores = _scores(patient, texts)
    if not all_scores:
        return False
    last = all_scores[0].reshape(-1, *all_scores[0].shape[-2:])[:, -1]
    return all(float(row[row > -1e3].std()) < 1e-5 for row in last)


def _relative(patient: Patient, texts: Ids) -> Iterator[Finding]:
    """Of one repeated token, scores at equal distances are equal if positions are relative.

    And none rises with the distance.
    """
    same = texts[0].clone()
    same[:] = same[:, :1]
    n = same.shape[1]
    out = patient.logits(same)
    if differ(out[:, 2:], out[:, 1:-1]):
        return  # absolute positions
    all_scores = _scores(patient, (same,))
    if not all_scores:
        return
    scores = all_scores[0].reshape(-1, n, n)
    yield from _far_favored(scores)
    scores = scores - scores.diagonal(0, 1, 2)[:, :, None]  # a softmax ignores what a row shares
    spread = 0.0
    for distance in range(1, n - 1):
        equal = scores.diagonal(-distance, 1, 2)
        spread = max(spread, float((equal.amax(1) - equal.amin(1)).max()))
    rounding = max(
        (torch.finfo(p.dtype).eps for p in patient.model.parameters() if p.is_floating_point()),
        default=0.0,
    )
    if spread > max(1e-3, 16 * rounding) * (float(scores.tril().std()) or 1.0):
        yield Finding(
            "rotary_not_relative",
            "A text of one repeated token was read.",
            f"Its scores at equal distances differ by {spread:.2g}.",
        )


def _far_favored(scores: Tensor) -> Iterator[Finding]:
    """Whether all heads' scores of equal tokens rise evenly with the distance: a wrong sign."""
    by_distance = scores[:, -1].flip(-1).double()
    steps = by_distance.diff(dim=-1)
    even = (steps.amax(-1) - steps.amin(-1)) < 1e-3 * steps.abs().amax(-1)
    if bool((even & (steps.amin(-1) > 1e-6)).all()):
        yield Finding(
            "far_favored",
            "A text of one repeated token was read.",
            f"One token farther away, a score rises by up to {float(steps.max()):.2g}.",
        )


def length(patient: Patient) -> Iterator[Finding]:
    """Read a text of the maximum length, and a longer one of one token."""
    (limit,) = patient.given.need("max_length")
    longest = [patient.words(2, limit, side) for side in range(len(patient.batch))]
    try:
        patient.logits(*longest)
    except (IndexError, RuntimeError, ValueError, AssertionError) as error:
        yield Finding(
            "max_length_fails",
            f"A text of {limit} tokens was read.",
            f"{type(error).__name__}: {str(error)[:80]}.",
        )
        return
    longer = [
        patient.words(1, limit + 4, side)[:, :1].repeat(1, limit + 4)
        for side in range(len(patient.batch))
    ]
    try:
        out = patient.logits(*longer)[0]
    except Exception:  # refused, as it should be, in whatever way
        return
    steps = (out[1:] - out[:-1]).norm(dim=-1)
    usual = float(steps[: limit - 1].median())
    if (
        usual > 1e-4 * float(out.norm(dim=-1).median())
        and float(steps[limit:].max()) < 0.05 * usual
    ):
        yield Finding(
            "positions_clamped",
            f"A text of {limit + 4} equal tokens was read.",
            f"After {limit} of them the outputs stay the same.",
        )
