"""Notebooks in the course's form: any machine runs them, cells are short, claims are compared."""

import json
import re
import statistics
import subprocess
import tomllib
from itertools import pairwise

from ruff import find_ruff_bin

from tests.stored_lessons import cells, each_notebook, notebook, read, source

WIDGET = "application/vnd.jupyter.widget-view+json"
MAGIC = r"%%needs |%load_ext transformer_lesson\."
FORBIDDEN = re.compile(
    rf"^\s*(!|(?!{MAGIC})%)|\bpip install\b|\bconda install\b|\bsys\.path\b", re.MULTILINE
)

TOOLS = {
    "math": "import math",
    "torch": "import torch",
    "F": "import torch.nn.functional as F",
    "nn": "from torch import nn",
}
"""What every lesson with exercises imports: a learner's answer may use it without importing it."""


@each_notebook
def test_notebook_runs_on_any_machine(path):
    facts = notebook(path)["metadata"]
    assert facts["kernelspec"]["name"] == "python3" and "widgets" not in facts
    assert "version" not in facts.get("language_info", {})
    assert (notebook(path)["nbformat"], notebook(path)["nbformat_minor"]) >= (4, 5)
    ids = [cell["id"] for cell in cells(path)]
    assert len(set(ids)) == len(ids)


@each_notebook
def test_cells_are_short_and_none_installs_or_edits_paths(path):
    code = [source(cell) for cell in cells(path, "code")]
    assert [text for text in code if FORBIDDEN.search(text)] == []
    lengths = [len(text.splitlines()) for text in code]
    usual = 12 if path.parent.name == "deeper" else 8  # few cells, one of them a figure
    assert max(lengths) <= 30 and statistics.median(lengths) <= usual


@each_notebook
def test_no_heading_skips_a_level(path):
    text = "\n".join(map(source, cells(path, "markdown")))
    levels = [len(marks) for marks in re.findall(r"^(#+) ", text, re.MULTILINE)]
    assert levels[0] == 1 and all(b <= a + 1 for a, b in pairwise(levels))


@each_notebook
def test_an_interrupt_cannot_cut_what_optimizers_load_in_two(path):
    code = "\n".join(map(source, cells(path, "code")))
    before, optimizer, _ = code.partition("torch.optim.")
    assert not optimizer or 'load_whole("torch._dynamo")' in before


@each_notebook
def test_every_cell_is_held_to_the_rules_and_learners_have_their_tools(path):
    copy = without_magic(path)
    code = "\n".join(source(cell) for cell in copy["cells"] if cell["cell_type"] == "code")
    used = [name for name, imported in TOOLS.items() if f"\n{imported}\n" in f"\n{code}"]
    for command in (["check"], ["format", "--check"]):
        assert ruff(copy, path, *command).returncode == 0, command
    exercises = "\ncheck(" in code and path.name[:2] not in ("00", "14")
    assert not exercises or used == [*TOOLS], "learners write with these names, too"


@each_notebook
def test_what_is_imported_is_used_or_named_for_the_learner(path):
    found = ruff(
        without_magic(path), path, "check", "--isolated", "--select=F401", "--output-format=json"
    )
    unused = {
        re.split(r"[. ]", one["message"].split("`")[1])[-1] for one in json.loads(found.stdout)
    }
    text = "\n".join(map(source, cells(path, "markdown")))
    assert [
        one for one in unused - {*TOOLS, "functional"} if not re.search(rf"\b{one}\b", text)
    ] == []


def without_magic(path):
    """Return a notebook in which no cell begins with `%%`: ruff leaves such cells out."""
    copy = json.loads(path.read_text(encoding="utf-8"))
    for cell in copy["cells"]:
        if cell["cell_type"] == "code":
            cell["source"] = re.sub(r"^%%needs .*\n", "", source(cell))
    return copy


def ruff(copy, path, *command):
    asked = [find_ruff_bin(), *command, "--no-cache", "--stdin-filename", str(path), "-"]
    return subprocess.run(asked, input=json.dumps(copy), text=True, stdout=subprocess.PIPE)


@each_notebook
def test_outputs_are_those_of_one_run_and_no_claim_escapes_the_comparison(path):
    code = [cell for cell in cells(path, "code") if source(cell)]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    for output in (output for cell in code for output in cell["outputs"]):
        assert output["output_type"] != "error"
        data = output.get("data", {})
        assert {WIDGET, "image/png"} - data.keys(), "run `make notebooks`"
        shown = "".join(output.get("text", data.get("text/plain", "")))
        assert " at 0x" not in shown, f"differs in every run: {shown}"
    for cell in cells(path, "code"):
        tags = cell["metadata"].get("tags", [])
        told = [tag for tag in tags if "nbval" in tag or tag == "raises-exception"]
        assert set(told) <= {"nbval-ignore-output"} and "NBVAL" not in source(cell)
        assert not told or "assert" not in source(cell)


def test_notebooks_are_compared_strictly():
    options = tomllib.loads(read("pyproject.toml"))["tool"]["pytest"]["ini_options"]
    assert "--nbval" in options["addopts"] and "--nbval-lax" not in options["addopts"]
    assert "notebooks" in options["testpaths"]
