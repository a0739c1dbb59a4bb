"""Fixtures of several test files, and the table of wrong versions after the run."""

from collections import Counter

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
def seeded():
    """Give every test the same random numbers, whichever ran before it."""
    torch.manual_seed(0)


def pytest_terminal_summary(terminalreporter):
    """Print which of the wrong versions of each exercise its check calls by their names."""
    reports = terminalreporter.getreports("passed") + terminalreporter.getreports("failed")
    known, recognized = Counter(), Counter()
    for report in reports:
        for key, value in getattr(report, "user_properties", ()):
            if key == "mistake":
                exercise, _, _ = value.partition("|")
                known[exercise] += 1
                recognized[exercise] += report.passed
    if known:
        terminalreporter.section("wrong versions recognized by their names")
        for name in sorted(known):
            terminalreporter.write_line(f"{name:32} {recognized[name]:3} of {known[name]:3}")
        line = f"{'all':32} {recognized.total():3} of {known.total():3}"
        terminalreporter.write_line(line)
