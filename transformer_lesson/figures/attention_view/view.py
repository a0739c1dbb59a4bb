"""Attention as lines between words: bertviz' head view and model view, without the network.

bertviz' own pages fetch three scripts from the internet, so they stay blank offline, and they
write tokens unescaped into a script. Here its drawing script runs in a sandboxed frame: the
libraries are inlined, tokens are passed as JSON, and the frame can reach neither the network nor
the notebook around it.
"""

import hashlib
import html
import json
import re
import warnings
from collections.abc import Sequence
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from jaxtyping import Float
from torch import Tensor

from transformer_lesson.figures.attention_view.weights import Part, collect_parts, known
from transformer_lesson.figures.plots import Figure, figure
from transformer_lesson.ranking import first_largest

BERTVIZ = "1.4.1"  # the version that MENDS patches
MENDS = {
    "head_view": {
        "const BOXWIDTH = 110;": "const BOXWIDTH = 170;",  # room for long words
        "function updateCheckboxes() {": (  # each head's number on its square
            """checkboxContainer.selectAll("text").data(config.headVis).enter().append("text")
                .attr("class", "number").text((d, i) => i).attr("text-anchor", "middle")
                .attr("x", (d, i) => (i + 0.5) * CHECKBOX_SIZE).attr("y", top + 15);
            function updateCheckboxes() {"""
        ),
    },
    "model_view": {
        "const DIV_WIDTH = 970;": "const DIV_WIDTH = Math.max(600, document.body.clientWidth);",
        '.text("Layers")': '.text("Blocks")',
        "'Layer ' + config": "'Block ' + config",
        "const DETAIL_BOX_WIDTH = 80;": "const DETAIL_BOX_WIDTH = 140;",
        "const DETAIL_WIDTH = 300;": "const DETAIL_WIDTH = 420;",
        "x = leftPos + THUMBNAIL_PADDING - DETAIL_WIDTH + 8": (
            "x = Math.max(0, leftPos + THUMBNAIL_PADDING - DETAIL_WIDTH + 8)"
        ),
        # few heads make bertviz' thumbnails taller than the screen
        "7 * (12 / config.totalHeads)": "Math.min(14, 84 / config.totalHeads)",
    },
}
"""Patches of bertviz' scripts: old text to new."""


class AttentionView:
    """An interactive view in JupyterLab, a still picture where no kernel runs.

    `html` is the view as one self-contained `<iframe>`, for your own page; `drawing` are the
    arguments of `frame`.
    """

    def __init__(self, drawing: dict[str, str | int], picture: Figure):
        self.drawing, self.picture = drawing, picture
        self.html = frame(**drawing)

    def __repr__(self) -> str:
        return self.picture.alt

    def _repr_mimebundle_(self, include=None, exclude=None):
        import ipywidgets

        widget = ipywidgets.HTML(self.html, layout={"width": "100%", "margin": "0"})
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing")  # the browser has those glyphs
            picture, metadata = self.picture._repr_mimebundle_()
        return widget._repr_mimebundle_() | picture, metadata


def head_view(
    attention: Any,
    tokens: Sequence[str],
    target_tokens: Sequence[str] | None = None,
    part: str | None = None,
    layer: int | None = None,
    heads: Sequence[int] | None = None,
    sentence: int = 0,
    height: int | None = None,
) -> AttentionView:
    """Draw the heads of one block as lines from each query word (left) to the words it reads.

    The stronger the line, the larger the weight; each head has its color. Choose the block from
    the list, a head by its square, a word by pointing at it or with the Tab key.

    Args:
        attention: what `record` collected; an output of transformers with
            output_attentions=True; or a list with one (batch, head, query, key) tensor or NumPy
            array of weights per layer. For a single sentence the batch axis may be missing.
        tokens: the words of the text; of the source text if the model reads two.
        target_tokens: the words of the target text of an encoder-decoder model; with a list of
            tensors, the words that read `tokens`.
        part: "encoder", "decoder" or "cross"; by default all recorded parts can be chosen.
        layer: shown first; the lowest by default.
        heads: shown first; all by default.
        sentence: which sentence of the batch.
        height: of the view in pixels; by default as needed, at most 800.

    Raises:
        ValueError: no weights, weights that are not softmax rows, a number of tokens that differs
            from the number of positions, an unknown part, layer, head or sentence.

    Source: Vig, "A Multiscale Visualization of Attention in the Transformer Model", 2019.
    """
    parts = collect_parts(attention, tokens, target_tokens, part, sentence)
    layers, n_heads = parts[0].layers, parts[0].weights.shape[1]
    layer = known("layer", layers[0] if layer is None else layer, layers)
    heads = [known("head", head, list(range(n_heads))) for head in heads or range(n_heads)]
    controls = '<label>Block: <select id="layer"></select></label>'
    view = {"layer": layer, "heads": heads, "include_layers": layers}
    height = height or round(90 + 22.5 * _n_rows(parts))
    picture = _picture_of_heads(parts[0], layer, heads, _describe("head view", parts))
    return AttentionView(_drawing("head_view", parts, view, controls, height, picture.alt), picture)


