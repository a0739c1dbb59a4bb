"""The part of a notebook that one function needs: its definition and what that uses, no more.

So a lesson's training runs and pictures are not run again to check one exercise.
"""

import ast
import dis
import inspect
import re
from types import CodeType
from typing import NamedTuple

FILE = "<notebook>"


class Statement(NamedTuple):
    """A statement of a notebook with the names that it binds and those that it uses."""

    node: ast.stmt
    binds: set[str]
    uses: set[str]


def slice_for(name: str, cells: list[str]) -> list[ast.stmt]:
    """Return the statements that a name needs, in the notebook's order; none if nothing binds it.

    A statement is taken if it binds a name that is needed, or a part of it: `table[0] = 1` too.
    What comes after the name's last definition or check has not happened yet.

    Raises:
        SyntaxError: a cell that defines the name is no Python.
    """
    found = []
    for cell in cells[: _last(name, cells) + 1]:
        try:
            found += [_statement(node) for node in ast.parse(_python(cell), FILE).body]
        except (SyntaxError, ValueError) as error:  # null bytes are a ValueError
            if re.search(rf"^\s*(?:async\s+)?def\s+{re.escape(name)}\b", cell, re.MULTILINE):
                raise SyntaxError(*error.args) from error
    needed, taken = {name}, set()
    while True:
        new = {i for i, one in enumerate(found) if one.binds & needed} - taken
        if not new:
            break
        taken |= new
        needed |= set().union(*(found[i].uses for i in new))
    if not any(name in found[i].binds for i in taken):
        return []
    return [one.node for i, one in enumerate(found) if i in taken or "*" in one.binds]


def _last(name: str, cells: list[str]) -> int:
    """Return which cell is the last to define or check a name; the last of all if none does."""
    word = re.escape(name)
    defines = rf"^\s*(?:(?:async\s+)?def\s+{word}\b|{word}\s*=)"
    either = re.compile(rf"""{defines}|check\(\s*["']{word}["']""", re.MULTILINE)
    numbers = [i for i, cell in enumerate(cells) if either.search(cell)]
    return max(numbers, default=len(cells) - 1)


def _python(cell: str) -> str:
    """Return a cell as Python: without its `%%` lines, other magics as calls."""
    lines = cell.splitlines()
    while lines and lines[0].lstrip().startswith("%%"):
        del lines[0]
    cell = "\n".join(lines)
    if not re.search(r"^\s*[%!?]|\?\s*$|=\s*[%!]", cell, re.MULTILINE):
        return cell
    from IPython.core.inputtransformer2 import TransformerManager

    return TransformerManager().transform_cell(cell)


def _statement(node: ast.stmt) -> Statement:
    code = compile(ast.Module([node], []), FILE, "exec")
    binds = {step.argval for step in dis.get_instructions(code) if step.opname == "STORE_NAME"}
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        stored = (
            part.value
            for part in ast.walk(node)
            if isinstance(part, ast.Subscript | ast.Attribute) and isinstance(part.ctx, ast.Store)
        )
        binds |= {
            inner.id for part in stored for inner in ast.walk(part) if isinstance(inner, ast.Name)
        }
    if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
        binds.add("*")
    return Statement(node, binds, _globals(code))


def _globals(code: CodeType) -> set[str]:
    """Return the names that code and the functions in it look up outside of themselves."""
    loads = {"LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"}
    names = {step.argval for step in dis.get_instructions(code) if step.opname in loads}
    inner = filter(inspect.iscode, code.co_consts)
    return names.union(*map(_globals, inner))
