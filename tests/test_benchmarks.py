"""The benchmarks are run by hand; here each is imported, and the GPU's runs small, on the CPU."""

import re
import subprocess
import sys
from dataclasses import replace
from importlib import import_module

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from benchmarks import gpu, results, stale
from benchmarks.results import MEASURES, SECTIONS
from tests.stored_lessons import ROOT
from transformer_lesson.model.transformers import DecoderOnlyTransformer

CODE = "transformer_lesson/model/fast.py"


@pytest.mark.parametrize("script", SECTIONS)
def test_a_benchmark_still_finds_all_that_it_uses(script):
    module = "tests.browser.soak" if script == "soak" else f"benchmarks.{script}"
    assert callable(import_module(module).main)
    rooms = [results.ROOT / "transformer_lesson" / room for room in MEASURES[script]]
    assert rooms and all(room.is_dir() for room in rooms)


def git(*command: str) -> str:
    name = ("-c", "user.name=test", "-c", "user.email=test@example.com")
    run = ["git", *name, *command]
    done = subprocess.run(run, cwd=results.ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "ROOT", tmp_path)
    monkeypatch.setattr(results, "RESULTS", tmp_path / "RESULTS.md")
    (tmp_path / CODE).parent.mkdir(parents=True)
    (tmp_path / CODE).write_text('"""Fast."""\nx = 1\n', encoding="utf-8")
    git("init")
    git("add", "--all")
    git("commit", "--message", "first")
    row = results.Row("speed", "–", "–", "–", "**1.00**", None)
    results.write("fast", [row], "How.")
    return tmp_path


CHANGES = {
    "docstring, comment and layout": ('"""Faster."""\n\nx = (1)  # one\n', False),
    "code": ('"""Fast."""\nx = 2\n', True),
    "deletion": (None, True),
}


@pytest.mark.parametrize("text, expected", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("committed", [True, False])
def test_a_table_is_stale_when_code_that_it_measures_has_changed(
    text, expected, committed, repository
):
    assert f"commit {git('rev-parse', '--short=7', 'HEAD')}: " in results.RESULTS.read_text("utf-8")
    assert results.stale() == []
    if text is None:
        (repository / CODE).unlink()
    else:
        (repository / CODE).write_text(text, encoding="utf-8")
    if committed:
        git("add", "--all")
        git("commit", "--message", "second")
    found = results.stale()
    assert bool(found) == expected and all(f"changed {CODE}." in sentence for sentence in found)
    assert (" with changes:" in results.circumstances("fast")) == (expected and not committed)


def test_a_table_is_stale_when_data_that_it_measures_is_new(repository):
    data = (repository / CODE).with_name("numbers.safetensors")
    data.write_bytes(b"\x8a\x00")  # no text
    assert results.stale() == []
    git("add", "--all")
    (sentence,) = results.stale()
    assert sentence.endswith(f"changed {data.relative_to(repository).as_posix()}.")


def test_what_git_does_not_know_is_said(repository, monkeypatch, capsys, tmp_path_factory):
    text = results.RESULTS.read_text("utf-8")
    results.RESULTS.write_text(re.sub(r"commit \w+", "commit 0123456", text), encoding="utf-8")
    (sentence,) = results.stale()
    assert sentence.endswith("its commit is not known here.")
    monkeypatch.setattr(results, "ROOT", tmp_path_factory.mktemp("no repository"))
    stale.main()
    assert capsys.readouterr().out.startswith("There is no git repository here")
    assert "commit unknown:" in results.circumstances("fast")


SMALL = replace(
    gpu.GPT2_124M, vocab_size=97, d_model=24, n_heads=3, n_layers=2, d_ff=60, max_len=40
)


def test_the_formula_is_what_pytorch_counts_and_the_peak_the_devices():
    assert gpu.flops_per_token(gpu.GPT2_124M, 1024) == 854_438_400
    model, ids = DecoderOnlyTransformer(SMALL), torch.randint(97, (5, 40))
    with sdpa_kernel(SDPBackend.MATH):  # products that can be counted
        counted = gpu.counted_flops(model, ids)
    assert counted == gpu.flops_per_token(SMALL, 40) * 5 * 40
    for name, peak in {"NVIDIA H200": 989e12, "NVIDIA L4": 121e12, "GTX 1080": None}.items():
        assert gpu.peak_flops(name) == peak


def test_without_a_gpu_it_says_so_in_one_sentence(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(results, "RESULTS", tmp_path / "RESULTS.md")
    gpu.main()
    assert capsys.readouterr().out.startswith("No GPU was found, so nothing was measured")
    assert not (tmp_path / "RESULTS.md").exists()


@pytest.mark.slow
def test_both_models_take_the_same_steps(monkeypatch):
    monkeypatch.setattr(torch.nn.Module, "compile", lambda _model: None)  # minutes on a CPU
    ids = torch.randint(97, (2, 17))
    runs = gpu.steps(SMALL, ids)
    assert list(runs) == ["peer", "peer, compiled", "ours", "ours, compiled"]
    for run in runs.values():
        losses = [run() for _ in range(4)]
        assert losses[-1] < losses[0] and 4 < losses[0] < 6
    measured = gpu.measure(SMALL, ids, 4)
    assert {len(values) for values in measured.seconds.values()} == {4}
    assert gpu.rows(measured.seconds, 32, gpu.flops_per_token(SMALL, 16), 1e12)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["benchmarks", "tests.browser.soak"])
def test_help_says_what_is_measured_and_measures_nothing(name):
    run = subprocess.run([sys.executable, "-m", name, "--help"], cwd=ROOT, capture_output=True)
    assert run.returncode == 0 and b"usage: " in run.stdout and b"Traceback" not in run.stderr