def model_view(
    attention: Any,
    tokens: Sequence[str],
    target_tokens: Sequence[str] | None = None,
    part: str | None = None,
    sentence: int = 0,
    height: int | None = None,
) -> AttentionView:
    """Draw every head of every block as a thumbnail; click one to see its words.

    Arguments, errors and source are those of `head_view`.
    """
    parts = collect_parts(attention, tokens, target_tokens, part, sentence)
    n_layers, n_heads = parts[0].weights.shape[:2]
    view = {"include_layers": parts[0].layers, "include_heads": list(range(n_heads))}
    view |= {"total_heads": n_heads, "display_mode": "light"}
    small, large = min(14, 84 / n_heads), 18  # pixels per word: in a thumbnail, in the detail
    rows = _n_rows(parts)
    height = height or 80 + round(max(n_layers * (rows * small + 10) + 41, rows * large + 55))
    picture = _picture_of_model(parts[0], _describe("model view", parts))
    return AttentionView(_drawing("model_view", parts, view, "", height, picture.alt), picture)


def _n_rows(parts: list[Part]) -> int:
    return max(len(tokens) for part in parts for tokens in (part.query_tokens, part.key_tokens))


def _describe(kind: str, parts: list[Part]) -> str:
    names = ("block", "head", "query token", "key token")
    sizes = zip(parts[0].weights.shape, names, strict=True)
    text = f"{kind}: " + ", ".join(f"{n} {name}{'' if n == 1 else 's'}" for n, name in sizes)
    others = [f"{p.name} {p.weights.shape[2]} by {p.weights.shape[3]}" for p in parts[1:]]
    return f"{text} ({parts[0].name}; also {', '.join(others)})" if others else text


def _draw_lines(axes, weights: Float[Tensor, "query key"], left, right, top, color) -> None:
    from matplotlib.collections import LineCollection

    visible = (weights > 0.02).nonzero().tolist()  # fainter lines are invisible
    ends = [((left, top + query), (right, top + key)) for query, key in visible]
    colors = [(*color, float(weights[query, key])) for query, key in visible]
    axes.add_collection(LineCollection(ends, colors=colors, linewidths=1.6))


def _picture_of_heads(part: Part, layer: int, heads: list[int], alt: str) -> Figure:
    from matplotlib import colormaps

    rows = _n_rows([part])
    title = f"The heads of block {layer}"
    if len(heads) == 1:
        title = f"Block {layer}, head {heads[0]}: {_last_look(part, layer, heads[0])}"
    picture, axes = figure(title, alt, 6.0, min(12.0, 1.5 + 0.26 * rows))
    apart = min(1, (rows - 1) / max(1, len(heads) - 1))  # spacing of head names, in rows
    for i, head in enumerate(heads):
        weights = part.weights[part.layers.index(layer), head]  # (query, key)
        color = colormaps["tab10"](head % 10)[:3]
        _draw_lines(axes, weights, 0, 1, 0, color)
        if len(heads) > 1:
            place = {"ha": "right", "va": "center", "color": color}
            axes.text(1.9, i * apart, f"head {head}", **place)
    sides = (-0.03, "right", "query", part.query_tokens), (1.03, "left", "key", part.key_tokens)
    for x, side, name, tokens in sides:
        axes.text(x, -1.1, name, ha=side, va="center", color="0.35", fontsize=9)
        for row, token in enumerate(tokens):
            axes.text(x, row, token, ha=side, va="center", parse_math=False)
    axes.set(xlim=(-0.9, 1.9), ylim=(rows - 0.5, -1.6))
    axes.set_axis_off()
    return picture


