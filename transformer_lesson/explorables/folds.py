"""Folds in pages without JupyterLab: the cells that JupyterLab folds, each with a name.

The name says what the cell contains, so no two in a row look alike.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

DEFINITIONS = (ast.FunctionDef, ast.ClassDef)
IMPORTS = (ast.Import, ast.ImportFrom)


class Fold(NamedTuple):
    """What of a cell is folded: all of it, or only its code."""

    name: str
    whole: bool


def folds(cells: list[Mapping[str, Any]]) -> Iterator[Fold | None]:
    """Yield each cell's fold, or `None`.

    A name gets a number if the previous cell is folded under the same name.
    """
    before, number = None, 1
    for cell in cells:
        folded = cell["metadata"].get("jupyter", {})
        if not folded.get("source_hidden") or "outputs" not in cell:
            before = None
            yield None
            continue
        whole = folded.get("outputs_hidden", False)
        name = held(cell, whole)
        number = number + 1 if name == before else 1
        before = name
        yield Fold(f"{name}, {number}" if number > 1 else name, whole)


def held(cell: Mapping[str, Any], whole: bool) -> str:
    """Return what a fold contains, without its outputs, which may answer a question."""
    kinds = {kind for output in cell["outputs"] for kind in output.get("data", ())}
    if whole and kinds & {"image/png", "text/html"}:
        return "the picture"
    kind = "code" if not whole else "outcome" if cell["outputs"] else "work"
    about = subject("".join(cell["source"]))
    return f"the {kind}: {about}" if about else f"the {kind}"


def subject(source: str) -> str:
    """Return in a word or two what code defines, imports, checks, assigns or calls, if anything."""
    try:
        body = ast.parse(re.sub(r"^[%!].*$", "", source, flags=re.MULTILINE)).body
    except SyntaxError:  # a learner's code
        body = []
    if not body:
        return ""
    if defined := [statement.name for statement in body if isinstance(statement, DEFINITIONS)]:
        return " and ".join(defined[:2])
    rest = [statement for statement in body if not isinstance(statement, IMPORTS)]
    if len(rest) < len(body) and len(rest) < 2:
        return "imports"
    if all(isinstance(statement, ast.Assert) for statement in rest):
        return "checks"
    targets = [
        target
        for statement in rest
        if isinstance(statement, ast.Assign)
        for target in statement.targets
    ]
    names = [
        node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)
    ]
    if named := [name for name in dict.fromkeys(names) if name != "_"]:
        return " and ".join(named[:2])
    last = getattr(rest[-1], "value", None)
    called = ast.unparse(last.func) if isinstance(last, ast.Call) else ""
    return "" if called == "print" else called.rpartition(".")[2]
