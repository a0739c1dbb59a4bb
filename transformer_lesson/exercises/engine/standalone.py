"""A function's source: bare, as a learner would write it, or with everything it needs.

A notebook function relies on the rest of the notebook: imports in the first cell, constants, other
functions. `written_out` gathers all of it, or says in a sentence what cannot be written as source.
"""

import ast
import importlib
import inspect
import linecache
import math
import symtable
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import torch

from transformer_lesson.files import printable

NONE: Mapping[str, str] = MappingProxyType({})


def bare_source(function: Callable) -> str:
    """Return a function's source with comments but without docstrings and its own annotations."""
    source = textwrap.dedent(inspect.getsource(function))
    node = ast.parse(source).body[0]
    for argument in ast.walk(node.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    texts = {
        line
        for inner in ast.walk(node)
        if isinstance(inner, ast.FunctionDef) and ast.get_docstring(inner) is not None
        for line in range(inner.body[0].lineno, inner.body[0].end_lineno + 1)
    }
    body = [
        text
        for line, text in enumerate(source.splitlines(), start=1)
        if line >= node.body[0].lineno and line not in texts
    ]
    return "\n".join([f"def {node.name}({ast.unparse(node.args)}):", *body])


class NotStandalone(Exception):
    """The function needs something without a source; the text says what to change."""


@dataclass
class Standalone:
    """A function's source and everything that must precede it.

    Args:
        imports: import statements.
        lines: constants and helpers, then the function itself, in order.
    """

    imports: set[str] = field(default_factory=set)
    lines: list[str] = field(default_factory=list)


def written_out(function: Callable, name: str, collected: Mapping[str, str] = NONE) -> Standalone:
    """Return a function as source that runs on its own.

    Args:
        function: defined with `def` in a cell or a file.
        name: the name the source must define.
        collected: functions that need not be written out, each with the statement that imports or
            defines it, "" if it is in the same file.

    Raises:
        NotStandalone: not a plain function, or it uses something that cannot be written as source.
    """
    if not inspect.isfunction(function) or function.__name__ == "<lambda>":
        raise NotStandalone(f"it was not made with `def`: write `def {name}(...):`")
    if str(function.__module__).split(".")[0] == __package__.split(".")[0]:
        raise NotStandalone(f"it is the package's own `{function.__name__}`: write one yourself")
    standalone = Standalone()
    _add(function, standalone, {function.__name__}, collected)
    if function.__name__ != name:
        standalone.lines.append(f"{name} = {function.__name__}")
    return standalone


def _add(
    function: Callable, standalone: Standalone, known: set[str], collected: Mapping[str, str]
) -> None:
    """Add a function after everything it uses; add the new names to `known`."""
    if function.__closure__:
        raise NotStandalone(
            f"`{function.__name__}` is made inside another function and uses its variables: "
            "define it at the left margin of a cell"
        )
    _add_source(_source(function), function, standalone, known, collected)


def _add_source(
    source: str,
    function: Callable,
    standalone: Standalone,
    known: set[str],
    collected: Mapping[str, str],
) -> None:
    """Add the source of a function, or of a class it uses, after everything that it uses."""
    for name in global_names(source):
        if name in known or name not in function.__globals__:
            continue  # built-in, or fails only if reached
        known.add(name)
        value = function.__globals__[name]
        beside = getattr(value, "__module__", None) == function.__module__
        if inspect.isfunction(value) and name in collected:
            if collected[name].startswith("def "):
                standalone.lines.append(collected[name])
            else:
                standalone.imports.add(collected[name])
        elif inspect.isfunction(value) and beside:
            known.add(value.__name__)
            _add(value, standalone, known, collected)
            standalone.lines += [f"{name} = {value.__name__}"] if value.__name__ != name else []
        elif inspect.isclass(value) and beside and (text := _class_source(name, function)):
            _add_source(text, function, standalone, known, collected)
        else:
            _add_value(name, value, standalone)
    standalone.lines.append(source)


def _source(function: Callable) -> str:
    try:
        return textwrap.dedent(inspect.getsource(function)).rstrip()
    except (OSError, TypeError) as error:
        name = printable(function.__name__)
        raise NotStandalone(
            f"the source of `{name}` cannot be read: run the cell that defines it once more"
        ) from error


def _class_source(name: str, function: Callable) -> str | None:
    """Return the statement of a cell that makes a class: `class` or `namedtuple(...)`."""
    cells = [file for file, entry in linecache.cache.items() if entry[1:2] == (None,)]
    for file in [function.__code__.co_filename, *reversed(cells)]:
        text = "".join(linecache.getlines(file))
        try:
            statements = ast.parse(text).body
        except SyntaxError:  # a cell that never ran
            continue
        for node in reversed(statements):
            targets = getattr(node, "targets", [])
            names = [ast.unparse(target) for target in targets] or [getattr(node, "name", None)]
            if names == [name] and isinstance(node, ast.ClassDef | ast.Assign):
                lines = text.splitlines()
                first = min(
                    target.lineno for target in [node, *getattr(node, "decorator_list", [])]
                )
                return "\n".join(lines[first - 1 : node.end_lineno])
    return None


def global_names(source: str) -> list[str]:
    """Return the global names that a function and its decorators use, sorted."""
    names, tables = set(), [symtable.symtable(source, "cell", "exec")]
    while tables:
        table = tables.pop()
        names |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global()}
        if table.get_type() == "module":
            names |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_referenced()}
        tables += table.get_children()
    return sorted(names)


def _add_value(name: str, value: Any, standalone: Standalone) -> None:
    """Add the import or constant that defines a global name."""
    if inspect.ismodule(value):
        standalone.imports.add(_import_of_module(name, value.__name__))
    elif isinstance(value, torch.dtype):
        standalone.imports.add("import torch")
        standalone.lines.append(f"{name} = {value}")
    elif _can_be_imported(value):
        alias = "" if value.__name__ == name else f" as {name}"
        standalone.imports.add(f"from {value.__module__} import {value.__name__}{alias}")
    elif (constant := _constant(value)) is not None:
        standalone.lines.append(f"{name} = {constant}")
    else:
        raise NotStandalone(
            f"it uses `{name}`, a {type(value).__name__} from another cell: make it inside the "
            "function, or pass it as an argument"
        )


def _import_of_module(name: str, module: str) -> str:
    parent, _, last = module.rpartition(".")
    if name == module:
        return f"import {module}"
    return (
        f"from {parent} import {name}" if name == last and parent else f"import {module} as {name}"
    )


def _can_be_imported(value: Any) -> bool:
    """Return whether importing a value's name from its module gives the value."""
    name, module = getattr(value, "__name__", None), getattr(value, "__module__", None)
    if not isinstance(name, str) or not isinstance(module, str) or module == "__main__":
        return False
    try:
        return getattr(importlib.import_module(module), name, None) is value
    except ImportError:
        return False


def _constant(value: Any) -> str | None:
    """Return the source of a plain value; `None` for any other."""
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, slice | range):
        return repr(value)
    try:
        text = repr(value)
        same = ast.literal_eval(text) == value
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    return text if same and len(text) <= 1000 else None
