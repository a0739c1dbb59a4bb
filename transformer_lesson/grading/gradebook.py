"""The table that Canvas or Moodle imports, made of the gradebook that it exported.

Canvas ("How do I import grades in the Gradebook?" in its instructor guide): the columns Student,
ID, SIS User ID, SIS Login ID and Section as exported, a row "Points Possible", and one column for
each assignment, an existing one under its exported name, which ends in its number. Moodle ("Grade
import" on docs.moodle.org): the columns that identify a user, and for each activity its grade and
its feedback. "If both columns are not included then all grades for that activity will be lost."

A student's points for a lesson are the exercises that passed. If one is imported, or if two
notebooks of a lesson were handed in, that decision is the teacher's. Where there is nothing to
write, a cell keeps what the platform exported. So do names: a platform may recognize a student by
one that a spreadsheet would run as a formula.
"""

import csv
import io
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from math import inf
from pathlib import Path
from typing import NamedTuple

from transformer_lesson.exercises.boss import BUGS, planted_bugs
from transformer_lesson.exercises.engine.catalog import DEEPER, LESSONS
from transformer_lesson.files import write_atomically
from transformer_lesson.grading.folder import HUNT, Row, plain

CANVAS = (
    "Student",
    "ID",
    "SIS User ID",
    "SIS Login ID",
    "Integration ID",
    "Root Account",
    "Section",
)
MOODLE = ("First name", "Last name", "Surname", "ID number", "Username", "Email address")
NUMBERED = re.compile(r"(?P<name>.+)_(?P<number>\d+)")  # as both name what was handed in
POSSIBLE = "Points Possible"


class Unusable(Exception):
    """The file is not an exported gradebook; the text says what to export."""


class Roster(NamedTuple):
    """An exported gradebook: its rows by column, and how it was written."""

    canvas: bool
    columns: list[str]
    rows: list[dict[str, str]]
    separator: str
    encoding: str


class Result(NamedTuple):
    """A student's points for a lesson, and how they came about."""

    points: int
    words: str


Graded = dict[tuple[str, str], Result]
"""By student and lesson."""


def read_roster(path: Path) -> Roster:
    """Return the gradebook that Moodle or Canvas exported.

    Raises:
        Unusable: it is none.
    """
    try:
        content = path.read_bytes()
        text = content.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise Unusable(f"{path} cannot be read as UTF-8: export the gradebook again.") from error
    encoding = "utf-8-sig" if content.startswith(b"\xef\xbb\xbf") else "utf-8"
    for separator in ",;\t:":
        header, *lines = [*csv.reader(io.StringIO(text, newline=""), delimiter=separator)] or [[]]
        canvas = {"Student", "ID", "Section"} <= set(header)
        if canvas or {"First name", "Email address"} <= set(header):
            twice = [name for name, count in Counter(header).items() if name and count > 1]
            if twice:
                raise Unusable(f"{path} has two columns {twice[0]!r}: keep one of them.")
            blank = [""] * len(header)
            rows = [dict(zip(header, [*line, *blank], strict=False)) for line in lines if line]
            return Roster(canvas, header, rows, separator, encoding)
    raise Unusable(
        f"{path} is no gradebook of Canvas or Moodle: export it there, in English, as CSV or plain "
        "text."
    )


def write_gradebook(graded: list[Row], roster: Roster, folder: Path) -> Iterator[str]:
    """Write canvas.csv or moodle.csv; yield its path, and a sentence for whatever is not in it.

    Raises:
        Unusable: two columns of the gradebook may be meant for one lesson.
    """
    results, undecided = _results(graded)
    students = {student for student, _ in (*results, *undecided)}
    lessons = sorted({lesson for _, lesson in (*results, *undecided) if lesson})
    of_row, unmatched = _matched(sorted(students), roster)
    results_of_row = {
        row: {lesson: results.get((who, lesson)) for lesson in lessons}
        for row, who in of_row.items()
    }
    name, table = ("canvas", _canvas) if roster.canvas else ("moodle", _moodle)
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=roster.separator).writerows(table(roster, lessons, results_of_row))
    write_atomically(folder / f"{name}.csv", text.getvalue().encode(roster.encoding))
    yield f"{folder / name}.csv: {len(of_row)} of {len(students)} students are in the gradebook."
    yield from (f"{plain(who)} is left out: {why}." for who, why in unmatched.items())
    for (who, lesson), why in undecided.items():
        yield f"{plain(who)}, {_label(lesson)}: no points, since {why}."


