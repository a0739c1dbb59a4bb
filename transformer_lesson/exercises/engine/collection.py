"""The learner's passed functions, collected in `my_transformer/` beside the notebooks.

One module per lesson, in the learner's own code. A function is added when it passes its check, but
only if it also passes outside the notebook; it is replaced only by a later version that passes.
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

from transformer_lesson.course import LESSONS
from transformer_lesson.exercises.engine.catalog import LESSON_OF
from transformer_lesson.exercises.engine.progress import progress_file
from transformer_lesson.exercises.engine.standalone import NotStandalone, Standalone, written_out
from transformer_lesson.exercises.engine.time_limit import (
    ANSWER_SECONDS,
    TookTooLong,
    run_for_at_most,
)
from transformer_lesson.files import rename_aside, write_atomically

FOLDER = "my_transformer"
PACKAGE = "_my_transformer"  # its name when imported here, distinct from the learner's imports
CASTS = "from transformer_lesson.exercises import in_dtype_of_inputs"
MARK = re.compile(r"# %% (\w+)[ \t]*")
ABOUT = '''"""Lesson {lesson}, {title}: what you wrote and what passed its check.

Collected by `check`. You may read, change and import it; a function that passes again replaces the
one that stands here, below its own mark, and leaves the rest as it is.
"""
'''

FirstFailure = Callable[[str, Callable], str | None]


def collection_folder() -> Path | None:
    """Return the folder of a learner's functions, beside the progress file; `None` if not kept."""
    path = progress_file()
    return path and path.with_name(FOLDER)


