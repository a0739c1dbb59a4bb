"""The part of a notebook that one function needs: its definition and what that uses.

So checking one exercise does not repeat a lesson's training runs and pictures.
"""

import ast
import builtins
import dis
import inspect
import re
from types import CodeType
from typing import NamedTuple

from transformer_lesson.exercises.engine.catalog import EXERCISES

FILE = "<notebook>"
IN_PLACE = re.compile(
    "add|append|appendleft|clear|discard|extend|extendleft|insert|pop|popitem|popleft|remove|"
    r"reverse|setdefault|sort|update|[a-z]\w*_"
)
"""Methods of Python's collections and of tensors that change their object."""

DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
IMPORTS = ast.Import | ast.ImportFrom
CONFLICT = re.compile(r"^(<{7}|>{7})", re.MULTILINE)
MERGED = "the lines <<<<<<< and >>>>>>> of a merge still stand in the cell"


class Statement(NamedTuple):
    """A statement of a notebook with the names that it binds, changes and uses.

    A definition's `changes` happen only when it is called. A statement that may bind any name
    (`import *`, `exec`) binds "*". `cell` is the cell's number.
    """

    node: ast.stmt
    binds: set[str]
    uses: set[str]
    calls: set[str]
    changes: set[str]
    cell: int


def slice_for(name: str, cells: list[str]) -> list[ast.stmt]:
    """Return the statements that a name needs, in the notebook's order; none if nothing binds it.

    A statement is needed if it binds a needed name or changes its object: `table[0] = 1`,
    `table.append(1)`, or a call of a function that does so. Statements after the check of the
    name's last definition are ignored, with two exceptions: an exercise's function is the version
    written last, and a name not bound before may be bound anywhere. A blank stub is not a
    definition if there is one with a body; what `mine` gives back is never one.

    Raises:
        SyntaxError: a cell that defines the name is not valid Python.
    """
    statements, broken = [], {}
    for i, cell in enumerate(cells):
        try:
            statements += [_statement(node, i) for node in ast.parse(_python(cell), FILE).body]
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:  # null bytes, say
            if _defines(name, cell):
                broken[i] = SyntaxError(MERGED) if CONFLICT.search(cell) else error
    statements = _without_blank_stubs(statements)
    statements = [
        statement
        for statement in statements
        if name not in statement.binds or not _gives_back(statement)
    ]
    defined = [
        statement
        for statement in statements
        if name in statement.binds and not isinstance(statement.node, IMPORTS)
    ]
    attempts = {statement.cell for statement in defined if not _is_stub(statement.node)}
    if broken and max(broken) > max(attempts, default=-1):
        raise SyntaxError(*broken[max(broken)].args) from broken[max(broken)]
    _propagate_changes(name, statements)
    used = _needed(
        name, statements, _last(name, cells, attempts or {statement.cell for statement in defined})
    )
    return [statement.node for i, statement in enumerate(statements) if i in used]


def _needed(name: str, statements: list[Statement], last: int) -> set[int]:
    """Return the statements a name needs, from cells up to `last` and from later ones."""
    bound = set(dir(builtins)).union(
        *(statement.binds for statement in statements if statement.cell <= last)
    )

    def wanted(statement: Statement) -> bool:
        if statement.cell <= last:
            return bool(statement.binds & {*needed, "*"})
        late = EXERCISES.keys() - {name} if isinstance(statement.node, ast.FunctionDef) else set()
        return bool(statement.binds & needed & (needed - bound | late))

    needed, used = {name}, set()
    while new := {i for i, statement in enumerate(statements) if wanted(statement)} - used:
        used |= new
        needed |= set().union(*(statements[i].uses for i in new))
    return used


def _without_blank_stubs(statements: list[Statement]) -> list[Statement]:
    """Return the statements without the stubs of functions that are defined elsewhere."""
    written = set()
    for node, binds, *_ in statements:
        is_lambda = isinstance(getattr(node, "value", None), ast.Lambda)
        if is_lambda or isinstance(node, DEFINITIONS) and not _is_stub(node):
            written |= binds
    return [
        statement
        for statement in statements
        if not (_is_stub(statement.node) and statement.binds <= written)
    ]


def _gives_back(statement: Statement) -> bool:
    """Return whether a lesson takes functions from `mine`: that is nobody's answer."""
    return isinstance(statement.node, ast.Assign) and "mine.function" in ast.unparse(statement.node)


def _is_stub(node: ast.stmt) -> bool:
    """Return whether a function is as the lesson provides it: without a body."""
    return isinstance(node, ast.FunctionDef) and all(map(_is_nothing, node.body))


def _is_nothing(part: ast.stmt) -> bool:
    text = isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)
    stub = isinstance(part, ast.Raise) and "NotImplementedError" in ast.unparse(part)
    return text or stub or isinstance(part, ast.Pass)


def _defines(name: str, cell: str) -> bool:
    return bool(re.search(rf"^\s*(?:async\s+)?def\s+{re.escape(name)}\b", cell, re.MULTILINE))


def _last(name: str, cells: list[str], defined: set[int]) -> int:
    """Return the cell that checks a name's last definition; the last cell if none does."""
    checks = rf"""check\(\s*["']{re.escape(name)}["']"""
    checked = [i for i, cell in enumerate(cells) if re.search(checks, cell)]
    return checked[-1] if checked and checked[-1] >= max(defined, default=0) else len(cells) - 1


def _propagate_changes(name: str, statements: list[Statement]) -> None:
    """Let calls of functions other than `name` bind what these functions change."""
    changed = {}
    for statement in statements:
        if isinstance(statement.node, DEFINITIONS):
            changed.setdefault(statement.node.name, set()).update(statement.changes)
    for _ in changed:  # at most this many nested calls
        for statement in statements:
            within = set().union(
                *(changed[called] for called in statement.calls & changed.keys() - {name})
            )
            if isinstance(statement.node, DEFINITIONS):
                changed[statement.node.name] |= within
            else:
                statement.binds.update(within)


def _python(cell: str) -> str:
    """Return a cell as Python: without `%%` lines, and with other magics as calls."""
    lines = cell.lstrip("\ufeff").splitlines()  # a byte order mark
    while lines and lines[0].lstrip().startswith("%%"):
        del lines[0]
    cell = "\n".join(lines)
    if not re.search(r"^\s*[%!?]|\?\s*$|=\s*[%!]", cell, re.MULTILINE):
        return cell
    from IPython.core.inputtransformer2 import TransformerManager

    return TransformerManager().transform_cell(cell)


def _statement(node: ast.stmt, cell: int) -> Statement:
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
    if "exec" in calls and not isinstance(node, DEFINITIONS):
        binds.add("*")
    return Statement(node, binds, uses, calls, changes, cell)


def _changed(node: ast.stmt) -> set[str]:
    """Return the names whose objects are changed by assignment, deletion or a method."""
    changed = []
    for part in ast.walk(node):
        if isinstance(part, ast.Subscript | ast.Attribute):
            method = part.attr if isinstance(part, ast.Attribute) else ""
            if not isinstance(part.ctx, ast.Load) or IN_PLACE.fullmatch(method):
                changed.append(part.value)
    return {inner.id for part in changed for inner in ast.walk(part) if isinstance(inner, ast.Name)}


def _outside(code: CodeType, *operations: str) -> set[str]:
    """Return the global names that code and its nested functions read or set."""
    names = {step.argval for step in dis.get_instructions(code) if step.opname in operations}
    inner = filter(inspect.iscode, code.co_consts)
    return names.union(*(_outside(inner_code, *operations) for inner_code in inner))
