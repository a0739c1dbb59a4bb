"""The files in `notebooks/` that belong to the course: what every tool and test reads there.

Whoever opens lessons in that folder leaves other things beside them: copies, checkpoints, pictures,
progress. They are nobody's lessons. So nothing else lists the folder; hence a short module.
"""

from pathlib import Path

from transformer_lesson.lessons import LESSONS

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
GLOSSARY = "glossary.md"


def lesson_files(root: Path = ROOT) -> list[Path]:
    """Return the lessons of a copy of the course, those that are there, in their order."""
    files = [root / NOTEBOOKS.name / lesson.file for lesson in LESSONS.values()]
    return [file for file in files if file.exists()]
