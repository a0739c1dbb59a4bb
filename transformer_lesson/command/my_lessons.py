"""The learner's own copies of the lessons, in `my_lessons/`.

The lessons in `notebooks/` belong to the course: they are under version control, and a newer course
replaces them. So a learner works in copies, which only the learner's own work changes, and into
which a newer edition is merged cell by cell (`editions`). Next to them are the learner's
progress and `my_transformer/`, and in `.editions/` the edition that each copy was made from.

They are where the command was called, which in a checkout is the checkout. There an edition is what
is committed. So work that somebody began in `notebooks/` itself counts as theirs: a copy begins
with it. An installed wheel is an edition as it is.
"""

import argparse
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from transformer_lesson.command.editions import carried_over
from transformer_lesson.command.hosted import without_cell
from transformer_lesson.command.lesson_files import (
    COURSE,
    FOLDER,
    GLOSSARY,
    PACKAGE,
    lesson_files,
    place_of,
    write_notebook,
)
from transformer_lesson.course import EDITIONS, MINE, learners_folder
from transformer_lesson.files import write_atomically

EARLIER = ".earlier"
FOR_ASSISTANTS = PACKAGE / "command" / "for_assistants.md"
RULES = ("AGENTS.md", "CLAUDE.md")  # what different assistants read


def bring_up_to_date(course: Path = COURSE, home: Path | None = None) -> Iterator[str]:
    """Make the missing copies, merge what is new into the others; yield what was done.

    A copy that cannot be read stays as it is. One that is about to change is first backed up in
    `my_lessons/.earlier/`.

    Args:
        course: the folder with the course's own `notebooks/`.
        home: the folder with `my_lessons/`; the course's, if none is given.
    """
    lessons, mine = course / FOLDER, (home or course) / MINE
    for folder in (mine / "deeper", mine / EDITIONS / "deeper"):
        folder.mkdir(parents=True, exist_ok=True)
    texts = {GLOSSARY: lessons / GLOSSARY, **dict.fromkeys(RULES, FOR_ASSISTANTS)}
    for name, text in texts.items():
        yield from _bring_text(text, mine / name, mine / EDITIONS / name)
    progress = "my_progress.json"
    if (lessons / progress).exists() and not (mine / progress).exists():
        shutil.copyfile(lessons / progress, mine / progress)
    for lesson in lesson_files(course):
        place = place_of(lesson)
        yield from _bring_up_to_date(lesson, mine / place, mine / EDITIONS / place)


def _bring_text(newest: Path, copy: Path, edition: Path) -> Iterator[str]:
    """Replace the copy of a text by a newer one; back it up if the learner wrote in it."""
    text = newest.read_bytes()
    old = edition.read_bytes() if edition.exists() else None
    changed = copy.exists() and copy.read_bytes() not in (old, text)
    if changed and old != text:
        earlier = _keep_earlier(copy)
        yield f"{MINE}/{copy.name} has the newest edition; yours, with your notes, is {earlier}"
    if not copy.exists() or old != text:
        write_atomically(copy, text)
        write_atomically(edition, text)


def _bring_up_to_date(lesson: Path, copy: Path, edition: Path) -> Iterator[str]:
    here = without_cell(lesson.read_bytes())
    newest = _committed(lesson) or here
    if not copy.exists():
        write_atomically(copy, here)
    elif not edition.exists() or edition.read_bytes() != newest:
        old = edition.read_bytes() if edition.exists() else b""
        if not _is_edition(old):
            old = _likeliest_edition(lesson, copy) or newest
        yield _merge(lesson, copy, old, newest)
    elif read_notebook(copy.read_bytes()) is None:
        yield _damaged(lesson, copy)
    write_atomically(edition, newest)


def _committed(lesson: Path, commit: str = "HEAD") -> bytes | None:
    """Return a lesson as it was committed; `None` if there is no git or no such commit."""
    text = _git(lesson, "show", f"{commit}:./{lesson.name}")
    return None if text is None else without_cell(text)


