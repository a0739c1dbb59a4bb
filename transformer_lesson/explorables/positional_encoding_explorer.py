"""Sinusoidal positions: the whole matrix, one dimension's wave, one position's dot products."""

import math

import ipywidgets
import matplotlib
from torch import Tensor

from transformer_lesson.explorables.base import Explorable, Rendering
from transformer_lesson.explorables.canvas import Canvas
from transformer_lesson.figures.plots import COLORS, DIVERGING
from transformer_lesson.figures.ranking import first_largest
from transformer_lesson.model.positions import sinusoidal_encoding

SIZE, TOP = 220, 66


class PositionalEncodingExplorer(Explorable):
    """Turn the sizes of a sinusoidal encoding; follow one dimension and one position of it.

    Args:
        d_model: numbers per position, even, 2 to 128.
        length: positions drawn, 2 to 200.
        base: the constant of the formula, 10 to 100,000.
        dimension: whose wave is drawn, 0 to d_model - 1.
        position: whose dot products are drawn, 0 to length - 1.
    """

    still_values = {
        "d_model": (128,),
        "length": (100,),
        "base": (100.0,),
        "dimension": (1, 31),
        "position": (40,),
    }

    def __init__(
        self,
        d_model: int = 64,
        length: int = 50,
        base: float = 10000.0,
        dimension: int = 8,
        position: int = 10,
    ):
        sizes = {
            "d_model": ipywidgets.IntSlider(d_model, 2, 128, 2, description="d_model"),
            "length": ipywidgets.IntSlider(length, 2, 200, description="length"),
        }
        chosen = {
            "dimension": ipywidgets.IntSlider(dimension, 0, d_model - 1, description="dimension"),
            "position": ipywidgets.IntSlider(position, 0, length - 1, description="position"),
        }
        for size, choice in zip(sizes.values(), chosen.values(), strict=True):
            ipywidgets.dlink((size, "value"), (choice, "max"), lambda n: n - 1)
        slider = ipywidgets.FloatLogSlider(
            base, base=10, min=1, max=5, step=0.25, description="base", readout_format=",.0f"
        )
        super().__init__({**sizes, "base": slider, **chosen})

    def render(self) -> Rendering:
        return render_positional_encoding(**self.values)


def render_positional_encoding(
    d_model: int, length: int, base: float, dimension: int, position: int
) -> Rendering:
    """Draw the encoding, the wave of one dimension, and one position's dot product with all.

    Args:
        d_model: even.
        length: number of positions.
        base: above 1.
        dimension: 0 to d_model - 1.
        position: 0 to length - 1.
    """
    encoding = sinusoidal_encoding(length, d_model, base)  # (length, d_model)
    products = encoding @ encoding[position]  # (length,)
    wavelength = 2 * math.pi * base ** (dimension // 2 * 2 / d_model)
    others = products.clone()
    others[position] = -math.inf
    rival, least = int(first_largest(others)), int(first_largest(-products))
    title = (
        f"Dimension {dimension} repeats every {wavelength:,.1f} tokens; "
        f"position {position} is most like itself, then like position {rival}"
    )
    text = (
        f"{length} positions in {d_model} dimensions, base {base:,.0f}. Dimension {dimension} is a "
        f"{'cosine' if dimension % 2 else 'sine'} that repeats every {wavelength:,.1f} tokens; at "
        f"position {position} it is {encoding[position, dimension]:+.2f}. The dot product of "
        f"position {position} is {products[position]:.1f} with itself, {products[rival]:.1f} with "
        f"position {rival} (the largest of the others) and {products.min():.1f} at the least, "
        f"with position {least}."
    )
    return Rendering(_draw(title, encoding, products, dimension, position), text)


class _Plot:
    """A square of the canvas with numbers along two axes."""

    def __init__(self, canvas: Canvas, left: int, x_range, y_range, title: str, x_name, y_name):
        self.canvas, self.left, self.x_range, self.y_range = canvas, left, x_range, y_range
        canvas.text(left + SIZE / 2, TOP - 12, title, 11)
        canvas.text(left + SIZE / 2, TOP + SIZE + 36, x_name, 11)
        canvas.turned(left - 44, TOP + SIZE / 2, y_name, 11)

    def place(self, x, y) -> tuple[float, float]:
        """Return the pixel at which a point of the plot lies."""
        (x_0, x_1), (y_0, y_1) = self.x_range, self.y_range
        right, down = (x - x_0) / (x_1 - x_0), (y_1 - y) / (y_1 - y_0)
        return self.left + right * SIZE, TOP + down * SIZE

    def finish(self, x_ticks: list, y_ticks: list) -> None:
        """Draw the frame and some numbers outside it."""
        self.canvas.box(self.left, TOP, SIZE, SIZE, edge="black")
        for tick in _apart(x_ticks, self.x_range):
            self.canvas.text(self.place(tick, 0)[0], TOP + SIZE + 14, str(tick), 10)
        for tick in _apart(y_ticks, self.y_range):
            self.canvas.text(self.left - 6, self.place(0, tick)[1], f"{tick:.3g}", 10, anchor="rm")

    def curve(self, x: range, y: list[float], marked: int) -> None:
        """Join the points (x, y) and mark one of them."""
        points = [self.place(*point) for point in zip(x, y, strict=True)]
        self.canvas.curve(points, COLORS[0])
        self.canvas.dot(*points[marked], COLORS[1])


def _apart(ticks: list, limits: tuple) -> list:
    """Leave out each number that would be written over an earlier one."""
    kept = []
    for tick in ticks:
        if all(abs(tick - other) > abs(limits[1] - limits[0]) / 10 for other in kept):
            kept.append(tick)
    return kept


def _draw(title: str, encoding: Tensor, products: Tensor, dimension: int, position: int) -> bytes:
    n, d_model = encoding.shape
    canvas = Canvas(title, 890, TOP + SIZE + 56)
    ranges = (-0.5, d_model - 0.5), (n - 0.5, -0.5)
    matrix = _Plot(canvas, 60, *ranges, "orange −1, white 0, purple +1", "dimension", "position")
    colors = matplotlib.colormaps[DIVERGING]((encoding.numpy() + 1) / 2, bytes=True)
    canvas.picture(matrix.left, TOP, SIZE, SIZE, colors[:, :, :3])
    column, row = matrix.place(dimension, position)
    canvas.box(column - 3, TOP - 4, 6, SIZE + 8, edge=COLORS[2], line=2)
    canvas.box(matrix.left - 4, row - 3, SIZE + 8, 6, edge=COLORS[2], line=2)
    matrix.finish([0, d_model - 1], [0, n - 1])

    chosen = encoding[:, dimension].tolist()
    wave = _Plot(
        canvas, 360, (0, n - 1), (-1.05, 1.05), f"dimension {dimension}", "position", "value"
    )
    wave.curve(range(n), chosen, position)
    wave.finish([0, n - 1], [-1, 0, 1])

    distances = range(-position, n - position)
    low, high = min(0.0, float(products.min())), float(products.max())
    similarity = _Plot(
        canvas,
        650,
        (-position, n - 1 - position),
        (1.05 * low, 1.05 * high),
        f"every position · position {position}",
        f"distance from position {position}",
        "dot product",
    )
    similarity.curve(distances, products.tolist(), position)
    similarity.finish([0, -position, n - 1 - position], [0, low, high])
    return canvas.png()