def collect(name: str, answer: Callable, first_failure: FirstFailure, other_dtype: str = "") -> str:
    """Store a function that passed its check; return a sentence that says where, or why not.

    Args:
        name: the exercise.
        answer: the function that passed.
        first_failure: returns a function's first failure, given the exercise's name.
        other_dtype: the dtype of its results if not that of its inputs; the stored version casts
            them, so that later functions do not fail because of it.
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
    """Write an answer into its module; return a sentence on the functions of ours it still calls.

    It calls the learner's collected functions where there are any. If it passes only with those of
    ours that it called in the notebook, it keeps calling them.
    """
    theirs = _imports_of_theirs(path, name) | _used_by_identity(path, answer)
    in_notebook = {
        used: answer.__globals__[used]
        for used in theirs.keys() & getattr(answer, "__globals__", {}).keys()
    }
    ours = sorted(used for used, value in in_notebook.items() if _is_ours(value))
    try:
        text = _with_answer(path, name, answer, theirs, casts)
        _check_alone(path, text, name, first_failure)
        sentence = ""
    except NotStandalone as reason:
        if not ours:
            raise
        imports = {used: statement for used, statement in theirs.items() if used not in ours}
        text = _with_answer(path, name, answer, imports, casts)
        _check_alone(path, text, name, first_failure)
        calls = ", ".join(f"`{used}`" for used in ours)
        sentence = f" It calls our {calls}, as in the notebook; with your own, {reason}."
    _write(path, text)
    return sentence


def _is_ours(value: object) -> bool:
    return str(getattr(value, "__module__", "")).startswith(f"{__package__.split('.')[0]}.")


def collected(folder: Path | None) -> dict[str, str]:
    """Return the names of all collected functions, each with its lesson, in order."""
    if folder is None or not folder.is_dir():
        return {}
    texts = [path.read_text(encoding="utf-8") for path in folder.glob("lesson_??.py")]
    names = {name for text in texts for name, _ in _sections(text)}
    return {name: lesson for name, lesson in LESSON_OF.items() if name in names}


def load_collected(folder: Path) -> tuple[dict[str, Callable], dict[str, str]]:
    """Return all collected functions by name, and why others could not be loaded.

    A module edited by hand may no longer run.
    """
    functions, broken = {}, {}
    names = collected(folder)
    for lesson in sorted(set(names.values())):
        mine = [name for name, home in names.items() if home == lesson]
        path = _module_path(folder, mine[0])
        try:
            names_in = run_for_at_most(ANSWER_SECONDS, lambda path=path: vars(_module(path)))
        except TookTooLong:
            broken |= dict.fromkeys(
                mine, f"the file did not end within {ANSWER_SECONDS:.0f} seconds"
            )
        except Exception as error:  # the learner's code may raise anything
            broken |= dict.fromkeys(mine, f"{type(error).__name__}: {error}")
        else:
            functions |= {name: names_in[name] for name in mine if callable(names_in.get(name))}
            missing = [name for name in mine if name not in functions]
            broken |= {name: f"{path.name} defines no function `{name}`" for name in missing}
    return functions, broken


def add_collected(folder: Path, other: Path) -> list[str]:
    """Add the functions that another machine collected and this one lacks; return their names.

    None of them is run. A file that Python cannot parse adds nothing.
    """
    added = []
    for path in sorted(other.glob("lesson_??.py")):
        theirs, mine = path.read_text(encoding="utf-8"), folder / path.name
        folder.mkdir(exist_ok=True)
        with (
            FileLock(folder.with_name(f".{FOLDER}.lock"), timeout=10),
            contextlib.suppress(SyntaxError, ValueError),
        ):
            (_, their_head), *their_parts = _sections(theirs, "head")
            imports = [
                ast.unparse(statement)
                for statement in ast.parse(theirs).body
                if _is_import(statement)
            ]
            ours = mine.read_text(encoding="utf-8") if mine.exists() else their_head
            (_, head), *parts = _sections(ours, "head")
            new = [part for part in their_parts if part[0] not in dict(parts)]
            sections = [f"# %% {name}\n{part.strip()}\n" for name, part in [*parts, *new]]
            if new:
                _write(mine, "\n\n".join([_with_imports(head.strip(), imports), *sections]))
                added += [name for name, _ in new]
    return added


def _is_import(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)


def _module_path(folder: Path, name: str) -> Path:
    return folder / f"lesson_{LESSON_OF[name]}.py"


def _imports_of_theirs(path: Path, name: str) -> dict[str, str]:
    """Return the other collected functions that an answer may call, with their imports."""
    lesson = LESSON_OF[name]
    return {
        other: "" if home == lesson else f"from .lesson_{home} import {other}"
        for other, home in collected(path.parent).items()
        if other != name and home <= lesson
    }


def _used_by_identity(path: Path, answer: Callable) -> dict[str, str]:
    """Return statements that bind the collected functions an answer uses under any name.

    They came into the notebook from the learner's files, possibly renamed, possibly from a later
    lesson; those are imported at call time, to avoid circular imports.
    """
    statements = {}
    for alias, value in getattr(answer, "__globals__", {}).items():
        package, _, module = str(getattr(value, "__module__", "")).rpartition(".")
        if package not in (PACKAGE, FOLDER) or not inspect.isfunction(value):
            continue
        name, here = value.__name__, module == path.stem
        if here and alias == name:
            statements[alias] = ""
        elif not here and module < path.stem:
            renamed = "" if alias == name else f" as {alias}"
            statements[alias] = f"from .{module} import {name}{renamed}"
        else:
            fetched = "" if here else f"    from .{module} import {name}\n\n"
            call = f"    return {name}(*arguments, **options)"
            statements[alias] = f"def {alias}(*arguments, **options):\n{fetched}{call}"
    return statements


def _with_answer(
    path: Path, name: str, answer: Callable, elsewhere: Mapping[str, str], casts: bool = False
) -> str:
    """Return a lesson's module with a function added or replaced.

    The learner's own additions stay: lines in the head, and sections with other names.
    """
    lesson = LESSON_OF[name]
    order = [exercise for exercise, home in LESSON_OF.items() if home == lesson]
    standalone = written_out(answer, name, elsewhere)
    if casts:
        standalone.imports.add(CASTS)
        standalone.lines.append(f"{name} = in_dtype_of_inputs({name})")
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    (_, head), *parts = _sections(text, "head")
    head = head.strip() or ABOUT.format(lesson=lesson, title=LESSONS[lesson].title).strip()
    parts = [
        (part_of, _without(name, part) if part_of in order else part) for part_of, part in parts
    ]
    body = "\n\n\n".join(_grouped(standalone))
    names = [part_of for part_of, _ in parts]
    if name in names:
        parts[names.index(name)] = name, body
    else:
        later = [i for i, part_of in enumerate(names) if part_of in order[order.index(name) :]]
        parts.insert(later[0] if later else len(parts), (name, body))
    sections = [f"# %% {part_of}\n{part.strip()}\n" for part_of, part in parts]
    return "\n\n".join([_with_imports(head, standalone.imports - {""}), *sections])


def _sections(text: str, head: str = "") -> list[tuple[str, str]]:
    """Return a module's parts with their names; `head` names the part before the first mark.

    A mark is a line `# %% name` at the left margin; inside a statement it is a comment. In a module
    that Python cannot parse, every such line counts.
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
    return min(part.lineno for part in [node, *getattr(node, "decorator_list", [])])


