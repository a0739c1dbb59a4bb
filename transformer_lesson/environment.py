"""What is installed here, next to what the course was tested with.

`python -m transformer_lesson.environment` works where PyTorch or any other package is missing or
broken, and on an older Python: it needs no more than the standard library of Python 3.8.
"""

from __future__ import annotations

import html
import os
import platform
import re
import shlex
import sys
from dataclasses import dataclass
from importlib import import_module, metadata

try:
    from packaging.requirements import Requirement
    from packaging.version import Version
except ImportError:  # the table says that it is missing, and not which other versions are allowed
    Requirement = None

PACKAGE = "transformer_lesson"
TESTED = "extra_metadata/requirements-lab.txt"
"""Installed with the package: the exact versions with which every test of the course passed."""
COMPILED = {"numpy": "numpy", "pillow": "PIL", "safetensors": "safetensors", "torch": "torch"}
"""Packages that can be installed and still fail: they hold compiled code for one machine type."""

LAB = "extra == 'lab'"
"""Marks what lessons can do without: cells say what is missing, and other programs open lessons."""

TODO = {
    "as tested": "",
    "not tested": "nothing, as long as the numbers agree",
    "not installed": "nothing, unless you need it",
    "missing": "install it",
    "not supported": "install the tested version",
    "broken": "install it again",
}
URGENT = ("missing", "not supported", "broken")
AS_TESTED = "Everything is as tested."
HEADS = ("", "installed", "tested", "what to do")


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Args:
        name: of the package, or "Python".
        installed: its version, or "none".
        tested: the version or versions with which every test of the course passed.
        status: one of the keys of `TODO`.
        reason: the error that a broken package raises.
    """

    name: str
    installed: str
    tested: str
    status: str
    reason: str = ""

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """What the table shows; the last is empty where all is as tested."""
        reason = f" ({self.reason})" if self.reason else ""
        todo = f"{self.status}{reason}: {TODO[self.status]}" if TODO[self.status] else ""
        return self.name, self.installed, self.tested, todo


@dataclass(frozen=True, repr=False)
class EnvironmentReport:
    """What is installed, what differs, what to do: a table in a notebook, text elsewhere.

    Args:
        rows: Python first, then the packages; only the course if it is not installed.
    """

    rows: tuple[Row, ...]

    @property
    def urgent(self) -> list[Row]:
        """The rows that may make lessons fail."""
        return [row for row in self.rows if row.status in URGENT]

    @property
    def verdict(self) -> str:
        """One sentence about the whole table."""
        if self.urgent:
            return f"Lessons may fail because of {', '.join(row.name for row in self.urgent)}."
        untested = [row.name for row in self.rows if row.status == "not tested"]
        if untested:
            return (
                f"Lessons should run, but were tested with other versions of {', '.join(untested)}."
            )
        return AS_TESTED

    def remedy(self, pip: str) -> tuple[str, str]:
        """Return a sentence and the command that it asks you to run; both may be empty.

        Args:
            pip: the command that runs pip here.
        """
        if self.rows[0].name == PACKAGE:
            return "Run this in the folder of the course:", "make lab"
        untested = [row for row in self.rows[1:] if row.status == "not tested"]
        wanted = self.urgent or ([] if is_hosted() else untested)
        if not wanted:
            return "", ""
        why = "Run this" if self.urgent else "If you want the tested versions, run this"
        flag = "--force-reinstall " if any(row.status == "broken" for row in wanted) else ""
        pins = " ".join(f"{row.name}=={row.tested}" for row in wanted)
        return f"{why}, then restart the kernel:", f"{pip} install {flag}{pins}"

    def __repr__(self) -> str:
        table = [HEADS, *(row.cells for row in self.rows)]
        lines = ["{:31} {:11} {:17} {}".format(*cells).rstrip() for cells in table]
        remedy = self.remedy(f"{shlex.quote(sys.executable)} -m pip")
        return "\n".join([*lines, self.verdict, *remedy]).rstrip()

    def _repr_html_(self) -> str:
        cell = '<td style="text-align: left">{}</td>'
        body = ""
        for row in self.rows:
            name, *cells = map(html.escape, row.cells)
            body += f'<tr><th scope="row" style="text-align: left">{name}</th>'
            body += "".join(cell.format(text) for text in cells) + "</tr>"
        head = "".join(f'<th scope="col" style="text-align: left">{text}</th>' for text in HEADS)
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        sentence, command = map(html.escape, self.remedy("%pip"))
        end = f"<p>{sentence}</p><pre>{command}</pre>" if command else ""
        state = " open" if self.urgent else ""
        summary = f"<summary><strong>{html.escape(self.verdict)}</strong></summary>"
        return f"<details{state}>{summary}{table}{end}</details>"


def is_hosted() -> bool:
    """Return whether this is Colab or Kaggle: their pages need the versions that they bring."""
    return "google.colab" in sys.modules or "KAGGLE_KERNEL_RUN_TYPE" in os.environ


def environment_report() -> EnvironmentReport:
    """Return a table of what is installed, what differs from the tested versions and what to do.

    It raises nothing, whatever is installed. All that it knows comes from the metadata of the
    installed course: the packages that it requires, their ranges, and the tested versions. On Colab
    and Kaggle, what only JupyterLab needs is left out.
    """
    for course in metadata.distributions(name=PACKAGE):  # an older build may come before it
        pins = course.read_text(TESTED)
        if pins:
            break
    else:
        return EnvironmentReport((Row(PACKAGE, "none", "", "missing"),))
    tested = dict(re.findall(r"^(\S+)==(\S+)", pins, re.MULTILINE))
    rows = {"Python": _python_row(course.metadata.get_all("Classifier"))}
    extras = (None, "lessons") if is_hosted() else (None, "lessons", "lab")
    for wanted in course.requires:  # as "tqdm<5,>=4.67.1" and "jupyterlab<5,>=4.5; extra == 'lab'"
        extra = re.search(r"extra == '(\w+)'", wanted)
        name = re.match(r"[\w.-]+", wanted).group()
        if name.replace("-", "_") == PACKAGE:  # it asks for its own extras, `lessons` and `lab`
            continue
        if (extra and extra.group(1)) in extras:
            row = _row(name, wanted, tested[name])
            if name not in rows or row.status in URGENT:  # two extras may name it
                rows[name] = row
    return EnvironmentReport(tuple(rows.values()))


def _python_row(classifiers: list[str]) -> Row:
    tested = re.findall(r"Python :: (3\.\d+)$", "\n".join(classifiers), re.MULTILINE)
    here = "{}.{}".format(*sys.version_info)
    status = "as tested" if here in tested else "not tested"
    return Row("Python", platform.python_version(), ", ".join(tested), status)


def _row(name: str, wanted: str, tested: str) -> Row:
    installed = "unknown"
    try:
        installed = metadata.version(name)
        if name in COMPILED:
            import_module(COMPILED[name])
        return Row(name, installed, tested, _status(installed, wanted, tested))
    except metadata.PackageNotFoundError:
        return Row(name, "none", tested, "not installed" if LAB in wanted else "missing")
    except Exception as error:  # whatever a broken library raises is what we report
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        return Row(name, installed or "unknown", tested, "broken", reason)


def _status(installed: str, wanted: str, tested: str) -> str:
    if installed.split("+")[0] == tested:  # 2.13.0+cpu is 2.13.0
        return "as tested"
    if Requirement is None:
        return "not tested"
    allowed = Requirement(wanted).specifier.contains(Version(installed), prereleases=True)
    return "not tested" if allowed else "not supported"


if __name__ == "__main__":
    report = environment_report()
    print(report)
    sys.exit(bool(report.urgent))
