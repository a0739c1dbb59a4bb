"""One list of versions, files that fit any machine, notebooks in the course's form."""

import json
import os
import re
import statistics
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import jaxtyping
import pytest
import torch
import yaml
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from transformer_lesson import padding_mask

ROOT = Path(__file__).parent.parent
OLDEST_PYTHON = "3.11.0"
OF_CUDA = re.compile(r"cuda-|nvidia-|triton$")  # torch pins these itself, where it asks for them


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def requirement_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def pins(text: str) -> dict[str, Requirement]:
    found = map(Requirement, requirement_lines(text))
    return {canonicalize_name(pin.name): pin for pin in found}


def pinned_version(pin: Requirement) -> str:
    (specifier,) = pin.specifier
    return specifier.version


PROJECT = tomllib.loads(read("pyproject.toml"))
PINS = pins(read("requirements.txt"))
DIRECT = pins(read("requirements.txt").split("# Pulled in by")[0])
RANGES = [
    Requirement(text)
    for group in (
        PROJECT["build-system"]["requires"],
        PROJECT["project"]["dependencies"],
        *PROJECT["project"]["optional-dependencies"].values(),
    )
    for text in group
]


# Versions


def test_pins_are_exact():
    for pin in PINS.values():
        (specifier,) = pin.specifier
        assert specifier.operator == "==" and "*" not in specifier.version, pin
    assert len(requirement_lines(read("requirements.txt"))) == len(PINS), "a package stands twice"


def test_conda_gets_the_same_versions():
    dependencies = yaml.safe_load(read("environment.yml"))["dependencies"]
    (from_pip,) = [entry["pip"] for entry in dependencies if isinstance(entry, dict)]
    assert from_pip == [*requirement_lines(read("requirements.txt")), "-e ."]
    assert "python=3.11" in dependencies


def test_ranges_admit_the_pins():
    for wanted in RANGES:
        version = pinned_version(DIRECT[canonicalize_name(wanted.name)])
        assert wanted.specifier.contains(version), f"{wanted} does not admit {version}"
    assert {canonicalize_name(wanted.name) for wanted in RANGES} == set(DIRECT)


@pytest.mark.pins
def test_this_run_uses_the_pins():
    markers_hold = [pin for pin in PINS.values() if pin.marker is None or pin.marker.evaluate()]
    wrong = {}
    for pin in markers_hold:
        installed = distribution(pin.name).version.split("+")[0]
        if installed != pinned_version(pin):
            wrong[pin.name] = installed
    assert wrong == {}


@pytest.mark.pins
def test_pins_install_on_the_oldest_python():
    assert PROJECT["project"]["requires-python"] == ">=3.11"
    for name in PINS:
        try:
            needs = distribution(name).metadata["Requires-Python"]
        except PackageNotFoundError:
            assert PINS[name].marker is not None, f"{name} is pinned and not installed"
            continue
        assert SpecifierSet(needs or "").contains(OLDEST_PYTHON), f"{name} needs Python {needs}"


def needed(names: list[str], environment: dict[str, str]) -> set[str]:
    """Everything that the packages ask for there, as far as this machine has it installed."""
    found: set[tuple[str, str]] = set()
    queue = [(name, "") for name in names]
    while queue:
        name, extra = queue.pop()
        if (name, extra) in found:
            continue
        found.add((name, extra))
        try:
            wants = map(Requirement, distribution(name).requires or [])
        except PackageNotFoundError:
            continue
        for want in wants:
            if want.marker is None or want.marker.evaluate({**environment, "extra": extra}):
                queue += [(canonicalize_name(want.name), each) for each in ("", *want.extras)]
    return {name for name, _ in found}


@pytest.mark.pins
@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
@pytest.mark.parametrize(
    ("sys_platform", "platform_system", "os_name"),
    [("linux", "Linux", "posix"), ("darwin", "Darwin", "posix"), ("win32", "Windows", "nt")],
)
def test_nothing_is_left_to_the_day_of_the_install(sys_platform, platform_system, os_name, python):
    environment = {
        **default_environment(),
        "sys_platform": sys_platform,
        "platform_system": platform_system,
        "os_name": os_name,
        "python_version": python,
        "python_full_version": f"{python}.0",
    }
    pinned = {
        name for name, pin in PINS.items() if pin.marker is None or pin.marker.evaluate(environment)
    }
    asked = {name for name in needed(list(DIRECT), environment) if not OF_CUDA.match(name)}
    assert asked == pinned


# Commands


