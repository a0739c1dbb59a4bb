"""The course links to a repository when it has an address, and to that one, everywhere."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from urllib.parse import quote

import pytest
import yaml

from tests.stored_lessons import ROOT
from tools import address
from tools.lesson_files import GLOSSARY, lesson_files, place_of
from transformer_lesson.command.hosted import CELL
from transformer_lesson.command.my_lessons import bring_up_to_date
from transformer_lesson.course import MINE

FILES = ("pyproject.toml", "CITATION.cff", "README.md", "CHANGELOG.md", "CONTRIBUTING.md")
FOLDERS = ("docs", "tools", ".devcontainer")
LEFT = "{no notebook, and no JSON"
WITHOUT = shutil.ignore_patterns("stills", "images", "__pycache__")
GITHUB, PLACE = "https://github.com/club/course", "https://git.example.org/club/course"
everything = pytest.mark.everything
TO_A_REPOSITORY = re.compile(
    r"git\+https|git clone [^`\n]*https|mybinder\.org|colab\.research|kaggle\.com|codespaces\.new"
    r"|transformer-lesson/"
)


@pytest.fixture
def copy(tmp_path) -> Path:
    """The tree before publication, under version control, in which lessons were opened in place."""
    lessons = [f"notebooks/{place_of(path)}" for path in lesson_files()]
    for folder in (".ipynb_checkpoints", "deeper"):
        (tmp_path / "notebooks" / folder).mkdir(parents=True)
    for name in (*FILES, *lessons, f"notebooks/{GLOSSARY}"):
        shutil.copyfile(ROOT / name, tmp_path / name)
    for left in (".ipynb_checkpoints/03_attention-checkpoint.ipynb", "03_attention-Copy1.ipynb"):
        (tmp_path / "notebooks" / left).write_text(LEFT)
    for name in FOLDERS:
        shutil.copytree(ROOT / name, tmp_path / name, ignore=WITHOUT)
    address.write(None, tmp_path)
    git(tmp_path, "init", "--quiet")
    return tmp_path


def contents(root: Path) -> dict[str, bytes]:
    found = [path for path in root.rglob("*") if path.is_file() and ".git/" not in path.as_posix()]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in found}


def make_address(root: Path) -> subprocess.CompletedProcess:
    run = [sys.executable, "-B", "-m", "tools.address"]
    return subprocess.run(run, cwd=root, capture_output=True, text=True)


def git(root: Path, *words: str) -> None:
    subprocess.run(["git", "-C", root, *words], check=True, capture_output=True)


def test_the_tree_is_as_it_was_written():
    assert address.write(address.stored_address(), ROOT) == [], "run `make address`"


def test_without_an_address_nothing_links_to_a_repository(copy):
    assert address.stored_address(copy) is None
    pages = {name: page for name, page in contents(copy).items() if not name.startswith("tools/")}
    assert len(pages) > 30
    for name, page in pages.items():
        assert not TO_A_REPOSITORY.findall(page.decode()), name


@everything
@pytest.mark.slow
@pytest.mark.parametrize(
    ("remote", "place"),
    [
        ("git@github.com:club/course.git", GITHUB),
        ("https://anna:secret@git.example.org/club/course.git", PLACE),
    ],
)
def test_make_address_writes_it_everywhere_and_only_there(copy, remote, place):
    git(copy, "remote", "add", "origin", remote)
    before = contents(copy)
    answer = make_address(copy)
    assert answer.returncode == 0 and answer.stdout.endswith(f"The address is {place}.\n")
    written = contents(copy)
    changed = {name for name in written if written[name] != before[name]}
    lessons = {f"notebooks/{place_of(path)}" for path in lesson_files(copy)}
    assert changed == {"pyproject.toml", "CITATION.cff", "README.md", *lessons}
    assert not any(b"secret" in content for content in written.values())

    project = tomllib.loads(written["pyproject.toml"].decode())["project"]
    assert project["urls"] == {"Repository": place} == {"Repository": address.stored_address(copy)}
    assert yaml.safe_load(written["CITATION.cff"])["repository-code"] == place
    for way in (f"git clone --depth 1 {place}", f"uvx --from git+{place} transformer-lesson"):
        assert f"\n{way}\n" in written["README.md"].decode()
    on_github = "github.com" in place
    assert (address.FIRST_CELL in written["README.md"].decode()) == on_github
    for name in lessons:
        cells = json.loads(written[name])["cells"]
        line = "".join(cells[0]["source"]).split("\n\n")[1]
        assert line.count("](https://") == (4 if on_github else 1)
        assert (cells[1]["id"] == CELL) == line.endswith(f" {address.FIRST_CELL}") == on_github
        counts = [cell["execution_count"] for cell in cells if cell["cell_type"] == "code"]
        assert counts == list(range(1, len(counts) + 1))  # as one run would leave it
        copy_of_it = quote(name.replace("notebooks/", "my_lessons/"), safe="")
        assert f"=lab%2Ftree%2F{copy_of_it})" in line
        assert (f"/{name})" in line) == on_github

    assert make_address(copy).returncode == 0 and contents(copy) == written  # twice is once
    address.write(None, copy)
    assert contents(copy) == before


@everything
@pytest.mark.slow
@pytest.mark.parametrize(
    "remote",
    """
    ../course.git /srv/git/course.git https://git.example.org/ git://git.example.org/club/course
    https://anna:secret@localhost/club/course
    https://git.example.org/club/course)[x](https://other.example.org
    """.split(),
)
def test_what_others_cannot_open_is_refused_in_one_sentence(copy, remote):
    git(copy, "remote", "add", "origin", remote)
    before = contents(copy)
    answer = make_address(copy)
    assert answer.returncode == 1 and answer.stderr.count("\n") == 1
    assert "The remote 'origin' is " in answer.stderr and "secret" not in answer.stderr
    assert contents(copy) == before


@pytest.mark.slow
def test_a_learners_copy_has_no_cell_for_colab_and_is_otherwise_as_before(copy):
    places = [place_of(path) for path in lesson_files(copy)]
    before = [json.loads((copy / "notebooks" / place).read_text())["cells"] for place in places]
    address.write(GITHUB, copy)
    assert [*bring_up_to_date(copy)] == []
    for place, (_, *cells) in zip(places, before, strict=True):
        title, *others = json.loads((copy / MINE / place).read_text())["cells"]
        assert others == cells and "](https://colab" in "".join(title["source"])
    git(copy, "add", "--all")
    git(copy, "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "--quiet", "-m", "published")
    assert [*bring_up_to_date(copy)] == []  # nor has what is committed


@pytest.mark.slow
def test_no_remote_is_said(copy):
    answer = make_address(copy)
    assert answer.returncode == 1
    assert answer.stderr.startswith("This folder has no remote 'origin'")
