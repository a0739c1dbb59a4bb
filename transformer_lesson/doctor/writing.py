"""Probes: does the cache change anything, and does writing do what it says?"""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from transformer_lesson.doctor.findings import Finding
from transformer_lesson.doctor.patient import Ids, Patient, Skip
from transformer_lesson.doctor.tensors import differ, gap
from transformer_lesson.doctor.visibility import shifts_itself

PROMPTS = 24
NEW = 4
DRAWS = 3000
SHIFT = "left_padding_positions"
OF_PADDING = ("padding_read", "memory_padding_read", "padding_mask_inverted")


def cache(patient: Patient) -> Iterator[Finding]:
    """Compare the logits of a text read token by token, with a cache, with forward's."""
    (cached,) = patient.given.need("cached")

    def run(texts: Ids) -> Tensor:
        """Read with the cache."""
        torch.manual_seed(0)
        patient.model.eval()
        with torch.no_grad():
            return cached(*texts).float()

    with patient.shaken():
        texts = patient.texts(patient.some(2), 9)
        full, first = patient.logits(*texts), run(texts)
        off = [i for i in range(full.shape[1]) if differ(full[:, i], first[:, i])]
        stale = _stale(patient, run, texts, first, not off)
        if stale:
            yield Finding("stale_cache", "A text, another one, the first one again.", stale)
        if off:
            yield Finding(
                "cache_differs",
                "A text was read token by token, and at once.",
                f"From position {off[0]} on the outputs differ.",
                apart=(*OF_PADDING, SHIFT),
            )
        elif patient.pads_left and patient.pad is not None:
            padded = tuple(ids.clone() for ids in texts)
            padded[0][0, :3] = patient.pad
            full, first = (logits[0, 3:] for logits in (patient.logits(*padded), run(padded)))
            if patient.kind == "causal" and differ(full, first):
                alone = patient.logits(texts[0][:1, 3:])[0]
                yield Finding(
                    "cache_differs",
                    "A text padded on the left, token by token.",
                    f"Its outputs moved by {gap(full, first):.2g}.",
                    apart=(SHIFT,) if differ(alone, first) else (),  # else the cache is right
                )


def _stale(patient: Patient, run, texts: Ids, first: Tensor, sound: bool) -> str:
    """Return how other texts, as long or shorter, disturb what the cache says of these, or ""."""
    for another in (patient.texts(len(texts[0]), 9), patient.texts(len(texts[0]), 7)):
        try:
            second, expected = run(another), patient.logits(*another)
            repeated = run(texts)
        except RuntimeError as error:
            return f"It fails: {str(error)[:80]}."
        if differ(first, repeated) or (sound and differ(second, expected)):
            return f"Outputs moved by {max(gap(first, repeated), gap(second, expected)):.2g}."
    return ""


def generate(patient: Patient) -> Iterator[Finding]:
    """Write greedily twice, compare with forward's argmax, and padded prompts with lone ones."""
    (write,) = patient.given.need("generate")

    def run(ids: Tensor, seed: int = 0) -> Tensor:
        """Write some tokens."""
        torch.manual_seed(seed)
        with torch.no_grad():
            return write(ids, NEW)[:, -NEW:]

    with patient.shaken():
        patient.model.eval()
        prompt = patient.texts(PROMPTS, 6, 6)[0]
        written = run(prompt, 1)
        if not torch.equal(written, run(prompt, 2)):
            yield Finding(
                "generate_random",
                "The same prompts, with two seeds.",
                "Two different texts were written.",
            )
            return
        start = torch.full((PROMPTS, 1), patient.given.start_id or 0).to(prompt)
        texts = (prompt,) if patient.kind == "causal" else (prompt, start)
        yield from _against_forward(patient, texts, written)
        given = patient.given
        if patient.kind == "translator" or patient.pads_left or given.generates_padded:
            yield from _padded(patient, run)
        elif patient.pad is not None:
            raise Skip("padded prompts were not tried: hand over generates_padded=True")


def _against_forward(patient: Patient, texts: Ids, written: Tensor) -> Iterator[Finding]:
    """Compare what was written with forward's likeliest tokens; special ones may be left out."""
    last = patient.logits(*texts)[:, -1]
    best = [last.argmax(-1)]
    last[:, sorted(patient.special)] = -math.inf
    best.append(last.argmax(-1))
    if not any(torch.equal(choice, written[:, 0]) for choice in best):
        moved = f"{written[:, 0].tolist()}, and forward's likeliest is {best[0].tolist()}."
        yield Finding("generate_not_argmax", "The first token written was compared.", moved)
        return
    at = _drifts(patient, texts, written)
    if at is not None:
        moved = f"From new token {at} on, another one is likelier."
        yield Finding("generate_not_argmax", "Forward was asked for each token written.", moved)


def _drifts(patient: Patient, texts: Ids, written: Tensor) -> int | None:
    """Return the first new token that forward finds less likely than another, or `None`."""
    sequences, first = torch.cat([texts[-1], written], 1), texts[-1].shape[1] - 1
    if shifts_itself(patient, (*texts[:-1], sequences)):  # it reads a start and all but the last
        logits = patient.logits(*texts[:-1], sequences[:, 1:].contiguous())[:, first:]
    else:
        logits = patient.logits(*texts[:-1], sequences)[:, first:-1]
    ended = torch.isin(written, torch.tensor(sorted(patient.special))).cumsum(1) > 0
    off = (logits.argmax(-1) != written) & ~ended
    return int(off.any(0).nonzero()[0]) if bool(off.any()) else None


def _padded(patient: Patient, run) -> Iterator[Finding]:
    if patient.pad is None:
        return
    left, gaps = patient.pads_left, (1, 2, 3, 1, 2, 0)
    prompts = patient.texts(6, 6, 6)[0]
    ids = prompts.clone()
    for row, count in enumerate(gaps):
        ids[row, : count if left else 0] = patient.pad
        ids[row, len(ids[row]) - (0 if left else count) :] = patient.pad
    together = run(ids)
    for row, count in enumerate(gaps[:-1]):
        words = slice(count, None) if left else slice(0, 6 - count)
        alone = run(prompts[row : row + 1, words])[0]
        if not torch.equal(together[row], alone):
            yield Finding(
                "generate_reads_padding",
                f"A prompt with {count} <pad>, and alone.",
                f"{together[row].tolist()} and {alone.tolist()} were written.",
            )
            return


def sampling(patient: Patient) -> Iterator[Finding]:
    """Draw 3,000 tokens, and find the temperature that explains them best."""
    sample, temperature = patient.given.need("sample", "temperature")
    with patient.shaken(1.0):
        prompt = patient.texts(1, 5)[0]
        logits = patient.logits(prompt)[0, -1].double()
        torch.manual_seed(0)
        samples = sample(prompt.repeat(DRAWS, 1))
        samples = samples[:, -1] if samples.dim() > 1 else samples
    counts = torch.bincount(samples.cpu(), minlength=len(logits)).double()
    factors = torch.linspace(0.05, 8, 400).double() / temperature
    likelihood = torch.stack([(counts * (f * logits).log_softmax(0)).sum() for f in factors])
    best = float(factors[likelihood.argmax()])
    p = (best * logits).softmax(0)
    error = 1 / math.sqrt(DRAWS * float((p * logits**2).sum() - (p * logits).sum() ** 2))
    if abs(best - 1 / temperature) > 5 * error + 0.05 / temperature:
        yield Finding(
            "sampling_distribution",
            f"{DRAWS:,} tokens were drawn at T = {temperature}.",
            f"They look like T = {1 / best:.2f}.",
        )
