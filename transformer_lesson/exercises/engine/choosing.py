"""Variants of a function: the right one, and one for each wrong turn in it.

    def attention_scores(Q, K):
        return Q @ K.mT / choose(math.sqrt(Q.size(-1)), unscaled=1.0, not_the_root=Q.size(-1))

`choose` marks a place where people go wrong. It is never called: the function is read as source,
and each mark becomes "this option if its name was taken, else the right way". So options are
expressions, only the chosen one runs, and marks may be nested. A name used at two marks is taken at
both. A long function may move a part, marks included, to another function of its module.
"""

import ast
import inspect
import textwrap
from collections.abc import Callable, Collection
from functools import cache, lru_cache
from types import CodeType, FunctionType

TAKEN = "__taken__"  # the global in which a variant finds its turns
RIGHT = "right at "  # prefix of the made-up names of other right ways


def choose(right, *also_right, **wrong):
    """Mark a decision: the right way, alternative right ways, and wrong turns by name."""
    raise RuntimeError("choose marks a place in an exercise's source; nothing calls it.")


def turns(marked: Callable) -> tuple[str, ...]:
    """Return the names of a marked function's wrong turns, in the order of its marks."""
    return tuple(name for name in _places(marked) if not name.startswith(RIGHT))


def right_ways(marked: Callable) -> tuple[str, ...]:
    """Return made-up names for the other right ways, in the order of the function's marks."""
    return tuple(name for name in _places(marked) if name.startswith(RIGHT))


def fit_together(marked: Callable, taken: Collection[str]) -> bool:
    """Return whether no two of these turns are at the same mark."""
    places = [_places(marked)[name] for name in taken]
    return len(set().union(*places)) == sum(map(len, places))


def variant(marked: Callable, taken: frozenset[str] = frozenset()) -> Callable:
    """Return a marked function with these turns taken; none gives the right function.

    Args:
        marked: a module-level function with marks.
        taken: names of wrong turns and of right ways.

    Raises:
        ValueError: a name that the function does not have.
    """
    unknown = taken - _places(marked).keys()
    if unknown:
        raise ValueError(f"{marked.__name__} has no turn {', '.join(sorted(unknown))}.")
    names = inspect.unwrap(marked).__globals__ | {TAKEN: taken}
    for part in parts(marked):
        names[part.__name__] = FunctionType(code(part), names, argdefs=part.__defaults__)
    return names[marked.__name__]


@lru_cache(maxsize=1000)
def as_written(marked: Callable, taken: frozenset[str] = frozenset()) -> str:
    """Return a variant's source and that of its parts, without any marks."""
    return "\n\n".join(ast.unparse(_Chooser(taken).visit(_tree(part))) for part in parts(marked))


@cache
def parts(marked: Callable) -> tuple[FunctionType, ...]:
    """Return a marked function and the functions with marks that it and they call."""
    functions = [inspect.unwrap(marked)]  # without the tests' annotation checks
    for function in functions:
        named = [function.__globals__.get(name) for name in function.__code__.co_names]
        called = [inspect.unwrap(callee) for callee in named if inspect.isfunction(callee)]
        ours = [callee for callee in called if callee.__module__ == function.__module__]
        marks = [callee for callee in ours if any(map(_is_mark, ast.walk(_tree(callee))))]
        functions += [callee for callee in marks if callee not in functions]
    return (*functions,)


@cache
def _written(function: Callable) -> tuple[str, int]:
    """Return a function's source and its first line number."""
    lines, first = inspect.getsourcelines(function)
    return textwrap.dedent("".join(lines)), first


def _tree(function: Callable) -> ast.Module:
    """Return a function's syntax tree, with the line numbers of its file."""
    source, first = _written(function)
    tree = ast.parse(source)
    tree.body[0].decorator_list = []
    return ast.increment_lineno(tree, first - 1)


def _is_mark(node: ast.AST) -> bool:
    named = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    return named and node.func.id == choose.__name__


@cache
def _places(marked: Callable) -> dict[str, set[int]]:
    """Return the name of every option, with the positions of its marks."""
    marks = [
        mark
        for part in parts(marked)
        for mark in sorted(filter(_is_mark, ast.walk(_tree(part))), key=_position)
    ]
    places = {}
    for number, mark in enumerate(marks):
        for name in _options(mark):
            places.setdefault(name, set()).add(number)
    return places


def _position(mark: ast.Call) -> tuple[int, int]:
    return mark.lineno, mark.col_offset


def _options(mark: ast.Call) -> dict[str, ast.expr]:
    """Return a mark's options by name."""
    line, column = _position(mark)
    ways = {f"{RIGHT}{line}:{column} ({i})": way for i, way in enumerate(mark.args[1:], 2)}
    return ways | {turn.arg: turn.value for turn in mark.keywords}


def _question(mark: ast.Call) -> ast.expr:
    """Return the expression that makes the choice at run time."""
    chosen = mark.args[0]
    for name, option in _options(mark).items():
        test = ast.parse(f"{name!r} in {TAKEN}", mode="eval").body
        chosen = ast.IfExp(test, option, chosen)
    return chosen


@cache
def code(function: Callable) -> CodeType:
    tree = ast.fix_missing_locations(_Writer().visit(_tree(function)))
    module_code = compile(tree, f"<{function.__name__}>", "exec")
    return next(part for part in module_code.co_consts if isinstance(part, CodeType))


class _Chooser(ast.NodeTransformer):
    """Replaces each mark by the option that was taken."""

    def __init__(self, taken: frozenset[str]):
        self.taken = taken

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Replace a mark; leave other calls."""
        if not _is_mark(node):
            return self.generic_visit(node)
        chosen = [way for name, way in _options(node).items() if name in self.taken]
        return self.visit(chosen[0] if chosen else node.args[0])


class _Writer(ast.NodeTransformer):
    """Replaces each mark by an expression that makes the choice at run time."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Replace a mark; leave other calls."""
        return self.visit(_question(node)) if _is_mark(node) else self.generic_visit(node)
