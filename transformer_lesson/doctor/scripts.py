"""What a script or a saved model hands over to `examine`."""

import os
import runpy
import sys
from collections.abc import Mapping
from dataclasses import fields
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transformer_lesson.doctor.examination import examine
from transformer_lesson.doctor.patient import Given
from transformer_lesson.doctor.report import Report

NAMES = ("model", "batch", "kind", "pad_id", *(field.name for field in fields(Given)))
ROWS, LENGTH, SEED = 6, 14, 3


def report_to(pipe: Connection, path: Path, seconds: float, meant: tuple[str, ...]) -> None:
    """Examine a script or a folder; send the report's text and the exit code."""
    look = examine_folder if path.is_dir() else examine_script
    try:
        report = look(path, seconds=seconds, meant=meant)
    except Exception as error:  # the script's own, or a sentence of ours about what it lacks
        pipe.send((f"{path}: {type(error).__name__}: {error}", 2))
    else:
        faulty = any(finding.level == "fault" for finding in (*report.causes, *report.others))
        pipe.send((str(report), int(faulty)))


def examine_script(path: Path, **how: Any) -> Report:
    """Run a script, as `python script.py` would but without its main part, and examine it.

    Raises:
        ValueError: it names no model, or no batch.
    """
    path = path.resolve()
    sys.path.insert(0, str(path.parent))
    os.chdir(path.parent)
    names = runpy.run_path(str(path), run_name="examined")
    handed = names.get("HANDED")
    handed = (
        dict(handed)
        if isinstance(handed, Mapping)
        else {name: names[name] for name in NAMES if name in names}
    )
    handed.pop("meant", None)
    for needed in ("model", "batch"):
        if needed not in handed:
            raise ValueError(
                f"the script names no `{needed}`: let it end with model = ..., "
                "batch = ... (ids, text by token), and what else you have: pad_id, loss, ..."
            )
    model, batch = handed.pop("model"), handed.pop("batch")
    return examine(model, batch, **handed, **how)


def examine_folder(path: Path, **how: Any) -> Report:
    """Examine a model that transformers saved: its weights are trained, so nothing is `fresh`.

    Raises:
        ValueError: there is no config.json.
    """
    if not (path / "config.json").is_file():
        raise ValueError(
            f"there is no config.json in {path}: name a folder that transformers saved."
        )
    import transformers

    config = transformers.AutoConfig.from_pretrained(path, local_files_only=True)
    kind, auto = _kind(config, transformers)
    model = auto.from_pretrained(path, local_files_only=True)
    return examine(model, **around(model, kind), fresh=False, **how)


def _kind(config, transformers) -> tuple[str, Any]:
    architecture = (getattr(config, "architectures", None) or [""])[0]
    if getattr(config, "is_encoder_decoder", False):
        return "translator", transformers.AutoModelForSeq2SeqLM
    if "MaskedLM" in architecture:
        return "encoder", transformers.AutoModelForMaskedLM
    return "causal", transformers.AutoModelForCausalLM


def around(model, kind: str) -> dict[str, Any]:
    """Return what a script around a model of transformers would hand over: `forward` and `loss`."""
    config = model.config
    pad = config.pad_token_id if getattr(config, "pad_token_id", None) is not None else 0
    eos = getattr(config, "eos_token_id", None)
    eos = eos[0] if isinstance(eos, list) else eos
    size = getattr(config, "vocab_size", None) or config.get_text_config().vocab_size
    batch = texts(size, pad, eos)

    def mask(ids: Tensor) -> Tensor:
        return (ids != pad).long()

    if kind == "translator":
        sides = (batch, texts(size, pad, eos, seed=SEED + 1))
        return dict(batch=sides, pad_id=pad, eos_id=eos) | _around_a_translator(model, mask)

    def forward(ids: Tensor):
        return model(input_ids=ids, attention_mask=mask(ids))

    handed = dict(batch=batch, kind=kind, pad_id=pad, eos_id=eos, forward=forward)
    if kind == "causal":
        handed["loss"] = lambda ids: (
            model(
                input_ids=ids, attention_mask=mask(ids), labels=ids.masked_fill(ids == pad, -100)
            ).loss
        )
    return handed


def _around_a_translator(model, mask) -> dict[str, Any]:
    def forward(source: Tensor, target: Tensor):
        return model(input_ids=source, attention_mask=mask(source), decoder_input_ids=target)

    def loss(source: Tensor, target: Tensor) -> Tensor:
        labels = target.masked_fill(mask(target) == 0, -100)
        return model(input_ids=source, attention_mask=mask(source), labels=labels).loss

    start = getattr(model.config, "decoder_start_token_id", None)
    return dict(kind="translator", start_id=start, forward=forward, loss=loss)


def texts(size: int, pad: int, eos: int | None, seed: int = SEED) -> Tensor:
    """Return random texts of ordinary ids, each with an end, padded on the right."""
    draw = torch.Generator().manual_seed(seed)
    ids = torch.full((ROWS, LENGTH), pad)
    for row in ids:
        n = int(torch.randint(6, LENGTH + 1, (1,), generator=draw))
        row[:n] = torch.randint(10, size, (n,), generator=draw)
        row[:n][(row[:n] == pad) | (row[:n] == eos)] = 9
        if eos is not None:
            row[n - 1] = eos
    return ids
