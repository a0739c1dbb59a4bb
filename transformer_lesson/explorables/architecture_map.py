"""The Transformer of the paper's figure 1; each part names the lesson that builds it."""

import io
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple

import ipywidgets
import numpy as np
from matplotlib.collections import LineCollection, PatchCollection
from matplotlib.image import imread, imsave
from matplotlib.patches import Rectangle

from transformer_lesson.explorables.base import Explorable, Rendering
from transformer_lesson.figures.plots import Figure
from transformer_lesson.lessons import LESSONS


class Part(NamedTuple):
    """What the map says about one part."""

    lesson: str
    what: str
    formula: str
    shapes: str


PARTS = {
    "Token embedding": Part(
        "01",
        "It looks up one trained vector for each token id.",
        "x = table[ids] · √d_model",
        "ids (batch, n) → (batch, n, d_model)",
    ),
    "Positional encoding": Part(
        "02",
        "It adds where each token stands, because attention alone cannot tell word order.",
        "PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) = cos(the same angle)",
        "(n, d_model), added to (batch, n, d_model)",
    ),
    "Attention": Part(
        "03",
        "Each query gets a mean of the values, weighted by how well it matches each key.",
        "softmax(Q Kᵀ / √d_head) V",
        "Q, K, V (batch, head, n, d_head) → weights (batch, head, query, key) "
        "→ (batch, head, query, d_head)",
    ),
    "Masked attention": Part(
        "03",
        "It hides the tokens after each query, so that no prediction can read its own answer.",
        "softmax(Q Kᵀ / √d_head, with −∞ where key > query) V",
        "mask (1, 1, n, n), True = may attend, applied to scores (batch, head, query, key)",
    ),
    "Multi-head attention": Part(
        "04",
        "Several attentions run side by side, each on its own d_head = d_model / n_heads numbers.",
        "Concat(head_1, …, head_h) W_O",
        "(batch, n, d_model) → (batch, head, n, d_head) → (batch, n, d_model)",
    ),
    "Add & norm": Part(
        "05",
        "The input is added to what the sub-layer made of it; then each token's numbers are "
        "normalized.",
        "LayerNorm(x + Sublayer(x))",
        "(batch, n, d_model) → (batch, n, d_model)",
    ),
    "Feed-forward": Part(
        "05",
        "Two linear maps with a ReLU between them change each token by itself.",
        "max(0, x W_1 + b_1) W_2 + b_2",
        "(batch, n, d_model) → (batch, n, d_ff) → (batch, n, d_model)",
    ),
    "Encoder stack": Part(
        "06",
        "n_layers equal blocks, each with its own weights, turn the source into the memory.",
        "memory = block_N(… block_2(block_1(x)))",
        "(batch, source, d_model) → memory (batch, source, d_model)",
    ),
    "Decoder block": Part(
        "07",
        "It reads the target so far, then the memory, then works on each token by itself.",
        "masked attention, add & norm, cross-attention, add & norm, feed-forward, add & norm",
        "target (batch, target, d_model) and memory (batch, source, d_model) "
        "→ (batch, target, d_model)",
    ),
    "Cross-attention": Part(
        "07",
        "The target asks, the source answers: queries come from the decoder, keys and values from "
        "the memory.",
        "softmax(Q Kᵀ / √d_head) V with Q = y W_Q, K = memory W_K, V = memory W_V",
        "y (batch, target, d_model), memory (batch, source, d_model) → weights "
        "(batch, head, target, source) → (batch, target, d_model)",
    ),
    "Linear + softmax": Part(
        "07",
        "Every token of the vocabulary gets a probability to be the next one.",
        "softmax(y tableᵀ)",
        "(batch, target, d_model) → (batch, target, vocab_size)",
    ),
}

