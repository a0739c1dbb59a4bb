"""One list of versions: the ranges admit the exact ones, and these are complete on every system."""

import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from itertools import product

import pytest
import yaml
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.stored_lessons import ROOT, read
from transformer_lesson.figures.attention_view.view import BERTVIZ

PROJECT = tomllib.loads(read("pyproject.toml"))
PYTHONS = [text.split()[-1] for text in PROJECT["project"]["classifiers"]]
SYSTEMS = [("linux", "Linux", "posix"), ("darwin", "Darwin", "posix"), ("win32", "Windows", "nt")]
EXTRAS = PROJECT["project"]["optional-dependencies"]
*CORE, COURSE = PROJECT["project"]["dependencies"]
FOR_LEARNERS = CORE + EXTRAS["lessons"] + EXTRAS["lab"]
FOR_ALL = FOR_LEARNERS + EXTRAS["site"] + EXTRAS["dev"]
OF_CUDA = re.compile("(cuda-|nvidia-|triton$)")


def pins(name: str) -> dict[str, Requirement]:
    lines = read(name).splitlines()
    found = [Requirement(line) for line in lines if not line.startswith("#")]
    assert len({pin.name for pin in found}) == len(found), "a package stands twice"
    return {canonicalize_name(pin.name): pin for pin in found}


PINS = pins("requirements.txt")


def version(pin: Requirement) -> str:
    (specifier,) = pin.specifier
    assert specifier.operator == "==" and "*" not in specifier.version, pin
    return specifier.version


def test_the_ranges_admit_the_exact_versions():
    chosen = {"requirements.txt": FOR_ALL, "requirements-lab.txt": FOR_LEARNERS}
    for name, ranges in chosen.items():
        exact_ones = pins(name)
        for wanted in map(Requirement, ranges):
            exact = version(exact_ones[canonicalize_name(wanted.name)])
            assert wanted.specifier.contains(exact), f"{wanted} does not admit {exact}: `make lock`"
    (allowed,) = (one for one in map(Requirement, FOR_LEARNERS) if one.name == "bertviz")
    assert str(allowed.specifier) == f"=={BERTVIZ}", "another's scripts would not be mended"


def test_who_installs_the_package_gets_the_course():
    assert COURSE == f"{PROJECT['project']['name']}[lessons,lab]"


def test_a_learner_gets_the_versions_that_were_tested_and_no_tools_for_tests_and_web_site():
    learners = pins("requirements-lab.txt")
    exact = {name: version(pin) for name, pin in learners.items()}
    assert exact.items() <= {name: version(pin) for name, pin in PINS.items()}.items()
    tools = {canonicalize_name(Requirement(text).name) for text in EXTRAS["dev"] + EXTRAS["site"]}
    # By JupyterLab, sacrebleu and bertviz.
    needed = {"jupyter-client", "lxml", "nbclient", "psutil", "pygments", "pyyaml", "sentencepiece"}
    assert tools & set(learners) <= needed


def applies(wanted: Requirement, environment: dict | None = None) -> bool:
    return wanted.marker is None or wanted.marker.evaluate(environment)


@pytest.mark.pins
def test_this_run_uses_the_exact_versions():
    here = [name for name, pin in PINS.items() if applies(pin)]
    installed = {name: distribution(name).version.split("+")[0] for name in here}
    assert installed == {name: version(PINS[name]) for name in here}


@pytest.mark.pins
def test_the_lists_are_what_the_lock_file_says(tmp_path):
    made = ("Makefile", "pyproject.toml", "uv.lock", "README.md", "LICENSE")
    for name in made:
        shutil.copyfile(ROOT / name, tmp_path / name)
    command = ["make", "lock", "--assume-old=setup-tests", f"RUN={sys.executable} -m"]
    subprocess.run([*command, "UPGRADE=--offline"], cwd=tmp_path, check=True, capture_output=True)
    for name in ("uv.lock", "requirements.txt", "requirements-lab.txt"):
        assert (tmp_path / name).read_text("utf-8") == read(name), "run `make lock`"


@pytest.mark.slow
@pytest.mark.pins
@pytest.mark.parametrize(("system", "python"), [*product(SYSTEMS, PYTHONS)], ids=str)
def test_nothing_is_left_to_the_day_of_the_install(system, python):
    machine = dict(zip(("sys_platform", "platform_system", "os_name"), system, strict=True))
    machine |= {"python_version": python, "python_full_version": f"{python}.0", "extra": ""}
    environment = default_environment() | machine
    there = {name for name, pin in PINS.items() if applies(pin, environment)}
    asked = set()
    for name in there:
        try:
            wants = map(Requirement, distribution(name).requires or [])
        except PackageNotFoundError:  # a package for another system
            continue
        asked |= {canonicalize_name(want.name) for want in wants if applies(want, environment)}
    assert {name for name in asked - there if not OF_CUDA.match(name)} == set()
    assert not any(map(OF_CUDA.match, PINS)), "left to PyTorch, whose builds name theirs"


def test_conda_and_binder_install_what_make_lab_does_on_every_python_that_is_named():
    assert not (ROOT / "binder").exists() and not (ROOT / ".binder").exists()  # read instead
    *_, from_pip = yaml.safe_load(read("environment.yml"))["dependencies"]
    assert from_pip == {"pip": ["-r requirements-lab.txt", "-e ."]}

    job = yaml.safe_load(read(".github/workflows/ci.yml"))["jobs"]["test"]
    assert job["strategy"]["matrix"]["python-version"] == PYTHONS
    assert PROJECT["project"]["requires-python"] == f">={PYTHONS[0]}"
    first, last = ((int(a), int(b)) for a, b in (PYTHONS[i].split(".") for i in (0, -1)))
    supported = f"not {first} <= sys.version_info < {(last[0], last[1] + 1)}"
    assert supported in read("Makefile")
    assert f"Python {PYTHONS[0]} to {PYTHONS[-1]}" in read("README.md")
