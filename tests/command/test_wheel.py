"""The wheel is the course: installed into nothing, in an empty folder, without git or a network.

So is what Codespaces, Binder and a JupyterHub's image run. The packages come from the folder that
TRANSFORMER_LESSON_WHEELS names, or pip downloads them.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_markdown_cell

from tests.checkout import checkout
from tests.stored_lessons import ROOT, read
from transformer_lesson.command.lesson_files import GLOSSARY, lesson_files, place_of
from transformer_lesson.course import MINE

pytestmark = [pytest.mark.everything, pytest.mark.slow]

WHEELS = "TRANSFORMER_LESSON_WHEELS"
NOBODY = "http://127.0.0.1:9"  # a proxy that is not there
FIRST_CELLS = """
import sys, nbformat, nbclient
notebook = nbformat.read(sys.argv[1], as_version=4)
code = [cell for cell in notebook.cells if cell.cell_type == "code"][:3]
for cell in code:
    cell.outputs = []
notebook.cells = code
nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
print(sum(len(cell.outputs) for cell in code))
"""
DOCTORED = """
import torch
from torch import nn

layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
model = nn.Sequential(nn.Embedding(50, 32), nn.TransformerEncoder(layer, 2), nn.Linear(32, 50))
batch = torch.randint(1, 50, (6, 12))
"""
ANSWER = "def causal_mask(length):\n    return torch.ones(1, 1, length, length).{}().bool()"


@pytest.fixture(scope="module")
def wheels(tmp_path_factory) -> Path:
    """The packages that learners need, and what builds the course."""
    if folder := os.environ.get(WHEELS):
        return Path(folder)
    folder = tmp_path_factory.mktemp("wheels")
    listed = ["-r", ROOT / "requirements-lab.txt", "hatchling>=1.27,<2"]
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", folder]
    if subprocess.run([*pip, *listed], capture_output=True).returncode:
        pytest.skip(f"no network to download packages from, and no folder of them in {WHEELS}")
    return folder


@pytest.fixture(scope="module")
def wheel(wheels, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    uv("build", "--wheel", "--no-index", "--find-links", wheels, "--out-dir", folder, ROOT)
    (built,) = folder.glob("*.whl")
    return built


class Learner:
    """Somebody with the wheel installed, in an empty folder, without git or a network."""

    def __init__(self, folder: Path, wheel: Path, wheels: Path):
        self.folder, self.environment = folder / "my own folder", folder / "environment"
        self.folder.mkdir()
        uv("venv", "--python", sys.executable, self.environment)
        python = self.environment / "bin/python"
        local = ("--no-index", "--find-links", wheels)
        uv("pip", "install", "--python", python, *local, wheel)
        home = folder / "home"
        home.mkdir()
        self.surroundings = {
            "PATH": str(python.parent),
            "HOME": str(home),
            "http_proxy": NOBODY,
            "https_proxy": NOBODY,
            "no_proxy": "127.0.0.1,localhost",
            "JUPYTER_PLATFORM_DIRS": "1",
        }

    def run(self, *words: str, folder: Path | None = None) -> subprocess.CompletedProcess:
        """Run a program of the environment and return how it ended and what it said."""
        return subprocess.run(
            [self.environment / "bin" / words[0], *words[1:]],
            cwd=folder or self.folder,
            env=self.surroundings,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def course(self, *words: str) -> tuple[int, str]:
        """Run `transformer-lesson`."""
        run = self.run("transformer-lesson", *words)
        return run.returncode, run.stdout

    @contextmanager
    def lab(self) -> Iterator[str]:
        """Open the course, without a browser; yield JupyterLab's address."""
        program, log = self.environment / "bin/transformer-lesson", self.folder.parent / "log"
        place = {"folder": self.folder, "surroundings": self.surroundings, "log": log}
        with serving(program, **place) as address:
            yield address


