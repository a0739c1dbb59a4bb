"""Fixtures of several test files."""

import signal
import sys

import jaxtyping
import pytest
import torch


@pytest.fixture
def unchecked():
    """Turn the shape checks of the test run off: bad input gets the answer that a learner gets."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)


@pytest.fixture(autouse=True)
def nothing_kept_from_checked_calls(request):
    """Drop what a diagnosis keeps of wrong turns, some of which only the shape checks refuse."""
    yield
    diagnosis = sys.modules.get("transformer_lesson.exercises.engine.diagnosis")
    if diagnosis and "unchecked" not in request.fixturenames:
        diagnosis.forget()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where a learner's functions are collected, in a place that is this test's own."""
    monkeypatch.setenv("TRANSFORMER_LESSON_PROGRESS", str(tmp_path / "my_progress.json"))
    return tmp_path / "my_transformer"


@pytest.fixture(autouse=True)
def seeded():
    """Give every test the same random numbers, whichever ran before it."""
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def ctrl_c_is_on():
    """Let Ctrl-C interrupt, even where the test run itself is shielded from it (`nohup`, `&`)."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
