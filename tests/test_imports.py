"""The package's form: which room may import which, how long functions are, what an import costs."""

import ast
import subprocess
import sys
from pathlib import Path

import importlinter.cli
import pytest

PACKAGE = Path(__file__).parent.parent / "transformer_lesson"
MODULES = sorted(PACKAGE.rglob("*.py"))


def test_imports_run_one_way():
    """The rooms' order stands in pyproject.toml, as a contract of import-linter."""
    assert (
        importlinter.cli.lint_imports(config_filename=str(PACKAGE.parent / "pyproject.toml")) == 0
    )


def code_lines(function: ast.FunctionDef) -> int:
    docstring = function.body[0] if ast.get_docstring(function) else None
    spared = docstring.end_lineno - docstring.lineno + 1 if docstring else 0
    return function.end_lineno - function.lineno + 1 - spared


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_function_fits_on_a_screen(path):
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    assert {node.name: code_lines(node) for node in functions if code_lines(node) > 40} == {}


def fresh_python(code: str) -> str:
    run = [sys.executable, "-c", code]
    return subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.slow
def test_the_import_brings_no_heavy_library():
    heavy = {"bertviz", "transformers", "ipywidgets", "matplotlib", "tokenizers", "IPython"}
    code = "import sys; from transformer_lesson import *; print(*sys.modules)"
    loaded = fresh_python(code).split()
    assert "transformer_lesson.model.transformers" in loaded
    assert heavy & set(loaded) == set()
