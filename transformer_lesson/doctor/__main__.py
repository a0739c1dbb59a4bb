"""Examine a script or a saved model from the command line, in a process of its own.

`transformer-lesson doctor script.py` runs a script and examines what it names: `model`, `batch`,
and whatever else `examine` takes (`kind`, `pad_id`, `loss`, ...), as variables or in a dictionary
called `HANDED`. `transformer-lesson doctor folder/` examines a model that transformers saved there.
Both are also `python -m transformer_lesson.doctor`.

A script's training step may move counters that nobody can put back, and a model may hang: both end
with this process.
"""

import argparse
import multiprocessing
import sys
from pathlib import Path

from transformer_lesson.doctor.scripts import report_to

SECONDS = 300


def main(arguments: list[str] | None = None) -> int:
    """Print the report of a script or folder; return 1 if it holds a fault, 2 if there is none."""
    parser = argparse.ArgumentParser(
        "transformer-lesson doctor",
        description="Examine a Transformer that need not be ours.",
    )
    parser.add_argument("path", type=Path, help="a script, or a folder with a saved model")
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help="limit (default: %(default)s)"
    )
    parser.add_argument("--meant", nargs="*", default=[], help="findings that you mean")
    options = parser.parse_args(arguments)
    if not options.path.exists():
        parser.error(f"there is no {options.path}: name a script, or a folder with a saved model")
    # A fresh interpreter: the script finds nothing of ours, and leaves nothing behind.
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    child = context.Process(
        target=report_to,
        args=(there, options.path, options.seconds, tuple(options.meant)),
        daemon=True,
    )
    child.start()
    there.close()
    try:
        result = here.recv() if here.poll(2 * options.seconds) else None
    except EOFError:  # it ended without a report: a crash of compiled code, or sys.exit
        result = None
    child.join(5)
    child.kill()
    child.join()
    if result is None:
        print(f"{options.path} gave no report within {2 * options.seconds:g} s.", file=sys.stderr)
        return 2
    text, code = result
    print(text, file=sys.stderr if code == 2 else sys.stdout)
    return code


if __name__ == "__main__":
    sys.exit(main())
