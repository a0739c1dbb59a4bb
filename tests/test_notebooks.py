"""Notebooks in the course's form: any machine runs them, cells are short, claims are compared."""

import json
import re
import statistics
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tools.lesson_files import lesson_files

ROOT = Path(__file__).parent.parent
NOTEBOOKS = lesson_files()
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
WIDGET = "application/vnd.jupyter.widget-view+json"


def cells(path: Path, kind: str) -> list[dict]:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return [cell for cell in notebook["cells"] if cell["cell_type"] == kind]


def source(cell: dict) -> str:
    return "".join(cell["source"])


def prose_words(markdown: str) -> int:
    """Words that are read: no formulas, tags, addresses or table rules, and nothing folded."""
    markdown = re.sub(r"<details>.*?</details>", " ", markdown, flags=re.DOTALL)
    bare = re.sub(r"\$\$.*?\$\$|\$[^$\n]+\$|<[^>]*>|\]\([^)]*\)", " ", markdown, flags=re.DOTALL)
    return sum(any(letter.isalpha() for letter in word) for word in bare.split())


@each_notebook
def test_notebook_runs_on_any_machine(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert "widgets" not in notebook["metadata"]
    assert "version" not in notebook["metadata"].get("language_info", {})
    assert (notebook["nbformat"], notebook["nbformat_minor"]) >= (4, 5)
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)


@each_notebook
def test_no_cell_installs_or_edits_paths(path):
    allowed = r"%%needs |%load_ext transformer_lesson\."
    forbidden = re.compile(
        rf"^\s*(!|(?!{allowed})%)|\bpip install\b|\bconda install\b|\bsys\.path\b", re.MULTILINE
    )
    assert [source(cell) for cell in cells(path, "code") if forbidden.search(source(cell))] == []


@each_notebook
def test_code_cells_are_short(path):
    lengths = [len(source(cell).splitlines()) for cell in cells(path, "code")]
    assert max(lengths) <= 30
    assert statistics.median(lengths) <= 8


@each_notebook
def test_an_interrupt_cannot_cut_what_optimizers_load_in_two(path):
    code = "\n".join(source(cell) for cell in cells(path, "code"))
    before, optimizer, _ = code.partition("torch.optim.")
    assert not optimizer or 'load_whole("torch._dynamo")' in before


def test_cells_that_need_weights_are_held_to_the_rules_of_all_others():
    """Ruff leaves out a cell that begins with `%%`, so it is given the notebooks without."""
    for path in NOTEBOOKS:
        text = path.read_text(encoding="utf-8")
        if "%%needs " not in text:
            continue
        notebook = json.loads(text)
        for cell in notebook["cells"]:
            plain = re.sub(r"^%%needs .*\n", "", source(cell))
            cell["source"] = plain if cell["cell_type"] == "code" else cell["source"]
        for command in (["check", "--no-cache"], ["format", "--check", "--no-cache"]):
            name = path.with_stem("plain")  # for which no rule is left out
            asked = ["-m", "ruff", *command, "--stdin-filename", str(name), "-"]
            ran = subprocess.run([sys.executable, *asked], input=json.dumps(notebook), text=True)
            assert ran.returncode == 0, command


@each_notebook
def test_prose_cells_are_short(path):
    long = {source(cell)[:60]: prose_words(source(cell)) for cell in cells(path, "markdown")}
    assert {start: words for start, words in long.items() if words > 150} == {}


@each_notebook
def test_outputs_are_those_of_one_run(path):
    code = [cell for cell in cells(path, "code") if source(cell)]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    for output in (output for cell in code for output in cell["outputs"]):
        assert output["output_type"] != "error"
        data = output.get("data", {})
        assert {WIDGET, "image/png"} - data.keys(), "run `make notebooks`"
        shown = "".join(output.get("text", data.get("text/plain", "")))
        assert " at 0x" not in shown, f"differs in every run: {shown}"


@each_notebook
def test_no_claim_escapes_the_comparison(path):
    for cell in cells(path, "code"):
        tags = [tag for tag in cell["metadata"].get("tags", []) if tag != "nbval-ignore-output"]
        assert not [tag for tag in tags if "nbval" in tag or tag == "raises-exception"]
        assert "NBVAL" not in source(cell)
        if "nbval-ignore-output" in cell["metadata"].get("tags", []):
            assert "assert" not in source(cell)


def test_notebooks_are_compared_strictly():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    options = project["tool"]["pytest"]["ini_options"]
    assert "--nbval" in options["addopts"] and "--nbval-lax" not in options["addopts"]
    assert "notebooks" in options["testpaths"]
