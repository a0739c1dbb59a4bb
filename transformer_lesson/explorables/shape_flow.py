"""Follow the sizes through a model: every named quantity of a real forward pass, step by step."""

from collections import Counter
from functools import lru_cache
from typing import NamedTuple

import ipywidgets
import torch
from torch import Tensor, nn

from transformer_lesson.explorables.base import Explorable, Rendering
from transformer_lesson.explorables.canvas import Canvas
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.hooks import record
from transformer_lesson.model.transformers import (
    DecoderOnlyTransformer,
    EncoderDecoderTransformer,
    EncoderOnlyTransformer,
)

VOCAB_SIZE, MAX_LEN = 40, 12
MODELS = {
    "encoder-only": EncoderOnlyTransformer,
    "decoder-only": DecoderOnlyTransformer,
    "encoder-decoder": EncoderDecoderTransformer,
}
QUANTITIES = {  # last words of a name: axes, and what happened there
    "embedding.tokens": ("batch n d_model", "Each id became its trained vector, times √d_model."),
    "embedding.output": ("batch n d_model", "Positions were added; the shape stays as it was."),
    "attention.values": (
        "batch head key d_head",
        "x W_V, cut into heads: each head owns d_model / n_heads numbers of every token.",
    ),
    "attention.queries": ("batch head query d_head", "x W_Q, cut into heads: what each asks for."),
    "attention.keys": ("batch head key d_head", "x W_K, cut into heads: what each token offers."),
    "attention.scores": (
        "batch head query key",
        "Q Kᵀ / √d_head: d_head is summed away, each query meets each key.",
    ),
    "attention.weights": (
        "batch head query key",
        "Masked softmax over the last axis: each query's weights sum to 1.",
    ),
    "attention.heads": (
        "batch head query d_head",
        "Weights times values: the keys are summed away. W_O will join the heads again.",
    ),
    "after_attention": ("batch n d_model", "Attention's output was added to the block's input."),
    "after_self_attention": (
        "batch n d_model",
        "Self-attention's output was added to the block's input.",
    ),
    "after_cross_attention": (
        "batch n d_model",
        "What the target fetched from the source was added.",
    ),
    "feed_forward.hidden": ("batch n d_ff", "Each token by itself was widened and activated."),
    "output": (
        "batch n d_model",
        "Narrowed back and added: the block ends with its input's shape.",
    ),
    "logits": ("batch n vocab_size", "One number per token of the vocabulary, at each position."),
}


class Step(NamedTuple):
    """One named quantity of a forward pass."""

    name: str
    shape: tuple[int, ...]


def trace(model: nn.Module, *ids: Tensor) -> tuple[Step, ...]:
    """Return name and shape of every named quantity, in the order of computation.

    Args:
        model: any of the package's models.
        ids: what the model is called with.
    """
    with torch.no_grad(), record(model) as run:
        model(*ids)
    if not run:
        raise ValueError(
            f"{type(model).__name__} has no named quantities to trace: pass a model of this "
            "package, or put a HookPoint where a quantity should be seen."
        )
    return tuple(Step(name, tuple(value.shape)) for name, value in run.items())


@lru_cache(maxsize=256)
def trace_of_sizes(
    kind: str, batch: int, n: int, target: int, d_model: int, n_heads: int, n_layers: int
) -> tuple[Step, ...]:
    """Return the steps of a new model of these sizes, with d_ff = 4 d_model.

    Args:
        kind: a key of `MODELS`.
        batch, n: how many sentences, of how many tokens.
        target: tokens of each target sentence; only an encoder-decoder has one.
        d_model, n_heads, n_layers: sizes of the model.
    """
    config = ModelConfig(VOCAB_SIZE, d_model, n_heads, n_layers, 4 * d_model, MAX_LEN)
    ids = [torch.zeros(batch, n, dtype=torch.long)]
    if kind == "encoder-decoder":
        ids.append(torch.zeros(batch, target, dtype=torch.long))
    with torch.device("meta"):  # shapes do not depend on the weights: draw no random numbers
        model = MODELS[kind](config)
    return trace(model.to_empty(device="cpu").eval(), *ids)


def explain(steps: tuple[Step, ...], name: str) -> tuple[str, str]:
    """Return the axes of a quantity, as words between commas, and one sentence about it."""
    found = [end for end in QUANTITIES if name.endswith(end)]
    if not found:
        return "", "The package has no words for this quantity."
    axes, what = QUANTITIES[max(found, key=len)]
    two_texts = any(step.name.startswith("target_embedding") for step in steps)
    if two_texts:
        side = "source" if name.startswith(("source", "encoder")) else "target"
        axes = axes.replace(" n ", f" {side} ")
    if "cross_attention.keys" in name or "cross_attention.values" in name:
        what = what.replace("x W", "memory W")
    return axes.replace(" ", ", "), what


