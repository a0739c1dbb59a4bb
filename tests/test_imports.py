"""The package's form: which room may import which, how long functions are, what an import costs."""

import ast
import subprocess
import sys
import tomllib
from importlib import metadata

import importlinter.cli
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.stored_lessons import ROOT, read

PACKAGE = ROOT / "transformer_lesson"
PROJECT = tomllib.loads(read("pyproject.toml"))["project"]
BUILD = tomllib.loads(read("pyproject.toml"))["build-system"]
*CORE_NEEDS, _ = PROJECT["dependencies"]  # the last is the course itself, with its extras
MODULES = sorted(PACKAGE.rglob("*.py"))


def test_imports_run_one_way():
    """The rooms' order stands in pyproject.toml, as a contract of import-linter."""
    contracts = str(PACKAGE.parent / "pyproject.toml")
    assert importlinter.cli.lint_imports(config_filename=contracts) == 0


def code_lines(function: ast.FunctionDef) -> int:
    docstring = function.body[0] if ast.get_docstring(function) else None
    spared = docstring.end_lineno - docstring.lineno + 1 if docstring else 0
    return function.end_lineno - function.lineno + 1 - spared


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_function_fits_on_a_screen(path):
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    assert {node.name: code_lines(node) for node in functions if code_lines(node) > 40} == {}


CORE = {"model", "text", "training", "generation", "checkpoints"}
EVERYWHERE = {"caching.py", "files.py", "lessons.py", "ranking.py", "__init__.py"}
ALL = ("lessons", "lab", "site", "dev")
NEEDS = {"transformers": "lab", "nbconvert": "lab", "nbformat": "lab", "jupyterlab": "lab"}
NEEDS |= {"datasets": "hub", "mcp": "assistant"}
"""What a module imports inside a function, or is imported for, with an extra of its own."""


def third_parties(path) -> set[str]:
    """The top names of what a module imports that is neither Python's nor the project's."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {one.name.partition(".")[0] for one in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(node.module.partition(".")[0])
    ours = {PACKAGE.name, "tools", "benchmarks", "tests", "noise"}
    return names - sys.stdlib_module_names - ours


def test_what_is_imported_is_declared_by_the_extra_that_needs_it():
    distributions = metadata.packages_distributions() | {"datasets": ["datasets"], "mcp": ["mcp"]}
    distributions["hatchling"], builds = ["hatchling"], BUILD["requires"]
    rooms = ("tools", "benchmarks", "tests")
    others = [path for room in rooms for path in ROOT.glob(f"{room}/**/*.py")]
    for path in (*MODULES, *ROOT.glob("*.py"), *others):
        here = builds if path.name == "hatch_build.py" else []
        room, *rest = path.relative_to(PACKAGE if path.is_relative_to(PACKAGE) else ROOT).parts
        if "learners" in rest or "answers" in rest:
            continue
        in_core = path.is_relative_to(PACKAGE) and (room in CORE or room in EVERYWHERE)
        extras = ALL if not path.is_relative_to(PACKAGE) else () if in_core else ("lessons",)
        for name in third_parties(path) - ({"IPython"} if rest[-1:] == ["needs.py"] else set()):
            own = [NEEDS[name]] if name in NEEDS and path.is_relative_to(PACKAGE) else []
            optional = PROJECT["optional-dependencies"]
            declared = CORE_NEEDS + [d for e in (*extras, *own) for d in optional[e]] + here
            known = {canonicalize_name(Requirement(one).name) for one in declared}
            assert known & set(map(canonicalize_name, distributions[name])), (path, name)


def fresh_python(code: str) -> str:
    run = [sys.executable, "-c", code]
    return subprocess.run(run, capture_output=True, text=True, check=True).stdout


DRAWS = """
from transformer_lesson.figures import plots
plots.attention_map(__import__("torch").eye(2), ["a", "b"], ["a", "b"], "t").png()
plots.curves({"a": [1, 2], "b": [2, 1]}, "t", "a", "x", "y").png()
"""
VIEWERS = {"bertviz", "transformers", "ipywidgets", "IPython"}
STEPS = {  # in this order, in one Python: what is run, and what nothing up to here may load
    "from transformer_lesson import *": VIEWERS | {"matplotlib", "tokenizers"},
    "import transformer_lesson.figures.attention_view": VIEWERS | {"mpld3"},
    "from transformer_lesson.exercises import check, predict": {"ipywidgets"},
    DRAWS: {"matplotlib.pyplot"},  # which keeps figures and picks a window system
}


@pytest.mark.slow
def test_what_is_imported_and_drawn_brings_no_heavy_library():
    listed = "\nimport sys; print(*sys.modules)\n"
    loaded = map(str.split, fresh_python(listed.join([*STEPS, ""])).splitlines())
    found = {
        code: heavy & {*names} for (code, heavy), names in zip(STEPS.items(), loaded, strict=True)
    }
    assert found == dict.fromkeys(STEPS, set())


def installed_with(ranges: list[str]) -> set[str]:
    found, left = set(), list(map(Requirement, ranges))
    while left:
        wanted = left.pop()
        name = canonicalize_name(wanted.name)
        here = wanted.marker is None or wanted.marker.evaluate({"extra": ""})
        if here and name not in found:
            found.add(name)
            left += map(Requirement, metadata.requires(name) or [])
    return found


BLOCKED = """
import sys
class Blocked:
    def find_spec(name, *rest):
        if name.partition(".")[0] in {others}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocked)
import transformer_lesson
from transformer_lesson import *
import {modules}
"""


@pytest.mark.slow
def test_models_learn_and_write_without_what_lessons_need():
    """In the package alone (`pip install --no-deps`), whatever else is installed here."""
    core = installed_with(CORE_NEEDS)
    others = {
        top
        for top, names in metadata.packages_distributions().items()
        if not core & set(map(canonicalize_name, names)) and top != PACKAGE.name
    }
    assert {"matplotlib", "ipywidgets", "IPython"} <= others
    rooms = ("model", "text", "training", "generation", "checkpoints")
    paths = [path for room in rooms for path in sorted((PACKAGE / room).rglob("*.py"))]
    names = [".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in paths]
    names = [name.removesuffix(".__init__") for name in names]
    fresh_python(BLOCKED.format(others=others, modules=", ".join(names)))