def _results(graded: list[Row]) -> tuple[Graded, dict[tuple[str, str], str]]:
    """Return everybody's results, and for the other notebooks why there is none."""
    of_lesson, results, undecided = defaultdict(list), {}, {}
    for row in graded:
        lesson = "hunt" if HUNT.fullmatch(row.lesson) else row.lesson
        if row.report.name or not lesson:
            of_lesson[row.submission.student, lesson].append(row)
    for key, rows in of_lesson.items():
        imported = [row.report.name for row in rows if row.report.status == "imported"]
        if not key[1]:
            undecided[key] = "it is no notebook of a lesson that can be read"
        elif len({row.submission.path for row in rows}) > 1:
            undecided[key] = "there are several notebooks of it"
        elif imported:
            undecided[key] = f"you decide what an imported {imported[0]} is worth"
        else:
            results[key] = _result(rows)
    return results, undecided


def _result(rows: list[Row]) -> Result:
    hunt = HUNT.fullmatch(rows[0].lesson)
    count = {name for name, _ in planted_bugs(int(hunt[1]))} if hunt else None
    points = sum(r.report.status == "passed" for r in rows if not hunt or r.report.name in count)
    words = "; ".join(f"{row.report.name}: {row.report.status}" for row in rows)
    return Result(points, f"{points} of {_possible('hunt' if hunt else rows[0].lesson)}. {words}")


def _possible(lesson: str) -> int:
    return BUGS if lesson == "hunt" else len((LESSONS | DEEPER)[lesson]) - 1


def _label(lesson: str) -> str:
    """Return a lesson's column: how it begins is how an exported one is recognized."""
    if lesson in ("hunt", ""):
        return "Bug hunt" if lesson else "a file"
    kind = "Lesson" if lesson in LESSONS else "Behind lesson"
    return f"{kind} {lesson[:2]} {(LESSONS | DEEPER)[lesson][0]}"


def _exported(lesson: str, roster: Roster, ending: str) -> str | None:
    """Return the exported column of a lesson; `None` if there is none.

    Raises:
        Unusable: there are two.
    """
    start = f"Lesson {lesson}" if lesson in LESSONS else _label(lesson)
    pattern = re.compile(rf"([^:]+: )?{re.escape(start)}(?!\w).*{ending}", re.IGNORECASE)
    columns = [name for name in roster.columns if pattern.fullmatch(name)]
    if len(columns) > 1:
        raise Unusable(
            f"Is {start} {columns[0]!r} or {columns[1]!r}? Remove one from the gradebook."
        )
    return columns[0] if columns else None


def _canvas(roster: Roster, lessons: list[str], results_of_row: dict) -> list[list[str]]:
    """Return Canvas's table."""
    rows, copied = list(roster.rows), [name for name in roster.columns if name in CANVAS]
    if not any(row["Student"].strip() == POSSIBLE for row in rows):
        rows.append({"Student": f"    {POSSIBLE}"})
    possible = next(row for row in rows if row["Student"].strip() == POSSIBLE)
    columns = {lesson: _exported(lesson, roster, r"\(\d+\)") for lesson in lessons}
    table = [[*copied, *(columns[lesson] or _label(lesson) for lesson in lessons)]]
    for number, row in enumerate(rows):
        cells = [row.get(name, "") for name in copied]
        for lesson, column in columns.items():
            cell, result = row.get(column, ""), results_of_row.get(number, {}).get(lesson)
            if row is possible and not column:
                cell = str(_possible(lesson))
            elif result:
                cell = _scaled(result.points, _possible(lesson), possible.get(column, ""))
            cells.append(cell)
        table.append(cells)
    return table