def _with_imports(head: str, imports: Collection[str]) -> str:
    """Return a module's head with these imports, which replace others of the same names."""
    lines, nodes = head.splitlines(), ast.parse(head).body
    statements = [node for node in nodes if _is_import(node)]
    new = sorted(set(imports) - {ast.unparse(node) for node in statements})
    bound = {_bound(ast.parse(line).body[0])[0] for line in new}
    for node in reversed(statements):
        if len(node.names) == 1 and _bound(node)[0] in bound:
            del lines[node.lineno - 1 : node.end_lineno]
            nodes.remove(node)
    if not new:
        return head + "\n"
    last = max((i for i, node in enumerate(nodes) if node in statements), default=None)
    if last is None:  # below the docstring
        return "\n".join([head, "", *new]) + "\n"
    at = nodes[last].end_lineno
    return "\n".join([*lines[:at], *new, *lines[at:]]) + "\n"


def _bound(node: ast.Import | ast.ImportFrom) -> list[str]:
    """Return the names that an import binds."""
    return [(alias.asname or alias.name).partition(".")[0] for alias in node.names]


def _set_aside_if_damaged(path: Path) -> None:
    """Rename a module that Python can no longer parse, with a warning."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    try:
        ast.parse(text)
    except (SyntaxError, ValueError) as error:
        copy = rename_aside(path, "damaged")
        warnings.warn(
            f"{FOLDER}/{path.name} could not be read ({error}). It is kept as {copy.name}; pass "
            "its other checks again, or repair it and give it its old name back.",
            stacklevel=2,
        )


def _without(name: str, section: str) -> str:
    """Return a section without its helper of this name, which gets its own section."""
    lines = section.splitlines()
    for node in reversed(ast.parse(section).body):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            del lines[_first_line(node) - 1 : node.end_lineno]
    return "\n".join(lines)


def _grouped(standalone: Standalone) -> Iterator[str]:
    """Yield the parts of a source, consecutive constants as one."""
    group = []
    for part in standalone.lines:
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
    """Load a module of the folder as it is now, or with `text` in place of its source."""
    for module_name in [loaded for loaded in sys.modules if loaded.split(".")[0] == PACKAGE]:
        del sys.modules[module_name]  # other files may have changed
    package = sys.modules[PACKAGE] = ModuleType(PACKAGE)
    package.__path__ = [str(path.parent)]
    module = ModuleType(f"{PACKAGE}.{path.stem}")
    module.__file__, module.__package__ = str(path), PACKAGE
    source = path.read_text(encoding="utf-8") if text is None else text
    exec(compile(source, path, "exec"), vars(module))
    return module


def _check_alone(path: Path, text: str, name: str, first_failure: FirstFailure) -> None:
    """Raise `NotStandalone` if an answer, or another function in its file, no longer passes."""
    failures = _failures(path, text, first_failure)
    if name in failures:
        first = failures[name].splitlines()[0].rstrip(".")
        raise NotStandalone(f"outside the notebook it does not pass ({first})")
    text_before = path.read_text(encoding="utf-8") if failures else ""
    try:
        before = _failures(path, text_before, first_failure)
    except NotStandalone:
        before = failures  # nothing there ran even before this answer
    for other in failures.keys() - before.keys():
        first = failures[other].splitlines()[0].rstrip(".")
        raise NotStandalone(f"with it, `{other}` in the same file no longer passes ({first})")


def _failures(path: Path, text: str, first_failure: FirstFailure) -> dict[str, str]:
    """Return which functions of a module do not pass, and why."""
    try:
        module = _module(path, text)
        names = [name for name, _ in _sections(text) if name in LESSON_OF]
        failures = {name: first_failure(name, vars(module).get(name)) for name in names}
    except Exception as error:  # the learner's code, which may raise anything
        reason = f"{type(error).__name__}: {error}{_place(error, path)}"
        raise NotStandalone(f"outside the notebook it does not run ({reason})") from error
    return {name: failure for name, failure in failures.items() if failure}


def _place(error: Exception, path: Path) -> str:
    """Return where in the folder an error was raised, for the learner to fix."""
    frames = traceback.extract_tb(error.__traceback__)
    own_frames = [frame for frame in frames if Path(frame.filename).parent == path.parent]
    return (
        f", line {own_frames[-1].lineno} of {FOLDER}/{Path(own_frames[-1].filename).name}"
        if own_frames
        else ""
    )


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    (path.parent / "__init__.py").touch()
    write_atomically(path, text.encode())
