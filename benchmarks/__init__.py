"""What is measured by hand; `python -m benchmarks.NAME --help` says what, and measures nothing."""

from pathlib import Path

from transformer_lesson.stored import explain_if_asked

explain_if_asked(__name__, Path(__file__).parent)
