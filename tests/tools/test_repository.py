"""The repository as a whole: no trace of one machine, valid files, one version and date."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import partial
from importlib.metadata import distributions
from pathlib import Path
from urllib.parse import unquote

import pytest
import yaml

from tests.stored_lessons import ROOT, read
from tools.address import services
from tools.lesson_files import GLOSSARY, NOTEBOOKS, lesson_files, place_of

IGNORED = {line.rstrip("/") for line in read(".gitignore").splitlines() if line.endswith("/")}
# A letter, digit or + before the slash: inside a picture's base64, or a relative path.
HOME_PATH = re.compile(r"(?<![A-Za-z0-9+.])/(?:home|root|work|tmp|Users)/\w|[A-Z]:\\+Users\b")
REGISTRY = re.compile(r"\b(?:pypi|pythonhosted|anaconda|download\.pytorch)\.(?:org|com)\b")


def not_the_courses(folder: str, names: list[str]) -> set[str]:
    place = Path("/", Path(folder).relative_to(ROOT))
    ignored = {".git", *IGNORED}
    known = {name for name in names if {name, str(place / name)} & ignored}
    return known | {name for name in names if name.endswith(".egg-info")}


def text_files() -> Iterator[Path]:
    yield from (*lesson_files(), NOTEBOOKS / GLOSSARY)  # and nothing that a learner left beside
    for folder, subfolders, names in os.walk(ROOT):
        left_out = {"notebooks", *not_the_courses(folder, [*subfolders, *names])}
        subfolders[:] = [name for name in subfolders if name not in left_out]
        for name in set(names) - left_out:
            path = Path(folder, name)
            if b"\0" not in path.read_bytes():
                yield path


@pytest.mark.slow
def test_no_file_names_one_machine_or_a_registry():
    found = {}
    for path in text_files():
        text = path.read_text(encoding="utf-8")
        if path.name == "uv.lock":  # which names Python's own index, and nobody's copy of it
            text = re.sub(r"https://(files\.)?py(pi|thonhosted)\.org/", "", text)
        matches = [match.group() for match in (*HOME_PATH.finditer(text), *REGISTRY.finditer(text))]
        if matches:
            found[str(path.relative_to(ROOT))] = matches
    assert found == {}


def assert_nothing_to_say(*command: str) -> None:
    run = [sys.executable, "-m", *command]
    answer = subprocess.run(run, cwd=ROOT, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout


def test_ruff_has_nothing_to_say():
    assert_nothing_to_say("ruff", "check", "--no-cache", ".")
    assert_nothing_to_say("ruff", "format", "--check", "--no-cache", ".")


@pytest.mark.slow
def test_workflows_and_citation_keep_their_schemas():
    workflows = map(str, ROOT.glob(".github/workflows/*.yml"))
    assert_nothing_to_say(
        "check_jsonschema", "--builtin-schema", "vendor.github-workflows", *workflows
    )
    citation = ("vendor.citation-file-format", "CITATION.cff")
    assert_nothing_to_say("check_jsonschema", "--builtin-schema", *citation)


@pytest.mark.slow
def test_wherever_a_lesson_opens_it_is_the_learners_copy(tmp_path):
    """Those of the course would get its outputs: VS Code and Jupyter save them with the lesson."""
    course = tmp_path / "course"
    for folder in ("tools", "transformer_lesson", "notebooks"):
        shutil.copytree(ROOT / folder, course / folder, ignore=not_the_courses)
    shutil.copy(ROOT / "postBuild", course)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(["./postBuild"], cwd=course, env={**os.environ, "PATH": path}, check=True)
    container = json.loads(read(".devcontainer/devcontainer.json"))
    for command in ("onCreateCommand", "postCreateCommand"):
        make, target = container[command].split()
        assert make == "make" and f"\n{target}:" in read("Makefile")
    assert container["waitFor"] == "postCreateCommand"  # before it opens anything
    (binder,) = services("https://host.org/a/b", "03_attention.ipynb")
    opened = unquote(binder).split("urlpath=lab/tree/")[1].removesuffix(")")
    for name in (*container["customizations"]["codespaces"]["openFiles"], opened):
        assert name.startswith("my_lessons/") and (course / name).exists()
    read_only = json.loads(read(".vscode/settings.json"))["files.readonlyInclude"]
    assert all(any(path.match(one) for one in read_only) for path in lesson_files())


HOME = "/".join(("", "home", "anna"))
LEFT_BY_OPENING = """
.ipynb_checkpoints/03_attention-checkpoint.ipynb .03_attention.ipynb.swp .~03_attention.ipynb
03_attention-Copy1.ipynb my_progress.json my_transformer/test_lesson_03.py notes.md
my_model.safetensors runs/step_100.safetensors picture.png
""".split()


@pytest.mark.everything
@pytest.mark.slow
def test_lessons_that_were_opened_in_place_disturb_nothing(tmp_path):
    """The tests find the lessons and nothing else, and git has nothing to say."""
    course = tmp_path / "course"
    run = partial(subprocess.run, cwd=course, capture_output=True, text=True, check=True)
    shutil.copytree(ROOT, course, ignore=not_the_courses)
    run(["git", "init", "--quiet"])
    run(["git", "add", "--all"])
    for name in LEFT_BY_OPENING:
        (course / "notebooks" / name).parent.mkdir(exist_ok=True)
        (course / "notebooks" / name).write_text(f"{{no notebook, no code, {HOME}")
    assert run(["git", "status", "--short", "-uall"]).stdout.count("??") == 0
    pytest_ = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    collected = run([*pytest_, "--collect-only", "notebooks"]).stdout
    files = {line.split("::")[0] for line in collected.splitlines() if "::" in line}
    assert files == {f"notebooks/{place_of(path)}" for path in lesson_files()}
    machine = "tests/tools/test_repository.py::test_no_file_names_one_machine_or_a_registry"
    run([*pytest_, "tests/test_lessons.py", machine])


# A release

PROJECT = tomllib.loads(read("pyproject.toml"))["project"]
CITATION = yaml.safe_load(read("CITATION.cff"))
NOTES = read("CHANGELOG.md")
RELEASE = re.compile(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)$", re.MULTILINE)


def test_the_latest_release_is_the_version_everywhere_and_the_citation_says_the_same():
    latest, day = RELEASE.findall(NOTES)[0]
    assert (latest, day) == (PROJECT["version"], CITATION["date-released"])
    *_, installed = distributions(name="transformer_lesson")  # before it may lie an older build's
    assert CITATION["version"] == PROJECT["version"] == installed.version
    assert CITATION.get("repository-code") == PROJECT.get("urls", {}).get("Repository")
    assert CITATION["license"] == PROJECT["license"] and CITATION["authors"] == PROJECT["authors"]
