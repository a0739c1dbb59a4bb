"""A learner's progress, in one readable file beside the notebooks.

The file is `my_progress.json`. Notebooks that are open at the same time share it: each change,
under a lock, reads the file, adds one entry and replaces the file. It also has the learner's own
random seed, drawn when the file is first written.
"""

import json
import os
import secrets
import warnings
from pathlib import Path
from typing import Any

from filelock import FileLock

from transformer_lesson.files import rename_aside, write_atomically

FILE, PLACE = "my_progress.json", "TRANSFORMER_LESSON_PROGRESS"
FORMAT = "Transformer Lesson, progress, 1"
SECTIONS = ("passed", "predicted")
LARGEST = 10_000_000  # bytes
STORED_SEED = 4  # for the stored notebooks: right options are spread evenly over the positions


def progress_file() -> Path | None:
    """Return the progress file: the one named by the environment variable
    `TRANSFORMER_LESSON_PROGRESS`, or one in the working folder if notebooks are there. The folder
    `deeper` shares that of the lessons, its parent.
    """
    if place := os.environ.get(PLACE):
        return Path(place)
    folder = Path().absolute()
    folder = folder.parent if folder.name == "deeper" else folder
    return folder / FILE if next(folder.glob("*.ipynb"), None) else None


def read_progress(path: Path | None) -> dict[str, dict[str, Any]]:
    """Return the file's contents; empty sections if there is no file.

    A damaged or foreign file is renamed, with a warning.
    """
    empty = {section: {} for section in SECTIONS}
    if path is None or not path.exists():
        return empty
    try:
        return parse_progress(path)
    except (ValueError, RecursionError) as error:  # includes broken JSON and text
        copy = rename_aside(path, "damaged")
        warnings.warn(
            f"{path.name} could not be read ({error}). It is kept as {copy.name}, and progress "
            "starts over. If you can repair it, give it its old name back.",
            stacklevel=2,
        )
        return empty


def parse_progress(path: Path) -> dict[str, dict[str, Any]]:
    """Return a progress file's contents without changing the file.

    Raises:
        ValueError, RecursionError: it is damaged or another program's.
        OSError: it cannot be read.
    """
    state = _loaded(path)
    if not all(isinstance(state.get(section), dict) for section in SECTIONS):
        raise ValueError(f"one of its sections {' and '.join(SECTIONS)} is missing")
    if not all(isinstance(answer, dict) for answer in state["predicted"].values()):
        raise ValueError("its predictions are not in the form that they are saved in")
    return {section: state[section] for section in SECTIONS}


def _loaded(path: Path) -> dict[str, Any]:
    if path.stat().st_size > LARGEST:
        raise ValueError(f"it has more than {LARGEST:,} bytes")
    state = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise ValueError(f'it does not say "format": "{FORMAT}"')
    return state


def learners_seed() -> int:
    """Return the learner's own seed for shuffling options; that of the stored notebooks before any
    progress is stored.
    """
    path = progress_file()
    if path is None or not path.exists():
        return STORED_SEED
    try:
        seed = _loaded(path).get("seed")
    except (OSError, ValueError, RecursionError):  # `read_progress` reports it
        return STORED_SEED
    return seed if type(seed) is int else STORED_SEED


def remember(section: str, name: str, value: Any) -> None:
    """Add one entry to the file; warn if it cannot be written.

    Args:
        section: "passed" for exercises, "predicted" for questions.
        name: of the exercise or question.
        value: JSON data.
    """
    path = progress_file()
    if path is None:
        return
    try:
        with FileLock(path.with_name(f".{path.name}.lock"), timeout=10):
            state = read_progress(path)
            if state[section].get(name) != value:
                state[section][name] = value
                seed = learners_seed()
                if seed == STORED_SEED:
                    seed = secrets.randbelow(10**6) + STORED_SEED + 1
                _replace(path, {"format": FORMAT, "seed": seed, **state})
    except (OSError, TimeoutError) as error:
        warnings.warn(
            f"Progress could not be written to {path} ({error.strerror or error}): copy the course "
            f"to a folder of your own, or name a file in the environment variable {PLACE}.",
            stacklevel=2,
        )


def _replace(path: Path, state: dict) -> None:
    """Replace the file atomically."""
    text = json.dumps(state, indent=2, ensure_ascii=False) + "\n"
    write_atomically(path, text.encode(errors="backslashreplace"))  # half a pair, as JSON writes it
