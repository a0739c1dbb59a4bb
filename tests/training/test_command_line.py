"""`python -m transformer_lesson.training` trains, keeps, goes on, and names mistakes."""

import json
import signal
import subprocess
import sys
from unittest.mock import Mock

import pytest

from tests.training.small import PAIRS, TINY
from transformer_lesson.checkpoints import load_checkpoint
from transformer_lesson.text import manual, menus
from transformer_lesson.text.pairs import Pair
from transformer_lesson.training import History, __main__, tasks

LEFT_OUT = "1 pairs of 40 tokens or more are left out."


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    for name in ("GRAMMAR", "MANUAL", "MENUS", "OWN_PAIRS"):
        monkeypatch.setattr(tasks, name, TINY)
    monkeypatch.setattr(tasks, "N_GRAMMAR", 40)
    monkeypatch.setattr(tasks, "N_TESTS", 6)
    monkeypatch.setattr(menus, "pairs", lambda: PAIRS)
    split = manual.split()
    few = manual.Split(split.training[:2000], split.validation[:300])
    monkeypatch.setattr(manual, "split", lambda: few)
    file = tmp_path / "pairs.tsv"
    pairs = [*PAIRS, Pair(80 * "dog ", "Hund")]  # the last one is too long
    file.write_text("".join(f"{pair.source}\t{pair.target}\n" for pair in pairs), encoding="utf-8")
    return tmp_path


def run(*arguments) -> int:
    return __main__.main([str(argument) for argument in arguments])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("corpus", "sentences"),
    [
        ("grammar", ["of 6 unseen sentences translated", "of 6 unseen combinations translated"]),
        ("interface", ["of 1 unseen menu entries translated word for word.", " became "]),
        ("manual", ["bits per character on unseen text.", "It writes: "]),
        ("pairs.tsv", ["of 1 unseen sentences translated word for word.", " became ", LEFT_OUT]),
    ],
)
def test_each_corpus_is_trained_judged_and_kept(corpus, sentences, tiny, capsys, monkeypatch):
    monkeypatch.chdir(tiny)
    assert run("--corpus", corpus, "--out", "deep/run") == 0
    out, err = capsys.readouterr()
    always = ["s of training in float32.", "validation ", "holds model and vocabulary"]
    assert all(sentence in out for sentence in [*sentences, *always])
    assert err == ""
    folder = tiny / "deep" / "run"
    names = ["checkpoint.safetensors", "history.json", "model.safetensors"]
    assert sorted(path.name for path in folder.iterdir()) == names
    history = History.from_json(json.loads((folder / "history.json").read_text()))
    assert history.steps == 6 and len(history.validation) == 6
    kept, whole = load_checkpoint(folder / names[2]), load_checkpoint(folder / names[0])
    assert kept.training is None and whole.training.facts["history"]["losses"] == history.losses
    assert kept.tokenizer.vocabulary == whole.tokenizer.vocabulary
    assert kept.model.config.pad_id == kept.tokenizer.pad_id == 0


@pytest.mark.slow
def test_after_ctrl_c_the_same_command_with_resume_goes_on_and_can_get_more_steps(
    tiny, capsys, monkeypatch
):
    file = tiny / "pairs.tsv"
    assert run("--corpus", file, "--out", tiny / "whole", "--seed", 5) == 0
    facts = load_checkpoint(tiny / "whole" / "checkpoint.safetensors").training.facts
    assert facts["config"]["seed"] == 5

    def press(report):
        if report.step == 4:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(__main__, "_report", press)
        assert run("--corpus", file, "--out", tiny / "run", "--seed", 5) == 130
    assert "Interrupted after step 4 of 6" in capsys.readouterr().out
    assert len(json.loads((tiny / "run" / "history.json").read_text())["losses"]) == 4
    assert not (tiny / "run" / "model.safetensors").exists()

    assert run("--corpus", file, "--out", tiny / "run", "--resume") == 0
    for name in ("model.safetensors", "history.json"):
        whole, parts = ((tiny / run / name).read_bytes() for run in ("whole", "run"))
        if name == "history.json":
            whole, parts = json.loads(whole), json.loads(parts)
            assert whole.pop("seconds") > 0 < parts.pop("seconds")
        assert whole == parts
    assert run("--corpus", file, "--out", tiny / "run", "--resume", "--steps", 8) == 0
    assert len(json.loads((tiny / "run" / "history.json").read_text())["losses"]) == 8


