"""Hints, solutions and ways to fail, folded: they open when the learner clicks, not before."""

import ast
import html
import inspect
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from transformer_lesson.exercises.engine.catalog import find
from transformer_lesson.exercises.engine.checks import first_failure, one_thread
from transformer_lesson.exercises.engine.choosing import variant
from transformer_lesson.exercises.engine.specification import Exercise
from transformer_lesson.exercises.engine.standalone import bare_source
from transformer_lesson.exercises.engine.wording import words

_hints_given: Counter[str] = Counter()


class Fold:
    """Text behind a summary line. JupyterLab and GitHub both render its Markdown.

    Args:
        summary: the line that is always shown, plain text.
        body: what opens, Markdown.
    """

    def __init__(self, summary: str, body: str):
        self.summary, self.body = summary, body

    def __repr__(self) -> str:
        return self.summary

    def _repr_markdown_(self) -> str:
        summary = html.escape(self.summary)
        return f"<details><summary>{summary}</summary>\n\n{self.body}\n\n</details>"


def hint(name: str) -> Fold:
    """Return the exercise's next hint; after the last one, the last one again.

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
    """Return the formula as code, ready to run in a cell: a plain solution, or the package's own.

    Docstrings, decorators and annotations are left out; the imports that it needs are added.

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
    """Return the solution of an exercise that stands in `solutions`, if there is one."""
    module = f"{exercise.marked.__module__.rpartition('.')[0]}.solutions"
    return find_spec(module) and vars(import_module(module)).get(exercise.name)


def ways_to_fail(name: str) -> Fold:
    """Return every wrong turn of an exercise: what it is, why it is wrong, its smallest example.

    For who has passed and wants to know what else there is.

    Raises:
        ValueError: there is no exercise of that name.
    """
    exercise = find(name)
    ways = []
    with one_thread():
        for turn, said in words(name).items():
            failure = first_failure(exercise, variant(exercise.marked, frozenset([turn])))
            about = f"{len(ways) + 1}. **{said.name}.** {said.why}"
            ways.append(f"{about}\n\n```text\n{failure}\n```")
    return Fold(f"{name}: {len(ways)} ways to fail", "\n\n".join(ways))


def solution_code(functions: list[Callable]) -> str:
    """Return the functions' sources behind the imports that they need."""
    functions = [inspect.unwrap(function) for function in functions]
    own = {function.__name__ for function in functions}
    needed = {}
    for function in functions:
        for name in free_names(function) & function.__globals__.keys() - own:
            value = function.__globals__[name]
            defined = getattr(value, "__name__", None) == name  # an object's module is its class's
            needed[name] = value if inspect.ismodule(value) or defined else function
    return "\n\n\n".join([*import_lines(needed), *map(bare_source, functions)])


def free_names(function: Callable) -> set[str]:
    """Return the names that a function uses and does not get as arguments."""
    nodes = list(ast.walk(ast.parse(bare_source(function))))
    arguments = {node.arg for node in nodes if isinstance(node, ast.arg)}
    return {node.id for node in nodes if isinstance(node, ast.Name)} - arguments


def import_line(module: str, names: list[str]) -> str:
    """Return the import of these names from a module, over several lines if one has no room."""
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= 100:
        return line
    return f"from {module} import (\n" + "".join(f"    {name},\n" for name in names) + ")"


def import_lines(needed: dict[str, ModuleType | Callable]) -> list[str]:
    """Return one text of imports of these names; none if there are none.

    Args:
        needed: by its name a module, or a function of the module that a name is imported from.
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
