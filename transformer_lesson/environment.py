"""What is installed here, beside what the course was tested with.

Works where PyTorch is missing or broken, where only the package is installed, and where Python is
too old for all the rest: `python -m transformer_lesson.environment`. So it needs nothing but the
standard library of Python 3.8; `packaging`, where it is there, tells which versions are allowed.
"""

from __future__ import annotations

import html
import json
import platform
import shlex
import shutil
import sys
import textwrap
from dataclasses import dataclass
from importlib import import_module, metadata
from pathlib import Path

try:
    from packaging.requirements import Requirement
    from packaging.version import InvalidVersion, Version
except ImportError:  # the table says that it is missing
    Requirement = None

PACKAGE = "transformer_lesson"
TESTED = Path(__file__).parent / "data" / "tested_versions.json"
COMPILED = {"numpy": "numpy", "pillow": "PIL", "safetensors": "safetensors", "torch": "torch"}
"""Packages that can be installed and still fail: they hold code for one kind of machine."""

UNREADABLE = "unreadable"
TODO = {
    "as tested": "",
    "not tested": "nothing, as long as the numbers agree",
    "not installed": "nothing, unless you need it",
    "missing": "install it",
    "not supported": "install the tested version",
    UNREADABLE: "install it again",
    "broken": "install it again",
}
AS_TESTED = "Everything is as tested."
URGENT = ("missing", "not supported", UNREADABLE, "broken")


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Args:
        name: of the package, or "Python".
        installed: its version; "none" and "unreadable" are possible too.
        tested: the version, or versions, with which every test of the course passed.
        status: one of the keys of `TODO`.
        reason: the error with which a broken package answers.
    """

    name: str
    installed: str
    tested: str
    status: str
    reason: str = ""

    @property
    def todo(self) -> str:
        """Status and remedy in a few words; nothing where all is as tested."""
        remedy = TODO[self.status]
        reason = f" ({self.reason})" if self.reason else ""
        return f"{self.status}{reason}: {remedy}" if remedy else ""

    @property
    def line(self) -> str:
        """The row as a line of text, in columns."""
        columns = f"{self.name:31} {self.installed:11} {self.tested:17} {self.todo}"
        return columns.rstrip()


@dataclass(frozen=True, repr=False)
class EnvironmentReport:
    """What is installed, what differs, what to do: a table in a notebook, text elsewhere.

    Args:
        rows: Python first, then the packages.
    """

    rows: tuple[Row, ...]

    @property
    def urgent(self) -> list[Row]:
        """The rows because of which lessons may fail."""
        return [row for row in self.rows if row.status in URGENT]

    @property
    def verdict(self) -> str:
        """One sentence about the whole table."""
        if self.urgent:
            return f"Lessons may fail because of {', '.join(row.name for row in self.urgent)}."
        untested = [row.name for row in self.rows if row.status == "not tested"]
        if untested:
            return f"Lessons should run; other versions were tested of {', '.join(untested)}."
        return AS_TESTED

    def remedy(self, pip: str) -> tuple[str, str]:
        """Return a sentence and the command that it asks you to run; both may be empty.

        Args:
            pip: what calls pip here.
        """
        python, *packages = self.rows
        if python.status == "not supported":
            version = python.tested.split()[-1]
            return f"Install Python {version}, then run:", f"make lab PYTHON=python{version}"
        wrong = [row for row in packages if row.status in URGENT]
        wanted = wrong or [row for row in packages if row.status == "not tested"]
        if not wanted:
            return "", ""
        why = "Run this" if wrong else "If you want the tested versions, run this"
        again = any(row.status in (UNREADABLE, "broken") for row in wanted)
        flag = "--force-reinstall " if again else ""
        pins = " ".join(f"{row.name}=={row.tested}" for row in wanted)
        return f"{why}, then restart the kernel:", f"{pip} install {flag}{pins}"

    def __repr__(self) -> str:
        width = shutil.get_terminal_size().columns
        heads = f"{'':31} {'installed':11} {'tested':17} what to do"
        lines = [heads, *(row.line for row in self.rows)]
        if max(map(len, lines)) > width:
            lines = []
            for row in self.rows:
                text = f"{row.name}: {row.installed}, tested {row.tested}. {row.todo}"
                lines += textwrap.wrap(text, width, subsequent_indent="  ")
        sentence, command = self.remedy(f"{shlex.quote(sys.executable)} -m pip")
        for text in (self.verdict, sentence):
            lines += textwrap.wrap(text, width)
        return "\n".join([*lines, command]).rstrip()  # a command stays whole, to be copied

    def _repr_html_(self) -> str:
        heads = ("", "installed", "tested", "what to do")
        head = "".join(f'<th scope="col" style="text-align: left">{name}</th>' for name in heads)
        body = ""
        for row in self.rows:
            cells = "".join(
                f'<td style="text-align: left">{html.escape(text)}</td>'
                for text in (row.installed, row.tested, row.todo)
            )
            name = f'<th scope="row" style="text-align: left">{html.escape(row.name)}</th>'
            body += f"<tr>{name}{cells}</tr>"
        sentence, command = self.remedy("%pip")
        end = f"<p>{html.escape(sentence)}</p><pre>{html.escape(command)}</pre>" if command else ""
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        state = "" if self.verdict == AS_TESTED else " open"
        summary = f"<summary><strong>{html.escape(self.verdict)}</strong></summary>"
        return f"<details{state}>{summary}{table}{end}</details>"


def environment_report() -> EnvironmentReport:
    """Return a table of what is installed, what differs from the tested versions and what to do.

    It raises nothing, whatever is installed. What is tested stands in
    `data/tested_versions.json`, what is allowed in the package's metadata.
    """
    tested = json.loads(TESTED.read_text(encoding="utf-8"))
    allowed = _allowed()
    rows = [_python_row(tested["python"])]
    for group, when_absent in (("package", "missing"), ("lessons", "not installed")):
        for name, version in tested[group].items():
            rows.append(_row(name, version, allowed.get(name), when_absent))
    return EnvironmentReport(tuple(rows))


def _python_row(tested: list[str]) -> Row:
    number = sys.version_info[:2]
    known = [tuple(map(int, version.split("."))) for version in tested]
    too_old = "not supported" if number < known[0] else "not tested"
    status = "as tested" if number in known else too_old
    return Row("Python", platform.python_version(), ", ".join(tested), status)


def _row(name: str, tested: str, allowed, when_absent: str) -> Row:
    try:
        installed = metadata.version(name) or UNREADABLE
    except metadata.PackageNotFoundError:
        return Row(name, "none", tested, when_absent)
    except Exception:  # a damaged folder of metadata fails in many ways
        installed = UNREADABLE
    if name in COMPILED:
        try:
            import_module(COMPILED[name])
        except Exception as error:  # whatever a broken library raises is what we look for
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            return Row(name, installed, tested, "broken", reason)
    return Row(name, installed, tested, _status(installed, tested, allowed))


def _status(installed: str, tested: str, allowed) -> str:
    if installed.split("+")[0] == tested:  # 2.13.0+cpu is 2.13.0
        return "as tested"
    if installed == UNREADABLE:
        return UNREADABLE
    if Requirement is None:
        return "not tested"
    try:
        version = Version(installed)
    except InvalidVersion:
        return UNREADABLE
    if version == Version(tested):
        return "as tested"
    inside = allowed is None or allowed.contains(version, prereleases=True)
    return "not tested" if inside else "not supported"


def _allowed() -> dict:
    """The versions that the package's metadata allow, by name; empty where there are none."""
    found = [*metadata.distributions(name=PACKAGE)]
    if Requirement is None or not found:  # the package is used from its folder
        return {}
    wanted = found[-1].requires or []  # an old one may lie in the working folder, found first
    return {wish.name: wish.specifier for wish in map(Requirement, wanted)}


if __name__ == "__main__":
    report = environment_report()
    print(report)
    sys.exit(bool(report.urgent))
