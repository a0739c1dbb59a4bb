"""What a learner wrote and passed, collected: `my_transformer/` beside the notebooks.

One module a lesson, in the learner's own words. A function comes in when it passes its check, and
only if it passes as it stands there, without the notebook around it; one that passed before is
replaced by one that passes now, and by nothing else.
"""

import ast
import contextlib
import inspect
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from types import ModuleType

from filelock import FileLock

from transformer_lesson.exercises.engine.catalog import LESSONS
from transformer_lesson.exercises.engine.progress import progress_file
from transformer_lesson.exercises.engine.standalone import NotStandalone, Standalone, written_out
from transformer_lesson.exercises.engine.time_limit import LONGEST, TookTooLong, run_for_at_most
from transformer_lesson.files import rename_aside, write_atomically

FOLDER = "my_transformer"
PACKAGE = "_my_transformer"  # under which it is imported here, apart from the learner's own imports
CASTS = "from transformer_lesson.exercises import in_dtype_of_inputs"
MARK = re.compile(r"# %% (\w+)[ \t]*")
ABOUT = '''"""Lesson {lesson}, {title}: what you wrote and what passed its check.

Collected by `check`. You may read, change and import it; a function that passes again replaces the
one that stands here, below its own mark, and leaves the rest as it is.
"""
'''
LESSON_OF = {name: lesson for lesson, (_, *names) in LESSONS.items() for name in names}

FirstFailure = Callable[[str, Callable], str | None]


def collection_folder() -> Path | None:
    """Return where a learner's functions are kept: beside the progress; `None` if nowhere."""
    path = progress_file()
    return path and path.with_name(FOLDER)


def collect(name: str, answer: Callable, first_failure: FirstFailure, other_dtype: str = "") -> str:
    """Keep a function that passed its check, and return a sentence that says where or why not.

    Args:
        name: the exercise.
        answer: the function that passed.
        first_failure: what is wrong with a function, by the exercise's name; `None` if nothing.
        other_dtype: of its results, where that is not the inputs'; what is kept casts them, so
            that no later function fails by it.
    """
    folder = collection_folder()
    if folder is None:
        return ""
    path = _module_path(folder, name)
    try:
        with FileLock(folder.with_name(f".{FOLDER}.lock"), timeout=10):
            _set_aside_if_damaged(path)
            ours = _add_answer(path, name, answer, first_failure, bool(other_dtype))
    except NotStandalone as reason:
        return f"It passed but was not collected in `{FOLDER}`: {reason}."
    except (OSError, TimeoutError) as error:
        return f"It passed but was not collected in {path} ({error.strerror or error})."
    casts = (
        f" There its results, {other_dtype}, are cast to the inputs' dtype." if other_dtype else ""
    )
    return f"Your version is kept in `{FOLDER}/{path.name}`.{ours}{casts}"


def _add_answer(
    path: Path, name: str, answer: Callable, first_failure: FirstFailure, casts: bool
) -> str:
    """Write an answer into its module, and return a sentence on what of ours it goes on calling.

    It calls the learner's own functions where they have been collected. If it passes only with
    those of ours that it called in the notebook, it keeps them.
    """
    theirs = _imports_of_theirs(path, name) | _used_by_identity(path, answer)
    in_notebook = {
        one: answer.__globals__[one]
        for one in theirs.keys() & getattr(answer, "__globals__", {}).keys()
    }
    ours = sorted(one for one, value in in_notebook.items() if _is_ours(value))
    try:
        text = _with_answer(path, name, answer, theirs, casts)
        _check_alone(path, text, name, first_failure)
        sentence = ""
    except NotStandalone as reason:
        if not ours:
            raise
        others = {one: how for one, how in theirs.items() if one not in ours}
        text = _with_answer(path, name, answer, others, casts)
        _check_alone(path, text, name, first_failure)
        calls = ", ".join(f"`{one}`" for one in ours)
        sentence = f" It calls our {calls}, as in the notebook; with your own, {reason}."
    _write(path, text)
    return sentence


def _is_ours(value: object) -> bool:
    return str(getattr(value, "__module__", "")).startswith(f"{__package__.split('.')[0]}.")


def collected(folder: Path | None) -> dict[str, str]:
    """Return the names of all functions that were collected, each with its lesson, in order."""
    if folder is None or not folder.is_dir():
        return {}
    texts = [path.read_text(encoding="utf-8") for path in folder.glob("lesson_??.py")]
    names = {name for text in texts for name, _ in _sections(text)}
    return {name: lesson for name, lesson in LESSON_OF.items() if name in names}


