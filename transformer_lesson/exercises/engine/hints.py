"""Hints, solutions and ways to fail, folded until the learner clicks."""

import ast
import html
import inspect
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from transformer_lesson.exercises.engine.catalog import find
from transformer_lesson.exercises.engine.checks import one_thread, run_checks
from transformer_lesson.exercises.engine.choosing import variant
from transformer_lesson.exercises.engine.specification import Exercise
from transformer_lesson.exercises.engine.standalone import bare_source
from transformer_lesson.exercises.engine.wording import words

_hints_given: Counter[str] = Counter()


class Fold:
    """Text behind a summary line. JupyterLab and GitHub both render its Markdown.

    Args:
        summary: the line that is always shown, plain text.
        body: the folded part, Markdown.
    """

    def __init__(self, summary: str, body: str):
        self.summary, self.body = summary, body

    def __repr__(self) -> str:
        return self.summary

    def _repr_markdown_(self) -> str:
        summary = html.escape(self.summary)
        return f"<details><summary>{summary}</summary>\n\n{self.body}\n\n</details>"


def hint(name: str) -> Fold:
    """Return the exercise's next hint; after the last one, repeat it.

    Raises:
        ValueError: there is no exercise of that name.
    """
    hints = find(name).hints
    number = min(_hints_given[name] + 1, len(hints))
    _hints_given[name] = number
    after = "Run the cell again for the next hint."
    if number == len(hints):
        after = f'This was the last hint. `solution("{name}")` shows the code.'
    return Fold(f"{name}: hint {number} of {len(hints)}", f"{hints[number - 1]}\n\n{after}")


def solution(name: str) -> Fold:
    """Return the solution as code, ready to run in a cell: a plain one, or the package's own.

    Docstrings, decorators and annotations are left out; the necessary imports are added.

    Raises:
        ValueError: there is no exercise of that name.
    """
    exercise = find(name)
    module, plain = exercise.reference.split(":")[0], plain_solution(exercise)
    if plain is None:
        code = solution_code([*exercise.load_helpers(), exercise.load_reference()])
        return Fold(f"{name}: solution", f"From `{module}`:\n\n```python\n{code}\n```")
    more = f"The package's own, in `{module}`, also says when its arguments are wrong."
    code = solution_code([plain])
    return Fold(f"{name}: solution", f"```python\n{code}\n```\n\n{more}")


def plain_solution(exercise: Exercise) -> Callable | None:
    """Return the exercise's solution in the lesson's `solutions`, if there is one."""
    module = f"{exercise.marked.__module__.rpartition('.')[0]}.solutions"
    return find_spec(module) and vars(import_module(module)).get(exercise.name)


def ways_to_fail(name: str) -> Fold:
    """Return every wrong turn of an exercise: what it is, why it is wrong, its smallest example.

    For those who have passed and want to know what else can go wrong.

    Raises:
        ValueError: there is no exercise of that name.
    """
    exercise = find(name)
    ways = []
    with one_thread():
        for turn, wording in words(name).items():
            failure = run_checks(exercise, variant(exercise.marked, frozenset([turn])))
            about = f"{len(ways) + 1}. **{wording.name}.** {wording.why}"
            ways.append(f"{about}\n\n```text\n{failure}\n```")
    return Fold(f"{name}: {len(ways)} ways to fail", "\n\n".join(ways))


def solution_code(functions: list[Callable]) -> str:
    """Return the functions' sources, preceded by the imports they need."""
    functions = [inspect.unwrap(function) for function in functions]
    own_names = {function.__name__ for function in functions}
    needed = {}
    for function in functions:
        for name in free_names(function) & function.__globals__.keys() - own_names:
            value = function.__globals__[name]
            defined = getattr(value, "__name__", None) == name  # else it is its class's
            needed[name] = value if inspect.ismodule(value) or defined else function
    return "\n\n\n".join([*import_lines(needed), *map(bare_source, functions)])


def free_names(function: Callable) -> set[str]:
    """Return the names that a function uses and that are not its own."""
    nodes = list(ast.walk(ast.parse(bare_source(function))))
    arguments = {node.arg for node in nodes if isinstance(node, ast.arg)}
    return {node.id for node in nodes if isinstance(node, ast.Name)} - arguments


def import_line(module: str, names: list[str]) -> str:
    """Return the import of these names from a module, on several lines if one is too short."""
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= 100:
        return line
    return f"from {module} import (\n" + "".join(f"    {name},\n" for name in names) + ")"


def import_lines(needed: dict[str, ModuleType | Callable]) -> list[str]:
    """Return the import lines for these names; "" if there are none.

    Args:
        needed: by name, the module, or a function of the module to import the name from.
    """
    modules, functions = [], {}
    for name, value in sorted(needed.items()):
        if inspect.ismodule(value):
            alias = "" if value.__name__ == name else f" as {name}"
            modules.append(f"import {value.__name__}{alias}")
        else:
            functions.setdefault(value.__module__, []).append(name)
    lines = [import_line(module, names) for module, names in functions.items()]
    return ["\n".join(modules + lines)] if needed else []
