"""RESULTS.md, which the benchmarks write: a section per processor, with one per script."""

import ast
import os
import platform
import re
import subprocess
from datetime import date
from pathlib import Path
from typing import NamedTuple

import psutil
import torch

RESULTS = Path(__file__).parent / "RESULTS.md"
THREADS = 2
SECTIONS = {
    "training_speed": "Training: seconds per step",
    "memory": "Training: memory per step",
    "generation_speed": "Generation: tokens per second",
    "fast": "Ours against ours, plain",
    "translation": "Translation: the generated grammar",
    "language_model": "A language model: CPython's manual",
    "induction": "What heads learn: induction",
    "chat_model": "A chat model: tokens per second, bits and bytes",
    "gemma": "Gemma 3 270M: loading, reading, writing",
    "gpu": "On a GPU: GPT-2's smallest configuration",
    "soak": "Reliability: half an hour at the knobs",
    "site": "The web site: weight and speed of a page",
}
"""Each script's heading, in the order in which `make bench` runs them."""
BY_HAND = {"soak", "gemma"}  # half an hour; after its owner's terms
MEASURES = {
    "training_speed": ("model", "training"),
    "memory": ("model", "training"),
    "generation_speed": ("model", "generation"),
    "fast": ("model", "training"),
    "translation": ("model", "training", "generation", "text"),
    "language_model": ("model", "training", "text"),
    "induction": ("model", "training", "lessons"),
    "chat_model": ("model", "generation", "checkpoints"),
    "gemma": ("model", "generation", "checkpoints"),
    "gpu": ("model", "training"),
    "soak": ("explorables",),
    "site": ("explorables",),
}
"""The rooms of the package whose code each script measures."""
ROOT = Path(__file__).parents[1]

PREFACE = """# What was measured

`make bench` writes this file, `python -m benchmarks.memory` and its like one section of it: that of
the processor that they run on. Each notes the commit whose code it measured; `python -m
benchmarks.stale` names what is older than its code. What is compared ran in turns in one process,
with the same weights and equal outputs (asserted first). A ratio is ours divided by the peer's,
round by round. **Bold** is the median; the middle half of the values lies between the two numbers
after it. "Known" is what others or an earlier version of ours reached on a machine of this kind.

What varies from processor to processor: how long anything takes (twice to three times), whether
bfloat16 is worth it, how much a cache gains, and the last digits of every number, so that two
trainings part after some steps. What does not: that ours equals PyTorch's, how many parameters
there are, how much memory a step needs, who sees whom.
"""
HOW = "How it was measured"
HEAD = "| measure | peer | known | reach | measured | reached |\n|---|---|---|---|---|---|\n"


class Row(NamedTuple):
    """One measurement. `reached` is `None` if nothing is promised."""

    measure: str
    peer: str
    known: str
    reach: str
    measured: str
    reached: bool | None

    def __str__(self) -> str:
        verdict = {True: "yes", False: "**no**", None: "–"}[self.reached]
        return f"| {' | '.join([*self[:-1], verdict])} |"


def processor() -> str:
    """Return the processor's name, the instructions that PyTorch uses, and the cores."""
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = (line.partition(":") for line in cpuinfo.read_text().splitlines())
        name = next((v.strip() for k, _, v in lines if k.strip() == "model name"), name)
    return f"{name} ({torch.backends.cpu.get_cpu_capability()}), {os.cpu_count()} cores"


def circumstances(script: str) -> str:
    """Describe a script's run: date, commit, memory, versions, threads."""
    commit = (_git("rev-parse", "--short=7", "HEAD") or "unknown").strip()
    dirty = " with changes" if changed(script, commit) else ""
    return (
        f"{date.today()}, commit {commit}{dirty}: {psutil.virtual_memory().total / 2**30:.0f} GiB, "
        f"{platform.system()}, Python {platform.python_version()}, "
        f"torch {torch.__version__.partition('+')[0]}, {torch.get_num_threads()} threads."
    )


def read_sections() -> dict[str, dict[str, str]]:
    """Return the text below each heading of RESULTS.md: part, then script."""
    text = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else ""
    parts = {}
    for part in text.split("\n## ")[1:]:
        heading, _, body = part.partition("\n")
        inner = (section.partition("\n") for section in f"\n{body}".split("\n### ")[1:])
        parts[heading] = {name: text.strip("\n") for name, _, text in inner}
    return parts


def in_a_repository() -> bool:
    """Whether git knows the history of these files: a downloaded copy has none."""
    return _git("rev-parse", "HEAD") is not None


def stale() -> list[str]:
    """Return a sentence for each table of RESULTS.md that is older than the code it measures.

    Only code counts: comments, docstrings and layout may change. A table without a commit, or with
    one that this repository does not know, counts as stale.
    """
    scripts, sentences = {heading: script for script, heading in SECTIONS.items()}, []
    for part, tables in read_sections().items():
        for heading, table in tables.items() if part != HOW else ():
            commit = re.search(r"commit (\w+)", table.partition("\n")[0])
            files = commit and changed(scripts[heading], commit[1])
            if files is None:
                sentences.append(f"{part}, {heading}: its commit is not known here.")
            elif files:
                more = f" and {len(files) - 1} more" if len(files) > 1 else ""
                sentences.append(f"{part}, {heading}: since {commit[1]} changed {files[0]}{more}.")
    return sentences


def changed(script: str, commit: str) -> list[str] | None:
    """Return the files that a script measures and that changed since a commit.

    Of a Python file only the code counts. `None` if git does not know: another repository's
    commit, or a copy without history.
    """
    rooms = [f"transformer_lesson/{room}" for room in MEASURES[script]]
    listed = _git("diff", "--name-only", commit, "--", f"benchmarks/{script}.py", *rooms)
    if listed is None:
        return None
    return [
        path
        for path in listed.split()
        if not path.endswith(".py") or _code_at(commit, path) != _code_now(path)
    ]


def _code_at(commit: str, path: str) -> str | None:
    text = _git("show", f"{commit}:{path}")
    return text and _code(text)


def _code_now(path: str) -> str | None:
    file = ROOT / path
    return _code(file.read_text(encoding="utf-8")) if file.exists() else None


def _code(text: str) -> str:
    """Return what a Python file does: its syntax tree without docstrings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if hasattr(node, "body") and isinstance(node.body, list):
            node.body = [line for line in node.body if not _is_text(line)]
    return ast.dump(tree)


def _is_text(line: ast.stmt) -> bool:
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)


def _git(*command: str) -> str | None:
    """Return git's output, or `None` if there is no git, no repository, or no such commit."""
    try:
        run = subprocess.run(
            ["git", *command], cwd=ROOT, capture_output=True, encoding="utf-8", check=False
        )
    except FileNotFoundError:
        return None
    return None if run.returncode else run.stdout


def write(script: str, rows: list[Row], notes: str) -> None:
    """Put a script's rows into this processor's section, and its notes into `HOW`."""
    table = HEAD + "\n".join(map(str, rows))
    parts, heading = read_sections(), SECTIONS[script]
    parts.setdefault(processor(), {})[heading] = f"{circumstances(script)}\n\n{table}"
    parts.setdefault(HOW, {})[heading] = notes.strip()
    ordered = [name for name in parts if name != HOW] + [HOW]
    texts = [PREFACE]
    for name in ordered:
        texts.append(f"## {name}\n")
        texts += [f"### {h}\n\n{parts[name][h]}\n" for h in SECTIONS.values() if h in parts[name]]
    RESULTS.write_text("\n".join(texts), encoding="utf-8")
    print(f"\n{heading}\n{table}")