def _last_look(part: Part, layer: int, head: int) -> str:
    """Say where a head's last query looks most."""
    weights = part.weights[part.layers.index(layer), head, -1]  # (key,)
    key = int(first_largest(weights))
    return f"“{part.query_tokens[-1]}” looks most at “{part.key_tokens[key]}” ({weights[key]:.2f})"


def _picture_of_model(part: Part, alt: str) -> Figure:
    from matplotlib import colormaps

    n_layers, n_heads, *_ = part.weights.shape
    step = _n_rows([part]) + 1  # one empty row between two layers
    width, height = min(10.0, 1.5 + 1.3 * n_heads), min(12.0, 1.2 + 0.08 * step * n_layers)
    picture, axes = figure("Every head of every block", alt, max(4.0, width), max(3.0, height))
    for row in range(n_layers):
        color = colormaps["tab10"](part.layers[row] % 10)[:3]
        for head in range(n_heads):
            _draw_lines(axes, part.weights[row, head], head, head + 0.85, row * step, color)
    axes.set(xlim=(-0.1, n_heads), ylim=(n_layers * step - 1, -1), xlabel="head", ylabel="block")
    axes.set_xticks([head + 0.42 for head in range(n_heads)], range(n_heads))
    axes.set_yticks([(row + 0.5) * step - 1 for row in range(n_layers)], part.layers)
    return picture


def _library(name: str, path: str) -> str:
    return distribution(name).locate_file(path).read_text(encoding="utf-8")


def _drawing_script(kind: str) -> str:
    """Return bertviz' script for a view, reading its data from `VIEW` instead of the network."""
    script = _library("bertviz", f"bertviz/{kind}.js")
    script, n_cdn = re.subn(r"require\.config\(\{.*?\n\}\);", "", script, flags=re.DOTALL)
    script, n_data = re.subn(r"const params = PYTHON_PARAMS;.*", "const params = VIEW;", script)
    counts = [n_cdn, n_data, *(script.count(old) for old in MENDS[kind])]
    if set(counts) != {1}:
        raise RuntimeError(
            f"bertviz {distribution('bertviz').version} has another {kind}.js "
            f"than {BERTVIZ}: install bertviz=={BERTVIZ}."
        )
    for old, new in MENDS[kind].items():
        script = script.replace(old, new)
    return script


def _drawing(kind, parts: list[Part], view: dict, controls: str, height: int, title: str) -> dict:
    """Return the arguments of `frame` for a model's parts."""
    view |= {"root_div_id": "view", "default_filter": "0", "attention": []}
    for part in parts:
        weights = part.weights.round(decimals=4).tolist()
        words = {"left_text": part.query_tokens, "right_text": part.key_tokens}
        view["attention"].append({"name": part.name, "attn": weights, **words})
    data = json.dumps(view, separators=(",", ":"))
    for character in "<>&":  # so no word can end the script
        data = data.replace(character, f"\\u{ord(character):04x}")
    if len(parts) > 1:
        options = [f'<option value="{i}">{part.name}</option>' for i, part in enumerate(parts)]
        controls += f'<label>Attention: <select id="filter">{"".join(options)}</select></label>'
    return {"kind": kind, "data": data, "controls": controls, "height": height, "title": title}


def frame(kind: str, data: str, controls: str, height: int, title: str) -> str:
    """Return a view as an iframe that may only run its own scripts.

    Args:
        kind, data, controls, height, title: an `AttentionView`'s `drawing`.
    """
    values = {
        "title": title,
        "nonce": hashlib.sha256(data.encode()).hexdigest()[:16],
        "controls": controls,
        "jquery": _library("XStatic-jQuery", "xstatic/pkg/jquery/data/jquery.min.js"),
        "d3": _library("mpld3", "mpld3/js/d3.v5.min.js"),
        "data": data,
        "bertviz": _drawing_script(kind),
    }
    page = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
    page = re.sub(r"\{\{(\w+)\}\}", lambda marker: values[marker[1]], page)
    style = f"width: 100%; height: {min(height, 800)}px; box-sizing: border-box; border: 1px solid"
    return (
        f'<iframe title="{title}" sandbox="allow-scripts" style="{style}" '
        f'srcdoc="{html.escape(page)}"></iframe>'
    )