def test_one_command_is_the_whole_check():
    assert read(".ci/run").splitlines()[-1] == "make test"
    assert os.access(ROOT / ".ci/run", os.X_OK)
    jobs = yaml.safe_load(read(".github/workflows/ci.yml"))["jobs"]
    for name in ("test", "elsewhere"):
        *preparing, check = [step["run"] for step in jobs[name]["steps"] if "run" in step]
        assert check == ".ci/run" and all(line.startswith("sudo ") for line in preparing)


def test_notebooks_are_compared_strictly():
    options = PROJECT["tool"]["pytest"]["ini_options"]
    assert "--nbval" in options["addopts"] and "--nbval-lax" not in options["addopts"]
    assert "notebooks" in options["testpaths"]


def test_two_workers_do_not_fight_over_the_cores():
    assert torch.get_num_threads() == int(os.environ["OMP_NUM_THREADS"])


def test_shapes_are_checked_in_this_run():
    with pytest.raises(jaxtyping.TypeCheckError):
        padding_mask(torch.zeros(2, 3), pad_id=0)  # ids are whole numbers


def test_jupyterlab_has_the_course_s_settings():
    installed = Path(sys.prefix) / "share/jupyter/lab/settings/overrides.d/transformer_lesson.json5"
    assert installed.read_text() == read("tools/jupyterlab/transformer_lesson.json5")


def test_the_pages_name_tests_that_exist():
    pages = [ROOT / "README.md", *ROOT.glob("docs/*.md")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    named = re.findall(r"`(tests/[\w/.]+)`", text)
    assert named and [name for name in named if not (ROOT / name).exists()] == []


# Files

IGNORED = {line.rstrip("/") for line in read(".gitignore").splitlines() if line.endswith("/")}
# A letter, digit or + before the slash: inside a picture's base64, or a relative path.
HOME_PATH = re.compile(r"(?<![A-Za-z0-9+.])/(?:home|root|work|tmp|Users)/\w|[A-Z]:\\+Users\b")
REGISTRY = re.compile(r"\b(?:pypi|pythonhosted|anaconda|download\.pytorch)\.(?:org|com)\b")


def text_files() -> Iterator[Path]:
    for folder, subfolders, names in os.walk(ROOT):
        subfolders[:] = [
            name
            for name in subfolders
            if name != ".git" and name not in IGNORED and not name.endswith(".egg-info")
        ]
        for name in names:
            path = Path(folder, name)
            if b"\0" not in path.read_bytes():
                yield path


def test_no_file_names_one_machine_or_a_registry():
    found = {}
    for path in text_files():
        text = path.read_text(encoding="utf-8")
        matches = [match.group() for match in (*HOME_PATH.finditer(text), *REGISTRY.finditer(text))]
        if matches:
            found[str(path.relative_to(ROOT))] = matches
    assert found == {}


@pytest.mark.parametrize("command", [["check"], ["format", "--check"]], ids=" ".join)
def test_ruff_has_nothing_to_say(command):
    run = [sys.executable, "-m", "ruff", *command, "--no-cache", "."]
    answer = subprocess.run(run, cwd=ROOT, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout


# Notebooks

NOTEBOOKS = sorted(ROOT.glob("notebooks/*.ipynb"))
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
WIDGET = "application/vnd.jupyter.widget-view+json"


def cells(path: Path, kind: str) -> list[dict]:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return [cell for cell in notebook["cells"] if cell["cell_type"] == kind]


def source(cell: dict) -> str:
    return "".join(cell["source"])


def prose_words(markdown: str) -> int:
    """Words that are read: no formulas, no tags, no addresses of links, no table rules."""
    bare = re.sub(r"\$\$.*?\$\$|\$[^$\n]+\$|<[^>]*>|\]\([^)]*\)", " ", markdown, flags=re.DOTALL)
    return sum(any(letter.isalpha() for letter in word) for word in bare.split())


@each_notebook
def test_notebook_runs_on_any_machine(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert "widgets" not in notebook["metadata"]
    assert "version" not in notebook["metadata"].get("language_info", {})
    assert path.stat().st_size < 5_000_000
    assert (notebook["nbformat"], notebook["nbformat_minor"]) >= (4, 5)
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)


@each_notebook
def test_no_cell_installs_or_edits_paths(path):
    forbidden = re.compile(
        r"^\s*[!%]|\bpip install\b|\bconda install\b|\bsys\.path\b", re.MULTILINE
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


@each_notebook
def test_prose_cells_are_short(path):
    long = {source(cell)[:60]: prose_words(source(cell)) for cell in cells(path, "markdown")}
    assert {start: words for start, words in long.items() if words > 120} == {}


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
