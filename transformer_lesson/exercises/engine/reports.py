"""The report that `check` returns: words and a symbol, readable in light and dark themes."""

import html
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from transformer_lesson.files import printable

SIGNS = {
    "passed": ("✓", "#009E73"),
    "failed": ("✗", "#D55E00"),
    "half done": ("◐", "#E69F00"),
    "not attempted": ("○", "#888888"),
}


SENTENCE = re.compile(r"[A-Z`].* .*[.?]")


def to_html(text: str) -> str:
    """Return text as HTML, with text between backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))


def formatted(text: str) -> str:
    """Return text as HTML: sentences as text, anything else preformatted."""
    parts = groupby(text.splitlines(), key=lambda line: bool(SENTENCE.fullmatch(line)))
    return "".join(
        f"<div>{'<br>'.join(map(to_html, lines))}</div>"
        if prose
        else preformatted("\n".join(lines))
        for prose, lines in parts
    )


class Folded(NamedTuple):
    """HTML below a report that opens when the learner clicks."""

    summary: str
    body: str


def preformatted(text: str) -> str:
    """Return text as HTML that keeps its lines."""
    wrap = "white-space: pre-wrap; word-break: normal; margin: 4px 0 0"
    return f'<pre style="{wrap}">{to_html(text)}</pre>'


@dataclass(frozen=True, repr=False)
class Report:
    """The outcome of one check.

    Args:
        name: the exercise.
        status: "passed", "failed", "half done" or "not attempted".
        message: plain text whose first line is a sentence.
        mistake: the mistake's name, if it is a known one.
        fold: makes the foldable part; called when a notebook shows the report.
        nudge: the beginning of the message that explains the mistake, with no number of a draw.
    """

    name: str
    status: str
    message: str = ""
    mistake: str | None = None
    fold: Callable[[], Folded] | None = None
    nudge: str = ""

    def __repr__(self) -> str:
        head = f"{printable(self.name)}: {self._verdict}"
        return f"{head}\n{self._shown}" if self.message else head

    def _repr_html_(self) -> str:
        sign, color = SIGNS[self.status]
        name = html.escape(printable(self.name))
        head = f"{sign} <strong>{self._verdict}</strong>: <code>{name}</code>"
        body = formatted(self._shown)
        if self.fold:
            summary, below = self.fold()
            body += f"<details><summary>{to_html(summary)}</summary>{below}</details>"
        style = f"border-left: 5px solid {color}; padding: 2px 10px"
        return f'<div role="status" style="{style}"><div>{head}</div>{body}</div>'

    @property
    def _shown(self) -> str:
        """The message without control characters (cursor moves, text direction)."""
        return printable(self.message, keep="\n\t")

    @property
    def _verdict(self) -> str:
        return "not attempted yet" if self.status == "not attempted" else self.status
