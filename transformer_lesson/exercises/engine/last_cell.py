"""Whether the function to be checked is the one that the learner wrote last.

A cell that cannot be read, or that stops above its `def`, leaves the name with the function of an
earlier cell, and a verdict on that one would be about something that the learner does not see any
more. The kernel keeps the text of every cell that it was given, also of those that failed. What
was changed in a cell and not run never came to it, so that nothing can be said of it.
"""

import ast
import inspect
import linecache
import re
from typing import Any

from IPython import get_ipython


def not_the_last_one(name: str, answer: Any) -> str:
    """Return a sentence if an answer is not what a later cell was to define; else nothing.

    Args:
        name: the exercise, which is what the stub calls its function.
        answer: what stands under that name.
    """
    shell = get_ipython()
    if shell is None or not inspect.isfunction(answer) or answer.__name__ != name:
        return ""
    own = "".join(linecache.getlines(answer.__code__.co_filename)).rstrip("\n")
    cells = shell.history_manager.input_hist_parsed
    if own not in cells:  # it comes from a file
        return ""
    after = cells[len(cells) - cells[::-1].index(own) :]
    later = [cell for cell in after if re.search(rf"^def {name}\(", cell, re.MULTILINE)]
    if not later:
        return ""
    return f"This is about an earlier version of `{name}`: the last cell with it {_why(later[-1])}."


def _why(cell: str) -> str:
    """Return why a cell defined nothing: it could not be read, or it stopped too early."""
    try:
        ast.parse(cell)
    except SyntaxError as error:
        return f"could not be read ({type(error).__name__} in line {error.lineno}: {error.msg})"
    return "ended in an error before it reached its `def`"
