"""Norm position, warm-up and initialization: which runs learn?"""

from itertools import product

import traitlets

from transformer_lesson.explorables.in_page import PageExplorable
from transformer_lesson.lessons.lesson_13.since_2017 import (
    GRID_EVERY,
    GRID_TRAINING,
    INITIALIZATIONS,
    NORM_POSITIONS,
    WARMUPS,
    Setting,
    stored_grid,
)

POINTS = GRID_TRAINING.steps // GRID_EVERY
LEARNED = 2.6
"""Nats per character below which a run has learned more than character frequencies."""


def in_rows() -> dict[str, list[list[float]]]:
    """Return the stored curves, with settings that differ only in their warm-up adjacent."""
    grid = stored_grid()
    rows = product(NORM_POSITIONS, INITIALIZATIONS)
    settings = [Setting(norm, warmup, weights) for norm, weights in rows for warmup in WARMUPS]
    return {str(setting): grid[setting] for setting in settings}


class PaperVsPractice(PageExplorable):
    """Choose a setting, predict how many of its runs will learn, then see the measurement.

    The runs are from `measure_paper_vs_practice`: six layers, three seeds, 200 steps on CPython's
    manual with Adam at a constant rate of 0.003 and without clipping.

    Args:
        norm_position: "post" (paper) or "pre".
        warmup_steps: 0, 20 or 100.
        initialization: "xavier" or "small" (standard deviation 0.02).
        point: how many of the stored points are drawn; each is the mean of GRID_EVERY steps.
        predictions: how many seeds the learner expects to learn, by setting; None where the curves
            are shown without a prediction, as in the first setting.
        ranked: sort the measured settings by loss.
    """

    norm_position = traitlets.Enum(NORM_POSITIONS, "post").tag(sync=True)
    warmup_steps = traitlets.Enum(WARMUPS, 0).tag(sync=True)
    initialization = traitlets.Enum(INITIALIZATIONS, "xavier").tag(sync=True)
    point = traitlets.Int(POINTS, min=1, max=POINTS).tag(sync=True)
    predictions = traitlets.Dict().tag(sync=True)
    ranked = traitlets.Bool(False).tag(sync=True)
    curves = traitlets.Dict().tag(sync=True, fact=True)
    every = traitlets.Int(GRID_EVERY).tag(sync=True, fact=True)
    learned = traitlets.Float(LEARNED).tag(sync=True, fact=True)
    missing = traitlets.Unicode().tag(sync=True, fact=True)

    def __init__(
        self,
        norm_position: str = "post",
        warmup_steps: int = 0,
        initialization: str = "xavier",
        **values,
    ):
        first = Setting(norm_position, warmup_steps, initialization)
        try:
            curves, missing = in_rows(), ""
        except ValueError as error:
            curves, missing = {}, str(error)
        values = {"predictions": {str(first): None}, **first._asdict(), **values}
        super().__init__(curves=curves, missing=missing, **values)
