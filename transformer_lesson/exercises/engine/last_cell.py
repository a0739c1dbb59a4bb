"""Whether the function being checked is the one that the learner wrote last.

A cell with a syntax error, or an error above its `def`, leaves the name bound to the function of an
earlier cell, whose report would be about code that the learner no longer sees. The kernel keeps the
text of every executed cell, even of those that failed. Edits that were never run are unknown.
"""

import ast
import inspect
import linecache
import re
from typing import Any

from IPython import get_ipython


def not_the_last_one(name: str, answer: Any) -> str:
    """Return a sentence if a later cell failed to redefine the answer; else "".

    Args:
        name: the exercise, and the function's name in the stub.
        answer: the function now bound to that name.
    """
    shell = get_ipython()
    if shell is None or not inspect.isfunction(answer) or answer.__name__ != name:
        return ""
    own_cell = "".join(linecache.getlines(answer.__code__.co_filename)).rstrip("\n")
    cells = shell.history_manager.input_hist_parsed
    if own_cell not in cells:  # it comes from a file
        return ""
    after = cells[len(cells) - cells[::-1].index(own_cell) :]
    later = [cell for cell in after if re.search(rf"^def {name}\(", cell, re.MULTILINE)]
    if not later:
        return ""
    return f"This is about an earlier version of `{name}`: the last cell with it {_why(later[-1])}."


def _why(cell: str) -> str:
    """Return why a cell defined nothing: a syntax error, or an error before its `def`."""
    try:
        ast.parse(cell)
    except SyntaxError as error:
        return f"could not be read ({type(error).__name__} in line {error.lineno}: {error.msg})"
    return "ended in an error before it reached its `def`"
