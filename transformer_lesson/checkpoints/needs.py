"""Cells that need real weights: `%%needs SmolLM2` on a cell's first line.

With the weights, the cell runs as if that line were blank. Without them it prints one sentence that
says how to get them, so that a lesson runs from its first cell to its last on every machine.
`%load_ext transformer_lesson.checkpoints.needs` enables the line in a notebook.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from transformer_lesson.checkpoints.weights import absent, have_weights

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

LINE = "%%needs "


def missing_weights(line: str) -> list[str]:
    """Return which models named in a cell's first line are not on this machine.

    Args:
        line: such as "%%needs SmolLM2 MiniLM"; any other line needs none.

    Raises:
        ValueError: no such model.
    """
    names = line.removeprefix(LINE).split() if line.startswith(LINE) else []
    return [name for name in names if not have_weights(name)]


def only_with_weights(lines: list[str]) -> list[str]:
    """Return the lines of a cell to run."""
    if not lines or not lines[0].startswith(LINE):
        return lines
    missing = missing_weights(lines[0])
    return [f"print({absent(missing[0])!r})\n"] if missing else ["\n", *lines[1:]]


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Enable `%%needs` in a kernel."""
    shell.input_transformers_cleanup.append(only_with_weights)
