"""What does not end is stopped, and the notebook goes on."""

import contextvars
import signal
import sys
import threading
import time

import pytest
import torch

from tools.browser import PATIENCE
from transformer_lesson.exercises import check
from transformer_lesson.exercises.engine import checks
from transformer_lesson.exercises.engine.catalog import EXERCISES
from transformer_lesson.exercises.engine.time_limit import TookTooLong, run_for_at_most


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(checks, "ANSWER_SECONDS", 0.5)


def endless(n):
    while True:
        print("again")


def deaf(n):
    while True:
        try:
            while not stop.is_set():
                time.sleep(0.01)
            return
        except BaseException:
            continue


stop = threading.Event()


@pytest.mark.slow
def test_an_endless_loop_is_stopped_and_the_next_check_as_if_nothing_had_happened(short):
    before = sys.stdout
    report = check("causal_mask", endless)
    assert report.status == "failed" and "did not end within 10 seconds" in str(report)
    assert report.message.count("again") == 10 and report.message.endswith("again\n…")
    assert sys.stdout is before
    assert [thread for thread in threading.enumerate() if thread.name == "check"] == []
    assert check("causal_mask", EXERCISES["causal_mask"].load_reference()).status == "passed"


@pytest.mark.slow
def test_a_loop_that_catches_everything_is_left_behind(short):
    try:
        assert "did not end" in check("causal_mask", deaf).message
    finally:
        stop.set()


def spin():
    while True:
        pass


def test_only_the_processors_seconds_count_until_the_clock_has_run_much_longer():
    """So on a busy machine a right answer is still diagnosed."""
    before = threading.stack_size()
    assert run_for_at_most(0.2, lambda: time.sleep(0.4) or 3) == 3
    with pytest.raises(TookTooLong):
        run_for_at_most(0.1, spin)
    with pytest.raises(ZeroDivisionError):
        run_for_at_most(PATIENCE, lambda: 1 / 0)
    assert threading.stack_size() == before  # of the threads that others start


def test_an_interrupt_of_the_kernel_stops_the_answer_too():
    signal.signal(signal.SIGALRM, signal.default_int_handler)  # Ctrl-C, after a while
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    with pytest.raises(KeyboardInterrupt):
        run_for_at_most(PATIENCE, lambda: endless(3))
    assert [thread for thread in threading.enumerate() if thread.name == "check"] == []


def test_the_answer_sees_the_context_of_its_cell_but_gradients_are_always_on():
    cell = contextvars.ContextVar("cell")  # by such a one a kernel knows whose output it is
    cell.set("this one")
    assert run_for_at_most(PATIENCE, cell.get) == "this one"
    seen = []

    def causal_mask(n):
        seen.append(torch.is_grad_enabled())

    with torch.inference_mode():
        check("causal_mask", causal_mask)
    assert all(seen)
