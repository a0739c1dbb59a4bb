"""`python -m transformer_lesson.training --corpus grammar --out DIR`: training without a notebook.

It writes three files into the folder: `checkpoint.safetensors`, the whole run, to go on with;
`model.safetensors`, only the model and its vocabulary, to use; and `history.json`, the curves.

`torchrun --standalone --nproc-per-node=2 -m transformer_lesson.training ...` does the same with two
processes. If one of them dies, all end; the same command with `--resume` goes on.
"""

import argparse
import json
import os
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from tqdm.auto import tqdm

from transformer_lesson.checkpoints import save_checkpoint, write_atomically
from transformer_lesson.training import distributed
from transformer_lesson.training.config import PRECISIONS
from transformer_lesson.training.history import History, StepReport
from transformer_lesson.training.runs import resume, train
from transformer_lesson.training.saved_run import TrainingInterrupted, TrainingRun
from transformer_lesson.training.tasks import Task, make_task

INTERRUPTED = 130  # the exit status of a program that Ctrl-C ended


def main(arguments: list[str] | None = None) -> int:
    """Train as the command line says and return the exit status."""
    options = _parser().parse_args(arguments)
    device = distributed.start()
    rank = distributed.rank()
    name = f"transformer_lesson.training{f', process {rank}' if rank else ''}"
    try:
        with open(os.devnull, "w") as null, redirect_stdout(null if rank else sys.stdout):
            status = _run(options, device)
        distributed.stop()
        return status
    except PermissionError as error:
        closed = f"{error.filename} is closed to you ({error.strerror})"
        print(f"{name}: {closed}: choose another place or change its rights.", file=sys.stderr)
        return 2
    except (ValueError, OSError, ArithmeticError, ModuleNotFoundError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Interrupted: what was saved before stays as it is.", file=sys.stderr)
        return INTERRUPTED
    except RuntimeError as error:
        if dist.is_initialized():
            error.add_note("If another process died, the same command with --resume goes on.")
        raise


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m transformer_lesson.training",
        description="Train a translator or a language model, and keep it in a folder.",
    )
    parser.add_argument(
        "--corpus",
        required=True,
        help="grammar (generated English to German), interface (JupyterLab's menus), manual "
        "(CPython's manual, a language model), or a file with a sentence, a tab and its "
        "translation on each line",
    )
    parser.add_argument("--out", required=True, type=Path, help="the folder to write to")
    parser.add_argument("--steps", type=int, help="batches to learn from, if not the corpus's own")
    parser.add_argument("--seed", type=int, help="of weights, batches and dropout (default: 0)")
    parser.add_argument(
        "--precision",
        choices=(*PRECISIONS, "auto"),
        help="of the matrix products, if not the corpus's own",
    )
    parser.add_argument("--resume", action="store_true", help="go on with the run in the folder")
    return parser


def _run(options: argparse.Namespace, device: torch.device) -> int:
    checkpoint = options.out / "checkpoint.safetensors"
    try:
        if options.resume:
            task, model, history = _resume(options, checkpoint)
        else:
            task, model, history = _start(options, checkpoint, device)
    except TrainingInterrupted as interruption:
        print(interruption, "The same command with --resume does that.")
        _save_history(interruption.history, options.out)
        return INTERRUPTED
    _save_history(history, options.out)
    if distributed.rank() > 0:
        return 0
    print(f"{history.steps} steps took {history.seconds:.1f} s of training in {history.precision}.")
    for sentence in task.evaluate(model.cpu()):
        print(sentence)
    path = options.out / "model.safetensors"
    save_checkpoint(path, model, task.tokenizer)
    print(f"{path} holds model and vocabulary ({path.stat().st_size / 1e6:.1f} MB).")
    return 0


def _save_history(history: History, folder: Path) -> None:
    if distributed.rank() == 0:
        write_atomically(folder / "history.json", json.dumps(history.to_json()).encode())


def _start(
    options: argparse.Namespace, checkpoint: Path, device: torch.device
) -> tuple[Task, nn.Module, History]:
    if checkpoint.exists():
        raise ValueError(f"{checkpoint} already exists: add --resume, or change --out.")
    seed = options.seed or 0
    print(f"Preparing the corpus {options.corpus}.", flush=True)
    task = make_task(options.corpus, seed)
    changes = {"steps": options.steps, "precision": options.precision, "seed": seed}
    changes = {name: value for name, value in changes.items() if value is not None}
    if options.steps:  # the corpus's own warm-up may be longer than the whole run
        half = max(1, options.steps // 2)
        changes["warmup_steps"] = min(task.recipe.training.steps_of_warmup, half)
    config = replace(task.recipe.training, **changes)
    torch.manual_seed(seed)
    model = task.kind(task.recipe.model_config(task.tokenizer)).to(device)
    n_weights = sum(weight.numel() for weight in model.parameters())
    print(f"{type(model).__name__} with {n_weights:,} weights, {config.steps} steps.", flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    every = max(1, config.steps // 5)
    history = train(
        model,
        task.batches,
        config,
        on_step=_report,
        validation=task.validation,
        validate_every=every,
        checkpoint=checkpoint,
        checkpoint_every=every,
        tokenizer=task.tokenizer,
    )
    return task, model, history


def _resume(options: argparse.Namespace, checkpoint: Path) -> tuple[Task, nn.Module, History]:
    for name in ("seed", "precision"):
        if getattr(options, name) is not None:
            raise ValueError(f"--{name} belongs to the start of a run: leave it out with --resume.")
    saved = TrainingRun.load(checkpoint)
    print(f"Going on after step {saved.history.steps} of {checkpoint}.", flush=True)
    task = make_task(options.corpus, saved.config.seed)
    if saved.tokenizer is None or saved.tokenizer.vocabulary != task.tokenizer.vocabulary:
        raise ValueError(f"{checkpoint} was trained on a corpus other than {options.corpus}.")
    return task, *resume(checkpoint, task.batches, _report, task.validation, options.steps)


def _report(report: StepReport) -> None:
    if report.validation is not None:
        tqdm.write(
            f"step {report.step}: loss {report.loss:.3f}, validation {report.validation:.3f}, "
            f"{report.tokens_per_second:,.0f} tokens/s"
        )


if __name__ == "__main__":
    sys.exit(main())