@pytest.mark.slow
def test_mistakes_are_answered_in_one_line(tiny, capsys):
    file, out = tiny / "pairs.tsv", tiny / "run"
    other = tiny / "other.tsv"
    other.write_text("".join(f"{10 * n}\t{n}\n" for n in range(30)))
    (tiny / "few.tsv").write_text("a\tb\n")
    (tiny / "long.tsv").write_text("".join(f"{n}{40 * ' x'}\ty\n" for n in range(20)))
    (tiny / "damaged").mkdir()
    (tiny / "damaged" / "checkpoint.safetensors").write_bytes(b"what is this")
    assert run("--corpus", file, "--out", out) == 0
    capsys.readouterr()
    for arguments, sentence in {
        ("--corpus", file, "--out", out): "already exists: add --resume, or change --out.",
        ("--corpus", other, "--out", out, "--resume"): "was trained on a corpus other than",
        ("--corpus", file, "--out", out, "--resume", "--seed", 1): "leave it out with --resume",
        ("--corpus", file, "--out", out, "--resume", "--steps", 2): "is at step 6 already",
        ("--corpus", file, "--out", tiny / "new", "--resume"): "there is no such file",
        ("--corpus", file, "--out", tiny / "damaged", "--resume"): "is no checkpoint",
        ("--corpus", file, "--out", tiny / "new", "--steps", 0): "steps is 0, but it must be",
        ("--corpus", file, "--out", tiny / "new", "--seed", -1): "seed is -1, but it must be",
        ("--corpus", file, "--out", file): "File exists",
        ("--corpus", tiny / "few.tsv", "--out", tiny / "new"): "10 or more are needed",
        ("--corpus", tiny / "long.tsv", "--out", tiny / "new"): "more than 39 tokens: split",
        ("--corpus", "german", "--out", tiny / "new"): "There is no file german",
    }.items():
        assert run(*arguments) == 2
        error = capsys.readouterr().err
        assert sentence in error and error.count("\n") == 1
        assert error.startswith("transformer_lesson.training: ")
    assert not (tiny / "new").exists()


@pytest.mark.parametrize(
    ("error", "code", "answer"),
    [
        (KeyboardInterrupt(), 130, "what was saved before stays as it is"),
        (
            PermissionError(13, "Permission denied", "/closed"),
            2,
            "/closed is closed to you (Permission denied): choose another place or change its",
        ),
    ],
)
def test_what_goes_wrong_before_the_first_step_is_no_traceback(
    error, code, answer, tiny, capsys, monkeypatch
):
    monkeypatch.setattr(__main__, "make_task", Mock(side_effect=error))
    assert run("--corpus", "grammar", "--out", tiny / "run") == code
    assert answer in capsys.readouterr().err


def test_held_out_sentences_are_not_trained_on():
    train, held_out = tasks._hold_out([*PAIRS, *PAIRS, Pair(PAIRS[0].source, "er schläft")])
    assert len(train) + len(held_out) == len(PAIRS) and held_out
    assert {pair.source for pair in train} & {pair.source for pair in held_out} == set()
    assert tasks._hold_out(PAIRS) == tasks._hold_out(PAIRS)


@pytest.mark.slow
@pytest.mark.everything
def test_as_a_program(tmp_path):
    command = [sys.executable, "-m", "transformer_lesson.training", "--corpus", "no.tsv"]
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "run")], capture_output=True, text=True
    )
    assert done.returncode == 2 and "There is no file no.tsv" in done.stderr
    assert "Traceback" not in done.stderr and done.stderr.count("\n") == 1
