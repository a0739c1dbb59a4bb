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
    paths, texts = front_ends(), {}

    def add(name: str) -> None:
        """Add a file to `texts`, after those that it imports."""
        text = paths[name].read_text(encoding="utf-8")
        for imported in _IMPORT.findall(text):
            if imported not in texts:
                add(imported)
        texts[name] = _EXPORT.sub("", _IMPORT.sub("", text))

    for name in names:
        if name not in texts:
            add(name)
    return "\n".join(texts.values())


def front_ends() -> dict[str, Path]:
    """Return every front-end file by name: those in `web/` and those of the lessons."""
    return {path.stem: path for path in (*WEB.glob("*.js"), *LESSONS.glob("*/*.js"))}