def block_of(name: str) -> str:
    """Return the block that a quantity belongs to: `decoder.0` of `decoder.0.output`."""
    parts = name.split(".")
    return ".".join(parts[:2]) if len(parts) > 1 and parts[1].isdigit() else parts[0]


@lru_cache(maxsize=64)
def render_shape_flow(steps: tuple[Step, ...], step: int) -> Rendering:
    """Draw the model's blocks on the left and, on the right, every size inside the present one.

    Args:
        steps: name and shape of each quantity, from `trace`.
        step: which one to explain, from 0.
    """
    step = min(step, len(steps) - 1)
    name, shape = steps[step]
    axes, what = explain(steps, name)
    text = f"Step {step + 1} of {len(steps)}, {name}: shape {shape} = ({axes}). {what}"
    blocks = Counter(block_of(one.name) for one in steps)  # how many quantities each has
    present = block_of(name)
    inside = [one for one in steps if block_of(one.name) == present]
    names = [one.name.removeprefix(f"{present}.") for one in inside]
    sizes = [f"{one.shape} = ({explain(steps, one.name)[0]})" for one in inside]
    rows = max(len(blocks), *blocks.values())  # so that the height stays from step to step
    page = Canvas(f"{name} has shape {shape}", 720, 68 + 29 * rows)
    order = list(blocks)
    _boxes(page, 6, 170, "the model, top to bottom", order, [""] * len(order), order.index(present))
    _boxes(page, 206, 506, f"inside {present}", names, sizes, inside.index(steps[step]))
    return Rendering(page.png(), text)


def _boxes(
    page: Canvas,
    left: int,
    width: int,
    heading: str,
    names: list[str],
    sizes: list[str],
    chosen: int,
) -> None:
    """Draw one box per name, from top to bottom; fill and frame mark the chosen one."""
    page.text(left, 46, heading, size=13, color="#444444", anchor="lm", width=width)
    for i, (name, size) in enumerate(zip(names, sizes, strict=True)):
        top = 62 + 29 * i
        if i:
            page.text(left + 34, top - 3, "▼", size=9, color="#444444")
        marked = {"fill": "#FFE14D", "edge": "black", "line": 3} if i == chosen else {}
        page.box(left, top, width, 22, **({"fill": "#E8EFF5", "edge": "#999999"} | marked))
        room = 184 if size else width - 14
        page.text(left + 8, top + 11, name, size=13, anchor="lm", width=room)
        page.text(left + 200, top + 11, size, size=13, anchor="lm")


class ShapeFlow(Explorable):
    """Walk through a model and see which shape each quantity has, and why.

    Without arguments you choose a small model's kind and sizes. Given a model and its input,
    `ShapeFlow(model, ids)` or `ShapeFlow(model, source_ids, target_ids)`, it traces that.

    Args:
        model: any of the package's models.
        ids: what the model is called with.
        step: which quantity to start at, from 0.

    Raises:
        ValueError: the model has no named quantities, or refuses the ids.
    """

    def __init__(self, model: nn.Module | None = None, *ids: Tensor, step: int = 0):
        self.given = None if model is None else trace(model, *ids)
        sizes = {} if model is not None else _size_controls()
        for control in sizes.values():
            control.observe(self._fit_steps, "value")
        self.step = ipywidgets.IntSlider(step, 0, 999, description="Step")
        self.step.layout.width = "44em"
        self.sizes = sizes
        self._fit_steps()
        super().__init__(sizes | {"step": self.step})

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of the given model, or of one with the sizes that are chosen."""
        if self.given is not None:
            return self.given
        return trace_of_sizes(**{name: control.value for name, control in self.sizes.items()})

    def render(self) -> Rendering:
        """Draw the present step."""
        return render_shape_flow(self.steps, self.step.value)

    def _fit_steps(self, change=None) -> None:
        self.step.max = len(self.steps) - 1


def _size_controls() -> dict[str, ipywidgets.DOMWidget]:
    def slider(name, value, low, high):
        return ipywidgets.IntSlider(value, low, high, description=name)

    def choice(name, value, options):
        return ipywidgets.SelectionSlider(options=options, value=value, description=name)

    kind = ipywidgets.ToggleButtons(options=list(MODELS), value="decoder-only", description="Model")
    target = slider("target length", 7, 1, MAX_LEN)
    target.disabled = True  # only an encoder-decoder has a target
    kind.observe(lambda _: setattr(target, "disabled", kind.value != "encoder-decoder"), "value")
    return {
        "kind": kind,
        "batch": slider("batch", 2, 1, 4),
        "n": slider("length", 5, 1, MAX_LEN),
        "target": target,
        "d_model": choice("d_model", 24, (12, 24, 48)),
        "n_heads": choice("n_heads", 3, (1, 2, 3, 4, 6)),
        "n_layers": slider("n_layers", 2, 1, 3),
    }
