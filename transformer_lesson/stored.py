"""Read what a `measure_*.py` script has stored, and explain such a script when asked to."""

import ast
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def read_stored(
    path: Path, made_by: str, make: Callable[[Any], Any] = lambda stored: stored
) -> Any:
    """Return what a JSON file of the package holds.

    Args:
        path: of the file.
        made_by: the module that measured it.
        make: turns what was stored into what is returned.

    Raises:
        ValueError: the file is missing or damaged.
    """
    try:
        return make(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError, ZeroDivisionError) as error:
        raise ValueError(
            f"{path} cannot be read ({type(error).__name__}): `python -m {made_by}` makes it again."
        ) from error


def explain_if_asked(package: str, folder: Path) -> None:
    """Print what a script measures, and end the program, if it was called with --help.

    A package calls this while it is imported, before its script begins.

    Args:
        package: its name.
        folder: its folder.
    """
    if sys.argv[0] == "-m" and {"-h", "--help"} & {*sys.argv}:
        name = sys.orig_argv[sys.orig_argv.index("-m") + 1].removeprefix(f"{package}.")
        source = folder.joinpath(*name.split(".")).with_suffix(".py")
        if source.exists() and "argparse" not in (code := source.read_text(encoding="utf-8")):
            print(ast.get_docstring(ast.parse(code)))
            sys.exit()