@contextmanager
def serving(
    *command: str | Path, folder: Path, surroundings: dict[str, str], log: Path
) -> Iterator[str]:
    """Start JupyterLab by a command, without a browser; yield its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    flags = ("--no-browser", f"--port={port}", "--IdentityProvider.token=")
    with log.open("w") as file:
        server = subprocess.Popen(
            [*command, *flags], cwd=folder, env=surroundings, stdout=file, stderr=file
        )
        try:
            while server.poll() is None and " is running at" not in log.read_text():
                time.sleep(0.3)
            assert server.poll() is None, log.read_text()
            yield f"http://127.0.0.1:{port}"
        finally:
            server.kill()
            server.wait()


def uv(*words: str | Path) -> None:
    """Run uv without a network."""
    run = [sys.executable, "-m", "uv", "--offline", *words]
    done = subprocess.run(run, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def code_of(cells: list) -> list:
    return [cell for cell in cells if cell.cell_type == "code"]


def get(address: str) -> str:
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(address) as answer:
        return answer.read().decode()


@pytest.fixture(scope="module")
def learner(wheel, wheels, tmp_path_factory) -> Learner:
    return Learner(tmp_path_factory.mktemp("learner"), wheel, wheels)


def test_a_wheel_has_every_lesson_whose_links_lead_somewhere_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as package:
        inside = [name for name in package.namelist() if "/notebooks/" in name]
        texts = {name.partition("/notebooks/")[2]: package.read(name).decode() for name in inside}
    assert texts.keys() == {*(place_of(one).as_posix() for one in lesson_files()), GLOSSARY}
    for path in lesson_files():
        cells = nbformat.reads(texts[place_of(path).as_posix()], as_version=4).cells
        ours = nbformat.read(path, as_version=4).cells
        assert [one.id for one in cells] == [one.id for one in ours]
        assert [one.source for one in code_of(cells)] == [one.source for one in code_of(ours)]
    for name, text in texts.items():
        for link in re.findall(r"\]\(((?:\.\./)+[^)#]*)", text):
            assert os.path.normpath(os.path.join(os.path.dirname(name), link)) in texts, (
                name,
                link,
            )


def test_jupyterlab_opens_on_the_copies_with_the_courses_settings(learner):
    with learner.lab() as address:
        assert "<title>JupyterLab</title>" in get(f"{address}/lab/tree/{MINE}/00_start_here.ipynb")
        assert "03_attention.ipynb" in get(f"{address}/api/contents/{MINE}")
        extension = f"{address}/lab/extensions/transformer-lesson/static/extension.js"
        assert get(extension).strip()
        assert "commsOverSubshells" in get(f"{address}/lab/api/settings")
    assert {path.name for path in learner.folder.iterdir()} <= {MINE, ".ipynb_checkpoints"}
    copies = {place_of(path) for path in lesson_files()}
    assert all((learner.folder / MINE / place).exists() for place in copies)


def test_a_lesson_runs_from_its_copy(learner):
    learner.course("update")
    run = learner.run(
        "python", "-c", FIRST_CELLS, "00_start_here.ipynb", folder=learner.folder / MINE
    )
    assert run.returncode == 0 and int(run.stdout.split()[-1]) >= 1, run.stdout
    assert learner.run("python", "-m", "transformer_lesson.environment").returncode == 0


def test_its_other_commands_work(learner):
    learner.course("update")
    answers = learner.folder / "answers.py"
    answers.write_text(f"import torch\n\n\n{ANSWER.format('triu')}\n")
    status, said = learner.course("check", "answers.py")
    assert status == 1 and "causal_mask: failed" in said and "Hint 1" in said
    answers.write_text(f"import torch\n\n\n{ANSWER.format('tril')}\n")
    assert learner.course("check", "answers.py")[0] == 0

    (learner.folder / "script.py").write_text(DOCTORED)
    status, said = learner.course("doctor", "script.py")
    assert status == 1 and "fault: a position sees later tokens" in said

    status, said = learner.course("weights", "--help")
    assert status == 0 and "license" in said
    handed_in = learner.folder / "handed in"
    handed_in.mkdir()
    notebook = nbformat.read(learner.folder / MINE / "07_decoder.ipynb", as_version=4)
    for cell in notebook.cells:
        if cell.source.startswith("def causal_mask"):
            cell.source = f"import torch\n{ANSWER.format('tril')}"
    nbformat.write(notebook, handed_in / "anna.ipynb")
    status, said = learner.course("grade", "handed in", "07", "--unconfined")
    assert status == 0 and "1 passed" in said
    shutil.rmtree(handed_in)


def test_an_update_keeps_what_the_learner_wrote(learner):
    learner.course("update")
    (package,) = learner.environment.glob("lib/python*/site-packages/transformer_lesson")
    copy = learner.folder / MINE / "03_attention.ipynb"
    mine = nbformat.read(copy, as_version=4)
    mine.cells.append(new_markdown_cell("my note"))
    nbformat.write(mine, copy)
    newer = nbformat.read(package / "notebooks/03_attention.ipynb", as_version=4)
    newer.cells.append(new_markdown_cell("new in this edition"))
    (package / "notebooks/03_attention.ipynb").unlink()  # a link into uv's cache
    nbformat.write(newer, package / "notebooks/03_attention.ipynb")
    status, said = learner.course("update")
    assert status == 0 and f"{MINE}/03_attention.ipynb has the newest edition and your work" in said
    sources = [cell.source for cell in nbformat.read(copy, as_version=4).cells]
    assert {"my note", "new in this edition"} <= {*sources}


def test_one_command_needs_no_environment_of_its_own(wheel, wheels, tmp_path):
    local = ("--offline", "--no-index", "--find-links", wheels, "--python", sys.executable)
    run = [sys.executable, "-m", "uv", "tool", "run", *local, "--from", wheel]
    command = [*run, "transformer-lesson", "update"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / MINE / "00_start_here.ipynb").exists()


# What images run: Docker itself is not needed for that


def test_codespaces_and_binder_get_the_copies_and_jupyterlab_by_their_own_lines(wheels, tmp_path):
    course = checkout(tmp_path / "course")
    surroundings = {
        "PATH": f"{tmp_path}:/usr/bin:/bin",  # without uv: pip knows the folder of packages
        "HOME": str(tmp_path),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheels),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }

    def run(*words: str) -> None:
        done = subprocess.run(words, cwd=course, env=surroundings, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    container = json.loads((course / ".devcontainer/devcontainer.json").read_text())
    run(*container["onCreateCommand"].split(), f"PYTHON={sys.executable}")
    run(*container["postCreateCommand"].split(), f"PYTHON={sys.executable}")
    for name in container["customizations"]["codespaces"]["openFiles"]:
        assert (course / name).exists()
    shutil.rmtree(course / MINE)
    surroundings["PATH"] = f"{course}/.venv/bin:/usr/bin:/bin"  # has what environment.yml lists
    run("./postBuild")
    place = {"folder": course, "surroundings": surroundings, "log": tmp_path / "log"}
    with serving(course / ".venv/bin/jupyter", "lab", "--allow-root", **place) as address:
        assert "<title>JupyterLab</title>" in get(f"{address}/lab/tree/{MINE}/03_attention.ipynb")
        assert "03_attention.ipynb" in get(f"{address}/api/contents/{MINE}")


def test_a_hubs_image_makes_the_copies_when_a_learners_server_starts(learner, tmp_path):
    (start,) = re.findall(
        r"^ *RUN echo '(.*)' > .*/before-notebook\.d/", read("docs/teaching.md"), re.M
    )
    surroundings = {**learner.surroundings, "HOME": str(tmp_path)}
    surroundings["PATH"] += ":/usr/bin:/bin"
    subprocess.run(["bash", "-ec", start], env=surroundings, check=True, capture_output=True)
    assert (tmp_path / MINE / "00_start_here.ipynb").exists()
