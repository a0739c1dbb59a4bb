"""A whole program assembled from the lessons' exercises, some of them with a wrong turn.

`as_written` gives a variant's source; here it is tidied as if written by hand for this program:
self-assignments and unused names are removed.
"""

import ast
import builtins
import inspect
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from transformer_lesson.caching import copied
from transformer_lesson.exercises.engine.catalog import find
from transformer_lesson.exercises.engine.choosing import as_written

FUNCTIONS = (
    *("sinusoidal_encoding", "causal_mask", "padding_mask", "split_heads"),
    *("scaled_dot_product_attention", "merge_heads", "feed_forward", "layer_norm"),
    *("shifted_loss", "rate_at", "write_on"),
)
"""The exercises that make up the program, in order."""

REST = Path(__file__).with_name("boss_program.txt").read_text("utf-8")
IMPORTS = {"partial": "from functools import partial", "torch": "import torch"}


@copied
def sources(planted: tuple[tuple[str, str], ...] = ()) -> dict[str, str]:
    """Return each function's source, including its own helpers, by name.

    Args:
        planted: pairs of a function and its wrong turn.
    """
    turn_of, source_of = dict(planted), {}
    parts_so_far: set[str] = set()
    for name in FUNCTIONS:
        turn = frozenset([turn_of[name]] if name in turn_of else [])
        tree = _plain(ast.parse(as_written(find(name).marked, turn)))
        parts = {part.name for part in tree.body} - {name}
        renamed = {part: f"{part}_of_{name}" for part in parts & parts_so_far}
        parts_so_far |= parts
        source_of[name] = "\n\n\n".join(map(ast.unparse, _Renamed(renamed).visit(tree).body))
    return source_of


def imports(written: Mapping[str, str]) -> str:
    """Return the imports that these functions and the rest of the program need."""
    lines = dict(IMPORTS)
    for name, source in written.items():
        known = inspect.unwrap(find(name).marked).__globals__
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Name) and node.id in known and not hasattr(builtins, node.id):
                lines[node.id] = _import(node.id, known[node.id])
    return "\n".join(sorted({line for line in lines.values() if line}, reverse=True))


def _import(name: str, value: object) -> str:
    """Return the import that binds a name to a value; "" for a helper of the function itself."""
    if isinstance(value, ModuleType):
        path, _, last = value.__name__.rpartition(".")
        if last != name:
            return f"import {value.__name__} as {name}"
        return f"from {path} import {name}" if path else f"import {name}"
    module = getattr(value, "__module__", None) or ""
    return "" if ".exercises.lesson_" in module or not module else f"from {module} import {name}"


def program(planted: tuple[tuple[str, str], ...] = ()) -> str:
    """Return the whole program's source."""
    written = sources(planted)
    return "\n\n\n".join([imports(written), *written.values(), REST])


def started(source: str) -> dict:
    """Return a program's namespace after its definitions, without training."""
    names: dict = {}
    exec(compile(source, "<program>", "exec"), names)
    return names


def _plain(tree: ast.Module) -> ast.Module:
    """Return functions without statements that do nothing."""
    for function in tree.body:
        before = ""
        while before != (before := ast.unparse(function)):
            read = {
                node.id
                for node in ast.walk(function)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
            }
            _Tidier(read).visit(function)
        _end_with_a_value(function)
    return tree


class _Tidier(ast.NodeTransformer):
    """Drops `x = x`, a bare `None`, and names that are never read."""

    def __init__(self, read: set[str]):
        self.read = read

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        """Drop `None`."""
        nothing = isinstance(node.value, ast.Constant) and node.value.value is None
        return None if nothing else node

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        """Drop assignments that change nothing."""
        (target,) = node.targets
        if ast.unparse(target) == ast.unparse(node.value):
            return None
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        plain = all(isinstance(name, ast.Name) for name in names)
        unread = plain and not any(name.id in self.read for name in names)
        return None if unread and not _acts(node.value) else node


def _acts(value: ast.expr) -> bool:
    """Return whether an expression may have a side effect, judging by method names."""
    calls = [node.func for node in ast.walk(value) if isinstance(node, ast.Call)]
    return any(isinstance(call, ast.Attribute) and call.attr.endswith("_") for call in calls)


def _end_with_a_value(function: ast.FunctionDef) -> None:
    """Replace `x = value; return x` by `return value`."""
    *_, before, last = function.body if len(function.body) > 1 else [None, *function.body]
    if isinstance(before, ast.Assign) and isinstance(last, ast.Return):
        if ast.unparse(before.targets[0]) == ast.unparse(last.value):
            function.body[-2:] = [ast.Return(before.value)]


class _Renamed(ast.NodeTransformer):
    """Renames a function's helpers."""

    def __init__(self, names: dict[str, str]):
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Rename uses."""
        return ast.Name(self.names.get(node.id, node.id), node.ctx)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Rename the definition."""
        self.generic_visit(node)
        node.name = self.names.get(node.name, node.name)
        return node
