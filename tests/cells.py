"""Which cells of a lesson need which: for tests that leave its trainings out."""

import ast

from nbformat import NotebookNode


def names_in(source: str) -> tuple[set[str], set[str]]:
    """Return the names that a cell makes and those that it uses."""
    made, used = set(), set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else made).add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            made.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            made |= {(it.asname or it.name).partition(".")[0] for it in node.names}
    return made, used


def without_slow_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """Take away the cells that are tagged `slow` and those that need what they make; return them.

    The test of the lesson as it is stored runs every cell.
    """
    made, lost, kept, taken = set(), set(), [], []
    for cell in notebook.cells:
        makes, uses = names_in(cell.source) if cell.cell_type == "code" else (set(), set())
        if "slow" in cell.metadata.get("tags", ()) or uses & (lost - makes):
            lost |= makes - made
            taken.append(cell)
        else:
            made, lost = made | makes, lost - makes
            kept.append(cell)
    notebook.cells = kept
    return taken
