"""Help without the solution: cause, nudge, example, one hint and the heading to read again.

For helpers that should not spoil the exercise: an assistant, a feedback file. `help_with` turns a
report of any check into it. What a lesson says on request, folded, may show a line of the solution,
above all a last hint; here such a line is left out, whether its text or its syntax tree gives it
away.
"""

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from transformer_lesson.course import DEEPER, LESSONS
from transformer_lesson.exercises.engine.catalog import LESSON_OF, find
from transformer_lesson.exercises.engine.hints import plain_solution, solution_code
from transformer_lesson.exercises.engine.reports import Report

PACKAGE = Path(__file__).resolve().parents[2]
LEFT_OUT = "…"
ALL_LEFT_OUT = "it is a line of the solution, which only the lesson shows."
SHORTEST = 5  # tokens of a line that could give something away
TOKEN = re.compile(r"\w+|[^\w\s]")
SPAN = re.compile(r"`([^`]+)`")
HEADING = re.compile(r"^#{2,3} (?!Exercise)(.+)$", re.MULTILINE)


class Help(NamedTuple):
    """What may be said to a learner about one exercise; "" or `None` where there is nothing.

    Args:
        exercise: its name.
        status: the report's, such as "failed".
        cause: the mistake's name, if it is a known one.
        why: what is wrong, and a nudge.
        example: how the check failed, with the smallest failing example.
        hint: one of the exercise's hints.
        heading: where the lesson explains what the exercise needs.
        notebook: that lesson's file, as in "03_attention.ipynb".
    """

    exercise: str
    status: str
    cause: str | None
    why: str
    example: str
    hint: str
    heading: str
    notebook: str


def help_with(report: Report, number: int = 1) -> Help:
    """Return the help that goes with a report.

    Args:
        report: on an exercise, from any check.
        number: which hint to give, from 1; after the last one, that again.

    Raises:
        ValueError: there is no exercise of that name, or no such hint.
    """
    name, heading = report.name, heading_of(report.name)
    if report.status in ("passed", "imported"):
        return Help(name, report.status, None, "", "", "", *heading)
    example = report.message.removeprefix(report.nudge).lstrip("\n")
    texts = [without_solution(name, text) for text in (report.nudge, example)]
    return Help(name, report.status, report.mistake, *texts, hint_of(name, number), *heading)


def hint_of(name: str, number: int) -> str:
    """Return a hint, such as "Hint 2 of 3: …", without what is in the solution.

    Raises:
        ValueError: there is no exercise of that name, or the number is below 1.
    """
    if number < 1:
        raise ValueError(f"There is no hint {number}: the first is 1.")
    hints = find(name).hints
    number = min(number, len(hints))
    text = without_solution(name, hints[number - 1])
    if not re.search(r"\w", text):
        text = ALL_LEFT_OUT
    return f"Hint {number} of {len(hints)}: {text}"


def heading_of(name: str) -> tuple[str, str]:
    """Return the last heading before an exercise, and its notebook; "" if that is not here.

    Raises:
        ValueError: there is no exercise of that name.
    """
    lesson = LESSON_OF[find(name).name]
    deeper = [notebook.file for notebook in DEEPER.values() if name in notebook.exercises]
    file = (*deeper, LESSONS[lesson].file)[0]
    return _heading(name, file), file


@cache
def _heading(name: str, file: str) -> str:
    # an installed package has the notebooks inside, a checkout beside it
    path = PACKAGE / "notebooks" / file
    path = path if path.exists() else PACKAGE.parent / "notebooks" / file
    heading = ""
    for cell in json.loads(path.read_text("utf-8"))["cells"] if path.exists() else ():
        source = "".join(cell["source"])
        if "exercise" in cell["metadata"].get("tags", ()) and source.startswith(f"def {name}("):
            return heading
        if cell["cell_type"] == "markdown":
            heading = (HEADING.findall(source) or [heading])[-1]
    return ""


def without_solution(name: str, text: str) -> str:
    """Return a text with "…" in place of every line, or right side, of an exercise's solution."""
    lines, trees = _of_solution(name)
    text = SPAN.sub(lambda span: f"`{LEFT_OUT}`" if trees & _trees(span[1]) else span[0], text)
    return lines.sub(LEFT_OUT, text)


@cache
def _of_solution(name: str) -> tuple[re.Pattern, frozenset[str]]:
    """Return what finds the text of a solution's lines, and their trees."""
    exercise = find(name)
    codes = [solution_code([*exercise.load_helpers(), exercise.load_reference()])]
    if plain := plain_solution(exercise):
        codes.append(solution_code([plain]))
    trees = frozenset().union(*map(_trees, codes))
    lines = {line.partition("  #")[0].strip() for code in codes for line in code.splitlines()}
    texts = {line for line in lines if not re.match(r"def |import |from |return [\w, ]+$", line)}
    texts |= {ast.unparse(node) for code in codes for node in _telling(ast.parse(code))}
    tokens = [TOKEN.findall(text) for text in sorted(texts, key=len, reverse=True)]
    patterns = [r"\s*".join(map(re.escape, line)) for line in tokens if len(line) >= SHORTEST]
    return re.compile("|".join(patterns)), trees


def _trees(code: str) -> frozenset[str]:
    """Return the trees of what code does, line by line; none if it is no Python."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError):
        return frozenset()
    return frozenset(map(ast.dump, _telling(tree)))


def _telling(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the simple statements and what they assign or return, unless that is trivial."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AugAssign | ast.Return | ast.Expr | ast.Assert):
            value = node.test if isinstance(node, ast.Assert) else node.value
            names = isinstance(value, ast.Tuple) and all(
                isinstance(x, ast.Name) for x in value.elts
            )
            for part in (node, value) if value is not None and not names else ():
                if len(TOKEN.findall(ast.unparse(part))) >= SHORTEST:
                    yield part.value if isinstance(part, ast.Expr) else part
