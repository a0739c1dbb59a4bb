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
IN_PLACE = re.compile(
    "add|append|appendleft|clear|discard|extend|extendleft|insert|pop|popitem|popleft|remove|"
    r"reverse|setdefault|sort|update|[a-z]\w*_"
)
"""Methods that change what they belong to: of Python's collections and of tensors."""

DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Statement(NamedTuple):
    """A statement of a notebook with the names that it binds or changes and those that it uses.

    A definition changes nothing by itself: it `changes` something when it is called.
    """

    node: ast.stmt
    binds: set[str]
    uses: set[str]
    calls: set[str]
    changes: set[str]


def slice_for(name: str, cells: list[str]) -> list[ast.stmt]:
    """Return the statements that a name needs, in the notebook's order; none if nothing binds it.

    A statement is taken if it binds a name that is needed, or changes what it stands for:
    `table[0] = 1`, `table.append(1)`, or a call of a function that does so. What comes after the
    check of the name's last definition has not happened yet.

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
    _take_over_changes(name, found)
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
    """Return which cell checks a name's last definition; the last of all if none does."""
    word = re.escape(name)
    defines = rf"^\s*(?:(?:async\s+)?def\s+{word}\b|{word}\s*=)"
    checks = rf"""check\(\s*["']{word}["']"""
    defined = [i for i, cell in enumerate(cells) if re.search(defines, cell, re.MULTILINE)]
    checked = [i for i, cell in enumerate(cells) if re.search(checks, cell)]
    return checked[-1] if checked and checked[-1] >= max(defined, default=0) else len(cells) - 1


def _take_over_changes(name: str, found: list[Statement]) -> None:
    """Let calls of functions, but that of a name itself, bind what these functions change."""
    changed = {}
    for one in found:
        if isinstance(one.node, DEFINITIONS):
            changed.setdefault(one.node.name, set()).update(one.changes)
    for _ in changed:  # at most so many calls lie within each other
        for one in found:
            within = set().union(
                *(changed[called] for called in one.calls & changed.keys() - {name})
            )
            if isinstance(one.node, DEFINITIONS):
                changed[one.node.name] |= within
            else:
                one.binds.update(within)


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
    uses = _outside(code, "LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS")
    changes = _outside(code, "STORE_GLOBAL") | _changed(node) & uses
    if not isinstance(node, DEFINITIONS):
        binds |= changes
    if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
        binds.add("*")
    called = (part.func for part in ast.walk(node) if isinstance(part, ast.Call))
    calls = {function.id for function in called if isinstance(function, ast.Name)}
    return Statement(node, binds, uses, calls, changes)


def _changed(node: ast.stmt) -> set[str]:
    """Return the names of which something is set or deleted, or a changing method called."""
    changed = []
    for part in ast.walk(node):
        if isinstance(part, ast.Subscript | ast.Attribute):
            method = part.attr if isinstance(part, ast.Attribute) else ""
            if not isinstance(part.ctx, ast.Load) or IN_PLACE.fullmatch(method):
                changed.append(part.value)
    return {inner.id for part in changed for inner in ast.walk(part) if isinstance(inner, ast.Name)}


def _outside(code: CodeType, *operations: str) -> set[str]:
    """Return the names that code and the functions in it look up, or set, outside of themselves."""
    names = {step.argval for step in dis.get_instructions(code) if step.opname in operations}
    inner = filter(inspect.iscode, code.co_consts)
    return names.union(*(_outside(one, *operations) for one in inner))
