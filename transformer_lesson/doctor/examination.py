"""`examine`: all probes, one after the other, and a report of at most three causes."""

import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import fields
from typing import Any

from torch import Tensor, nn
from tqdm.auto import tqdm

from transformer_lesson.doctor import (
    attention,
    evaluation,
    first_weights,
    gradients,
    labels,
    padding,
    paths,
    positions,
    schedules,
    stability,
    steps,
    updates,
    visibility,
    wiring,
    writing,
)
from transformer_lesson.doctor.findings import Finding
from transformer_lesson.doctor.nothing_dropped import NoDropout
from transformer_lesson.doctor.patient import KINDS, Given, Patient, Skip
from transformer_lesson.doctor.report import Report

Probe = Callable[[Patient], Iterator[Finding]]
AREAS = {
    "labels": "labels",
    "steps": "steps",
    "updates": "steps",
    "evaluation": "evaluation",
    "schedules": "schedules",
    "writing": "writing",
}
"""What a module's probes are about; those of modules not listed examine the model itself."""
PROBES: tuple[Probe, ...] = (
    stability.modes,
    stability.dropout_size,
    stability.rows,
    visibility.visibility,
    attention.softmax,
    padding.padding,
    padding.tokens,
    positions.positions,
    positions.length,
    positions.table,
    positions.heads,
    gradients.parameters,
    wiring.layers,
    wiring.blocks,
    wiring.norms,
    paths.paths,
    paths.gates,
    labels.labels,
    labels.amount,
    labels.first_loss,
    first_weights.first_weights,
    steps.optimizer,
    updates.updates,
    steps.step,
    evaluation.both_modes,
    evaluation.evaluation,
    schedules.schedule,
    writing.cache,
    writing.generate,
    writing.sampling,
)


def examine(
    model: Any,
    batch: Any,
    kind: str = "causal",
    pad_id: Any = None,
    *,
    only: Iterable[str] = (),
    meant: Iterable[str] = (),
    seconds: float = 600.0,
    **what_you_have: Any,
) -> Report:
    """Examine a Transformer that need not be ours; nothing of it is changed afterwards.

    Every number on the way is one of your own functions': masks, labels and positions are made by
    your code. What a probe lacks, the report names.

    Args:
        model: any nn.Module.
        batch: ids of real texts, padded as you pad, (text, token); a translator's are two.
        kind: "causal", "translator" or "encoder".
        pad_id: the id of padding.
        only: names of probes, such as {"visibility"}, to ask these questions alone (default: all).
        meant: codes of findings that you mean, such as {"no_positions"}.
        seconds: after these, no further probe begins.
        what_you_have: any of
            `forward(*ids)`: the logits (else the model is called; a translator's target as its
            decoder reads it); `loss(*batch)`: a tensor with a gradient; `optimizer`;
            `train_step(*batch)`: one step of this optimizer; `evaluate(batches)`: the number that
            you report; `generate(ids, count)`: greedily, with `count` new ids at the end;
            `cached(ids)`: the logits, read token by token with your cache; `sample(ids)`: with one
            new id at the end, drawn at `temperature`; `schedule(step)`: the rate, of `steps` in
            all; `eos_id`, `start_id` (a decoder's first), `max_length`, `padding_side`
            (else the batch tells),
            `generates_padded` (prompts may be padded on the right, too), `prefix` (tokens that may
            see each other), `tied` (head and table are meant to be one tensor),
            `fresh=False` (trained weights).

    Raises:
        ValueError: an argument or a probe that there is not, or a batch without texts.
    """
    _require(model, batch, kind, pad_id, what_you_have)
    probes = _chosen(only)
    patient = Patient(model, batch, kind, pad_id, Given(**what_you_have))
    findings: list[Finding] = []
    skipped: dict[str, str] = {}
    took: dict[str, float] = {}
    begun = time.perf_counter()
    with patient.kept(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        few = len(probes) < len(PROBES)
        for probe in tqdm(probes, "examining", delay=2, leave=False, disable=few):
            name, start = probe.__name__, time.perf_counter()
            if start - begun > seconds:
                skipped[name] = f"after {seconds:g} s: raise seconds="
                continue
            try:
                for finding in _asked(probe, patient):
                    patient.found.add(finding.code)
                    findings.append(finding)
            except Skip as why:
                skipped[name] = str(why)
            except Exception as error:  # of the owner's code, asked for what it never met before
                skipped[name] = f"{type(error).__name__}: {str(error)[:200]}"
            finally:
                patient.restore()
            took[name] = time.perf_counter() - start
    return Report(findings, skipped, took, meant)


def _asked(probe: Probe, patient: Patient) -> Iterator[Finding]:
    """Yield what a probe finds.

    Once dropout is known to stay on in eval mode, probes of the model run without: else they see
    nothing but that.
    """
    area = AREAS.get(probe.__module__.rpartition(".")[2], "model")
    quiet = "random_in_eval" in patient.found and area in ("model", "labels")
    with NoDropout() if quiet else nullcontext():
        for finding in probe(patient):
            finding.area = area
            yield finding


def _chosen(only: Iterable[str]) -> tuple[Probe, ...]:
    names = {only} if isinstance(only, str) else set(only)
    known = {probe.__name__: probe for probe in PROBES}
    unknown = sorted(names - set(known))
    if unknown:
        raise ValueError(f"There is no probe {unknown[0]!r}: there are {', '.join(known)}.")
    return tuple(probe for name, probe in known.items() if name in names or not names)


def _require(model, batch, kind: str, pad_id, given: dict) -> None:
    names = [field.name for field in fields(Given)]
    unknown = sorted(set(given) - set(names))
    if unknown:
        raise ValueError(f"examine() doesn't take {unknown[0]!r}: it takes {', '.join(names)}.")
    if kind not in KINDS:
        raise ValueError(f"kind is {kind!r}, but it must be one of {', '.join(KINDS)}.")
    if not isinstance(model, nn.Module):
        raise ValueError(f"model is a {type(model).__name__}: hand over an nn.Module.")
    sides = [batch] if isinstance(batch, Tensor) else list(batch)
    wanted = 2 if kind == "translator" else 1
    if len(sides) != wanted or not all(isinstance(ids, Tensor) and ids.dim() == 2 for ids in sides):
        raise ValueError(
            f"batch must be {'(source ids, target ids)' if wanted == 2 else 'ids'}, each a tensor "
            "of the shape (text, token)."
        )
    if any(ids.is_floating_point() or len(ids) < 2 for ids in sides):
        raise ValueError("batch must hold ids (whole numbers) of at least two texts.")
    if pad_id is not None and not isinstance(pad_id, int):
        raise ValueError(f"pad_id is {pad_id!r}, but it must be a whole number.")