def _scaled(points: int, possible: int, exported: str) -> str:
    """Return points in the units of the exported column."""
    try:
        scale = float(exported) / possible
    except ValueError:  # "(read only)", or a new column
        scale = 1.0
    return f"{round(points * (scale if 0 < scale < inf else 1.0), 2):g}"


def _moodle(roster: Roster, lessons: list[str], results_of_row: dict) -> list[list[str]]:
    """Return Moodle's table, with the students who have points: a grade imported is final there."""
    copied = [name for name in roster.columns if name in MOODLE]
    columns = {lesson: _exported(lesson, roster, r"\(Real\)") for lesson in lessons}
    grades = {lesson: column or f"{_label(lesson)} (Real)" for lesson, column in columns.items()}
    pairs = {lesson: (column, f"{column[:-6]}(Feedback)") for lesson, column in grades.items()}
    table = [[*copied, *(name for pair in pairs.values() for name in pair)]]
    for number, results in sorted(results_of_row.items()):
        row = roster.rows[number]
        cells = [row[name] for name in copied]
        for lesson, pair in pairs.items():
            result = results[lesson]
            exported = [row.get(name, "") for name in pair]
            cells += [str(result.points), plain(result.words)] if result else exported
        if any(results.values()):
            table.append(cells)
    return table


def _matched(students: list[str], roster: Roster) -> tuple[dict[int, str], dict[str, str]]:
    """Return whose row each row is, and why the other students have none."""
    of_row, unmatched = defaultdict(list), {}
    for student in students:
        fitting = [i for i, row in enumerate(roster.rows) if _fits(student, row, roster.canvas)]
        if len(fitting) == 1:
            of_row[fitting[0]].append(student)
        else:
            who = "several people fit" if fitting else "nobody in the gradebook has"
            unmatched[student] = f"{who} this name"
    for several in of_row.values():
        if len(several) > 1:
            reason = f"{' and '.join(map(plain, several))} fit the same row"
            unmatched |= dict.fromkeys(several, reason)
    return {row: student for row, (student, *more) in of_row.items() if not more}, unmatched


def _fits(student: str, row: Mapping[str, str], canvas: bool) -> bool:
    """Return whether a row is this student's, by whole names, logins, addresses or numbers.

    Behind a name, the number is what the platform added. Canvas has it in the row, too.
    """
    if canvas:
        last, _, first = row["Student"].partition(",")
        logins = [row["ID"], row.get("SIS User ID", ""), row.get("SIS Login ID", "")]
        if not row["ID"]:  # not a student: "Points Possible"
            return False
    else:
        first, last = row["First name"], row.get("Last name", "") + row.get("Surname", "")
        logins = [row.get(name, "") for name in ("ID number", "Username", "Email address")]
    names = [f"{first} {last}", f"{last} {first}"]
    known = {
        _key(text) for text in (*names, *logins, *(login.partition("@")[0] for login in logins))
    }
    if _key(student) in known - {""}:
        return True
    parsed = NUMBERED.fullmatch(student)
    if parsed and canvas:  # its names are in plain letters
        plainly = {fold(name) for name in names for fold in (_folded, _without)}
        return parsed["number"] == row["ID"] and _key(parsed["name"]) in {
            *map(_key, names),
            *plainly,
        }
    return bool(parsed) and _key(parsed["name"]) in {*map(_key, names)} - {""}


def _key(text: str) -> str:
    """Return letters, marks and digits alone, in small letters."""
    normal = unicodedata.normalize("NFC", text.casefold())
    return "".join(c for c in normal if unicodedata.category(c)[0] in "LMN")


def _folded(text: str) -> str:
    """Return the key with accents taken off: "muller" of "Müller"."""
    return _without(unicodedata.normalize("NFKD", text))


def _without(text: str) -> str:
    """Return the key without letters beyond ASCII: "mller" of "Müller"."""
    return _key("".join(c for c in text if c.isascii()))
