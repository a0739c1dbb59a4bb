"""Curves that grow while a model trains."""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import ipywidgets
from IPython import get_ipython
from IPython.display import display

from transformer_lesson.explorables.base import Explorable, Rendering
from transformer_lesson.explorables.canvas import Canvas
from transformer_lesson.explorables.chart import Chart, Point
from transformer_lesson.figures.plots import COLORS
from transformer_lesson.files import printable

if TYPE_CHECKING:
    from transformer_lesson.training import StepReport

TRAINING, VALIDATION = "training", "validation"
INTERVAL = 0.25  # seconds between two pictures, at the least
SHARE = 0.02  # of the time at most is spent on drawing
LEFT, WIDTH, LABELS = 60, 560, 230  # of the frames and of the words at their right, in pixels


def render_live_curves(title: str, series: Mapping[str, list[Point]], log: bool) -> Rendering:
    """Draw losses in one frame and, below, whatever else was measured in another.

    Args:
        title: what is trained.
        series: name to the points (step, value) of a curve; the names "training" and
            "validation" are losses in nats per token.
        log: whether the losses' axis is logarithmic.
    """
    losses = {name: series[name] for name in (TRAINING, VALIDATION) if series.get(name)}
    others = {name: points for name, points in series.items() if points and name not in losses}
    steps = [step for points in series.values() for step, _ in points]
    page = Canvas(title, LEFT + WIDTH + LABELS, 270 + 190 * bool(others))
    _draw(page, 50, 170, losses, steps, COLORS[:2], "loss, nats per token", log)
    if others:
        _draw(page, 290, 120, others, steps, COLORS[2:], ", ".join(others), False)
    lasts = [f"{name} {points[-1][1]:.4g}" for name, points in (losses | others).items()]
    step = max((points[-1][0] for points in (losses | others).values()), default=0)
    words = f"step {step:,}: {', '.join(lasts)}" if lasts else "no step so far"
    return Rendering(page.png(), f"{title}, {words}.")


def _draw(
    page: Canvas, top: int, height: int, series: Mapping[str, list[Point]], steps: list[int],
    colors: Sequence[str], y_name: str, log: bool,
) -> None:  # fmt: skip
    """Draw the curves of one frame, each with its name and last value at its end."""
    values = [value for points in series.values() for _, value in points]
    frame = Chart(page, LEFT, top, WIDTH, height, steps, values, log)
    frame.axes("step", y_name)
    ends = []
    for i, (name, points) in enumerate(series.items()):
        color = colors[i % len(colors)]
        end = frame.line(points, color, dots=name != TRAINING and len(points) < 60)
        if end is not None:
            ends.append((end[1], f"{name} {points[-1][1]:.3g}", color))
    lowest = frame.top - 8.0
    for y, words, color in sorted(ends):
        lowest = max(y, lowest + 16)  # no name over another
        x = frame.left + frame.width + 8
        frame.page.box(x, lowest - 4, 8, 8, fill=color)
        frame.page.text(x + 14, lowest, words, 12, anchor="lm", width=LABELS - 30)


class LiveCurves(Explorable):
    """A picture of the losses, drawn again and again while a model trains.

        live = LiveCurves("A translator learns")
        display(live)
        train(model, batches, config, on_step=live)

    It is drawn at most four times a second, and so seldom that drawing takes at most 2 % of the
    time. The last state is drawn when the cell ends, whether it ran through or was interrupted,
    and is what a saved notebook shows.

    Args:
        title: what is trained.
        log: begin with a logarithmic axis for the losses.
    """

    def __init__(self, title: str = "Training", log: bool = False):
        self.title = title
        self.series: dict[str, list[Point]] = {TRAINING: [], VALIDATION: []}
        self._display = None  # where the picture stands, once it does
        self._due = 0.0  # when it may be drawn again
        self._waiting = False  # for the end of the cell
        scale = ipywidgets.ToggleButtons(
            options=[("linear", False), ("logarithmic", True)], value=log, description="Loss axis"
        )
        super().__init__({"log": scale})

    def __call__(self, report: "StepReport") -> None:
        """Take in what `train` tells after a step."""
        if report.validation is not None:
            self.series[VALIDATION].append((report.step, report.validation))
        self.add(TRAINING, report.step, report.loss)

    def add(self, name: str, step: int, value: int | float) -> None:
        """Take in a point of any curve: `live.add("exact match", step, 0.97)`."""
        self.series.setdefault(name, []).append((step, float(value)))
        if self._display is None:
            return
        start = time.perf_counter()
        if start >= self._due:
            self._redraw()
            end = time.perf_counter()
            self._due = end + max(INTERVAL, (end - start) / SHARE)
        if not self._waiting:
            get_ipython().events.register("post_run_cell", self._finish)
            self._waiting = True

    def render(self) -> Rendering:
        """Draw the present state."""
        return render_live_curves(self.title, self.series, **self.values)

    def _ipython_display_(self) -> None:
        self._redraw()
        data, metadata = self._repr_mimebundle_()
        self._display = display(data, metadata=metadata, raw=True, display_id=True)

    def _finish(self, _result=None) -> None:
        """Draw the last state, and put it into the notebook's stored output."""
        get_ipython().events.unregister("post_run_cell", self._finish)
        self._waiting = False
        self._redraw()
        data, metadata = self._repr_mimebundle_()
        self._display.update(data, metadata=metadata, raw=True)

    def __repr__(self) -> str:
        return f"LiveCurves({printable(repr(self.title), 100)})"
