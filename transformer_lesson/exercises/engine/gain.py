"""The picture of a learner's gain.

It is a module by itself because it alone needs the drawing library.
"""

import warnings

from transformer_lesson.exercises.engine.inventory import by_topic
from transformer_lesson.exercises.engine.progress import progress_file, read_progress
from transformer_lesson.figures.gains import gains
from transformer_lesson.figures.plots import Figure


def gain_figure() -> Figure:
    """Return the right answers of each topic before the course and after it, as far as given."""
    try:
        predicted = read_progress(progress_file())["predicted"]
    except OSError as error:
        warnings.warn(f"Progress could not be read: {error}", stacklevel=3)
        predicted = {}
    rows = by_topic(predicted)
    (was, of), (now, of_now) = rows["the ten asked twice"]
    if of and of_now:
        title = f"Of the questions asked twice: {was} of {of} right before, {now} of {of_now} after"
    elif of or of_now:
        title = f"Answered only {'before' if of else 'after'}: a gain needs both"
    else:
        title = 'No answers yet: inventory("before") and inventory("after") ask for them'
    return gains(title, rows)
