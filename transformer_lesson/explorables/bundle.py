"""The explorables' front ends, each joined with what it imports into one JavaScript module.

A notebook takes a front end as one string, and a page on disk cannot import anything, so the files
are joined and the words "import" and "export" removed; top-level names must therefore be unique
across all files. The kit and what several lessons show are in `web/`; what only one lesson shows is
in that lesson's folder.
"""

import re
from functools import cache
from pathlib import Path

WEB = Path(__file__).with_name("web")
LESSONS = Path(__file__).parents[1] / "lessons"
_IMPORT = re.compile(r'^import \{[^}]*\} from "[./a-z]*/(\w+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export ", re.MULTILINE)


@cache
def bundle(*names: str) -> str:
    """Return these files and everything they import as one text, imported files first.

    Args:
        names: of files, without ".js".
    """
    ordered = list(dict.fromkeys(file for name in names for file in _with_imports(name)))
    texts = [_text(name) for name in ordered]
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", text)) for text in texts)


def _with_imports(name: str) -> list[str]:
    """Return the names of all files that a file imports, directly or not, followed by its own."""
    imported = _IMPORT.findall(_text(name))
    return [*(file for one in imported for file in _with_imports(one)), name]


def front_ends() -> dict[str, Path]:
    """Return every front-end file by name: those in `web/` and those of the lessons."""
    return {path.stem: path for path in (*WEB.glob("*.js"), *LESSONS.glob("*/*.js"))}


def _text(name: str) -> str:
    return front_ends()[name].read_text(encoding="utf-8")
