"""Curves that grow while a model trains."""

import math
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import traitlets
from IPython import get_ipython

from transformer_lesson.explorables.in_page import PageExplorable, Text
from transformer_lesson.files import printable

if TYPE_CHECKING:
    from transformer_lesson.training import StepReport

TRAINING, VALIDATION = "training", "validation"
INTERVAL = 0.25  # seconds between two messages, at the least
SHARE = 0.02  # of the time at most is spent on sending
MOST = 500  # points of one curve in the page, about as many as it has pixels

Point = tuple[int, float]


def as_sent(series: Mapping[str, Sequence[Point]], _explorable=None) -> list:
    """Return curves as a page gets them: pairs of a name and its points, in their order."""
    whole = [points for points in series.values() if len(points) <= MOST]
    shared = {step for points in whole for step, _ in points}  # there all curves keep a point
    return [
        [printable(name, 60), [[step, number(value)] for step, value in thinned(points, shared)]]
        for name, points in series.items()
    ]


def thinned(points: Sequence[Point], shared: set[int] = frozenset()) -> Sequence[Point]:
    """Return some of many points as they are, so that their curve looks the same.

    Kept are the first and the last; the lowest and the highest of each of `MOST / 2` groups of
    neighbors, and the first that is no number; and those at the steps in `shared`.
    """
    if len(points) <= MOST:
        return points
    size = math.ceil(2 * len(points) / MOST)
    ranks = [(math.isfinite(value), value) for _, value in points]
    kept = {0, len(points) - 1}
    for start in range(0, len(points), size):
        group = range(start, min(start + size, len(points)))
        kept |= {min(group, key=ranks.__getitem__), max(group, key=ranks.__getitem__)}
    return [point for i, point in enumerate(points) if i in kept or point[0] in shared]


def number(value: float) -> float | str:
    """Return a number in six digits; what is no number, such as NaN, as a word."""
    return float(f"{value:.6g}") if math.isfinite(value) else str(float(value))


class LiveCurves(PageExplorable):
    """The losses, drawn in the page again and again while a model trains.

        live = LiveCurves("A translator learns")
        display(live)
        train(model, batches, config, on_step=live)

    Points are sent at most four times a second, and so seldom that sending takes at most 2 % of
    the time. The last state is sent when the cell ends, whether it ran through or was interrupted,
    and is what a saved notebook shows. Of a curve with more than `MOST` points the page gets some.

    Args:
        title: what is trained.
        log: begin with a logarithmic axis for the losses: `live.logarithmic`.
    """

    title = Text("Training").tag(sync=True)
    logarithmic = traitlets.Bool(False).tag(sync=True)
    step = traitlets.Int(None, allow_none=True).tag(sync=True)
    """The step whose values the picture tells: chosen by a click; `None` is the last."""
    series = traitlets.Dict().tag(sync=True, fact=True, to_json=as_sent)
    """Name to the points (step, value) of a curve; the first two are in nats per token."""

    def __init__(self, title: str = "Training", log: bool = False, **values):
        self._due = 0.0  # when points may be sent again
        self._waiting = False  # for the end of the cell
        begun = {TRAINING: [], VALIDATION: []}
        super().__init__(title=title, logarithmic=log, series=begun, **values)

    def __call__(self, report: "StepReport") -> None:
        """Take in what `train` tells after a step."""
        if report.validation is not None:
            self.series[VALIDATION].append((report.step, report.validation))
        self.add(TRAINING, report.step, report.loss)

    def add(self, name: str, step: int, value: int | float) -> None:
        """Take in a point of any curve: `live.add("exact match", step, 0.97)`."""
        self.series.setdefault(name, []).append((step, float(value)))
        start = time.perf_counter()
        if start >= self._due:
            self.send_state("series")
            end = time.perf_counter()
            self._due = end + max(INTERVAL, (end - start) / SHARE)
        if not self._waiting and get_ipython():
            get_ipython().events.register("post_run_cell", self._finish)
            self._waiting = True

    def _finish(self, _result=None) -> None:
        """Send the last state."""
        get_ipython().events.unregister("post_run_cell", self._finish)
        self._waiting = False
        self.send_state("series")
