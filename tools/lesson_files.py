"""The files in `notebooks/` that belong to the course: what every tool and test reads there.

Opening lessons in that folder leaves other files there: copies, checkpoints, pictures, progress.
So nothing else lists the folder, and this module is short.
"""

import sys
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from transformer_lesson.course import DEEPER, LESSONS
from transformer_lesson.files import write_atomically

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
GLOSSARY = "glossary.md"


def lesson_files(root: Path = ROOT) -> list[Path]:
    """Return the notebooks that a copy of the course has: lessons, then what may follow them."""
    notebooks = (*LESSONS.values(), *DEEPER.values())
    files = [root / NOTEBOOKS.name / notebook.file for notebook in notebooks]
    return [file for file in files if file.exists()]


def place_of(path: Path) -> Path:
    """Return where a notebook is in the folder of lessons: "03_attention.ipynb"."""
    return Path("deeper", path.name) if path.parent.name == "deeper" else Path(path.name)


def write_notebook(path: Path, notebook: NotebookNode) -> None:
    """Store a notebook whole, or leave the file as it was."""
    write_atomically(path, f"{nbformat.writes(notebook)}\n".encode())


def of_number(lesson: str, paths: list[Path]) -> list[Path]:
    """Return a lesson and what may follow it, or all for ""; end the program if there is none."""
    matches = [path for path in paths if lesson in ("", path.name[:2])]
    if not matches:
        numbers = f"{min(LESSONS)} to {max(LESSONS)}"
        sys.exit(f"There is no lesson {lesson!r}: give two digits, {numbers}, as in LESSON=03.")
    return matches