SIZE, UNITS = (7.6, 7.4), (78, 76)  # of the picture: in inches, in the units used below
ENCODER, DECODER, WIDTH = 8, 48, 21  # left edges and width of the two columns
BOXES = [  # part, left, bottom, width, height, label where it differs; later ones lie on top
    ("Encoder stack", ENCODER - 5, 16.5, WIDTH + 9, 28, "Encoder stack: n_layers blocks"),
    ("Decoder block", DECODER - 5, 16.5, WIDTH + 9, 43.5, "Decoder block × n_layers"),
    ("Token embedding", ENCODER, 4.5, WIDTH, 3.8, ""),
    ("Positional encoding", ENCODER, 10.2, WIDTH, 3.8, "+ Positional encoding"),
    ("Token embedding", DECODER, 4.5, WIDTH, 3.8, ""),
    ("Positional encoding", DECODER, 10.2, WIDTH, 3.8, "+ Positional encoding"),
    ("Multi-head attention", ENCODER, 19, WIDTH, 8.5, ""),
    ("Attention", ENCODER + 3, 19.8, WIDTH - 6, 3.8, ""),
    ("Add & norm", ENCODER, 29, WIDTH, 3.5, ""),
    ("Feed-forward", ENCODER, 34.5, WIDTH, 3.8, ""),
    ("Add & norm", ENCODER, 39.8, WIDTH, 3.5, ""),
    ("Multi-head attention", DECODER, 19, WIDTH, 8.5, ""),
    ("Masked attention", DECODER + 1.5, 19.8, WIDTH - 3, 3.8, ""),
    ("Add & norm", DECODER, 29, WIDTH, 3.5, ""),
    ("Cross-attention", DECODER, 34.5, WIDTH, 8.5, ""),
    ("Attention", DECODER + 3, 35.3, WIDTH - 6, 3.8, ""),
    ("Add & norm", DECODER, 44.5, WIDTH, 3.5, ""),
    ("Feed-forward", DECODER, 50, WIDTH, 3.8, ""),
    ("Add & norm", DECODER, 55.3, WIDTH, 3.5, ""),
    ("Linear + softmax", DECODER, 63.5, WIDTH, 3.8, ""),
]
FRAMES = {"Encoder stack", "Decoder block"}
HOLDERS = {"Multi-head attention", "Cross-attention"}
TINTS = ("#DCEBF5", "#F9EBC8", "#F6CDB2", "#FBE9DC", "#D5EDE4", "#F2F6F9", "#F8ECF3")
COLORS = dict(zip(sorted({part.lesson for part in PARTS.values()}), TINTS, strict=True))


def _arrows() -> list[list[tuple]]:
    """Return the paths of the data: up each column, around each sub-layer, over to the decoder."""
    paths = []
    for left in (ENCODER, DECODER):
        middle = left + WIDTH / 2
        column = [(name, y, y + height) for name, x, y, _, height, _ in BOXES if x == left]
        paths.append([(middle, 3), (middle, column[0][1])])
        for (_, bottom, top), (name, above, end) in pairwise(column):
            paths.append([(middle, top), (middle, above)])
            if name == "Add & norm":  # the residual path starts below the sub-layer
                start, side, half = bottom - 1.2, left - 3, (above + end) / 2
                paths.append([(middle, start), (side, start), (side, half), (left, half)])
    encoder_middle = ENCODER + WIDTH / 2
    memory = [(encoder_middle, 43.3), (encoder_middle, 49), (38, 49), (38, 38.5), (DECODER, 38.5)]
    return [*paths, memory, [(middle, 67.3), (middle, 69)]]


