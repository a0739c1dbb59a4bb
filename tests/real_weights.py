"""Tests on real weights skip where these are absent; a run ends by counting what was left out."""

from collections.abc import Iterable, Iterator

import pytest

COMMAND, GEMMA = "`make weights`", "`make weights MODEL=gemma`"
LACKING = {  # a word of the reason for which tests are skipped, to what is missing and brings it
    COMMAND: f"on real weights ({COMMAND} fetches them)",
    GEMMA: f"on Gemma's weights ({GEMMA} fetches them, after its owner's terms)",
    "chromium": "in a browser (Chromium is missing: apt install chromium, or any other way)",
    "bubblewrap": "of the grader's sandbox (bubblewrap is missing: apt install bubblewrap)",
}


def needs_weights(name: str) -> pytest.MarkDecorator:
    from transformer_lesson.checkpoints.weights import absent, have_weights

    return pytest.mark.skipif(not have_weights(name), reason=absent(name))


AS_WITH = "as-with-"
"""Begins the tag of a cell that runs without weights, too, but then shows something else."""


def skip_without_weights(cell: str, tags: Iterable[str] = ()) -> None:
    from transformer_lesson.checkpoints.needs import missing_weights
    from transformer_lesson.checkpoints.weights import absent

    needed = [tag.removeprefix(AS_WITH) for tag in tags if tag.startswith(AS_WITH)]
    if needed:
        cell = " ".join(["%%needs", *needed])
    for name in missing_weights(cell.partition("\n")[0]):
        pytest.skip(absent(name))


def closing_lines(skipped: Iterable[pytest.TestReport]) -> Iterator[str]:
    """Say for each thing that is missing how many tests were left out for want of it."""
    reasons = [str(report.longrepr).lower() for report in skipped]
    for word, what in LACKING.items():
        if n := sum(word.lower() in reason for reason in reasons):
            yield f"Left out: {n} tests {what}."
