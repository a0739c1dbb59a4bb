"""The package's form: which module may import which, how long they are, what an import costs."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "transformer_lesson"
MODULES = sorted(PACKAGE.rglob("*.py"))

# What each part may import of ours, besides itself.
ARROWS = {
    "config": set(),
    "masks": set(),
    "taps": set(),
    "positions": set(),
    "tokenizer": set(),
    "visible": set(),
    "plots": {"visible"},
    "cache": set(),
    "dropout": set(),
    "linear": set(),
    "grouped_heads": set(),
    "norms": {"config"},
    "feed_forwards": {"config", "dropout", "linear", "norms", "taps"},
    "attention": {"cache", "dropout", "grouped_heads", "linear", "masks", "taps"},
    "blocks": {"attention", "cache", "config", "dropout", "feed_forwards", "norms", "taps"},
    "embeddings": {"config", "dropout", "norms", "positions", "taps"},
    "models": {
        "blocks",
        "cache",
        "config",
        "embeddings",
        "feed_forwards",
        "linear",
        "masks",
        "norms",
        "positions",
        "taps",
    },  # fmt: skip
    "recording": {"models", "taps"},
    "causality": {"models"},
    "parameter_count": {"models"},
    "corpora": {"masks", "tokenizer"},
    "checkpoints": {"config", "models", "positions", "tokenizer"},
    "training": {"checkpoints", "config", "corpora", "generation", "models", "tokenizer"},
    "generation": {"cache", "corpora", "models", "recording", "tokenizer"},
    "head_scores": set(),
    "interventions": {"attention", "corpora", "recording"},
    "induction": {
        "attention",
        "config",
        "corpora",
        "embeddings",
        "linear",
        "masks",
        "positions",
        "taps",
    },  # fmt: skip
    "variants": {"config", "corpora", "models", "parameter_count", "tokenizer", "training"},
    "environment": set(),
    "attention_parts": {"visible"},
    "attention_view": {"attention_parts", "plots", "recording"},
}
ARROWS["exercises"] = set(ARROWS)
ARROWS["explorables"] = set(ARROWS) - {"exercises"}
ARROWS["grading"] = {"exercises"}
ARROWS["__init__"] = set(ARROWS) - {
    "exercises",
    "explorables",
    "grading",
    "attention_view",
    "plots",
}  # fmt: skip


def part(path: Path) -> str:
    """The name in ARROWS that a module belongs to: its own, or its folder's."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported_parts(source: str) -> Iterator[str]:
    """Parts of the package that a module's source imports, inside functions too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: write the import in full, without dots"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name.split(".")[0] == "transformer_lesson":
                yield (name.split(".") + ["__init__"])[1]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_follow_the_arrows(path):
    own = part(path)
    assert own in ARROWS, f"{own} is new: say in ARROWS what it may import"
    assert set(imported_parts(path.read_text(encoding="utf-8"))) - {own} <= ARROWS[own]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_reads_in_one_sitting(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 250


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


def test_the_import_brings_no_heavy_library():
    heavy = {"bertviz", "transformers", "ipywidgets", "matplotlib", "tokenizers", "IPython"}
    code = "import sys; from transformer_lesson import *; print(*sys.modules)"
    loaded = fresh_python(code).split()
    assert "transformer_lesson.models" in loaded
    assert heavy & set(loaded) == set()
