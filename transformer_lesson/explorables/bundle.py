"""The explorables' front ends, each joined with what it imports into one JavaScript module.

A notebook takes a front end as one text, and a page from the disk may import nothing, so the files
of `web/` are joined: imports go, and with them the word "export", so names of the top level are
unique among all files.
"""

import re
from functools import cache
from pathlib import Path

WEB = Path(__file__).with_name("web")
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./(\w+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export ", re.MULTILINE)


@cache
def bundle(*names: str) -> str:
    """Return the files of these names and all that they import, what is imported first.

    Args:
        names: of files in `web/`, without ".js".
    """
    ordered = list(dict.fromkeys(file for name in names for file in _with_imports(name)))
    texts = [(WEB / f"{name}.js").read_text(encoding="utf-8") for name in ordered]
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", text)) for text in texts)


def _with_imports(name: str) -> list[str]:
    """Return the names of all that a file imports, directly or not, and then its own."""
    imported = _IMPORT.findall((WEB / f"{name}.js").read_text(encoding="utf-8"))
    return [*(file for one in imported for file in _with_imports(one)), name]
