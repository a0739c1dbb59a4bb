"""`environment_report`: one table on any machine, and never a stack trace."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import transformer_lesson
from transformer_lesson import environment
from transformer_lesson.environment import AS_TESTED, environment_report

ROOT = Path(__file__).parent.parent
TESTED = json.loads(environment.TESTED.read_text(encoding="utf-8"))


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Return a function that makes a package look installed in another version."""
    monkeypatch.syspath_prepend(tmp_path)

    def install(name: str, metadata: str | None) -> None:
        folder = tmp_path / f"{name}-0.dist-info"
        folder.mkdir()
        if metadata is not None:
            (folder / "METADATA").write_text(metadata, encoding="utf-8")

    return install


def row(name: str) -> environment.Row:
    (found,) = [row for row in environment_report().rows if row.name == name]
    return found


def command_line(*options: str, **variables: str) -> subprocess.CompletedProcess:
    """Run the report with nothing installed but what the variables name."""
    run = [sys.executable, *options, "-m", "transformer_lesson.environment"]
    return subprocess.run(run, env=variables, cwd=ROOT, capture_output=True, text=True)


def test_what_the_tests_run_with_is_all_there():
    report = environment_report()
    assert [row.name for row in report.rows] == [
        "Python",
        *TESTED["package"],
        *TESTED["lessons"],
    ]
    assert report.urgent == []


@pytest.mark.pins
def test_the_pinned_versions_are_as_tested():
    report = environment_report()
    assert report.verdict == AS_TESTED and report.remedy("pip") == ("", "")
    assert {row.todo for row in report.rows} == {""}


@pytest.mark.parametrize(
    ("version", "status", "remedy"),
    [
        (TESTED["package"]["tqdm"], "as tested", ""),
        (f"{TESTED['package']['tqdm']}+here", "as tested", ""),
        (f"{TESTED['package']['tqdm']}.0", "as tested", ""),
        ("4.69.0", "not tested", "If you want the tested versions, run this"),
        ("4.0.1", "not supported", "Run this"),
        ("6", "not supported", "Run this"),
        ("newest, I think", "unreadable", "Run this"),
        ("<script>alert(1)</script>", "unreadable", "Run this"),
    ],
)
def test_another_version_is_called_by_its_status(installed, version, status, remedy):
    installed("tqdm", f"Metadata-Version: 2.1\nName: tqdm\nVersion: {version}\n")
    found = row("tqdm")
    assert (found.installed, found.status) == (version, status)
    report = environment.EnvironmentReport((row("Python"), found))
    sentence, command = report.remedy("%pip")
    assert sentence.startswith(remedy) and "<script" not in report._repr_html_()
    pin = f"tqdm=={TESTED['package']['tqdm']}"
    assert command == {
        "as tested": "",
        "unreadable": f"%pip install --force-reinstall {pin}",
    }.get(status, f"%pip install {pin}")


@pytest.mark.parametrize("metadata", [None, "", "Name: tqdm\n"])
def test_damaged_metadata_is_a_finding(installed, metadata):
    installed("tqdm", metadata)
    assert row("tqdm").status == "unreadable"


def test_old_metadata_in_the_working_folder_do_not_count(installed):
    installed("tqdm", "Name: tqdm\nVersion: 4.69.0\n")
    installed("transformer_lesson", "Name: transformer_lesson\nRequires-Dist: tqdm<4.60\n")
    assert row("tqdm").status == "not tested"


@pytest.mark.parametrize(
    ("version", "status"),
    [((3, 9), "not supported"), ((3, 12), "as tested"), ((3, 99), "not tested")],
)
def test_every_python_has_its_sentence(monkeypatch, version, status):
    monkeypatch.setattr(sys, "version_info", (*version, 0))
    report = environment_report()
    assert report.rows[0].status == status
    sentence, command = report.remedy("%pip")
    newest = TESTED["python"][-1]
    if status == "not supported":
        assert sentence == f"Install Python {newest}, then run:"
        assert command == f"make lab PYTHON=python{newest}"
    else:
        assert "make" not in command


def test_a_broken_torch_is_named_with_its_error(tmp_path):
    (tmp_path / "torch.py").write_text("raise OSError('libcudart.so.12: cannot open it\\nat all')")
    answer = command_line(PYTHONPATH=str(tmp_path), COLUMNS="200")
    assert answer.returncode == 1 and answer.stderr == ""
    assert "broken (OSError: libcudart.so.12: cannot open it): install it again" in answer.stdout
    assert "Lessons may fail because of torch." in answer.stdout
    last = answer.stdout.splitlines()[-1]
    assert last.endswith(f"-m pip install --force-reinstall torch=={TESTED['package']['torch']}")


def test_nothing_installed_is_no_stack_trace():
    answer = command_line("-S", COLUMNS="200")  # no site-packages, no packaging either
    assert answer.returncode == 1 and answer.stderr == ""
    assert answer.stdout.count("missing: install it") == len(TESTED["package"])
    assert answer.stdout.count("not installed: nothing, unless") == len(TESTED["lessons"])
    pins = " ".join(f"{name}=={version}" for name, version in TESTED["package"].items())
    assert answer.stdout.rstrip().endswith(f"-m pip install {pins}")


@pytest.mark.parametrize("columns", [40, 80])
def test_it_fits_the_terminal_in_any_locale(columns):
    answer = command_line("-S", COLUMNS=str(columns), LC_ALL="C", PYTHONUTF8="0")
    *lines, command = answer.stdout.splitlines()
    assert answer.stderr == "" and max(map(len, lines)) <= columns
    assert "pip install" in command


@pytest.mark.parametrize("file", ["__init__.py", "environment.py"])
def test_an_older_python_can_read_it(file):
    source = (ROOT / "transformer_lesson" / file).read_text(encoding="utf-8")
    assert ast.parse(source, feature_version=(3, 8)).body


def test_the_package_gives_the_names_that_it_lists():
    assert set(transformer_lesson.__all__) == set(transformer_lesson._HOMES)
    for name in transformer_lesson.__all__:
        assert getattr(transformer_lesson, name).__name__ == name
    assert set(transformer_lesson.__all__) <= set(dir(transformer_lesson))
    with pytest.raises(AttributeError, match="has no attribute 'attention_is_all'"):
        transformer_lesson.attention_is_all  # noqa: B018
