"""Write a bug hunt for a class: `python -m transformer_lesson.exercises.exam 7 [FOLDER]`.

The notebook holds a program with three bugs, chosen by the number. `make grade` grades what comes
back: a row for each bug, and one for each function that was right and no longer is.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import torch

from transformer_lesson.exercises.boss import BUGS, LARGEST, Text, healthy, planted_bugs
from transformer_lesson.exercises.engine.checks import one_thread
from transformer_lesson.exercises.engine.misuse import Misuse
from transformer_lesson.exercises.probing import PROBES
from transformer_lesson.exercises.program import REST, imports, sources
from transformer_lesson.files import write_atomically

TITLE = "# Hunt {seed} · Three bugs"
TASK = """
This program learns to write German sentences. It runs, and three of its functions have a bug each.

Find them with the probes at the end, mend the three functions in their cells, and hand the notebook
in. Keep each function's name and arguments; its docstring says what it should do. Every bug that
you mend counts for you, and every sound function that you break counts against you.

| Probe | What it asks |
|---|---|
"""
RUN = """losses, sentences = run()
print(*(f"{step:>4} {loss:.2f}" for step, loss in list(enumerate(losses))[::10]), sep="\\n")
print(*sentences, sep="\\n")"""
PROBE = """from transformer_lesson.exercises.exam import probe

probe("initial loss", globals())"""


def probe(name: str, names: dict[str, Any]) -> Text:
    """Run a probe on the program in a notebook.

    Args:
        name: of the probe.
        names: the notebook's `globals()`.

    Raises:
        ValueError: there is no such probe.
    """
    if name not in PROBES:
        raise Misuse(f"There is no probe {name!r:.60}. Take one of: {', '.join(PROBES)}.")
    with one_thread(), torch.random.fork_rng(devices=[]):
        return Text(PROBES[name].take(names, healthy()[0]))


def hunt(seed: int) -> dict[str, Any]:
    """Return a bug hunt as a notebook.

    Args:
        seed: which one, 0 to 9999.

    Raises:
        ValueError: there is no hunt of that number.
    """
    source_of = sources(planted_bugs(seed))
    table = "\n".join(f"| {name} | {probe.asks} |" for name, probe in PROBES.items())
    texts = [("markdown", TITLE.format(seed=seed) + "\n" + TASK + table)]
    code = [imports(source_of), *source_of.values(), REST.strip(), RUN, PROBE]
    texts += [("code", source) for source in code]
    cells = [_cell(f"cell-{i}", *text) for i, text in enumerate(texts)]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def _cell(name: str, kind: str, source: str) -> dict[str, Any]:
    more = {"outputs": [], "execution_count": None} if kind == "code" else {}
    return {"id": name, "cell_type": kind, "metadata": {}, "source": source, **more}


class _OneSentence(argparse.ArgumentParser):
    """A parser whose errors are one sentence."""

    def error(self, message: str) -> None:
        """End with a sentence."""
        rule = f"give a whole number from 0 to {LARGEST} and, if you like, a folder"
        self.exit(1, f"{message.capitalize()}: {rule}.\n")


def main(arguments: list[str]) -> int:
    """Write a hunt as a notebook and print its path; never overwrite a file."""
    parser = _OneSentence(prog="python -m transformer_lesson.exercises.exam", description=__doc__)
    parser.add_argument("seed", type=int, help=f"which hunt, 0 to {LARGEST}")
    parser.add_argument("folder", nargs="?", default=".", help="where to write it")
    parser.add_argument("--overwrite", action="store_true", help="replace a file of that name")
    chosen = parser.parse_args(arguments)
    if not 0 <= chosen.seed <= LARGEST:
        parser.error(f"there is no hunt {chosen.seed}")
    if not Path(chosen.folder).is_dir():
        parser.error(f"{chosen.folder!r} is not a folder")
    place = Path(chosen.folder) / f"hunt_{chosen.seed:02}.ipynb"
    if place.exists() and not chosen.overwrite:
        print(f"{place} is there already: move it away, or say --overwrite.")
        return 1
    notebook = json.dumps(hunt(chosen.seed), ensure_ascii=False, indent=1)
    write_atomically(place, f"{notebook}\n".encode())
    print(f"{place}: {BUGS} bugs.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
