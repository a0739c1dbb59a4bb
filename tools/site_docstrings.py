"""The package's docstrings as reStructuredText: a Sphinx extension.

They are written to be read in the source: code between single backticks, formulas as plain text,
examples indented, "Source: ..." on one line. Napoleon then reads their "Args:" and "Raises:".
"""

import re
from collections.abc import Iterator

CODE = re.compile(r"(`[^`]+`)")
MARKUP = re.compile(r"[*|]|_\b(?!\w)")  # what reStructuredText would take for emphasis or a link
NOTE = re.compile(r"(Source|Differs): (.+)")


def as_restructured(lines: list[str]) -> list[str]:
    """Return a docstring's lines so that they look on the page as they do in the source."""
    return list(_noted(list(_marked(lines))))


def _marked(lines: list[str]) -> Iterator[str]:
    """Mark indented examples as code; elsewhere mark code and leave the rest as letters."""
    in_code, last = False, ""  # the last line that is not empty
    for line, before in zip(lines, ["text", *lines], strict=False):
        if line and not line.startswith("    "):
            in_code = False
        elif line and not before and last and not last.startswith("    "):
            in_code = True
            yield from (".. code-block:: python", "")
        last = line or last
        if in_code:
            yield line
            continue
        parts = CODE.split(line)
        parts[1::2] = [f"`{code}`\\ " for code in parts[1::2]]
        parts[::2] = [MARKUP.sub(lambda match: f"\\{match[0]}", part) for part in parts[::2]]
        yield "".join(parts)


def _noted(lines: list[str]) -> Iterator[str]:
    """Put every "Source:" and "Differs:" in its own paragraph."""
    in_note = False
    for line in lines:
        if note := NOTE.match(line):
            in_note = True
            yield from ("", f"**{note[1]}:** {note[2]}")
        elif in_note and line.startswith("    "):
            yield line.strip()
        else:
            if in_note and line:
                yield ""
            in_note = False
            yield line


def read_docstring(app, what, name, obj, options, lines: list[str]) -> None:
    """Rewrite a docstring before napoleon reads it."""
    lines[:] = as_restructured(lines)
    if what in ("attribute", "data", "property"):
        lines.insert(0, "")  # or napoleon takes what precedes a colon for a type


def setup(app) -> dict[str, bool]:
    """Connect to Sphinx."""
    app.connect("autodoc-process-docstring", read_docstring, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
