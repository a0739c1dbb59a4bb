"""Reading what a measurement stored next to the module that shows it.

Short, because it is one function: every stored measurement is read by it.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


def read_stored(
    path: Path, made_by: str, make: Callable[[Any], Any] = lambda stored: stored
) -> Any:
    """Return the contents of one of the package's JSON files.

    Args:
        path: of the file.
        made_by: the module that measured it.
        make: converts the stored values.

    Raises:
        ValueError: the file is missing or damaged.
    """
    try:
        return make(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError, ZeroDivisionError) as error:
        raise ValueError(
            f"{path} cannot be read ({type(error).__name__}): `python -m {made_by}` makes it again."
        ) from error
