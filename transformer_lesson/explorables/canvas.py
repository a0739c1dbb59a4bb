"""Paper for pictures that are boxes and words.

matplotlib takes a third of a millisecond per word and leaves work for the garbage collector;
this takes a tenth of that, so that a picture of 300 words follows a slider.
"""

import io
from functools import cache

import numpy as np
from matplotlib.font_manager import FontProperties, findfont
from PIL import Image, ImageDraw, ImageFont

from transformer_lesson.explorables.base import drawable
from transformer_lesson.figures.plots import COLORS


def pale(color: str) -> str:
    """Mix a color like "#0072B2" with white until black words can be read on it."""
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{255 - (255 - part) * 2 // 5:02X}" for part in (red, green, blue))


TINTS = tuple(pale(color) for color in COLORS[:6])


@cache
def font(size: int) -> ImageFont.FreeTypeFont:
    """Matplotlib's own font, which is on every machine."""
    return ImageFont.truetype(findfont(FontProperties()), size)


def drawn_width(text: str, size: int) -> float:
    """Return how many pixels a text takes when drawn."""
    return font(size).getlength(drawable(text))


def fitted(text: str, size: int, width: float | int) -> str:
    """Return the text as it can be drawn, cut with "…" where it is wider than `width` pixels."""
    text = text[:200]  # no picture is wider; measuring thousands of characters takes seconds
    if drawn_width(text, size) <= width:
        return drawable(text)
    while text and drawn_width(text + "…", size) > width:
        text = text[:-1]
    return drawable(text + "…")


class Canvas:
    """A white picture with a title; positions and sizes are pixels from the upper left corner."""

    def __init__(self, title: str, width: int, height: int):
        self._image = Image.new("RGB", (width, height), "white")
        self._draw = ImageDraw.Draw(self._image)
        self.text(width / 2, 16, title, size=15, width=width - 20)

    def text(self, x, y, text, size=12, color="black", anchor="mm", width=None) -> None:
        """Write words; the anchor says which part of them lies at (x, y), "lm" the left end."""
        text = drawable(text) if width is None else fitted(text, size, width)
        self._draw.text((x, y), text, fill=color, font=font(size), anchor=anchor)

    def box(self, x, y, width, height, fill=None, edge="white", line=1) -> None:
        """Draw a rectangle with its upper left corner at (x, y)."""
        corners = (x, y, x + width, y + height)
        self._draw.rectangle(corners, fill=fill, outline=edge, width=line)

    def cross(self, x, y, width, height, color="black") -> None:
        """Draw a small diagonal cross into the middle of a rectangle."""
        x, y, r = x + width / 2, y + height / 2, min(width, height) / 5
        for slope in (1, -1):
            self._draw.line((x - r, y - slope * r, x + r, y + slope * r), fill=color, width=2)

    def turned(self, x, y, text, size=11, end=False, width=None) -> None:
        """Write words from below to above, their middle (or their end, the top) at (x, y)."""
        text = drawable(text) if width is None else fitted(text, size, width)
        _, _, right, bottom = map(int, font(size).getbbox(text))
        words = Image.new("L", (max(right, 1), max(bottom, 1)))
        ImageDraw.Draw(words).text((0, 0), text, fill=255, font=font(size))
        words = words.rotate(90, expand=True)
        top = y if end else y - right / 2
        self._image.paste("black", (int(x - bottom / 2), int(top)), words)

    def picture(self, x, y, width, height, pixels: np.ndarray) -> None:
        """Draw an array of shape (row, column, 3 colors from 0 to 255), stretched."""
        small = Image.fromarray(pixels)
        self._image.paste(small.resize((width, height), Image.Resampling.NEAREST), (x, y))

    def curve(self, points: list[tuple], color: str, width: float | int = 2) -> None:
        """Join points by a line with smooth edges: drawn twice as large, then shrunk."""
        xs, ys = zip(*points, strict=True)
        edge = 1 + int(width)
        left, top = int(min(xs)) - edge, int(min(ys)) - edge
        right, bottom = int(max(xs)) + edge, int(max(ys)) + edge
        large = Image.new("L", (2 * (right - left), 2 * (bottom - top)))
        moved = [(2 * (x - left), 2 * (y - top)) for x, y in points]
        ImageDraw.Draw(large).line(moved, 255, max(1, round(2 * width)), joint="curve")
        self._image.paste(color, (left, top), large.reduce(2))

    def hatch(self, x, y, width, height, color="black") -> None:
        """Fill a rectangle with diagonal lines, a mark that needs no color."""
        width, height = int(width), int(height)
        if width < 1 or height < 1:
            return
        lines = Image.new("L", (width, height))
        draw = ImageDraw.Draw(lines)
        for start in range(-height, width, 6):
            draw.line((start, height, start + height, 0), fill=255)
        self._image.paste(color, (int(x), int(y)), lines)

    def dot(self, x, y, color: str) -> None:
        """Mark a point."""
        self._draw.circle((x, y), 5, fill=color)

    def png(self) -> bytes:
        """Return the picture as the bytes of a PNG file."""
        buffer = io.BytesIO()
        self._image.save(buffer, "PNG", compress_level=1)
        return buffer.getvalue()
