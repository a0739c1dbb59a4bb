"""A function as source: bare, as a learner would write it, or with all that it needs.

What a notebook's function uses lies about in the notebook: modules that the first cell imports,
constants, other functions. `written_out` gathers all of it, or says in a sentence what cannot be
written down.
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
    """Return a function's source with its comments, without docstring and annotations."""
    source = textwrap.dedent(inspect.getsource(function))
    node = ast.parse(source).body[0]
    for argument in ast.walk(node.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    start = node.body[0].lineno - 1
    if ast.get_docstring(node) is not None:
        start = node.body[0].end_lineno
    body = source.splitlines()[start:]
    return "\n".join([f"def {node.name}({ast.unparse(node.args)}):", *body])


class NotStandalone(Exception):
    """The function needs something that cannot be written down; the text says what to change."""


@dataclass
class Standalone:
    """A function's source, and what has to stand before it.

    Args:
        imports: import statements, one a line.
        lines: constants and helpers, then the function itself, in the order of their use.
    """

    imports: set[str] = field(default_factory=set)
    lines: list[str] = field(default_factory=list)


def written_out(function: Callable, name: str, collected: Mapping[str, str] = NONE) -> Standalone:
    """Return a function as source that runs by itself.

    Args:
        function: defined with `def` in a cell or a file.
        name: under which it is to be found.
        collected: names of functions that need not be written out, each with the statement that
            imports or defines it; an empty one where it stands in the same file.

    Raises:
        NotStandalone: it is no plain function, or it uses what cannot be written down.
    """
    if not inspect.isfunction(function) or function.__name__ == "<lambda>":
        raise NotStandalone(f"it was not made with `def`: write `def {name}(...):`")
    if str(function.__module__).split(".")[0] == __package__.split(".")[0]:
        raise NotStandalone(f"it is the package's own `{function.__name__}`: write one yourself")
    made = Standalone()
    _add(function, made, {function.__name__}, collected)
    if function.__name__ != name:
        made.lines.append(f"{name} = {function.__name__}")
    return made


def _add(
    function: Callable, made: Standalone, known: set[str], collected: Mapping[str, str]
) -> None:
    """Add a function behind all that it uses; `known` grows by the names that are there now."""
    if function.__closure__:
        raise NotStandalone(
            f"`{function.__name__}` is made inside another function and uses its variables: "
            "define it at the left margin of a cell"
        )
    _add_source(_source(function), function, made, known, collected)


def _add_source(
    source: str, function: Callable, made: Standalone, known: set[str], collected: Mapping[str, str]
) -> None:
    """Add a function's source, or that of a class beside it, behind all that it uses."""
    for name in global_names(source):
        if name in known or name not in function.__globals__:
            continue  # the rest are built-in names, or fail only where they are reached
        known.add(name)
        value = function.__globals__[name]
        beside = getattr(value, "__module__", None) == function.__module__
        if inspect.isfunction(value) and name in collected:
            if collected[name].startswith("def "):
                made.lines.append(collected[name])
            else:
                made.imports.add(collected[name])
        elif inspect.isfunction(value) and beside:
            known.add(value.__name__)
            _add(value, made, known, collected)
            made.lines += [f"{name} = {value.__name__}"] if value.__name__ != name else []
        elif inspect.isclass(value) and beside and (text := _class_source(name, function)):
            _add_source(text, function, made, known, collected)
        else:
            _add_value(name, value, made)
    made.lines.append(source)


def _source(function: Callable) -> str:
    try:
        return textwrap.dedent(inspect.getsource(function)).rstrip()
    except (OSError, TypeError) as error:
        name = printable(function.__name__)
        raise NotStandalone(
            f"the source of `{name}` cannot be read: run the cell that defines it once more"
        ) from error


def _class_source(name: str, function: Callable) -> str | None:
    """Return the statement of a cell that makes a class: `class` itself, or `namedtuple(...)`."""
    cells = [file for file, entry in linecache.cache.items() if entry[1:2] == (None,)]
    for file in [function.__code__.co_filename, *reversed(cells)]:
        text = "".join(linecache.getlines(file))
        try:
            statements = ast.parse(text).body
        except SyntaxError:  # a cell that never ran
            continue
        for node in reversed(statements):
            targets = getattr(node, "targets", [])
            made = [ast.unparse(one) for one in targets] or [getattr(node, "name", None)]
            if made == [name] and isinstance(node, ast.ClassDef | ast.Assign):
                lines = text.splitlines()
                first = min(one.lineno for one in [node, *getattr(node, "decorator_list", [])])
                return "\n".join(lines[first - 1 : node.end_lineno])
    return None


def global_names(source: str) -> list[str]:
    """Return the names that a function takes from around it, its decorators' too, sorted."""
    names, tables = set(), [symtable.symtable(source, "cell", "exec")]
    while tables:
        table = tables.pop()
        names |= {one.get_name() for one in table.get_symbols() if one.is_global()}
        if table.get_type() == "module":
            names |= {one.get_name() for one in table.get_symbols() if one.is_referenced()}
        tables += table.get_children()
    return sorted(names)


def _add_value(name: str, value: Any, made: Standalone) -> None:
    """Add what gives a global name its value: an import or a constant."""
    if inspect.ismodule(value):
        made.imports.add(_import_of_module(name, value.__name__))
    elif isinstance(value, torch.dtype):
        made.imports.add("import torch")
        made.lines.append(f"{name} = {value}")
    elif _can_be_imported(value):
        alias = "" if value.__name__ == name else f" as {name}"
        made.imports.add(f"from {value.__module__} import {value.__name__}{alias}")
    elif (constant := _constant(value)) is not None:
        made.lines.append(f"{name} = {constant}")
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
    """Return whether a value is what its module has under its name."""
    name, module = getattr(value, "__name__", None), getattr(value, "__module__", None)
    if not isinstance(name, str) or not isinstance(module, str) or module == "__main__":
        return False
    try:
        return getattr(importlib.import_module(module), name, None) is value
    except ImportError:
        return False


def _constant(value: Any) -> str | None:
    """Return the source of a plain value; `None` for one that is not plain."""
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
