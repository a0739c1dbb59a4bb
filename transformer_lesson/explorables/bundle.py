"""The explorables' front ends, each joined with what it imports into one JavaScript module.

A notebook takes a front end as one text, and a page from the disk may import nothing, so the files
are joined: imports go, and with them the word "export", so names of the top level are unique among
all files. The kit is in `web/`, beside what several lessons show; what one lesson shows is in that
lesson's folder.
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
    """Return the files of these names and all that they import, what is imported first.

    Args:
        names: of files, without ".js".
    """
    ordered = list(dict.fromkeys(file for name in names for file in _with_imports(name)))
    texts = [_text(name) for name in ordered]
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", text)) for text in texts)


def _with_imports(name: str) -> list[str]:
    """Return the names of all that a file imports, directly or not, and then its own."""
    imported = _IMPORT.findall(_text(name))
    return [*(file for one in imported for file in _with_imports(one)), name]


def front_ends() -> dict[str, Path]:
    """Return every file by its name: those of `web/`, and those of the lessons."""
    return {path.stem: path for path in (*WEB.glob("*.js"), *LESSONS.glob("*/*.js"))}


def _text(name: str) -> str:
    return front_ends()[name].read_text(encoding="utf-8")
