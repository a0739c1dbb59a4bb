"""Tests on real weights: they skip where these are absent, and the run ends by counting them."""

from collections.abc import Iterable

import pytest

COMMAND = "`make weights`"


def needs_weights(name: str) -> pytest.MarkDecorator:
    from transformer_lesson.checkpoints.weights import absent, have_weights

    return pytest.mark.skipif(not have_weights(name), reason=absent(name))


def skip_without_weights(cell: str) -> None:
    from transformer_lesson.checkpoints.needs import missing_weights
    from transformer_lesson.checkpoints.weights import absent

    for name in missing_weights(cell.partition("\n")[0]):
        pytest.skip(absent(name))


def closing_line(skipped: Iterable[pytest.TestReport]) -> str | None:
    """Return how many tests were left out for want of weights; `None` if none was."""
    n = sum(COMMAND in str(report.longrepr) for report in skipped)
    return f"Tests on real weights that were left out: {n} ({COMMAND} fetches them)." if n else None
