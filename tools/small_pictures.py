"""Pictures as the lessons store them: PNGs with a palette of at most 256 colors.

Most bytes of a drawing are shades at the edges of letters and lines, thousands of them. Shades that
look alike become the most frequent one of them; what covers an area keeps its color.
"""

import base64
import io

import nbformat
import numpy as np
from PIL import Image

AT_EDGES = 16  # of 255: how far a shade at an edge may move
MOST_COLORS = 256


def store_small(notebook: nbformat.NotebookNode) -> None:
    """Replace each picture that a notebook shows by its small form."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/png" in data:
                png = small(base64.b64decode(data["image/png"]))
                data["image/png"] = base64.b64encode(png).decode()


def small(png: bytes) -> bytes:
    """Return a picture with few colors; a picture that has been through this comes back unchanged.

    A color that fills two by two pixels stays; any other moves by at most `AT_EDGES` in each of
    red, green, blue (times opacity) and opacity. While that needs more than 256 colors, each may
    move by one more. The same pixels give the same bytes with the same Pillow.
    """
    pixels = np.array(Image.open(io.BytesIO(png)).convert("RGBA"))
    codes = pixels.view("<u4")[..., 0]
    distinct, index, counts = np.unique(codes, return_inverse=True, return_counts=True)
    colors = distinct.view(np.uint8).reshape(-1, 4)
    on_area = np.isin(distinct, _codes_on_areas(codes))
    limits = np.where(on_area, 0, AT_EDGES)
    order = np.lexsort((distinct, -counts, ~on_area))
    shades = _times_opacity(colors)
    while len(palette := _palette(shades, order, limits)) > MOST_COLORS:
        limits += 1
    distances = np.stack([np.abs(shades - shades[i]).max(axis=1) for i in palette])
    return _png(distances.argmin(axis=0)[index].reshape(codes.shape), colors[palette])


def _codes_on_areas(codes: np.ndarray) -> np.ndarray:
    here, right, below, across = codes[:-1, :-1], codes[:-1, 1:], codes[1:, :-1], codes[1:, 1:]
    return np.unique(here[(here == right) & (here == below) & (here == across)])


def _times_opacity(colors: np.ndarray) -> np.ndarray:
    colors = colors.astype(np.int32)
    return np.column_stack(((colors[:, :3] * colors[:, 3:] + 127) // 255, colors[:, 3]))


def _palette(shades: np.ndarray, order: np.ndarray, limits: np.ndarray) -> list[int]:
    """Return indices of colors, rising, such that every other is within its limit of one."""
    palette, is_far = [], np.ones(len(shades), dtype=bool)
    for i in order:
        if is_far[i]:
            palette.append(int(i))
            is_far &= np.abs(shades - shades[i]).max(axis=1) > limits
    return sorted(palette)


def _png(index: np.ndarray, colors: np.ndarray) -> bytes:
    picture = Image.fromarray(index.astype(np.uint8))
    picture.putpalette(colors[:, :3].tobytes())
    opacity = {"transparency": colors[:, 3].tobytes()} if (colors[:, 3] < 255).any() else {}
    buffer = io.BytesIO()
    picture.save(buffer, "png", optimize=True, **opacity)
    return buffer.getvalue()
