"""`environment_report`: one table on any machine, and never a stack trace."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib import metadata

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import transformer_lesson
from tests.stored_lessons import ROOT, read
from transformer_lesson import environment
from transformer_lesson.environment import AS_TESTED, environment_report

TESTED = dict(re.findall(r"^(\S+)==(\S+)", read("requirements-lab.txt"), re.MULTILINE))
PROJECT = tomllib.loads(read("pyproject.toml"))["project"]


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Return a function that makes a package look installed in another version."""
    monkeypatch.syspath_prepend(tmp_path)

    def install(name: str, text: str | None) -> None:
        folder = tmp_path / f"{name}-0.dist-info"
        folder.mkdir()
        if text is not None:
            (folder / "METADATA").write_text(text, encoding="utf-8")

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
    extras = PROJECT["optional-dependencies"]
    lessons_need = PROJECT["dependencies"][:-1] + extras["lessons"] + extras["lab"]
    names = {canonicalize_name(Requirement(text).name) for text in lessons_need}
    assert report.rows[0].name == "Python"
    assert {row.name for row in report.rows[1:]} == names | {"editables"}  # of `pip install -e`
    assert report.urgent == []


@pytest.mark.pins
def test_the_pinned_versions_are_as_tested():
    report = environment_report()
    assert report.verdict == AS_TESTED and report.remedy("pip") == ("", "")
    assert {row.cells[3] for row in report.rows} == {""}


@pytest.mark.parametrize(
    ("version", "status", "remedy"),
    [
        (f"{TESTED['tqdm']}+here", "as tested", ""),
        ("4.69.0", "not tested", "If you want the tested versions, run this"),
        ("4.0.1", "not supported", "Run this"),
        ("<script>alert(1)</script>", "broken", "Run this"),
    ],
)
def test_another_version_has_its_status_and_old_metadata_do_not_count(
    installed, version, status, remedy
):
    installed("tqdm", f"Metadata-Version: 2.1\nName: tqdm\nVersion: {version}\n")
    installed("transformer_lesson", "Name: transformer_lesson\nRequires-Dist: tqdm<4.60\n")
    found = row("tqdm")
    assert (found.installed, found.status) == (version, status)
    report = environment.EnvironmentReport((row("Python"), found))
    sentence, command = report.remedy("%pip")
    assert sentence.startswith(remedy) and "<script" not in report._repr_html_()
    pin = f"tqdm=={TESTED['tqdm']}"
    assert command == {"as tested": "", "broken": f"%pip install --force-reinstall {pin}"}.get(
        status, f"%pip install {pin}"
    )


@pytest.mark.parametrize("text", [None, "Name: tqdm\n"])
def test_damaged_metadata_is_a_finding(installed, text):
    installed("tqdm", text)
    found = row("tqdm")
    assert (found.installed, found.status) == ("unknown", "broken") and found.reason


@pytest.mark.parametrize(("version", "status"), [((3, 12), "as tested"), ((3, 99), "not tested")])
def test_another_python_is_no_reason_to_install_anything(monkeypatch, version, status):
    monkeypatch.setattr(sys, "version_info", version)
    report = environment_report()
    assert report.rows[0].status == status
    assert environment.EnvironmentReport(report.rows[:1]).remedy("%pip") == ("", "")


def test_a_broken_torch_is_named_with_its_error(tmp_path):
    (tmp_path / "torch.py").write_text("raise OSError('libcudart.so.12: cannot open it\\nat all')")
    answer = command_line(PYTHONPATH=str(tmp_path), COLUMNS="200")
    assert answer.returncode == 1 and answer.stderr == ""
    assert "broken (OSError: libcudart.so.12: cannot open it): install it again" in answer.stdout
    assert "Lessons may fail because of torch." in answer.stdout
    last = answer.stdout.splitlines()[-1]
    assert last.endswith(f"-m pip install --force-reinstall torch=={TESTED['torch']}")


def test_a_missing_package_is_to_be_installed(monkeypatch):
    version = metadata.version

    def lacking(name):
        if name in ("torch", "matplotlib", "transformers"):
            raise metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(metadata, "version", lacking)
    assert row("torch").cells[3] == row("matplotlib").cells[3] == "missing: install it"
    assert row("transformers").cells[3] == "not installed: nothing, unless you need it"
    pin = " ".join(f"{name}=={TESTED[name]}" for name in ("torch", "matplotlib"))
    assert environment_report().remedy("%pip") == (
        "Run this, then restart the kernel:",
        f"%pip install {pin}",
    )


@pytest.mark.parametrize("host", ["Colab", "Kaggle"])
def test_where_the_page_is_another_one_its_versions_stay(installed, monkeypatch, host):
    version = "Metadata-Version: 2.1\nName: ipywidgets\nVersion: {}\n"
    installed("ipywidgets", version.format("7.7.1"))
    assert row("ipywidgets").status == "not supported" and row("ipykernel")  # by JupyterLab
    if host == "Colab":
        monkeypatch.setitem(sys.modules, "google.colab", sys)
    else:
        monkeypatch.setenv("KAGGLE_KERNEL_RUN_TYPE", "Interactive")
    report = environment_report()
    assert "ipykernel" not in {row.name for row in report.rows}
    assert row("ipywidgets").status == "not tested"
    assert "ipywidgets" in report.verdict and report.remedy("%pip") == ("", "")


def test_a_package_that_two_extras_name_is_missing_if_lessons_miss_it(monkeypatch):
    version = metadata.version

    def lacking(name):
        if name == "ipywidgets":
            raise metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(metadata, "version", lacking)
    assert row("ipywidgets").status == "missing"


def test_without_packaging_another_version_is_not_judged(installed, monkeypatch):
    installed("tqdm", "Name: tqdm\nVersion: 4.0.1\n")
    monkeypatch.setattr(environment, "Requirement", None)
    assert row("tqdm").status == "not tested"


def test_nothing_installed_is_no_stack_trace():
    answer = command_line("-S", LC_ALL="C", PYTHONUTF8="0")  # no site-packages: no packaging either
    assert answer.returncode == 1 and answer.stderr == ""
    assert "Lessons may fail because of transformer_lesson." in answer.stdout
    assert answer.stdout.endswith("Run this in the folder of the course:\nmake lab\n")


def test_an_older_python_can_read_it():
    for file in ("__init__.py", "environment.py"):
        assert ast.parse(read(f"transformer_lesson/{file}"), feature_version=(3, 8)).body


def test_the_package_gives_the_names_that_it_lists():
    assert set(transformer_lesson.__all__) == set(transformer_lesson._HOMES)
    for name in transformer_lesson.__all__:
        assert getattr(transformer_lesson, name).__name__ == name
    assert set(transformer_lesson.__all__) <= set(dir(transformer_lesson))
    with pytest.raises(AttributeError, match="has no attribute 'attention_is_all'"):
        transformer_lesson.attention_is_all  # noqa: B018
