"""The notebooks that belong to the course: what every command, tool and test reads.

A checkout has them in `notebooks/`, an installed wheel in `transformer_lesson/notebooks/`. Opening
lessons in that folder leaves other files there: copies, checkpoints, pictures, progress. So nothing
else lists the folder, and this module is short.
"""

from pathlib import Path

from nbformat import NotebookNode, writes

from transformer_lesson.course import DEEPER, LESSONS
from transformer_lesson.files import write_atomically

PACKAGE = Path(__file__).resolve().parents[1]
FOLDER, GLOSSARY = "notebooks", "glossary.md"
COURSE = PACKAGE if (PACKAGE / FOLDER).is_dir() else PACKAGE.parent
"""The folder with `notebooks/`: a wheel's package, or the checkout."""


def lesson_files(root: Path = COURSE) -> list[Path]:
    """Return the notebooks that a copy of the course has: lessons, then what may follow them."""
    notebooks = (*LESSONS.values(), *DEEPER.values())
    files = [root / FOLDER / notebook.file for notebook in notebooks]
    return [file for file in files if file.exists()]


def place_of(path: Path) -> Path:
    """Return where a notebook is in the folder of lessons: "03_attention.ipynb"."""
    return Path("deeper", path.name) if path.parent.name == "deeper" else Path(path.name)


def write_notebook(path: Path, notebook: NotebookNode) -> None:
    """Store a notebook whole, or leave the file as it was."""
    write_atomically(path, f"{writes(notebook)}\n".encode())
