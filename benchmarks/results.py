"""RESULTS.md, which the benchmarks write: one section a processor, and in it one a script."""

import os
import platform
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
    "parity": "Real checkpoints: equal to the library",
    "chat_model": "A chat model: tokens per second, bits and bytes",
    "gpu": "On a GPU: GPT-2's smallest configuration",
    "soak": "Reliability: half an hour at the knobs",
    "site": "The web site: weight and speed of a page",
}
"""Each script's heading, in the order in which `make bench` runs them."""
BY_HAND = {"soak"}  # takes half an hour

PREFACE = """# What was measured

`make bench` writes this file, `python -m benchmarks.memory` and its like one section of it: that of
the processor that they run on. What is compared ran in turns in one process, with the same weights
and equal outputs (asserted first). A ratio is ours divided by the peer's, round by round. **Bold**
is the median; the middle half of the values lies between the two numbers after it. "Known" is what
others or an earlier version of ours reached on a machine of this kind.

What varies from processor to processor: how long anything takes (twice to three times), whether
bfloat16 is worth it, which way to multiply a few rows is fastest, how much a cache gains, and the
last digits of every number, so that two trainings part after some steps. What does not: that ours
equals PyTorch's, how many parameters there are, how much memory a step needs, who sees whom.
"""
HOW = "How it was measured"
HEAD = "| measure | peer | known | reach | measured | reached |\n|---|---|---|---|---|---|\n"


class Row(NamedTuple):
    """One measurement. `reached` is `None` where nothing is promised."""

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
    """Return the processor's name, what of it PyTorch uses, and its cores."""
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = (line.partition(":") for line in cpuinfo.read_text().splitlines())
        name = next((v.strip() for k, _, v in lines if k.strip() == "model name"), name)
    return f"{name} ({torch.backends.cpu.get_cpu_capability()}), {os.cpu_count()} cores"


def circumstances() -> str:
    """Describe when and under what this runs: memory, versions, threads."""
    return (
        f"{date.today()}: {psutil.virtual_memory().total / 2**30:.0f} GiB, "
        f"{platform.system()}, Python {platform.python_version()}, "
        f"torch {torch.__version__.partition('+')[0]}, {torch.get_num_threads()} threads."
    )


def read_sections() -> dict[str, dict[str, str]]:
    """Return the text below each heading of RESULTS.md: part, then script."""
    text = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else ""
    parts = {}
    for part in text.split("\n## ")[1:]:
        heading, _, body = part.partition("\n")
        inner = (one.partition("\n") for one in f"\n{body}".split("\n### ")[1:])
        parts[heading] = {name: text.strip("\n") for name, _, text in inner}
    return parts


def write(script: str, rows: list[Row], notes: str) -> None:
    """Put a script's rows into this processor's section, and how they came about into its own."""
    table = HEAD + "\n".join(map(str, rows))
    parts, heading = read_sections(), SECTIONS[script]
    parts.setdefault(processor(), {})[heading] = f"{circumstances()}\n\n{table}"
    parts.setdefault(HOW, {})[heading] = notes.strip()
    ordered = [name for name in parts if name != HOW] + [HOW]
    texts = [PREFACE]
    for name in ordered:
        texts.append(f"## {name}\n")
        texts += [f"### {h}\n\n{parts[name][h]}\n" for h in SECTIONS.values() if h in parts[name]]
    RESULTS.write_text("\n".join(texts), encoding="utf-8")
    print(f"\n{heading}\n{table}")
