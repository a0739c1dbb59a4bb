"""RESULTS.md, which the benchmarks write: each script replaces its own section and no other."""

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
    "translation": "Translation: the generated grammar",
    "language_model": "A language model: CPython's manual",
    "induction": "What heads learn: induction",
    "parity": "Real checkpoints: equal to the library",
    "gpu": "On a GPU: GPT-2's smallest configuration",
    "soak": "Reliability: half an hour at the knobs",
    "site": "The web site: weight and speed of a page",
}
"""Each script's heading, in the order in which `make bench` runs them."""
BY_HAND = {"soak"}  # takes half an hour

PREFACE = """# What was measured

`make bench` writes this file; `python -m benchmarks.memory` and its like write one section. What
is compared ran in turns in one process, with the same weights and equal outputs (asserted first).
A ratio is ours divided by the peer's, round by round. **Bold** is the median; the middle half of
the values lies between the two numbers after it. "Known" is what others or an earlier version of
ours reached on a machine of this kind.
"""
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


def machine() -> str:
    """Describe where and when this runs: processor, cores, memory, versions, threads."""
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = (line.partition(":") for line in cpuinfo.read_text().splitlines())
        processor = next((v.strip() for k, _, v in lines if k.strip() == "model name"), processor)
    return (
        f"{date.today()}: {processor} ({torch.backends.cpu.get_cpu_capability()}), "
        f"{os.cpu_count()} cores, {psutil.virtual_memory().total / 2**30:.0f} GiB, "
        f"{platform.system()}, Python {platform.python_version()}, "
        f"torch {torch.__version__.partition('+')[0]}, {torch.get_num_threads()} threads."
    )


def read_sections() -> dict[str, str]:
    """Return the text below each heading of RESULTS.md."""
    text = RESULTS.read_text() if RESULTS.exists() else ""
    parts = (part.partition("\n") for part in text.split("\n## ")[1:])
    return {heading: body.strip("\n") for heading, _, body in parts}


def write(script: str, rows: list[Row], notes: str) -> None:
    """Put a script's rows into RESULTS.md, with the machine above and notes below them."""
    table = HEAD + "\n".join(map(str, rows))
    sections = read_sections()
    sections[SECTIONS[script]] = f"{machine()}\n\n{table}\n\n{notes.strip()}"
    texts = [f"## {h}\n\n{sections[h]}\n" for h in SECTIONS.values() if h in sections]
    RESULTS.write_text("\n".join([PREFACE, *texts]))
    print(f"\n{SECTIONS[script]}\n{table}")
