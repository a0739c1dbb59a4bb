"""Axes for curves on a canvas: what is measured, step after step."""

import math
from collections.abc import Sequence

from transformer_lesson.explorables.canvas import Canvas

Number = int | float
Point = tuple[Number, Number]


class Chart:
    """A framed part of a canvas with numbers along its two axes.

    Args:
        page: the canvas.
        left, top, width, height: where the frame stands, in pixels.
        xs, ys: everything that will be drawn; they decide how far the axes reach. The y axis
            begins at 0, or lower.
        log: whether equal factors, not equal differences, get equal heights. The y axis then has
            no 0, and a value that is not above 0 is left out.
    """

    def __init__(
        self, page: Canvas, left: int, top: int, width: int, height: int,
        xs: Sequence[Number], ys: Sequence[Number], log: bool = False,
    ):  # fmt: skip
        self.page, self.log = page, log
        self.left, self.top, self.width, self.height = left, top, width, height
        self.x_range = widened(xs)
        ys = [y for _, y in self.drawable([(0, y) for y in ys])]
        low, high = map(self._scaled, widened(ys or [1.0]) if log else widened([0.0, *ys]))
        self.y_range = low, high + 0.04 * (high - low)

    def drawable(self, points: Sequence[Point]) -> list[Point]:
        """Leave out what has no place: NaN, above 1e30, and on a log axis what is not above 0."""
        return [(x, y) for x, y in points if abs(y) < 1e30 and (y > 0 or not self.log)]

    def place(self, x: Number, y: Number) -> Point:
        """Return the pixel at which a point lies."""
        (x_0, x_1), (y_0, y_1) = self.x_range, self.y_range
        right, up = (x - x_0) / (x_1 - x_0), (self._scaled(y) - y_0) / (y_1 - y_0)
        return self.left + right * self.width, self.top + (1 - up) * self.height

    def axes(self, x_name: str, y_name: str) -> None:
        """Draw the frame, pale lines at round numbers, the numbers, and what they count."""
        page, bottom = self.page, self.top + self.height
        low, high = (10**end if self.log else end for end in self.y_range)
        for y in log_ticks(low, high) if self.log else ticks(low, high):
            at = self.place(self.x_range[0], y)[1]
            page.box(self.left, at, self.width, 0, edge="#DDDDDD")
            page.text(self.left - 6, at, f"{y:.4g}", 11, anchor="rm", width=48)
        for x in ticks(*self.x_range):
            if x == int(x):
                at = self.left + self.width * (x - self.x_range[0]) / self._x_length
                page.text(at, bottom + 14, f"{int(x):,}", 11)
        page.box(self.left, self.top, self.width, self.height, edge="#888888")
        page.text(self.left + self.width / 2, bottom + 34, x_name, 11)
        page.text(self.left, self.top - 10, y_name, 11, anchor="lm")

    def line(self, points: Sequence[Point], color: str, dots: bool = False) -> Point | None:
        """Draw a curve and return the pixel at which it ends; `None` if nothing can be drawn."""
        points = [self.place(*point) for point in thinned(self.drawable(points), self.width)]
        if not points:
            return None
        if len(points) > 1:
            self.page.curve(points, color)
        if dots or len(points) == 1:
            for point in points:
                self.page.dot(*point, color)
        return points[-1]

    @property
    def _x_length(self) -> Number:
        return self.x_range[1] - self.x_range[0]

    def _scaled(self, y: Number) -> Number:
        return math.log10(y) if self.log else y


def widened(values: Sequence[Number]) -> Point:
    """Return the lowest and the highest value, apart even where there is only one, or none."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    return (low, high) if high > low else (low, low + (abs(low) or 1.0))


def ticks(low: Number, high: Number) -> list[Number]:
    """Return two to six round numbers (1, 2 or 5 and zeros) between low and high."""
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= 0.999 * rough)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [step * i for i in range(first, last + 1)]


def log_ticks(low: Number, high: Number) -> list[Number]:
    """Return round numbers for a logarithmic axis: 1, 2, 5, 10, 20, ..., or powers of ten."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found = [m * 10.0**p for p in powers for m in (1, 2, 5) if low <= m * 10.0**p <= high]
    if len(found) < 2:
        return ticks(low, high)
    if len(found) <= 6:
        return found
    return [10.0**p for p in powers[:: 1 + len(powers) // 7] if low <= 10.0**p <= high]


def thinned(points: list[Point], columns: int) -> list[Point]:
    """Return at most about `columns` points: neighbors are replaced by their mean.

    A curve of 100,000 steps then takes no longer to draw than one of 500.
    """
    size = math.ceil(len(points) / columns)
    if size < 2:
        return points
    groups = [points[i : i + size] for i in range(0, len(points), size)]
    return [
        (sum(x for x, _ in group) / len(group), sum(y for _, y in group) / len(group))
        for group in groups
    ]
