"""The repository as a whole: no trace of one machine, valid files, one version and date."""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from datetime import date
from importlib.metadata import distributions
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


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


@pytest.mark.slow
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


SCHEMAS = [
    *((path, "vendor.github-workflows") for path in sorted(ROOT.glob(".github/workflows/*.yml"))),
    (ROOT / "CITATION.cff", "vendor.citation-file-format"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("path", "schema"), SCHEMAS, ids=lambda value: getattr(value, "name", ""))
def test_a_file_keeps_its_schema(path, schema):
    run = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, path]
    answer = subprocess.run(run, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout


def test_codespaces_and_vs_code_name_what_is_there():
    container = json.loads(read(".devcontainer/devcontainer.json"))
    make, target = container["onCreateCommand"].split()
    assert make == "make" and f"\n{target}:" in read("Makefile")
    settings = json.loads(read(".vscode/settings.json"))
    opened = container["customizations"]["codespaces"]["openFiles"]
    for name in (*opened, settings["python.testing.pytestArgs"][-1]):
        assert (ROOT / name).exists(), name


def test_the_pages_name_tests_that_exist():
    pages = [ROOT / "README.md", *ROOT.glob("docs/*.md")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    named = re.findall(r"`(tests/[\w/.]+)`", text)
    assert named and [name for name in named if not (ROOT / name).exists()] == []


# A release

PROJECT = tomllib.loads(read("pyproject.toml"))["project"]
CITATION = yaml.safe_load(read("CITATION.cff"))
NOTES = read("CHANGELOG.md")
RELEASE = re.compile(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)$", re.MULTILINE)


def test_the_latest_release_is_the_version_everywhere():
    latest, day = RELEASE.findall(NOTES)[0]
    assert (latest, day) == (PROJECT["version"], CITATION["date-released"])
    *_, installed = distributions(name="transformer_lesson")  # before it may lie an older build's
    assert CITATION["version"] == PROJECT["version"] == installed.version
    assert date.fromisoformat(day) >= date(2026, 11, 21)


def test_the_release_notes_keep_their_form():
    headings = re.findall(r"^## .*$", NOTES, re.MULTILINE)
    assert headings[0] == "## [Unreleased]" and len(headings) == 1 + len(RELEASE.findall(NOTES))
    numbers = [tuple(map(int, number.split("."))) for number, _ in RELEASE.findall(NOTES)]
    assert numbers == sorted(numbers, reverse=True)
    kinds = set(re.findall(r"^### (.*)$", NOTES, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_citation_says_what_the_package_says():
    assert CITATION["cff-version"] == "1.2.0" and CITATION["type"] == "software"
    assert CITATION["message"] and CITATION["title"] == "Transformer Lesson"
    assert CITATION["license"] == PROJECT["license"]
    assert CITATION.get("repository-code") == PROJECT.get("urls", {}).get("Repository")
    assert CITATION["authors"] == PROJECT["authors"]