def _git(lesson: Path, *command: str) -> bytes | None:
    if lesson.is_relative_to(PACKAGE):  # a wheel's; around it may be a repository of somebody else
        return None
    try:
        run = subprocess.run(["git", *command], cwd=lesson.parent, capture_output=True)
    except OSError:
        return None
    return run.stdout if run.returncode == 0 else None


def _likeliest_edition(lesson: Path, copy: Path) -> bytes | None:
    """Return the edition of a lesson that has the most cells in common with a copy."""
    mine = read_notebook(copy.read_bytes())
    sources = {cell.source for cell in mine.cells} if mine else set()
    commits = (_git(lesson, "log", "--format=%H", "--", lesson.name) or b"").decode().split()
    texts = [_committed(lesson, commit) for commit in commits]
    editions = [text for text in texts if text and _is_edition(text)]
    common = [
        sum(cell.source in sources for cell in read_notebook(text).cells) for text in editions
    ]
    return editions[common.index(max(common))] if editions else None


def read_notebook(text: bytes) -> NotebookNode | None:
    """Return a notebook; `None` if the text is not one."""
    try:
        notebook = nbformat.reads(text.decode(), as_version=4)
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return None  # no JSON, or JSON that is no notebook
    except nbformat.ValidationError:
        return None  # a cell that lacks something
    return (
        notebook if all({"cell_type", "source"} <= cell.keys() for cell in notebook.cells) else None
    )


def _is_edition(text: bytes) -> bool:
    """Return whether a text is a notebook whose cells all have ids."""
    notebook = read_notebook(text)
    return notebook is not None and all("id" in cell for cell in notebook.cells)


def _merge(lesson: Path, copy: Path, old: bytes, newest: bytes) -> str:
    """Bring one copy to the lesson's newest edition, and say so in a sentence."""
    mine = read_notebook(copy.read_bytes())
    if mine is None:
        return _damaged(lesson, copy)
    merged = carried_over(read_notebook(old), mine, read_notebook(newest))
    if merged.cells == mine.cells:
        return f"{MINE}/{place_of(copy)} is up to date."
    earlier = _keep_earlier(copy)
    write_notebook(copy, merged)
    return (
        f"{MINE}/{place_of(copy)} has the newest edition and your work; the old copy is {earlier}"
    )


def _damaged(lesson: Path, copy: Path) -> str:
    return (
        f"{MINE}/{place_of(copy)} is no longer a notebook, so it stays as it is: rename it "
        f"to get a new copy of {FOLDER}/{place_of(lesson)}."
    )


def _keep_earlier(copy: Path) -> str:
    """Copy a file to an unused name, so that nothing in it can be lost."""
    mine = copy.parents[len(place_of(copy).parts) - 1]
    folder, number = mine / EARLIER, 1
    folder.mkdir(exist_ok=True)
    while (earlier := folder / f"{copy.stem}.{number}{copy.suffix}").exists():
        number += 1
    shutil.copyfile(copy, earlier)
    return f"{MINE}/{EARLIER}/{earlier.name}"


def main(arguments: list[str]) -> str | None:
    """Make the copies or bring them up to date, and say what was done; return any problem."""
    about = f"Copy the lessons to {MINE}/ here, or merge a newer course into the copies there."
    argparse.ArgumentParser("transformer-lesson update", description=about).parse_args(arguments)
    home = learners_folder()
    if (home / MINE).is_file():
        return f"{home / MINE} is a file, where the folder of your copies would be: rename it."
    new, sentence = not (home / MINE).exists(), None
    try:
        for sentence in bring_up_to_date(home=home):
            print(sentence)
    except OSError as error:
        return (
            f"{home / MINE} cannot be written ({error}): go to a folder of your own and try there."
        )
    if new:
        print(f"Your copies of the lessons are in {home / MINE}.")
    elif sentence is None:
        print(f"Your copies in {home / MINE} are up to date.")
    return None
