"""What the doctor finds, in words: a cause, what shows it, where it enters, what to do."""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, NamedTuple

AT_MOST = 3
"""Causes that a report names; more than three are rarely independent."""


class Entry(NamedTuple):
    """One row of `findings.toml`."""

    level: str
    says: str
    do: str
    lesson: str
    explains: tuple[str, ...] = ()


def _catalog() -> dict[str, Entry]:
    file = resources.files(__package__) / "findings.toml"
    rows = tomllib.loads(file.read_text(encoding="utf-8"))
    return {
        code: Entry(**{**row, "explains": tuple(row.get("explains", ()))})
        for code, row in rows.items()
    }


CATALOG = _catalog()
PLACE = {code: place for place, code in enumerate(CATALOG)}


class Picture(NamedTuple):
    """The smallest example as numbers: a grid of who moves whom, bars, or a line."""

    kind: str
    data: Any
    title: str


@dataclass
class Finding:
    """One thing that is wrong, or may be.

    Attributes:
        code: its name in `findings.toml`; `meant={code}` silences it.
        changed: what the doctor did.
        moved: what it saw then.
        where: the innermost module at which it enters, or "".
        picture: the smallest example.
        apart: findings that cannot explain it, though they often explain its like.
        follows: findings that follow from it.
        area: the module of the probe that found it.
    """

    code: str
    changed: str
    moved: str = ""
    where: str = ""
    picture: Picture | None = None
    level: str = ""
    apart: tuple[str, ...] = ()
    area: str = ""
    follows: list["Finding"] = field(default_factory=list)

    def __post_init__(self):
        self.level = self.level or CATALOG[self.code].level

    @property
    def sure(self) -> str:
        """How sure it is."""
        if self.level == "fault":
            return "measured: no design of this kind that we know does this on purpose"
        return "measured, but some models do this on purpose"

    def __str__(self) -> str:
        entry = CATALOG[self.code]
        where = f" It enters in {self.where}." if self.where else ""
        lines = [f"{self.level}: {entry.says} ({self.code})"]
        lines += [f"  {self.changed} {self.moved}{where}".rstrip(), f"  {entry.do}"]
        lines += [f"  {self.sure}; lesson {entry.lesson}; if you mean it: meant={{{self.code!r}}}"]
        if self.follows:
            consequences = "; ".join(
                f"{CATALOG[finding.code].says} ({finding.code})" for finding in self.follows
            )
            lines += [f"  follows from it: {consequences}"]
        return "\n".join(lines)


def causes(findings: Iterable[Finding], meant: Iterable[str] = ()) -> list[Finding]:
    """Return causes, likeliest first, each with what follows from it; without what is meant."""
    meant = set(meant)
    first = {
        finding.code: finding for finding in reversed(list(findings)) if finding.code not in meant
    }
    findings = list(first.values())
    order = {"fault": 0, "suspect": 1}
    findings.sort(key=lambda finding: (order[finding.level], PLACE[finding.code]))
    top = []
    for finding in findings:
        source = next(
            (
                other
                for other in findings
                if other is not finding
                and finding.code in CATALOG[other.code].explains
                and other.code not in finding.apart
                and other.code not in CATALOG[finding.code].explains
            ),
            None,
        )
        if source is None:
            top.append(finding)
        else:
            source.follows.append(finding)
    return _of_several_areas(top)


def _of_several_areas(top: list[Finding]) -> list[Finding]:
    """Return causes so that the last one named is of another area than those before, if it can be.

    Two faults at once are seldom in one area, and what follows from a fault often is in its own.
    """
    named, others = top[: AT_MOST - 1], top[AT_MOST - 1 :]
    areas = {finding.area for finding in named}
    at = next(
        (
            k
            for k, finding in enumerate(others)
            if finding.area not in areas and finding.level == "fault"
        ),
        0,
    )
    return [*named, *others[at : at + 1], *others[:at], *others[at + 1 :]]


def table() -> str:
    """Return all that can be found as a table in Markdown; `docs/doctor.md` holds it."""
    lines = ["| name | level | what it means | what to do | lesson |", "|---|---|---|---|---|"]
    lines += [
        f"| `{code}` | {entry.level} | {entry.says} | {entry.do} | {entry.lesson} |"
        for code, entry in CATALOG.items()
    ]
    return "\n".join(lines)
