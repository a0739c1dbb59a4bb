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
INTERVAL = 0.25  # least seconds between two messages
SHARE = 0.02  # most of the time that may be spent on sending
MOST = 500  # points of a curve in the page, about its width in pixels

Point = tuple[int, float]


def as_sent(series: Mapping[str, Sequence[Point]], _explorable=None) -> list:
    """Return curves in the form sent to a page: pairs of a name and its points."""
    short = [points for points in series.values() if len(points) <= MOST]
    shared = {step for points in short for step, _ in points}  # all curves keep these
    return [
        [printable(name, 60), [[step, number(value)] for step, value in thinned(points, shared)]]
        for name, points in series.items()
    ]


def levels_sent(levels: Mapping[str, float], _explorable=None) -> list:
    """Return levels in the form sent to a page: pairs of a name and a number."""
    return [[printable(name, 60), number(value)] for name, value in levels.items()]


def thinned(points: Sequence[Point], shared: set[int] = frozenset()) -> Sequence[Point]:
    """Return a subset of the points whose curve looks the same.

    It keeps the first and last point; in each of `MOST / 2` groups of neighbors the lowest, the
    highest and the first NaN; and the points at the steps in `shared`.
    """
    if len(points) <= MOST:
        return points
    size = math.ceil(2 * len(points) / MOST)
    ranks = [(math.isfinite(value), value) for _, value in points]
    indices = {0, len(points) - 1}
    for start in range(0, len(points), size):
        group = range(start, min(start + size, len(points)))
        indices |= {min(group, key=ranks.__getitem__), max(group, key=ranks.__getitem__)}
    return [point for i, point in enumerate(points) if i in indices or point[0] in shared]


def number(value: float) -> float | str:
    """Return a number in six digits; NaN and infinities as words."""
    return float(f"{value:.6g}") if math.isfinite(value) else str(float(value))


class LiveCurves(PageExplorable):
    """The losses, redrawn in the page while a model trains.

        live = LiveCurves("A translator learns")
        display(live)
        train(model, batches, config, on_step=live)

    Points are sent at most four times a second, and no more often than takes 2 % of the time. The
    final state is sent when the cell ends, even if it was interrupted, and is what a saved notebook
    shows. A curve with more than `MOST` points is thinned.

    Args:
        title: what is trained.
        log: start with a logarithmic loss axis, `live.logarithmic`.
        levels: losses to compare with, by name, such as a floor: dashed lines behind the curves.
    """

    title = Text("Training").tag(sync=True)
    logarithmic = traitlets.Bool(False).tag(sync=True)
    step = traitlets.Int(None, allow_none=True).tag(sync=True)
    """The step whose values are shown, clicked or typed; `None` is the last."""
    series = traitlets.Dict().tag(sync=True, fact=True, to_json=as_sent)
    """Points (step, value) of each curve by name; the first two curves are in nats per token."""
    levels = traitlets.Dict().tag(sync=True, fact=True, to_json=levels_sent)

    def __init__(self, title: str = "Training", log: bool = False, **values):
        self._due = 0.0  # earliest time of the next message
        self._waiting = False  # for the end of the cell
        begun = {TRAINING: [], VALIDATION: []}
        super().__init__(title=title, logarithmic=log, series=begun, **values)

    def __call__(self, report: "StepReport") -> None:
        """Add `train`'s report after a step."""
        if report.validation is not None:
            self.series[VALIDATION].append((report.step, report.validation))
        self.add(TRAINING, report.step, report.loss)

    def add(self, name: str, step: int, value: int | float) -> None:
        """Add a point to any curve: `live.add("exact match", step, 0.97)`."""
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
        """Send the final state."""
        get_ipython().events.unregister("post_run_cell", self._finish)
        self._waiting = False
        self.send_state("series")
