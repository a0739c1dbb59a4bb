"""On Colab and Kaggle a lesson's first cell installs the course beside what they bring, no more.

Both are imitated here: an environment with their IPython, ipywidgets, numpy and pillow, in which a
published lesson runs from top to bottom. PyTorch is that of the tests; a folder's git stands in for
GitHub. Their own pages cannot be had, so an explorable is shown as they show it, in a frame that
may run scripts and nothing else.
"""

import html
import json
import os
import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import nbformat
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.cells import without_slow_cells
from tests.checkout import checkout
from tests.stored_lessons import read
from tools import address
from tools.browser import chromium_program, headless, new_context
from transformer_lesson.command.hosted import CELL

COLAB = """
filelock==3.20.3 huggingface-hub==1.4.0 ipykernel==6.17.1 ipython==7.34.0 ipywidgets==7.7.1
jupyter-client==7.4.9 matplotlib==3.10.0 numpy==2.0.2 packaging==26.0 pillow==11.3.0
safetensors==0.7.0 tokenizers==0.22.2 tqdm==4.67.3 traitlets==5.7.1 transformers==5.0.0
""".split()
"""Some of what Colab brought in 2026, beside torch 2.9.0."""
KAGGLE = """
anywidget==0.9.21 filelock==3.25.2 huggingface-hub==1.10.1 ipython==7.34.0 ipywidgets==8.1.5
matplotlib==3.10.0 mpld3==0.5.12 numpy==2.4.6 packaging==26.0 pillow==11.3.0 safetensors==0.7.0
tokenizers==0.22.2 torch==2.10.0 tqdm==4.67.3 traitlets==5.15.0
""".split()
"""And Kaggle."""
PROJECT = tomllib.loads(read("pyproject.toml"))["project"]
REPOSITORY = "https://github.com/club/course"
OUTPUT = "def enable_custom_widget_manager():\n    pass\n"  # what anywidget calls on Colab
RUN = """
import sys, nbformat, nbclient
notebook = nbformat.read(sys.argv[1], as_version=4)
nbclient.NotebookClient(notebook, timeout=900, kernel_name="python3").execute()
nbformat.write(notebook, sys.argv[1])
"""
PAGE = """
from transformer_lesson.explorables import TranslationPlayground
TranslationPlayground(word=2).save_html("page.html")
"""
REPORT = """
from transformer_lesson.environment import environment_report
report = environment_report()
print(report)
assert not report.urgent and report.remedy("pip") == ("", "")
"""


@pytest.mark.parametrize("host", [[*COLAB, "torch==2.9.0"], KAGGLE], ids=["Colab", "Kaggle"])
def test_the_ranges_admit_what_they_bring(host):
    *core, _ = PROJECT["dependencies"]
    lessons = map(Requirement, [*core, *PROJECT["optional-dependencies"]["lessons"]])
    ranges = {wanted.name: wanted.specifier for wanted in lessons}
    brought = dict(one.split("==") for one in host)
    named = ranges.keys() & brought.keys()
    assert {"ipython", "ipywidgets", "numpy", "pillow"} <= named
    assert [name for name in named if not ranges[name].contains(brought[name])] == []


class Host:
    """An environment with Colab's packages, whose Pythons believe that they are on Colab."""

    def __init__(self, folder: Path, course: Path):
        self.folder = folder / "content"
        self.folder.mkdir()
        self.environment = folder / "environment"
        uv("venv", "--seed", "--python", sys.executable, self.environment)
        (self.packages,) = self.environment.glob("lib/python*/site-packages")
        link_torch(self.packages)
        google = self.packages / "google" / "colab"
        google.mkdir(parents=True)
        (google / "__init__.py").touch()
        (google / "output.py").write_text(OUTPUT)
        (self.packages / "on_colab.pth").write_text("import google.colab.output\n")
        self.surroundings = {
            **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"url.{course.as_uri()}.insteadOf",
            "GIT_CONFIG_VALUE_0": REPOSITORY,
            "TRANSFORMER_LESSON_PROGRESS": str(self.folder / "my_progress.json"),
        }

    def python(self, *words: str | Path) -> subprocess.CompletedProcess:
        return subprocess.run(
            [self.environment / "bin/python", *words],
            cwd=self.folder,
            env=self.surroundings,
            capture_output=True,
            text=True,
        )

    def versions(self) -> dict[str, str]:
        listed = json.loads(self.python("-m", "pip", "list", "--format=json").stdout)
        return {canonicalize_name(one["name"]): one["version"] for one in listed}


