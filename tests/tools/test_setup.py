"""`make setup`: what a fresh, a moved and an unlucky machine get.

Make runs as it is, in a course of two files; shell scripts stand in for uv and for the Python in
.venv, note how they were called, and fail where the test wants it.
"""

import os
import shutil
import subprocess
import sys

import pytest

from tests.stored_lessons import ROOT

OUTSIDE_MAKE = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
STAND_IN = """#!/bin/sh
case "$*" in *{fails}*) exit 1;; esac
case "$*" in *install*|*venv*) echo "{name} $*" >> "$LOG";; esac
case "$*" in *"venv --clear"*) mkdir -p .venv/bin; cp "$0" .venv/bin/python;; esac
"""
pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


class Course:
    """A folder with the course's Makefile and stand-ins for the programs that it calls."""

    def __init__(self, folder):
        self.folder, self.log = folder / "course", folder / "log"
        self.programs = folder / "programs"
        self.folder.mkdir()
        self.programs.mkdir()
        for name in ("Makefile", "pyproject.toml", "requirements.txt", "requirements-lab.txt"):
            shutil.copyfile(ROOT / name, self.folder / name)
        (self.folder / "tools/jupyterlab").mkdir(parents=True)
        self.program("python3", fails="nothing")
        self.program("uv", fails="nothing")

    def program(self, name: str, fails: str) -> None:
        """Put a stand-in on the path that fails when called with some words."""
        (self.programs / name).write_text(STAND_IN.format(name=name, fails=f'"{fails}"'))
        (self.programs / name).chmod(0o755)

    def make(self, *words: str) -> tuple[list[str], subprocess.CompletedProcess]:
        """Run make; return how the stand-ins were called, and what make said."""
        self.log.write_text("")
        path = f"{self.programs}:/usr/bin:/bin"
        run = subprocess.run(
            ["make", *words],
            cwd=self.folder,
            env=OUTSIDE_MAKE | {"PATH": path, "LOG": str(self.log)},
            capture_output=True,
            text=True,
        )
        return self.log.read_text().splitlines(), run


@pytest.fixture
def course(tmp_path):
    return Course(tmp_path)


VENV = "python3 -m venv --clear .venv"
UV = "uv pip install --python .venv/bin/python --torch-backend auto -r requirements-lab.txt -e ."
PIP = "python3 -m pip install --disable-pip-version-check -r requirements-lab.txt -e ."


def test_a_finished_set_up_does_nothing_and_a_new_list_or_range_goes_into_the_same_venv(course):
    assert course.make("setup")[0] == [VENV, UV]
    assert course.make("setup")[0] == []
    for name in ("requirements-lab.txt", "pyproject.toml"):
        os.utime(course.folder / name, (2**32, 2**32))
        assert course.make("setup")[0] == [UV]
        os.utime(course.folder / name, (0, 0))


def test_a_folder_that_was_moved_gets_a_new_venv(course):
    course.make("setup")
    course.folder = course.folder.rename(course.folder.with_name("moved"))
    assert course.make("setup")[0] == [VENV, UV]
    (course.folder / ".venv/bin/python").unlink()  # the system's Python has gone
    assert course.make("setup")[0] == [VENV, UV]


def test_pip_installs_where_uv_finds_nothing_and_uv_is_fetched_where_there_is_none(course):
    course.program("uv", fails="pip install")
    assert course.make("setup")[0] == [VENV, PIP]
    (course.programs / "uv").unlink()
    shutil.rmtree(course.folder / ".venv")
    if shutil.which("uv", path="/usr/bin:/bin"):
        pytest.skip("a uv of the system's own is found")
    _, fetched, installed = course.make("setup")[0]
    assert fetched.endswith("--constraint requirements.txt uv") and installed == PIP


def test_without_a_network_one_sentence_is_said_and_nothing_is_lost(course):
    course.make("setup")
    os.utime(course.folder / "requirements-lab.txt", (2**32, 2**32))
    course.program("uv", fails="install")
    python = course.folder / ".venv/bin/python"
    python.write_text(STAND_IN.format(name="python3", fails='"install"'))
    _, run = course.make("setup")
    assert run.returncode and "The packages could not be installed" in run.stderr
    assert python.exists()
    course.program("uv", fails="nothing")
    assert course.make("setup")[0] == [UV]


@pytest.mark.parametrize(
    ("words", "fails", "said"),
    [
        (["PYTHON=python3"], "sys.exit", "python3 is not Python 3.11"),
        (["PYTHON=python3"], "venv", "python3 could not make .venv: on Debian"),
    ],
)
def test_a_python_that_does_not_serve_gets_one_sentence(course, words, fails, said):
    course.program("python3", fails=fails)
    _, run = course.make("setup", *words)
    assert run.returncode and said in run.stderr


def test_jupyterlab_has_the_course_s_settings_and_extension():
    for name in (
        "lab/settings/overrides.d/transformer_lesson.json5",
        "labextensions/transformer-lesson/static/extension.js",
    ):
        assert os.path.exists(os.path.join(sys.prefix, "share/jupyter", name)), name
