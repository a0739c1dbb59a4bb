"""Any machine, one click: versions in every list, the files of Binder, Codespaces and VS Code."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

from transformer_lesson.environment import TESTED

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
RANGES = [
    *map(Requirement, PROJECT["build-system"]["requires"]),
    *map(Requirement, PROJECT["project"]["dependencies"]),
    *map(Requirement, sum(PROJECT["project"]["optional-dependencies"].values(), [])),
]
NOTEBOOKS = sorted(ROOT.glob("notebooks/*.ipynb"))


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def requirements(text: str) -> dict[str, str]:
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return dict(line.split("==") for line in lines)


# Versions


def test_the_oldest_versions_are_the_lower_bounds():
    oldest = requirements(read("constraints-oldest.txt"))
    bounds = {}
    for wanted in RANGES:
        (bounds[wanted.name],) = [
            each.version for each in wanted.specifier if each.operator in (">=", "==")
        ]
    assert {name: Version(version) for name, version in oldest.items()} == {
        name: Version(version) for name, version in bounds.items()
    }


def test_the_oldest_versions_run_every_test_but_those_about_the_pins():
    lines = read("Makefile").split("\ntest-oldest:")[1].split("\n\n")[0].splitlines()
    assert lines[-1] == '\t$(OLDEST) pytest -m "not pins"'
    extras = PROJECT["project"]["optional-dependencies"]
    assert lines[-2].endswith(f'-e ".[{",".join(extras)}]"')
    assert read(".github/workflows/ci.yml").rstrip().endswith("run: make test-oldest")


def test_the_report_knows_the_tested_versions():
    tested = json.loads(TESTED.read_text(encoding="utf-8"))
    paragraphs = [text.partition("\n") for text in read("requirements.txt").split("\n\n")]
    for group, start in (("package", "# The package"), ("lessons", "# The lessons")):
        (pins,) = [rest for head, _, rest in paragraphs if head.startswith(start)]
        assert tested[group] == requirements(pins)
    assert list(tested["package"]) == [
        Requirement(text).name for text in PROJECT["project"]["dependencies"]
    ]


def test_every_python_that_is_named_is_tested():
    pythons = json.loads(TESTED.read_text(encoding="utf-8"))["python"]
    start = "Programming Language :: Python :: "
    assert [text.removeprefix(start) for text in PROJECT["project"]["classifiers"]] == pythons
    job = yaml.safe_load(read(".github/workflows/ci.yml"))["jobs"]["test"]
    assert job["strategy"]["matrix"]["python-version"] == pythons
    assert PROJECT["project"]["requires-python"] == f">={pythons[0]}"


# Files that others read

SCHEMAS = [
    *((path, "vendor.github-workflows") for path in sorted(ROOT.glob(".github/workflows/*.yml"))),
    *((path, "vendor.citation-file-format") for path in ROOT.glob("CITATION.cff")),
]


@pytest.mark.parametrize(("path", "schema"), SCHEMAS, ids=lambda value: getattr(value, "name", ""))
def test_a_file_keeps_its_schema(path, schema):
    run = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, path]
    answer = subprocess.run(run, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout


def test_binder_finds_what_it_needs():
    # repo2docker reads these two folders instead of the root where they exist
    assert not (ROOT / "binder").exists() and not (ROOT / ".binder").exists()
    environment = yaml.safe_load(read("environment.yml"))
    assert set(environment) == {"name", "channels", "dependencies"}
    python, pip, from_pip = environment["dependencies"]
    assert (python, pip, list(from_pip)) == ("python=3.11", "pip", ["pip"])
    assert from_pip["pip"][-1] == "-e ."  # copies the repository before it installs


DEVCONTAINER = {  # what the specification of containers.dev calls these fields, and their types
    "name": str,
    "image": str,
    "hostRequirements": dict,
    "onCreateCommand": str,
    "customizations": dict,
}


def test_codespaces_opens_lesson_00_with_the_course_set_up():
    container = json.loads(read(".devcontainer/devcontainer.json"))
    assert {name: type(value) for name, value in container.items()} == DEVCONTAINER
    assert container["onCreateCommand"] == "make setup"
    assert container["image"].rpartition(":")[2] in json.loads(TESTED.read_text())["python"]
    machine = container["hostRequirements"]
    assert isinstance(machine.pop("cpus"), int) and set(machine) == {"memory", "storage"}
    assert all(re.fullmatch(r"\d+[tgmk]b", size) for size in machine.values())
    (opened,) = container["customizations"]["codespaces"]["openFiles"]
    assert ROOT / opened == NOTEBOOKS[0]
    extensions = container["customizations"]["vscode"]["extensions"]
    assert extensions == json.loads(read(".vscode/extensions.json"))["recommendations"]


def test_vs_code_runs_the_tests_of_the_course():
    settings = json.loads(read(".vscode/settings.json"))
    assert settings["python.testing.pytestEnabled"] is True
    assert (ROOT / settings["python.testing.pytestArgs"][-1]).is_dir()
