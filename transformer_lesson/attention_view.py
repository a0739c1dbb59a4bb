"""Attention as lines between words: bertviz' head view and model view, without the network.

bertviz' own pages fetch three scripts from the internet, so they stay blank offline, and they
write tokens unescaped into a script. Here its drawing script runs in a closed frame: the
libraries are inlined, tokens travel as JSON, and the frame may neither reach the network nor
the notebook around it.
"""

import hashlib
import html
import json
import re
import warnings
from collections.abc import Mapping, Sequence
from importlib.metadata import distribution
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from transformer_lesson.plots import Figure, figure

MAX_WEIGHTS = 100_000
"""A browser draws one line per weight; more than this many make it unresponsive."""

RECORDED_NAME = re.compile(r"(encoder|decoder)\.(\d+)\.(self|cross)_attention\.weights")

MENDS = {
    "head_view": {"const BOXWIDTH = 110;": "const BOXWIDTH = 150;"},  # room for long words
    "model_view": {
        "const DETAIL_BOX_WIDTH = 80;": "const DETAIL_BOX_WIDTH = 140;",
        "const DETAIL_WIDTH = 300;": "const DETAIL_WIDTH = 420;",
        # few heads make bertviz' thumbnails taller than the screen
        "7 * (12 / config.totalHeads)": "Math.min(14, 84 / config.totalHeads)",
    },
}
"""What is replaced in bertviz 1.4.1's scripts: old text to new."""

PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'">
<style>
:root {{ color-scheme: light; }}
body {{ background: white; color: black; margin: 8px; font: 15px Helvetica, Arial, sans-serif; }}
select {{ font-size: 14px; margin: 0 1em 8px 0; }}
svg text {{ white-space: pre; }}
:focus-visible {{ outline: 2px solid #0072B2; }}
g:has(> rect:focus-visible) > .attn_background {{ stroke: #0072B2; stroke-opacity: 1; }}
</style></head><body>
<div id="view">{controls}<div id="vis"></div></div>
<script nonce="{nonce}">{jquery}</script>
<script nonce="{nonce}">{d3}</script>
<script nonce="{nonce}">
const VIEW = {data};
function requirejs(names, draw) {{ draw(jQuery, d3); }}
</script>
<script nonce="{nonce}">{bertviz}</script>
<script nonce="{nonce}">{keyboard}</script>
</body></html>"""

KEYBOARD = """
// Whatever answers the mouse answers the keyboard too, after each redrawing.
function reach() {
  document.querySelectorAll("#left > g:last-child > g, #right > g:last-child > g")
    .forEach(token => token.setAttribute("tabindex", 0));
  const nHeads = VIEW.attention[0].attn[0].length;
  document.querySelectorAll("#vis > svg > g > rect:last-child, #vis > svg > g:last-child > rect")
    .forEach((button, i) => {
      const layer = VIEW.total_heads ? `layer ${VIEW.include_layers[Math.floor(i / nHeads)]}, ` : "";
      button.setAttribute("tabindex", 0);
      button.setAttribute("role", "button");
      d3.select(button).append("title").text(`${layer}head ${i % nHeads}`);
    });
}
function mouse(element, name) {
  if (element) element.dispatchEvent(new MouseEvent(name, {bubbles: true}));
}
document.addEventListener("keydown", event => {
  if (event.target.tagName === "rect" && ["Enter", " "].includes(event.key)) {
    event.preventDefault();
    mouse(event.target, "click");
  }
});
document.addEventListener("focusin", event => mouse(event.target, "mouseover"));
document.addEventListener("focusout",
  event => mouse(event.target.closest("#left, #right"), "mouseleave"));
new MutationObserver(reach).observe(document.getElementById("vis"), {childList: true});
reach();
"""


class Part(NamedTuple):
    """One kind of attention of a model: the words that read (query) and those read (key)."""

    name: str
    layers: list[int]
    weights: Float[Tensor, "layer head query key"]
    query_tokens: list[str]
    key_tokens: list[str]


class AttentionView:
    """An interactive view in JupyterLab, a still picture where no kernel runs.

    `html` is the view as one `<iframe>` that needs nothing else, for a page of your own.
    """

    def __init__(self, html: str, still: Figure):
        self.html = html
        self.still = still

    def __repr__(self) -> str:
        return self.still.alt

    def _repr_mimebundle_(self, include=None, exclude=None):
        import ipywidgets

        widget = ipywidgets.HTML(self.html, layout={"width": "100%"})
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing")  # the browser has those glyphs
            still, metadata = self.still._repr_mimebundle_()
        return widget._repr_mimebundle_() | still, metadata


def head_view(
    attention: Mapping[str, Tensor] | Sequence[Tensor],
    tokens: Sequence[str],
    target_tokens: Sequence[str] | None = None,
    part: str | None = None,
    layer: int | None = None,
    heads: Sequence[int] | None = None,
    sentence: int = 0,
    height: int | None = None,
) -> AttentionView:
    """Draw the heads of one layer as lines from each query word (left) to the words it reads.

    The stronger the line, the larger the weight; each head has its color. Choose the layer from
    the list, a head by its square, a word by pointing at it or with the Tab key.

    Args:
        attention: what `record` collected, or a list with one (batch, head, query, key) tensor of
            weights per layer.
        tokens: the words of the text; of the source text if the model reads two.
        target_tokens: the words of the target text of an encoder-decoder model; with a list of
            tensors, the words that read `tokens`.
        part: "encoder", "decoder" or "cross"; by default the view offers all that were recorded.
        layer: shown first; the lowest by default.
        heads: shown first; all by default.
        sentence: which sentence of the batch.
        height: of the view in pixels; by default what it needs, at most 800.

    Raises:
        ValueError: no weights, weights that are not softmax rows, a number of tokens that differs
            from the number of positions, an unknown part, layer, head or sentence.

    Source: Vig, "A Multiscale Visualization of Attention in the Transformer Model", 2019.
    """
    parts = _parts(attention, tokens, target_tokens, part, sentence)
    layers, n_heads = parts[0].layers, parts[0].weights.shape[1]
    layer = _known("layer", layers[0] if layer is None else layer, layers)
    heads = [_known("head", head, list(range(n_heads))) for head in heads or range(n_heads)]
    controls = '<label>Layer: <select id="layer"></select></label>'
    view = {"layer": layer, "heads": heads, "include_layers": layers}
    height = height or round(90 + 22.5 * _n_rows(parts))
    still = _still_of_heads(parts[0], layer, heads, _describe("head view", parts))
    return AttentionView(_frame("head_view", parts, view, controls, height, still.alt), still)


def model_view(
    attention: Mapping[str, Tensor] | Sequence[Tensor],
    tokens: Sequence[str],
    target_tokens: Sequence[str] | None = None,
    part: str | None = None,
    sentence: int = 0,
    height: int | None = None,
) -> AttentionView:
    """Draw every head of every layer as a small picture; press one to see its words.

    Arguments, errors and source are those of `head_view`.
    """
    parts = _parts(attention, tokens, target_tokens, part, sentence)
    n_layers, n_heads = parts[0].weights.shape[:2]
    view = {"include_layers": parts[0].layers, "include_heads": list(range(n_heads))}
    view |= {"total_heads": n_heads, "display_mode": "light"}
    small, large = min(14, 84 / n_heads), 18  # pixels per word: in a thumbnail, in the detail
    rows = _n_rows(parts)
    height = height or 80 + round(max(n_layers * (rows * small + 10) + 41, rows * large + 55))
    still = _still_of_model(parts[0], _describe("model view", parts))
    return AttentionView(_frame("model_view", parts, view, "", height, still.alt), still)


def _parts(attention, tokens, target_tokens, part, sentence) -> list[Part]:
    """Sort the recorded weights into parts and give each its words."""
    recorded = _recorded(attention, "self" if target_tokens is None else "cross")
    two_texts = "cross" in recorded
    if part is not None:
        recorded = {_known("part", part, list(recorded)): recorded[part]}
    if two_texts and target_tokens is None and list(recorded) != ["encoder"]:
        raise ValueError(
            "target_tokens is missing, but the model reads two texts: give the words of the "
            "target text, or part='encoder'."
        )
    if target_tokens is not None and not two_texts:
        raise ValueError("target_tokens is given, but the model reads one text: leave it out.")
    target = target_tokens if two_texts else tokens
    words = {"encoder": (tokens, tokens), "self": (tokens, tokens)}
    words |= {"decoder": (target, target), "cross": (target, tokens)}
    parts = [_part(name, recorded[name], *words[name], sentence) for name in recorded]
    sizes = {p.name: tuple(p.weights.shape[:2]) for p in parts}
    if len(set(sizes.values())) > 1:
        raise ValueError(
            f"the parts have different (layers, heads), {sizes}: choose one with part='cross'."
        )
    return parts


def _recorded(attention, name_of_list: str) -> dict[str, dict[int, Tensor]]:
    """Return the weights by part and layer number, in the order in which the model ran."""
    found: dict[str, dict[int, Tensor]] = {}
    if isinstance(attention, Mapping):
        for name, weights in attention.items():
            if match := RECORDED_NAME.fullmatch(name):
                part = "cross" if match[3] == "cross" else match[1]
                found.setdefault(part, {})[int(match[2])] = weights
    elif len(attention) > 0:
        found[name_of_list] = dict(enumerate(attention))
    if not found:
        raise ValueError(
            f"attention holds {len(attention)} entries and no weights: record the model's call, "
            "`with record(model) as run: model(ids)`, and pass run."
        )
    return found


def _part(name, layers: dict[int, Tensor], query_tokens, key_tokens, sentence: int) -> Part:
    """Check one part's weights against its words and take one sentence of the batch."""
    for token in [*query_tokens, *key_tokens]:
        if not isinstance(token, str):
            raise ValueError(f"token {token!r} is not text: pass words, not ids.")
    expected = (len(query_tokens), len(key_tokens))
    for number, weights in layers.items():
        where = f"{name} layer {number} has weights of shape {tuple(weights.shape)}"
        if weights.ndim != 4:
            raise ValueError(f"{where}: pass (batch, head, query, key), one tensor per layer.")
        if weights.shape[2:] != expected:
            raise ValueError(
                f"{where}, but there are {expected[0]} query and {expected[1]} key tokens: give "
                "one token per position, special and padding tokens too."
            )
        _known("sentence", sentence, list(range(len(weights))))
    if len({weights.shape for weights in layers.values()}) > 1:
        raise ValueError(f"the layers of {name} have different numbers of heads: show one layer.")
    chosen = torch.stack([weights[sentence].detach().double().cpu() for weights in layers.values()])
    _check_weights(name, chosen)
    return Part(name, list(layers), chosen, _labels(query_tokens), _labels(key_tokens))


def _check_weights(name: str, weights: Float[Tensor, "layer head query key"]) -> None:
    sums = weights.sum(-1)  # (layer, head, query); a row with every key masked is all zeros
    wrong = ~(((sums - 1).abs() < 0.01) | (sums == 0)) | (weights < 0).any(-1)
    if wrong.any():
        raise ValueError(
            f"a row of {name} adds up to {sums[wrong][0]:.3f}, not 1: pass the weights after "
            "softmax, not scores, and without NaN."
        )
    if weights.numel() > MAX_WEIGHTS:
        raise ValueError(
            f"{name} has {weights.numel()} weights, more than the {MAX_WEIGHTS} lines that a "
            "browser can draw: pass fewer layers or a shorter text."
        )


def _known(what: str, value, known: list):
    if value not in known:
        raise ValueError(f"{what} {value!r} does not exist here: choose from {known}.")
    return value


def _labels(tokens: Sequence[str]) -> list[str]:
    """Write invisible characters as escapes and shorten what does not fit the picture."""
    joiners = "\u200c\u200d"  # they hold emoji and Persian words together
    labels = []
    for token in tokens:
        shown = [
            c if c.isprintable() or c in joiners else c.encode("unicode_escape").decode()
            for c in token
        ]
        label = "".join(shown)
        labels.append(label if len(label) <= 20 else label[:19] + "…")
    return labels
