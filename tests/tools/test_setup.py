"""`make setup`: what a fresh, a half-made, a moved and an unlucky machine get.

Make and tools/setup.py run as they are, in a course of three files; a shell script stands in for uv
and for the Python in .venv, notes how it was called, and does what the test wants.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.stored_lessons import ROOT
from tools import setup

# as typed by a user, not as a part of the `make test` that is running
OUTSIDE_MAKE = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
IN_JUPYTERLAB = {
    "transformer_lesson.json5": "lab/settings/overrides.d/transformer_lesson.json5",
    "extension/package.json": "labextensions/transformer-lesson/package.json",
    "extension/static/extension.js": "labextensions/transformer-lesson/static/extension.js",
}
"""What JupyterLab gets: files in `tools/jupyterlab`, and where in `share/jupyter` they go."""
OF_JUPYTERLAB = [f"tools/jupyterlab/{name}" for name in IN_JUPYTERLAB]
MADE_FROM = ("requirements-lab.txt", "pyproject.toml", "tools/setup.py", *OF_JUPYTERLAB)
STAND_IN = """#!/bin/sh
echo "{name} $*" >>log
case "$*" in {when}) {code};; esac
"""
MAKES_VENV = """
import pathlib, shutil
print("venv made", file=open("log", "a"))
shutil.rmtree(".venv", ignore_errors=True)
pathlib.Path(".venv/lib/python3/site-packages").mkdir(parents=True)
pathlib.Path(".venv/bin").mkdir()
shutil.copy("stand-ins/python", ".venv/bin/python")
"""
A_LIST, AN_INSTALL = '*" -r "*', '"pip install"*'  # among the words of a call
COPIES_HALF = "touch .venv/lib/python3/site-packages/half"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed"),
]


class Course:
    """A folder with the course's set-up, and stand-ins for the programs that it calls."""

    def __init__(self, folder: Path):
        self.folder = folder
        for name in ("Makefile", "tools/__init__.py", *MADE_FROM[1:]):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
        (folder / "requirements-lab.txt").write_text("torch==2.13.0\n")
        (folder / "requirements.txt").write_text("torch==2.13.0\nuv==0.13.9\n")
        (folder / "venv.py").write_text(MAKES_VENV)  # `python -m venv` finds it first
        (folder / "stand-ins").mkdir()
        self.stand_in("python")
        self.stand_in("uv")

    def stand_in(self, name: str, code: str = "", when: str = "*") -> None:
        """Let uv, or the next .venv's Python, run a line of shell whenever it is called so."""
        script = self.folder / "stand-ins" / name
        script.write_text(STAND_IN.format(name=name, code=code, when=when))
        script.chmod(0o755)

    def start(self, target: str = "setup", *options: str) -> subprocess.Popen:
        path = f"{self.folder / 'stand-ins'}:{os.environ['PATH']}"
        return subprocess.Popen(
            ["make", target, f"PYTHON={sys.executable}", *options],
            cwd=self.folder,
            env={**OUTSIDE_MAKE, "PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def make(self, *arguments: str, succeeds: bool = True) -> str:
        with self.start(*arguments) as run:
            said = run.communicate()[0]
        assert (run.returncode == 0) == succeeds, said
        return said

    def log(self, start: str = "") -> list[str]:
        file = self.folder / "log"
        lines = file.read_text().splitlines() if file.exists() else []
        return [line for line in lines if line.startswith(start)]

    def installed(self) -> list[str]:
        """The lists that were installed until now, with the program that did it."""
        calls = [line.split() for line in self.log() if " -r " in line]
        return [f"{words[0]} {words[words.index('-r') + 1]}" for words in calls]

    def killed_while_copying(self, target: str) -> None:
        self.stand_in("uv", f"{COPIES_HALF}; touch copying; sleep 600", A_LIST)
        run = self.start(target)
        wait_until((self.folder / "copying").exists, run)
        os.killpg(run.pid, signal.SIGKILL)
        run.communicate()
        self.stand_in("uv")

    def has_half(self) -> bool:
        return any(self.folder.glob(".venv/lib/*/*/half"))


@pytest.fixture
def course(tmp_path) -> Course:
    folder = tmp_path / "a coürse"
    folder.mkdir()
    return Course(folder)


def wait_until(happened: Callable[[], bool], run: subprocess.Popen) -> None:
    while not happened():
        assert run.poll() is None, run.communicate()[0]
        time.sleep(0.02)


# What is installed, and when


def test_a_learner_gets_less_than_the_tests_do_and_a_finished_set_up_does_nothing(course):
    course.make("setup")
    course.make("setup-tests")
    assert course.installed() == ["uv requirements-lab.txt", "uv requirements.txt"]
    assert "-e ." in course.log("uv")[-1]
    before = course.log()
    for target in ("setup", "setup-tests"):
        course.make(target)
    assert course.log() == before


@pytest.mark.parametrize("changed", MADE_FROM)
def test_a_changed_file_is_installed_into_the_same_venv(course, changed):
    course.make()
    (course.folder / changed).touch()
    course.make()
    assert course.installed() == ["uv requirements-lab.txt"] * 2
    assert len(course.log("venv made")) == 1


def test_a_folder_that_was_moved_is_set_up_again_and_a_venv_without_python_made_anew(course):
    course.make()
    course.folder = course.folder.rename(course.folder.parent / "moved")
    course.make()
    course.make()
    assert len(course.installed()) == 2 and len(course.log("venv made")) == 1
    (course.folder / ".venv/bin/python").unlink()
    assert "making a new one" in course.make()
    assert len(course.log("venv made")) == 2


# Interrupted, crowded, unlucky


def test_a_killed_set_up_begins_anew(course):
    course.killed_while_copying("setup")
    assert "incomplete (an interrupted set-up?): making a new one" in course.make()
    assert not course.has_half() and len(course.log("venv made")) == 2


def test_a_killed_update_begins_anew_for_every_list(course):
    course.make("setup")
    course.killed_while_copying("setup-tests")
    assert "making a new one" in course.make("setup")


def test_two_set_ups_take_turns(course):
    waits = "while [ ! -e go ]; do sleep 0.02; done"
    course.stand_in("uv", f'{waits}; echo "uv ends" >>log', A_LIST)
    first = course.start()
    wait_until(lambda: bool(course.installed()), first)
    second = course.start()
    line = second.stdout.readline()
    assert "Another set-up is running in this folder: waiting for it." in line
    assert len(course.installed()) == 1
    (course.folder / "go").touch()
    for run in (first, second):
        said = run.communicate()[0]
        assert run.returncode == 0, said
    order = [line for line in course.log("uv") if " -r " in line or line == "uv ends"]
    assert [line == "uv ends" for line in order] == [False, True, False, True]
    assert len(course.log("venv made")) == 1


def test_a_full_disk_is_said_and_half_a_package_does_not_stay(course):
    course.stand_in("uv", f'{COPIES_HALF}; echo "No space left on device"; exit 2', A_LIST)
    said = course.make(succeeds=False)
    assert "No space left on device" in said and "a full disk are the usual reasons" in said
    assert course.installed() == ["uv requirements-lab.txt"]  # pip would fill what is left
    course.stand_in("uv")
    assert "making a new one" in course.make() and not course.has_half()


def test_without_a_network_nothing_is_lost(course):
    course.make("setup")
    course.stand_in("python", "exit 1", f"*{AN_INSTALL}")
    course.stand_in("uv", "exit 1", AN_INSTALL)
    shutil.copy(course.folder / "stand-ins/python", course.folder / ".venv/bin/python")
    said = course.make("setup-tests", succeeds=False)
    assert "no network and a full disk are the usual reasons" in said
    course.make("setup")  # what was there can be used
    assert len(course.log("venv made")) == 1


# Who installs, and from where


def test_where_uv_fails_at_the_start_pip_installs(course):
    course.stand_in("uv", "exit 2", AN_INSTALL)
    course.make()
    assert course.installed() == ["uv requirements-lab.txt", "python requirements-lab.txt"]


@pytest.mark.parametrize(("can_be_had", "expected"), [(True, "-m uv"), (False, "-m pip")])
def test_without_uv_it_is_put_into_the_venv_if_it_can_be(course, can_be_had, expected):
    course.stand_in("uv", "exit 1")
    course.stand_in("python", "" if can_be_had else "exit 1", "*--constraint*")
    course.make()
    assert course.installed() == ["python requirements-lab.txt"]
    assert course.log("python")[-2].startswith(f"python {expected} ")


@pytest.mark.parametrize("reached", [True, False])
def test_pytorch_fits_the_machine_where_its_index_can_be_reached(course, reached):
    course.stand_in("uv", "" if reached else "exit 2", "*--dry-run*")
    said = course.make()
    probe, install, _ = course.log("uv pip install")
    assert "--torch-backend auto --dry-run --reinstall torch==2.13.0" in probe
    assert ("--torch-backend auto" in install) == reached
    assert len(said.splitlines()) == 1  # nobody is alarmed


def test_uv_looks_where_pip_does(monkeypatch):
    monkeypatch.setattr(setup, "PYTHON", Path(sys.executable))
    indexes = {"PIP_INDEX_URL": "https://one.example/simple", "PIP_NO_INDEX": "1"}
    indexes |= {"PIP_EXTRA_INDEX_URL": "https://two.example/simple\nfile:///three"}
    for name, value in (indexes | {"PIP_FIND_LINKS": "wheels"}).items():
        monkeypatch.setitem(setup.ENVIRONMENT, name, value)
    assert setup.pip_settings() == {
        "UV_DEFAULT_INDEX": "https://one.example/simple",
        "UV_INDEX": "https://two.example/simple file:///three",
        "UV_FIND_LINKS": "wheels",
        "UV_NO_INDEX": "1",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
    }


def test_the_install_section_of_pip_s_files_outdoes_the_global_one(course):
    lists = """echo "global.find-links='all'"; echo "install.find-links='one two'" """
    course.stand_in("python", lists, '*"config list"')
    course.stand_in("uv", 'echo "links $UV_FIND_LINKS" >>log', AN_INSTALL)
    course.make()
    # the question for PyTorch's index, the list, the course; no command line shows an address
    assert course.log("links") == ["links one two"] * 3
    assert not any("one" in call.split() for call in course.log("uv"))


# Sentences


def python_of(version: str, path: Path) -> Path:
    """A Python that takes itself for another version, and runs what stands behind `-c`."""
    number = tuple(map(int, version.split(".")))
    code = f"import sys; sys.version_info = {number}; exec(sys.argv[2].partition('; ')[2])"
    path.write_text(f"#!{sys.executable}\n{code}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("version", ["3.10", "3.15"])
def test_a_python_without_packages_gets_one_sentence_and_another_beside_it_is_taken(
    course, version
):
    wrong = python_of(version, course.folder / "stand-ins/python3")
    said = course.make("setup", f"PYTHON={wrong}", succeeds=False)
    assert said.startswith(f"{wrong} is not Python 3.11, 3.12, 3.13 or 3.14, for which")
    assert not (course.folder / ".venv").exists()
    run = ["make", "--dry-run", "setup"]
    path = f"{course.folder / 'stand-ins'}:/usr/bin:/bin"
    right = python_of("3.13", course.folder / "stand-ins/python3.13")
    made = subprocess.run(
        run, cwd=course.folder, env={"PATH": path}, text=True, capture_output=True
    )
    assert f'"{right.name}" -m tools.setup' in made.stdout


@pytest.mark.parametrize(
    ("system", "says"),
    [
        (("Darwin", "x86_64", "15.1", ""), "no package for Intel Macs: on Apple silicon install a"),
        (("Darwin", "arm64", "13.6", ""), "macOS 13.6: update to macOS 14 or newer"),
        (("Darwin", "arm64", "14.0", ""), None),
        (("Linux", "armv7l", "", "2.36"), "Linux on armv7l: take a 64-bit machine"),
        (("Linux", "x86_64", "", ""), "without glibc 2.28"),
        (("Linux", "x86_64", "", "2.17"), "without glibc 2.28"),
        (("Linux", "aarch64", "", "2.28"), None),
    ],
    ids=str,
)
def test_a_system_without_packages_gets_one_sentence(system, says):
    told = setup.refusal(*system)
    assert (says in told and told.count(".") < 5) if says else told == ""


def test_a_venv_that_is_too_old_or_cannot_be_made_and_a_locked_folder_are_told_what_to_do(course):
    course.stand_in("python", "exit 1", "*version_info*")
    said = course.make(succeeds=False)
    assert ".venv holds a Python that is too old or too new: run `make clean`" in said
    assert course.installed() == []
    shutil.rmtree(course.folder / ".venv")
    (course.folder / "venv.py").write_text("raise SystemExit(1)")
    assert "sudo apt install python3." in course.make(succeeds=False)
    (course.folder / ".setup.lock").unlink()
    (course.folder / ".setup.lock").mkdir()  # root may write anywhere, but not into a folder's name
    said = course.make(succeeds=False)
    assert f"{course.folder} and cannot write there" in said
    assert "copy the course to a folder of your own" in said


def test_make_alone_lists_the_commands_and_a_busy_port_gets_one_sentence(course):
    listing = course.make("help")
    for command in ("lab", "test", "notebooks", "lock", "bench", "clean"):
        assert f"make {command} " in listing
    course.make()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        flags = f"--port={taken.getsockname()[1]} --ServerApp.port_retries=0 --no-browser"
        said = course.make("lab", f"RUN={sys.executable} -m", f"LAB_FLAGS={flags}", succeeds=False)
    assert "make lab LAB_FLAGS=--port=9000" in said


@pytest.mark.parametrize("name", IN_JUPYTERLAB)
def test_jupyterlab_has_the_course_s_settings_and_extension(name):
    installed = Path(sys.prefix, "share/jupyter", IN_JUPYTERLAB[name])
    assert installed.read_text() == (ROOT / "tools/jupyterlab" / name).read_text()
