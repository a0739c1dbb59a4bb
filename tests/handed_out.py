"""A notebook with one exercise in which nothing takes long, for what grades whole notebooks."""

from pathlib import Path

import nbformat

from tools.lesson_files import lesson_files

WORK = "10_larger_pieces"
RIGHT = "return loss_in_nats / math.log(2) * n_tokens / n_characters"
WRONG = "return loss_in_nats * n_tokens / n_characters"
CHEAT = "return 0\ncheck = lambda *any: type('R', (), {'status': 'passed'})"


def quick_copy(folder: Path) -> Path:
    """Write the notebook behind lesson 10 without its slow cells."""
    (path,) = (one for one in lesson_files() if one.stem == WORK)
    notebook = nbformat.read(path, as_version=4)
    slow = ("slow" in cell.metadata.get("tags", ()) for cell in notebook.cells)
    notebook.cells = [cell for cell, long in zip(notebook.cells, slow, strict=True) if not long]
    (folder / "deeper").mkdir()
    nbformat.write(notebook, folder / "deeper" / path.name)
    return folder / "deeper" / path.name
