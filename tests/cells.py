"""Which cells of a lesson need which: for tests that leave its trainings out."""

import ast
from collections.abc import Callable, Iterator

from nbformat import NotebookNode


def names_in(source: str) -> tuple[set[str], set[str]]:
    """Return the names that a cell makes (a model that it trains is one) and those that it uses."""
    tree = ast.parse(without_magics(source))
    used = {node.id for node in ast.walk(tree) if _is_name(node, ast.Load)}
    made = set()
    for node in _outside_functions(tree):
        if _is_name(node, ast.Store):
            made.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            made.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            made |= {(it.asname or it.name).partition(".")[0] for it in node.names}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("train") and node.args:
            made.add(ast.unparse(node.args[0]))
    return made, used


def without_magics(source: str) -> str:
    """Return a cell as plain Python: `%%needs SmolLM2` and the like become blank lines."""
    return "\n".join("" if line.startswith("%") else line for line in source.splitlines())


def _is_name(node: ast.AST, context: type) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, context)


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, ast.FunctionDef | ast.ClassDef | ast.Lambda):
            yield from _outside_functions(child)


def is_slow(cell: NotebookNode) -> bool:
    return "slow" in cell.metadata.get("tags", ())


def without_slow_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """Take away the slow cells that no exercise needs, with what needs them; return them all.

    The test of the lesson as it is stored runs every cell.
    """
    taken = set()
    for cell in notebook.cells:
        if is_slow(cell) and cell.id not in taken:
            more = _and_what_needs(taken | {cell.id}, notebook)
            if not any(_is_exercise(each) for each in notebook.cells if each.id in more):
                taken = more
    left_out = [cell for cell in notebook.cells if cell.id in taken]
    notebook.cells = [cell for cell in notebook.cells if cell.id not in taken]
    return left_out


def _and_what_needs(taken: set[str], notebook: NotebookNode) -> set[str]:
    lost, all_taken = set(), set(taken)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            makes, uses = names_in(cell.source)
            if cell.id in taken or uses & lost:
                lost |= makes
                all_taken.add(cell.id)
            else:
                lost -= makes
    return all_taken


def _is_exercise(cell: NotebookNode) -> bool:
    return "exercise" in cell.metadata.get("tags", ()) or cell.source.startswith("check(")


def only_what_shows(notebook: NotebookNode, shows: Callable[[NotebookNode], bool]) -> None:
    """Leave the code cells that show something, and those that make what these use."""
    kept, needed = [], set()
    for cell in reversed([one for one in notebook.cells if one.cell_type == "code"]):
        makes, uses = names_in(cell.source)
        if shows(cell) or makes & needed:
            kept.append(cell)
            needed = (needed - makes) | uses
    notebook.cells = kept[::-1]
