"""What a learner wrote and passed, collected: `my_transformer/` beside the notebooks.

One module a lesson, in the learner's own words. A function comes in when it passes its check, and
only if it passes as it stands there, without the notebook around it; one that passed before is
replaced by one that passes now, and by nothing else.
"""

import ast
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

from filelock import FileLock

from transformer_lesson.exercises.catalog import LESSONS
from transformer_lesson.exercises.progress import progress_file
from transformer_lesson.exercises.standalone import NotStandalone, Standalone, written_out
from transformer_lesson.files import write_atomically

FOLDER = "my_transformer"
PACKAGE = "_my_transformer"  # under which it is imported here, apart from the learner's own imports
SECTION = re.compile(r"^# %% (\w+)\n", re.MULTILINE)
ABOUT = '''"""Lesson {lesson}, {title}: what you wrote and what passed its check.

Collected by `check`. You may read, change and import it; a function that passes again replaces the
one that stands here.
"""
'''
LESSON_OF = {name: lesson for lesson, (_, *names) in LESSONS.items() for name in names}

FirstFailure = Callable[[str, Callable], str | None]


def collection_folder() -> Path | None:
    """Return where a learner's functions are kept: beside the progress; `None` if nowhere."""
    path = progress_file()
    return path and path.with_name(FOLDER)


def collect(name: str, answer: Callable, first_failure: FirstFailure) -> str:
    """Keep a function that passed its check, and return a sentence that says where or why not.

    Args:
        name: the exercise.
        answer: the function that passed.
        first_failure: what is wrong with a function, by the exercise's name; `None` if nothing.
    """
    folder = collection_folder()
    if folder is None:
        return ""
    path = _module_path(folder, name)
    try:
        with FileLock(folder.with_name(f".{FOLDER}.lock"), timeout=10):
            text = _with_answer(folder, name, answer)
            _check_alone(path, text, name, first_failure)
            _write(path, text)
    except NotStandalone as reason:
        return f"It passed but was not collected in `{FOLDER}`: {reason}."
    except (OSError, TimeoutError) as error:
        return f"It passed but was not collected in {path} ({error.strerror or error})."
    return f"Your version is kept in `{FOLDER}/{path.name}`."


def collected(folder: Path | None) -> dict[str, str]:
    """Return the names of all functions that were collected, each with its lesson, in order."""
    if folder is None or not folder.is_dir():
        return {}
    texts = [path.read_text(encoding="utf-8") for path in folder.glob("lesson_??.py")]
    names = {name for text in texts for name in SECTION.findall(text)}
    return {name: lesson for name, lesson in LESSON_OF.items() if name in names}


def load_collected(folder: Path) -> tuple[dict[str, Callable], dict[str, str]]:
    """Return all collected functions by name, and why others could not be had.

    A module that was changed by hand may not run any more.
    """
    functions, broken = {}, {}
    names = collected(folder)
    for lesson in sorted(set(names.values())):
        mine = [name for name, home in names.items() if home == lesson]
        try:
            found = vars(_module(_module_path(folder, mine[0])))
            functions |= {name: found[name] for name in mine}
        except Exception as error:  # whatever the learner's own lines raise
            broken |= dict.fromkeys(mine, f"{type(error).__name__}: {error}")
    return functions, broken


def _module_path(folder: Path, name: str) -> Path:
    return folder / f"lesson_{LESSON_OF[name]}.py"


def _with_answer(folder: Path, name: str, answer: Callable) -> str:
    """Return a lesson's module with a function added, or put in its earlier version's place."""
    lesson = LESSON_OF[name]
    imports, sections = _read(_module_path(folder, name))
    elsewhere = {
        other: "" if home == lesson else f"from .lesson_{home} import {other}"
        for other, home in collected(folder).items()
        if other != name and home <= lesson
    }
    made = written_out(answer, name, elsewhere)
    sections = {one: _without(name, section) for one, section in sections.items()}
    sections[name] = "\n\n\n".join(_grouped(made))
    title, *order = LESSONS[lesson]
    lines = sorted({*imports, *made.imports} - {""})
    head = "\n".join([ABOUT.format(lesson=lesson, title=title), *lines]).rstrip() + "\n"
    parts = [f"# %% {one}\n{sections[one].strip()}\n" for one in order if one in sections]
    return "\n\n".join([head, *parts])


def _read(path: Path) -> tuple[list[str], dict[str, str]]:
    """Return a module's import statements, and its parts by exercise.

    A module that Python cannot read any more is renamed, with a warning, and left as it is.
    """
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    before, *parts = SECTION.split(text)
    try:
        ast.parse(text)
        nodes = ast.parse(before).body
    except (SyntaxError, ValueError) as error:
        kept = _set_aside(path)
        warnings.warn(
            f"{FOLDER}/{path.name} could not be read ({error}). It is kept as {kept.name}; pass "
            "its other checks again, or mend it and give it its old name back.",
            stacklevel=2,
        )
        return [], {}
    imports = [ast.unparse(one) for one in nodes if isinstance(one, ast.Import | ast.ImportFrom)]
    return imports, dict(zip(parts[::2], parts[1::2], strict=True))


def _without(name: str, section: str) -> str:
    """Return a section without the helper of this name, which gets a section of its own."""
    lines = section.splitlines()
    for node in reversed(ast.parse(section).body):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            first = min([node, *node.decorator_list], key=lambda one: one.lineno).lineno
            del lines[first - 1 : node.end_lineno]
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


def _set_aside(path: Path) -> Path:
    """Rename a file so that nothing that was set aside before is overwritten."""
    number = 1
    while (kept := path.with_name(f"{path.stem}.damaged-{number}.py")).exists():
        number += 1
    return path.rename(kept)


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
    """Raise `NotStandalone` if a function of the module does not pass where it stands now."""
    try:
        module = _module(path, text)
        for one in SECTION.findall(text):
            failure = first_failure(one, vars(module)[one])
            if failure:
                which = "it" if one == name else f"`{one}`, which stands beside it,"
                first = failure.splitlines()[0].rstrip(".")
                raise NotStandalone(f"without the notebook {which} does not pass ({first})")
    except NotStandalone:
        raise
    except Exception as error:  # the learner's code, which may raise anything
        raise NotStandalone(
            f"without the notebook it does not run ({type(error).__name__}: {error})"
        ) from error


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    (path.parent / "__init__.py").touch()
    write_atomically(path, text.encode())
