"""Pictures as the lessons store them: PNGs with a palette of at most 256 colors.

Most bytes of a drawing are shades at the edges of letters and lines, thousands of them. Shades that
no eye tells apart become the most frequent one of them; what covers an area keeps its color.
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
    """Return a picture with few colors; a picture made so comes back as it is.

    A color that two by two pixels have stays as it is; any other moves by at most `AT_EDGES` in
    each of red, green, blue (times opacity) and opacity. While that needs more than 256 colors,
    each may move by one more. The same pixels give the same bytes with the same Pillow.
    """
    pixels = np.array(Image.open(io.BytesIO(png)).convert("RGBA"))
    codes = pixels.view("<u4")[..., 0]
    found, index, counts = np.unique(codes, return_inverse=True, return_counts=True)
    colors = found.view(np.uint8).reshape(-1, 4)
    on_area = np.isin(found, _codes_on_areas(codes))
    limits = np.where(on_area, 0, AT_EDGES)
    order = np.lexsort((found, -counts, ~on_area))
    seen = _times_opacity(colors)
    while len(kept := _kept(seen, order, limits)) > MOST_COLORS:
        limits += 1
    nearest = np.stack([np.abs(seen - seen[one]).max(axis=1) for one in kept]).argmin(axis=0)
    return _png(nearest[index].reshape(codes.shape), colors[kept])


def _codes_on_areas(codes: np.ndarray) -> np.ndarray:
    here, right, below, across = codes[:-1, :-1], codes[:-1, 1:], codes[1:, :-1], codes[1:, 1:]
    return np.unique(here[(here == right) & (here == below) & (here == across)])


def _times_opacity(colors: np.ndarray) -> np.ndarray:
    colors = colors.astype(np.int32)
    return np.column_stack(((colors[:, :3] * colors[:, 3:] + 127) // 255, colors[:, 3]))


def _kept(seen: np.ndarray, order: np.ndarray, limits: np.ndarray) -> list[int]:
    """Return the colors, in rising order, of which every other is within its limit of one."""
    kept, is_far = [], np.ones(len(seen), dtype=bool)
    for one in order:
        if is_far[one]:
            kept.append(int(one))
            is_far &= np.abs(seen - seen[one]).max(axis=1) > limits
    return sorted(kept)


def _png(index: np.ndarray, colors: np.ndarray) -> bytes:
    picture = Image.fromarray(index.astype(np.uint8))
    picture.putpalette(colors[:, :3].tobytes())
    opacity = {"transparency": colors[:, 3].tobytes()} if (colors[:, 3] < 255).any() else {}
    buffer = io.BytesIO()
    picture.save(buffer, "png", optimize=True, **opacity)
    return buffer.getvalue()