def uv(*words: str | Path) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "uv", *words], capture_output=True, text=True)


def link_torch(packages: Path) -> None:
    """Let an environment have the tests' PyTorch, with the libraries that it needs on a GPU."""
    for wanted in ["torch", *map(name_of, distribution("torch").requires)]:
        try:
            files = distribution(wanted).files
        except ModuleNotFoundError:  # for another system
            continue
        if wanted != "torch" and not wanted.startswith(("nvidia", "cuda", "triton")):
            continue
        for top in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            if not (packages / top).exists():
                (packages / top).symlink_to(distribution(wanted).locate_file(top))


def name_of(requirement: str) -> str:
    return Requirement(requirement).name


def published(folder: Path) -> Path:
    """Return a repository of the course, as it is after `make address`."""
    course = checkout(folder / "course")
    address.write(REPOSITORY, course)
    who = ("-c", "user.name=club", "-c", "user.email=club@example.org")
    for words in (("init", "--quiet"), ("add", "--all"), (*who, "commit", "--quiet", "-m", "all")):
        subprocess.run(["git", *words], cwd=course, check=True, capture_output=True)
    return course


@pytest.fixture(scope="module")
def course(tmp_path_factory) -> Path:
    return published(tmp_path_factory.mktemp("repository"))


@pytest.fixture(scope="module")
def host(course, tmp_path_factory) -> Host:
    host = Host(tmp_path_factory.mktemp("host"), course)
    answer = uv("pip", "install", "--python", host.environment / "bin/python", *COLAB)
    if answer.returncode:
        pytest.skip(f"no network to download packages from: {answer.stderr[-300:]}")
    return host


@pytest.fixture(scope="module")
def ran(host, course) -> tuple[dict[str, str], list[nbformat.NotebookNode]]:
    """Return what was on the host, and lessons whose cells, but slow ones, then ran there."""
    before, lessons = host.versions(), []
    assert host.python("-c", "import transformer_lesson").returncode == 1
    for name in ("00_start_here.ipynb", "03_attention.ipynb", "07_decoder.ipynb"):
        lesson = nbformat.read(course / "notebooks" / name, as_version=4)
        without_slow_cells(lesson)
        for cell in lesson.cells:
            if cell.cell_type == "code":
                cell.outputs = []
        nbformat.write(lesson, host.folder / name)
        answer = host.python("-c", RUN, host.folder / name)
        assert answer.returncode == 0, answer.stderr
        lessons.append(nbformat.read(host.folder / name, as_version=4))
    return before, lessons


@pytest.mark.everything
@pytest.mark.slow
def test_lessons_run_where_the_first_cell_installed_the_course_and_nothing_else_changes(host, ran):
    before, lessons = ran
    assert before.items() >= dict(one.split("==") for one in COLAB).items()
    assert host.versions().items() >= before.items()  # so nothing needs a restart
    for lesson in lessons:
        (first,) = [cell for cell in lesson.cells if cell.id == CELL]
        said = [output.text for output in first.outputs]
        assert said == ["The course is installed: go on with the next cell.\n"]
        views = [cell for cell in lesson.cells if "widget-view" in str(cell.get("outputs"))]
        assert len(views) >= 2
    answer = host.python("-c", REPORT)
    assert answer.returncode == 0, answer.stdout + answer.stderr


@pytest.mark.everything
@pytest.mark.browser
@pytest.mark.usefixtures("ran")
def test_an_explorable_made_there_lives_in_a_frame_that_may_only_run_scripts(host, tmp_path):
    program = chromium_program() or pytest.skip("no browser: install chromium.")
    answer = host.python("-c", PAGE)
    assert answer.returncode == 0, answer.stderr
    page = html.escape((host.folder / "page.html").read_text("utf-8"))
    frame = f'<iframe sandbox="allow-scripts" width="1100" height="900" srcdoc="{page}"></iframe>'
    (tmp_path / "output.html").write_text(f'<!doctype html><meta charset="utf-8">{frame}', "utf-8")
    with headless(program) as browser:
        opened, problems = new_context(browser, offline=True).new_page(), []
        opened.on("pageerror", lambda error: problems.append(str(error)))
        opened.on("console", lambda said: problems.append(said.text))
        opened.goto((tmp_path / "output.html").as_uri())
        shown = opened.frame_locator("iframe")
        title = shown.locator("section h3").inner_text()
        shown.get_by_role("button", name="negation kein", exact=True).click()
        shown.locator("section h3", has_not_text=title).wait_for()
        assert problems == []
