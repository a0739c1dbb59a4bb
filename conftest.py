"""Settings of every test run, made before torch and the package are imported."""

import gc
import os
import re
import sys
import tempfile
from functools import cache
from pathlib import Path

# Workers with several torch threads each fight over the cores; kernels inherit this.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("JUPYTER_PREFER_ENV_PATH", "1")

# PyTorch 2.13 runs what it compiled for one instruction set on another, with wrong numbers.
if capability := os.environ.get("ATEN_CPU_CAPABILITY"):
    compiled = Path(tempfile.gettempdir()) / f"torchinductor-{capability}"
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(compiled))

if os.environ.get("TRANSFORMER_LESSON_NOISE"):  # see tests/noise/noise.py
    folder = str(Path(__file__).with_name("tests") / "noise")
    folders = [folder, *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(folders)  # for kernels and subprocesses
    sys.path.insert(0, folder)
    import noise

    sys.meta_path.insert(0, noise.AfterTorch())

import jaxtyping  # noqa: E402
import nbformat  # noqa: E402
import pytest  # noqa: E402
from nbval.plugin import IPyNbCell, IPyNbFile  # noqa: E402

from tests import type_checking  # noqa: E402
from tests.cells import is_slow, without_slow_cells  # noqa: E402
from tests.real_weights import closing_lines, skip_without_weights  # noqa: E402
from tools.lesson_files import NOTEBOOKS, lesson_files  # noqa: E402

# From here on every shape in a signature is checked on every call. Most of `exercises` is left out:
# a diagnosis calls small functions without shapes so often that checking takes 15 times as long.
PACKAGE = Path(__file__).with_name("transformer_lesson")
UNCHECKED = ("exercises", "solutions", "faulty", "repaired", "sick_runs", "probes", "symptoms")
ROOMS = [path for path in PACKAGE.iterdir() if path.stem not in ("exercises", "lessons")]
OF_LESSONS = [path for path in PACKAGE.glob("lessons/lesson_*/*.py") if path.stem not in UNCHECKED]
MODULES = [
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in ROOMS + OF_LESSONS
]
jaxtyping.install_import_hook(MODULES, f"{type_checking.__name__}.checked")


def pytest_ignore_collect(collection_path):
    """Of what lies in `notebooks/`, the lessons and what may follow them are tests."""
    is_there = NOTEBOOKS in collection_path.parents and collection_path.is_file()
    return True if is_there and collection_path not in LESSONS else None


def pytest_itemcollected(item):
    """What opens a page or runs a lesson is slow.

    Solved lessons and what may follow a lesson take minutes more.
    """
    if item.path.suffix == ".ipynb" or item.get_closest_marker("browser"):
        item.add_marker("slow")
    behind = item.path.parent.name == "deeper" and not item.config.getoption("--lesson")
    if item.name == "solved" or behind:
        item.add_marker("everything")


gc.disable()  # until all tests are collected: what is loaded for them stays


def pytest_collection_finish():
    """From here on garbage is collected, but nowhere in what was loaded: to look takes a second."""
    gc.freeze()
    gc.enable()


LESSONS = set(lesson_files())
LEARNERS = tempfile.TemporaryDirectory()  # gone when the tests are


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    """A lesson's kernel starts with nobody's progress: no learner's, and no other lesson's."""
    with pytest.MonkeyPatch.context() as patch:
        if item.path.suffix == ".ipynb":
            if isinstance(item, IPyNbCell):
                skip_without_weights(item.cell.source, item.cell.metadata.get("tags", ()))
            folder = Path(LEARNERS.name, item.path.stem)
            folder.mkdir(exist_ok=True)
            patch.setenv("TRANSFORMER_LESSON_PROGRESS", str(folder / "my_progress.json"))
        return (yield)


@cache
def after_training(path: Path) -> frozenset[str]:
    """Return which of a lesson's cells need a slow one, and are not slow themselves."""
    taken = without_slow_cells(nbformat.read(path, as_version=4))
    return frozenset(cell.id for cell in taken if not is_slow(cell))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Run again, as learners do, the cells that the solved lesson leaves out."""
    yield
    if isinstance(item, IPyNbCell) and item.cell.id in after_training(item.path):
        item.runtest()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """After a lesson's cells comes the lesson solved, in the same kernel."""
    report = yield
    if isinstance(collector, IPyNbFile) and report.passed:
        from tests.solved import SolvedLesson  # the whole package: a test of masks can do without

        report.result.append(SolvedLesson.from_parent(collector, name="solved"))
    return report


def pytest_addoption(parser):
    parser.addoption("--lesson", help="only what this lesson can break: its number, such as 13")


@cache
def names_of(lesson: str) -> frozenset[str]:
    """Return the names of a lesson's exercises and explorables."""
    folder = PACKAGE / "lessons" / f"lesson_{lesson}"
    if not folder.is_dir():
        raise pytest.UsageError(f"There is no lesson {lesson!r}: give two digits, as in LESSON=03.")
    source = (folder / "exercises.py").read_text(encoding="utf-8")
    classes = (path.stem.title().replace("_", "") for path in folder.glob("*.js"))
    return frozenset([*re.findall(r"^def ([a-z]\w+)", source, re.M), *classes])


def is_of(lesson: str, item) -> bool:
    """Whether a test is about a lesson, by its file or by what it is parametrized with."""
    names = names_of(lesson)
    if item.path.parent.name == f"lesson_{lesson}" or item.path.name.startswith(f"{lesson}_"):
        return True
    words = item.callspec.id.split("-") if hasattr(item, "callspec") else []
    return any(one in names or re.match(rf"{lesson}([._/]|$)", one) for one in words)


def pytest_collection_modifyitems(config, items):
    """Begin with what is slow, whole courses first, so that the workers end together."""
    if lesson := config.getoption("--lesson"):
        config.hook.pytest_deselected(items=[item for item in items if not is_of(lesson, item)])
        items[:] = [item for item in items if is_of(lesson, item)]

    def place(item):
        slow = item.get_closest_marker("slow") is not None
        return not slow, slow and item.path.parent.name != "course"

    items.sort(key=place)


def pytest_terminal_summary(terminalreporter):
    for line in closing_lines(terminalreporter.stats.get("skipped", ())):
        terminalreporter.write_line(line)