@cache
def _plain_map() -> np.ndarray:
    """Draw the map without a highlight, once: writing its labels takes most of the time."""
    made = Figure("Each part carries the number of the lesson that builds it", "", *SIZE)
    axes = made.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, UNITS[0]), ylim=(0, UNITS[1]))
    axes.axis("off")
    fills = [COLORS[PARTS[name].lesson] for name, *_ in BOXES]
    rectangles = [Rectangle((x, y), width, height) for _, x, y, width, height, _ in BOXES]
    style = {"facecolors": fills, "edgecolors": "#888888", "linewidths": 0.8, "zorder": 2}
    axes.add_collection(PatchCollection(rectangles, **style))
    axes.add_collection(LineCollection(_arrows(), colors="#444444", linewidths=1.1, zorder=3))
    for marker, same in (("^", 0), (">", 1)):  # heads of the upward paths, then of the others
        ends = [path[-1] for path in _arrows() if path[-1][same] == path[-2][same]]
        axes.scatter(*zip(*ends, strict=True), marker=marker, s=22, color="#444444", zorder=5)
    for box in BOXES:
        _write_label(axes, *box)
    center = {"ha": "center", "fontsize": 9}
    axes.text(ENCODER + WIDTH / 2, 1.2, "source token ids", **center)
    axes.text(DECODER + WIDTH / 2, 1.2, "target token ids so far", **center)
    axes.text(DECODER + WIDTH / 2, 69.5, "probabilities of the next token", **center)
    axes.text(32, 49.6, "memory", style="italic", **center)
    return imread(io.BytesIO(made.png()))[..., :3]


def _write_label(axes, name, left, bottom, width, height, label) -> None:
    x, y, rotation = left + width / 2, bottom + height / 2, 0
    if name in FRAMES:
        x, rotation = left + width - 1.9, 90
    if name in HOLDERS:
        y = bottom + height - 2
    written = f"{PARTS[name].lesson}  {label or name}"
    style = {"ha": "center", "va": "center", "fontsize": 9, "zorder": 6}
    axes.text(x, y, written, rotation=rotation, **style)


@lru_cache(maxsize=len(PARTS))
def render_architecture_map(part: str) -> Rendering:
    """Draw the map with one part highlighted; the text says what the part does.

    Args:
        part: a key of `PARTS`.
    """
    lesson, what, formula, shapes = PARTS[part]
    text = f"{part} (lesson {lesson}): {what} Formula: {formula}. Shapes: {shapes}."
    pixels = _plain_map().copy()  # (height, width, color), the top row first
    rows, columns = pixels.shape[0] / UNITS[1], pixels.shape[1] / UNITS[0]
    for x, y, width, height in [box[1:5] for box in BOXES if box[0] == part]:
        top, left = round((UNITS[1] - y - height) * rows), round(x * columns)
        box = pixels[top : top + round(height * rows), left : left + round(width * columns)]
        inside = box[4:-4, 4:-4] * (1.0, 0.9, 0.45)  # yellow that leaves black letters black
        box[:] = 0.0
        box[4:-4, 4:-4] = inside
    picture = io.BytesIO()
    imsave(picture, pixels, format="png", pil_kwargs={"compress_level": 1})
    return Rendering(picture.getvalue(), text)


class ArchitectureMap(Explorable):
    """The Transformer on one page: choose a part, read what it does, open its lesson.

    Args:
        part: the part that is chosen at first, a key of `PARTS`.
    """

    def __init__(self, part: str = "Attention"):
        choice = ipywidgets.ToggleButtons(options=list(PARTS), value=part, description="Part")
        choice.style.button_width = "auto"
        super().__init__({"part": choice})
        # JupyterLab resolves a link inside an Output from the notebook's own folder, wherever
        # the server's root is, and opens it as a tab; a link in an HTML widget reloads the page.
        self.link = ipywidgets.Output()
        choice.observe(self._show_link, "value")
        self._show_link()
        self.children += (self.link,)

    def render(self) -> Rendering:
        """Draw the map with the chosen part highlighted."""
        return render_architecture_map(**self.values)

    def _show_link(self, change=None) -> None:
        lesson = PARTS[self.controls["part"].value].lesson
        title, notebook, *_ = LESSONS[lesson]
        link = f'<a href="{notebook}">Open lesson {lesson}: {title.replace("&", "&amp;")}</a>'
        data = {"text/html": link, "text/plain": notebook}
        self.link.outputs = ({"output_type": "display_data", "data": data, "metadata": {}},)