def load_collected(folder: Path) -> tuple[dict[str, Callable], dict[str, str]]:
    """Return all collected functions by name, and why others could not be had.

    A module that was changed by hand may not run any more.
    """
    functions, broken = {}, {}
    names = collected(folder)
    for lesson in sorted(set(names.values())):
        mine = [name for name, home in names.items() if home == lesson]
        path = _module_path(folder, mine[0])
        try:
            found = run_for_at_most(LONGEST, lambda path=path: vars(_module(path)))
        except TookTooLong:
            broken |= dict.fromkeys(mine, f"the file did not end within {LONGEST:.0f} seconds")
        except Exception as error:  # whatever the learner's own lines raise
            broken |= dict.fromkeys(mine, f"{type(error).__name__}: {error}")
        else:
            functions |= {name: found[name] for name in mine if callable(found.get(name))}
            missing = [name for name in mine if name not in functions]
            broken |= {name: f"{path.name} defines no function `{name}`" for name in missing}
    return functions, broken


def _module_path(folder: Path, name: str) -> Path:
    return folder / f"lesson_{LESSON_OF[name]}.py"


def _imports_of_theirs(path: Path, name: str) -> dict[str, str]:
    """Return the other collected functions that an answer may call, each with its import."""
    lesson = LESSON_OF[name]
    return {
        other: "" if home == lesson else f"from .lesson_{home} import {other}"
        for other, home in collected(path.parent).items()
        if other != name and home <= lesson
    }


def _used_by_identity(path: Path, answer: Callable) -> dict[str, str]:
    """Return how an answer reaches collected functions that it knows by any name.

    They came into its notebook from the learner's files, whatever they are called there, and from
    a later lesson too: then they are imported when they are called, or two files would import each
    other.
    """
    found = {}
    for alias, value in getattr(answer, "__globals__", {}).items():
        package, _, module = str(getattr(value, "__module__", "")).rpartition(".")
        if package not in (PACKAGE, FOLDER) or not inspect.isfunction(value):
            continue
        name, here = value.__name__, module == path.stem
        if here and alias == name:
            found[alias] = ""
        elif not here and module < path.stem:
            renamed = "" if alias == name else f" as {alias}"
            found[alias] = f"from .{module} import {name}{renamed}"
        else:
            fetched = "" if here else f"    from .{module} import {name}\n\n"
            call = f"    return {name}(*arguments, **options)"
            found[alias] = f"def {alias}(*arguments, **options):\n{fetched}{call}"
    return found


def _with_answer(
    path: Path, name: str, answer: Callable, elsewhere: Mapping[str, str], casts: bool = False
) -> str:
    """Return a lesson's module with a function added, or put in its earlier version's place.

    What the learner wrote there stays: lines in the head, and sections of other names.
    """
    title, *order = LESSONS[LESSON_OF[name]]
    made = written_out(answer, name, elsewhere)
    if casts:
        made.imports.add(CASTS)
        made.lines.append(f"{name} = in_dtype_of_inputs({name})")
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    (_, head), *parts = _sections(text, "head")
    head = head.strip() or ABOUT.format(lesson=LESSON_OF[name], title=title).strip()
    parts = [(one, _without(name, part) if one in order else part) for one, part in parts]
    body = "\n\n\n".join(_grouped(made))
    names = [one for one, _ in parts]
    if name in names:
        parts[names.index(name)] = name, body
    else:
        later = [i for i, one in enumerate(names) if one in order[order.index(name) :]]
        parts.insert(later[0] if later else len(parts), (name, body))
    written = [f"# %% {one}\n{part.strip()}\n" for one, part in parts]
    return "\n\n".join([_with_imports(head, made.imports - {""}), *written])


def _sections(text: str, head: str = "") -> list[tuple[str, str]]:
    """Return a module's parts with their names; what stands before the first mark if it has one.

    A mark is a line `# %% name` at the left margin; within a statement, it is a comment. Of a
    module that Python cannot read, every such line counts.
    """
    lines, inside = text.splitlines(), set()
    with contextlib.suppress(SyntaxError, ValueError):
        for node in ast.parse(text).body:
            inside |= set(range(_first_line(node), node.end_lineno + 1))
    parts = [(head, [])]
    for number, line in enumerate(lines, 1):
        mark = MARK.fullmatch(line)
        if mark and number not in inside:
            parts.append((mark[1], []))
        else:
            parts[-1][1].append(line)
    return [(name, "\n".join(part)) for name, part in parts if name]


def _first_line(node: ast.stmt) -> int:
    return min(one.lineno for one in [node, *getattr(node, "decorator_list", [])])


