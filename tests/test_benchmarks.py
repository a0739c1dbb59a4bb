"""The benchmarks are run by hand; here each is imported, so that none falls behind the code."""

from importlib import import_module

import pytest

from benchmarks.results import SECTIONS


@pytest.mark.parametrize("script", SECTIONS)
def test_a_benchmark_still_finds_all_that_it_uses(script):
    assert callable(import_module(f"benchmarks.{script}").main)
