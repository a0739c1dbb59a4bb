"""One list of versions: the ranges admit the exact ones, and these are complete on every system."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from itertools import product
from pathlib import Path

import pytest
import yaml
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools import lock
from transformer_lesson.figures.attention_view.view import BERTVIZ

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PYTHONS = [text.split()[-1] for text in PROJECT["project"]["classifiers"]]
SYSTEMS = [("linux", "Linux", "posix"), ("darwin", "Darwin", "posix"), ("win32", "Windows", "nt")]
EXTRAS = PROJECT["project"]["optional-dependencies"]
FOR_ALL = PROJECT["build-system"]["requires"] + PROJECT["project"]["dependencies"]
FOR_LEARNERS = FOR_ALL + EXTRAS["lessons"] + EXTRAS["lab"]


def pins(name: str) -> dict[str, Requirement]:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    found = [Requirement(line) for line in lines if not line.startswith("#")]
    assert len({pin.name for pin in found}) == len(found), "a package stands twice"
    return {canonicalize_name(pin.name): pin for pin in found}


PINS = pins("requirements.txt")


def version(pin: Requirement) -> str:
    (specifier,) = pin.specifier
    assert specifier.operator == "==" and "*" not in specifier.version, pin
    return specifier.version


@pytest.mark.parametrize(
    ("name", "ranges"),
    [
        ("requirements.txt", FOR_ALL + sum(EXTRAS.values(), [])),
        ("requirements-lab.txt", FOR_LEARNERS),
    ],
)
def test_the_ranges_admit_the_exact_versions(name, ranges):
    chosen = pins(name)
    for wanted in map(Requirement, ranges):
        exact = version(chosen[canonicalize_name(wanted.name)])
        assert wanted.specifier.contains(exact), f"{wanted} does not admit {exact}: `make lock`"


def test_only_the_bertviz_whose_scripts_are_mended_is_allowed():
    (allowed,) = (one for one in map(Requirement, FOR_LEARNERS) if one.name == "bertviz")
    assert str(allowed.specifier) == f"=={BERTVIZ}"


def test_a_learner_gets_the_versions_that_were_tested():
    for name, pin in pins("requirements-lab.txt").items():
        assert pin == PINS[name]


def test_a_learner_gets_no_tools_for_tests_and_web_site():
    tools = {canonicalize_name(Requirement(text).name) for text in EXTRAS["dev"] + EXTRAS["site"]}
    jupyterlab_needs = {"nbclient", "nbformat", "packaging", "pyyaml"}
    assert tools & set(pins("requirements-lab.txt")) <= jupyterlab_needs


@pytest.mark.pins
def test_this_run_uses_the_exact_versions():
    wrong = {}
    for name, pin in PINS.items():
        if pin.marker is None or pin.marker.evaluate():
            installed = distribution(name).version.split("+")[0]
            if installed != version(pin):
                wrong[name] = installed
    assert wrong == {}


@pytest.mark.slow
@pytest.mark.pins
@pytest.mark.parametrize(("system", "python"), [*product(SYSTEMS, PYTHONS)], ids=str)
def test_nothing_is_left_to_the_day_of_the_install(system, python):
    machine = dict(zip(("sys_platform", "platform_system", "os_name"), system, strict=True))
    machine |= {"python_version": python, "python_full_version": f"{python}.0", "extra": ""}
    environment = default_environment() | machine
    there = {
        name for name, pin in PINS.items() if pin.marker is None or pin.marker.evaluate(environment)
    }
    asked = set()
    for name in there:
        try:
            wants = map(Requirement, distribution(name).requires or [])
        except PackageNotFoundError:  # a package for another system
            continue
        asked |= {
            canonicalize_name(want.name)
            for want in wants
            if want.marker is None or want.marker.evaluate(environment)
        }
    assert {name for name in asked - there if not lock.OF_CUDA.match(f"{name}=")} == set()


def test_conda_and_binder_install_what_make_lab_does():
    assert not (ROOT / "binder").exists() and not (ROOT / ".binder").exists()  # read instead
    *_, from_pip = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    assert from_pip == {"pip": ["-r requirements-lab.txt", "-e ."]}


def test_every_python_that_is_named_is_tested():
    job = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]["test"]
    assert job["strategy"]["matrix"]["python-version"] == PYTHONS
    assert PROJECT["project"]["requires-python"] == f">={PYTHONS[0]}"


def test_packages_for_graphics_cards_are_left_to_pytorch():
    made = "cuda-bindings==1 ; sys_platform == 'linux'\nnvidia-nccl-cu13==2\ntriton==3\nnumpy==2\n"
    assert lock.OF_CUDA.sub("", made) == "numpy==2\n"
    assert not [name for name in PINS if re.match("cuda|nvidia|triton", name)]