def _with_imports(head: str, imports: Collection[str]) -> str:
    """Return the head of a module with these imports, in place of others of the same names."""
    lines, nodes = head.splitlines(), ast.parse(head).body
    known = [one for one in nodes if isinstance(one, ast.Import | ast.ImportFrom)]
    new = sorted(set(imports) - {ast.unparse(one) for one in known})
    bound = {_bound(ast.parse(one).body[0])[0] for one in new}
    for node in reversed(known):
        if len(node.names) == 1 and _bound(node)[0] in bound:
            del lines[node.lineno - 1 : node.end_lineno]
            nodes.remove(node)
    if not new:
        return head + "\n"
    last = max((i for i, one in enumerate(nodes) if one in known), default=None)
    if last is None:  # below the docstring
        return "\n".join([head, "", *new]) + "\n"
    at = nodes[last].end_lineno
    return "\n".join([*lines[:at], *new, *lines[at:]]) + "\n"


def _bound(node: ast.Import | ast.ImportFrom) -> list[str]:
    """Return the names that an import gives to a module."""
    return [(one.asname or one.name).partition(".")[0] for one in node.names]


def _set_aside_if_damaged(path: Path) -> None:
    """Rename a module that Python cannot read any more, with a warning."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    try:
        ast.parse(text)
    except (SyntaxError, ValueError) as error:
        kept = rename_aside(path, "damaged")
        warnings.warn(
            f"{FOLDER}/{path.name} could not be read ({error}). It is kept as {kept.name}; pass "
            "its other checks again, or repair it and give it its old name back.",
            stacklevel=2,
        )


def _without(name: str, section: str) -> str:
    """Return a section without the helper of this name, which gets a section of its own."""
    lines = section.splitlines()
    for node in reversed(ast.parse(section).body):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            del lines[_first_line(node) - 1 : node.end_lineno]
    return "\n".join(lines)


def _grouped(made: Standalone) -> Iterator[str]:
    """Yield the source's parts with constants that follow each other in one."""
    group = []
    for part in made.lines:
        if part.startswith(("def ", "@", "async ")):
            if group:
                yield "\n".join(group)
            group = []
            yield part
        else:
            group.append(part)
    if group:
        yield "\n".join(group)


def _module(path: Path, text: str | None = None) -> ModuleType:
    """Return a module of the folder as it is now, or what a text would be in its place."""
    for known in [one for one in sys.modules if one.split(".")[0] == PACKAGE]:
        del sys.modules[known]  # a lesson's functions may have been passed anew
    package = sys.modules[PACKAGE] = ModuleType(PACKAGE)
    package.__path__ = [str(path.parent)]
    module = ModuleType(f"{PACKAGE}.{path.stem}")
    module.__file__, module.__package__ = str(path), PACKAGE
    source = path.read_text(encoding="utf-8") if text is None else text
    exec(compile(source, path, "exec"), vars(module))
    return module


def _check_alone(path: Path, text: str, name: str, first_failure: FirstFailure) -> None:
    """Raise `NotStandalone` if an answer, or what stood beside it, does not pass any more."""
    failures = _failures(path, text, first_failure)
    if name in failures:
        first = failures[name].splitlines()[0].rstrip(".")
        raise NotStandalone(f"outside the notebook it does not pass ({first})")
    text_before = path.read_text(encoding="utf-8") if failures else ""
    try:
        before = _failures(path, text_before, first_failure)
    except NotStandalone:
        before = failures  # nothing there ran, which is not this answer's doing
    for other in failures.keys() - before.keys():
        first = failures[other].splitlines()[0].rstrip(".")
        raise NotStandalone(f"with it, `{other}` in the same file no longer passes ({first})")


def _failures(path: Path, text: str, first_failure: FirstFailure) -> dict[str, str]:
    """Return which exercises of a module do not pass where they stand, and why."""
    try:
        module = _module(path, text)
        names = [name for name, _ in _sections(text) if name in LESSON_OF]
        failures = {name: first_failure(name, vars(module).get(name)) for name in names}
    except Exception as error:  # the learner's code, which may raise anything
        what = f"{type(error).__name__}: {error}{_place(error, path)}"
        raise NotStandalone(f"outside the notebook it does not run ({what})") from error
    return {name: failure for name, failure in failures.items() if failure}


def _place(error: Exception, path: Path) -> str:
    """Return where in the folder something was raised, to be mended there."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [one for one in frames if Path(one.filename).parent == path.parent]
    return f", line {own[-1].lineno} of {FOLDER}/{Path(own[-1].filename).name}" if own else ""


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    (path.parent / "__init__.py").touch()
    write_atomically(path, text.encode())
