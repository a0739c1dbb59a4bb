"""The files in `notebooks/` that belong to the course: what every tool and test reads there.

Opening lessons in that folder leaves other files there: copies, checkpoints, pictures, progress.
So nothing else lists the folder, and this module is short.
"""

import sys
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from transformer_lesson.course import LESSONS
from transformer_lesson.files import write_atomically

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
GLOSSARY = "glossary.md"


def lesson_files(root: Path = ROOT) -> list[Path]:
    """Return the lessons that a copy of the course has, in order."""
    files = [root / NOTEBOOKS.name / lesson.file for lesson in LESSONS.values()]
    return [file for file in files if file.exists()]


def write_notebook(path: Path, notebook: NotebookNode) -> None:
    """Store a notebook whole, or leave the file as it was."""
    write_atomically(path, f"{nbformat.writes(notebook)}\n".encode())


def of_number(lesson: str, paths: list[Path]) -> list[Path]:
    """Return the lesson with a number, or all for ""; end the program if there is none."""
    matches = [path for path in paths if lesson in ("", path.name[:2])]
    if not matches:
        numbers = f"{paths[0].name[:2]} to {paths[-1].name[:2]}"
        sys.exit(f"There is no lesson {lesson!r}: give two digits, {numbers}, as in LESSON=03.")
    return matches
