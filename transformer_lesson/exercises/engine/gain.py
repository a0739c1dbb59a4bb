"""A plot of a learner's score before and after the course.

A separate module because only it needs the drawing library.
"""

import warnings
from collections.abc import Iterable
from itertools import cycle

from transformer_lesson.exercises.engine.inventory import by_topic
from transformer_lesson.exercises.engine.progress import progress_file, read_progress
from transformer_lesson.figures.gains import gains
from transformer_lesson.figures.plots import Figure


def gain_figure() -> Figure:
    """Return a picture of each topic's right answers before and after the course."""
    try:
        predicted = read_progress(progress_file())["predicted"]
    except OSError as error:
        warnings.warn(f"Progress could not be read: {error}", stacklevel=3)
        predicted = {}
    rows = by_topic(predicted)
    if not any(n_asked for pair in rows.values() for _, n_asked in pair):
        return _example(rows)
    (was, of), (now, of_now) = rows["the ten asked twice"]
    if of and of_now:
        title = f"Of the questions asked twice: {was} of {of} right before, {now} of {of_now} after"
    else:
        title = f"Answered only {'before' if of else 'after'}: a gain needs both"
    return gains(title, rows)


def _example(topics: Iterable[str]) -> Figure:
    """Return an example picture with invented answers, which its title says."""
    *names, twice = topics
    shares = cycle([((0, 1), (2, 3)), ((1, 1), (3, 3)), ((0, 1), (1, 3))])
    rows = dict(zip(names, shares, strict=False)) | {twice: ((4, 10), (8, 10))}
    picture = gains(
        "An example, not your answers: answer the questions, then run this cell again", rows
    )
    picture.alt = f"An example with invented answers. {picture.alt}"
    return picture
