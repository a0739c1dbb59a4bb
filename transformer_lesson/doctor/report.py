"""The report in a notebook: causes with a picture of the smallest example, and what is left."""

import html
from collections.abc import Iterable

from transformer_lesson.doctor.findings import AT_MOST, CATALOG, Finding, Picture, causes

COLORS = {"fault": "#D55E00", "suspect": "#0072B2", "well": "#009E73"}
CELL, WIDTH, HEIGHT = 16, 240, 90  # pixels


OUTSIDE = (
    "Not to be seen from outside: the tokenizer, the order of the texts, what any weights could "
    "make up for (an activation, an epsilon, a gain), and whether you meant it."
)


class Report:
    """What an examination found.

    Attributes:
        causes: at most three findings, likeliest first, each with what follows from it.
        others: further causes; more than three are rarely independent.
        skipped: from a probe's name to what it would need, or to the error that it met.
        seconds: from a probe's name to its time.
    """

    def __init__(
        self,
        findings: Iterable[Finding],
        skipped: dict[str, str],
        seconds: dict[str, float],
        meant: Iterable[str] = (),
    ):
        ordered = causes(findings, meant)
        self.causes, self.others = ordered[:AT_MOST], ordered[AT_MOST:]
        self.skipped, self.seconds = skipped, seconds

    @property
    def codes(self) -> list[str]:
        """The names of all causes."""
        return [finding.code for finding in (*self.causes, *self.others)]

    @property
    def took(self) -> str:
        """How many probes ran, and how long they took."""
        ran = len(self.seconds) - len(self.skipped)
        return f"{ran} probe{'s' * (ran != 1)} in {sum(self.seconds.values()):.1f} s."

    def __str__(self) -> str:
        lines = [str(finding) for finding in self.causes] or ["Nothing was found."]
        if self.others:
            less_likely = "; ".join(
                f"{CATALOG[finding.code].says} ({finding.code})" for finding in self.others
            )
            lines.append(f"Also, less likely on their own: {less_likely}.")
        if self.skipped:
            lines.append("Not examined:")
            lines += [f"  {name}: {why}" for name, why in self.skipped.items()]
        lines.append(f"{self.took} {OUTSIDE}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Report({', '.join(self.codes) or 'nothing found'})"

    def _repr_html_(self) -> str:
        return _page(self)


def _page(report: Report) -> str:
    """Return a report as HTML that reads in light and dark themes."""
    parts = [_cause(finding, place) for place, finding in enumerate(report.causes, 1)]
    if not parts:
        parts = [_box("well", "<strong>✓ Nothing was found.</strong>")]
    if report.others:
        less_likely = "; ".join(
            f"{_says(finding)} (<code>{finding.code}</code>)" for finding in report.others
        )
        parts.append(f"<p>Also, less likely on their own: {less_likely}.</p>")
    if report.skipped:
        rows = "".join(
            f"<li><code>{name}</code>: {html.escape(why)}</li>"
            for name, why in report.skipped.items()
        )
        parts.append(
            f"<details><summary>Not examined ({len(report.skipped)})</summary>"
            f"<ul>{rows}</ul></details>"
        )
    return "".join(parts) + f"<p><small>{report.took} {html.escape(OUTSIDE)}</small></p>"


def _says(finding: Finding) -> str:
    return html.escape(CATALOG[finding.code].says)


def _box(kind: str, inner: str) -> str:
    style = f"border-left: 5px solid {COLORS[kind]}; padding: 2px 10px; margin: 8px 0"
    return f'<div style="{style}">{inner}</div>'


def _cause(finding: Finding, place: int) -> str:
    entry = CATALOG[finding.code]
    where = f" It enters in <code>{html.escape(finding.where)}</code>." if finding.where else ""
    option = f"<code>meant={{{finding.code!r}}}</code>"
    inner = (
        f"<div><strong>{place}. {_says(finding)}</strong> ({finding.level})</div>"
        f"<div>{html.escape(f'{finding.changed} {finding.moved}')}{where}</div>"
        f"<div>{html.escape(entry.do)} (Lesson {entry.lesson})</div>"
        f"{draw(finding.picture) if finding.picture else ''}"
        f"<div><small>{finding.sure}. If you mean it: {option}</small></div>"
    )
    if finding.follows:
        items = "".join(
            f"<li>{_says(follower)}: {html.escape(f'{follower.changed} {follower.moved}')}</li>"
            for follower in finding.follows
        )
        count = len(finding.follows)
        inner += (
            f"<details><summary>What follows from it ({count})</summary><ul>{items}</ul></details>"
        )
    return _box(finding.level, inner)


def draw(picture: Picture) -> str:
    """Return a picture as SVG, with its title as its text alternative."""
    kinds = {"grid": _grid, "asked": _asked, "bars": _bars, "line": _line}
    width, height, marks = kinds[picture.kind](picture.data)
    title = html.escape(picture.title)
    return (
        f"<figure style='margin: 6px 0'><figcaption><small>{title}</small></figcaption>"
        f"<svg role='img' aria-label='{title}' width='{width}' height='{height}' "
        f"viewBox='0 0 {width} {height}' font-size='11' fill='currentColor'>{marks}</svg>"
        f"{_legend(picture)}</figure>"
    )


def _legend(picture: Picture) -> str:
    """Return what the colors of a grid of moves mean; other pictures have one color."""
    if picture.kind != "grid":
        return ""
    places = [(j, i) for j, row in enumerate(picture.data) for i, moves in enumerate(row) if moves]
    entries = {
        "fault": (any(j > i for j, i in places), "an output at an earlier position moves"),
        "well": (any(j <= i for j, i in places), "its own output moves, or a later one"),
    }
    named = (
        f"<span style='color: {COLORS[kind]}'>■</span> {means}"
        for kind, (is_drawn, means) in entries.items()
        if is_drawn
    )
    return f"<div><small>{' &nbsp; '.join(named)}</small></div>"


def _asked(rows: list[list[bool]]) -> tuple[int, int, str]:
    """Draw which token each position is asked for: in one color, as none is right by itself."""
    return _grid(rows, ("suspect", "suspect"))


def _grid(
    rows: list[list[bool]], kinds: tuple[str, str] = ("fault", "well")
) -> tuple[int, int, str]:
    """Draw who moves whom: what lies below the diagonal is the future, in the first color."""
    marks = []
    for j, row in enumerate(rows):
        for i, moves in enumerate(row):
            color = COLORS[kinds[j <= i]] if moves else "none"
            marks.append(
                f"<rect x='{(i + 1) * CELL}' y='{(j + 1) * CELL}' width='{CELL - 1}' "
                f"height='{CELL - 1}' fill='{color}' stroke='gray' stroke-width='.5'/>"
            )
    columns = max(map(len, rows))
    marks += [f"<text x='{(i + 1) * CELL + 3}' y='{CELL - 4}'>{i}</text>" for i in range(columns)]
    marks += [f"<text x='1' y='{(j + 2) * CELL - 4}'>{j}</text>" for j in range(len(rows))]
    return (columns + 1) * CELL, (len(rows) + 1) * CELL, "".join(marks)


def _bars(values: dict[str, float]) -> tuple[int, int, str]:
    scale = WIDTH / max(1e-9, *(abs(value) for value in values.values()))
    marks = []
    for place, (name, value) in enumerate(values.items()):
        y = place * 2 * CELL
        marks.append(
            f"<text x='0' y='{y + 11}'>{html.escape(name)}: {value:.3f}</text>"
            f"<rect x='0' y='{y + 15}' width='{abs(value) * scale:.0f}' height='9' "
            f"fill='{COLORS['suspect']}'/>"
        )
    return WIDTH + 20, len(values) * 2 * CELL, "".join(marks)


def _line(values: list[float]) -> tuple[int, int, str]:
    top = max(1e-12, *values)
    last = max(1, len(values) - 1)
    points = " ".join(
        f"{place / last * WIDTH:.1f},{HEIGHT - value / top * (HEIGHT - 15):.1f}"
        for place, value in enumerate(values)
    )
    marks = (
        f"<polyline points='{points}' fill='none' stroke='{COLORS['suspect']}' "
        f"stroke-width='2'/><text x='0' y='10'>{top:.2g}</text>"
    )
    return WIDTH, HEIGHT, marks
