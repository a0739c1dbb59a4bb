"""Fixtures of the training tests."""

import signal

import pytest


@pytest.fixture(autouse=True)
def ctrl_c_is_on():
    """Let Ctrl-C interrupt, even where the test run itself is shielded from it (`nohup`, `&`)."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
