"""The base of explorables that run in the page; in Python they are values to set, observe and link.

The JavaScript front end draws and responds by itself, even while a cell runs. This module has the
facts it draws and the values it shares with the kernel. The trained translator is sent to a page
once, for all explorables that use it.
"""

import json
import reprlib
from functools import cache
from pathlib import Path

import anywidget
import ipywidgets
import traitlets
from ipywidgets import widget_serialization
from torch import nn

from transformer_lesson.checkpoints.own_format import as_bytes
from transformer_lesson.checkpoints.translator import MISSING, TRANSLATOR
from transformer_lesson.explorables import html
from transformer_lesson.explorables.bundle import bundle
from transformer_lesson.files import write_atomically
from transformer_lesson.model.config import LATER
from transformer_lesson.model.feed_forward import ACTIVATIONS
from transformer_lesson.text import grammar
from transformer_lesson.text.tokenizers import Tokenizer

SENTENCE = "the child opens the window ."
LARGEST_MODEL = 64 * 2**20
"""Most bytes of weights that an explorable sends to a page."""


class Text(traitlets.Unicode):
    """A typed text; unpaired surrogates, which cannot be sent to a page, become "?"."""

    def validate(self, obj, value):
        return super().validate(obj, value).encode(errors="replace").decode()


class Weights(ipywidgets.Widget):
    """A checkpoint's bytes, sent to a page once for all explorables that use them."""

    _model_name = traitlets.Unicode("WidgetModel").tag(sync=True)
    data = traitlets.Bytes(read_only=True).tag(sync=True)

    def __init__(self, data: bytes):
        if len(data) > LARGEST_MODEL:
            raise ValueError(
                f"a model of {len(data):,} bytes is too large for a page: pass one whose "
                f"checkpoint has at most {LARGEST_MODEL:,} bytes."
            )
        super().__init__()
        self.set_trait("data", data)


def task(say: str, shows: str = "", tries: dict[str, dict] | None = None, **when) -> dict:
    """Return one task for an explorable, which ticks it off once it is done.

    Args:
        say: what to do, in one sentence.
        shows: a regular expression that the title and sentence match when it is done.
        tries: suggestions, as buttons: a label, and the values it sets.
        when: the values that the explorable has when it is done; a list means any of its items.
    """
    return {"say": say, "shows": shows, "tries": list((tries or {}).items()), "when": when}


class PageExplorable(anywidget.AnyWidget):
    """An explorable whose picture is drawn in the page.

    A subclass declares its values as traits with `tag(sync=True)`. Facts that nobody sets, such as
    a model's weights, have `tag(sync=True, fact=True)` and are left out of `repr`. The front end
    has the module's name and exports a function with the class's name: `MaskExplorer` in
    `mask_explorer.py` uses `mask_explorer.js`. Every explorable accepts a `task`, made by `task`.
    """

    task = traitlets.Dict().tag(sync=True, fact=True)

    def __init_subclass__(cls, **kwargs):
        if "_esm" not in vars(cls):  # anywidget's per-instance subclass has it as a trait
            name = cls.__module__.rpartition(".")[2]
            view = f"{{ ...view, free: {json.dumps(html.free_names(cls))} }}"
            render = f"(view) => {cls.__name__}({view})"
            cls._esm = f"{bundle(name)}\nexport default {{ render: {render} }};\n"
        super().__init_subclass__(**kwargs)

    def __init__(self, **values):
        unknown = [name for name in values if not self.has_trait(name)]
        if unknown:
            raise ValueError(
                f"a {type(self).__name__} has no {unknown[0]!r} to set: choose from "
                f"{', '.join(self.values)}."
            )
        super().__init__(**values)
        self.add_class("explorable")

    @traitlets.validate("task")
    def _of_its_values(self, proposal):
        value = proposal["value"]
        named = [value.get("when", {}), *(values for _, values in value.get("tries", []))]
        for name in (name for values in named for name in values):
            if name not in self.values:
                raise ValueError(
                    f"a {type(self).__name__} has no {name!r} that a task could name: choose from "
                    f"{', '.join(self.values)}."
                )
        return value

    @property
    def values(self) -> dict[str, object]:
        """The current value of everything that can be set, by name."""
        of_widgets = set(ipywidgets.DOMWidget.class_trait_names())
        names = [name for name in self.traits(sync=True, fact=None) if name[0] != "_"]
        return {name: getattr(self, name) for name in names if name not in of_widgets}

    def __repr__(self) -> str:
        values = (f"{name}={reprlib.repr(value)}" for name, value in self.values.items())
        return f"{type(self).__name__}({', '.join(values)})"

    def save_html(self, path: str | Path, title: str = "") -> None:
        """Write a page with this explorable that works without a kernel and a network.

        `title` is the page's title; by default the explorable's kind.
        """
        explorable, weights = html.shown(self)
        write_atomically(path, html.whole_page([explorable], weights, title).encode())


@cache
def english_words() -> frozenset[str]:
    """Return the English words of the generated corpus."""
    return frozenset(word for pair in grammar.generate(2000, 0) for word in pair.source.split())


@cache
def _weights() -> Weights | None:
    return Weights(TRANSLATOR.read_bytes()) if TRANSLATOR.exists() else None


def own_weights(model: nn.Module | None, tokenizer: Tokenizer | None) -> Weights | None:
    """Return a learner's model in the form sent to a page; `None` to use the package's.

    Raises:
        ValueError: a model without its tokenizer, or one that a page cannot run.
    """
    if (model is None) != (tokenizer is None):
        raise ValueError("a model and its tokenizer belong together: pass both or none.")
    if model is not None:
        _check_choices(model)
    return None if model is None else Weights(as_bytes(model, tokenizer))


def bare_weights(model: nn.Module) -> Weights:
    """Return a model that predicts next tokens in the form sent to a page, without a tokenizer.

    Raises:
        ValueError: one in training mode, too large for a page, or that a page cannot run.
    """
    if not hasattr(model, "decoder"):
        kind = type(model).__name__
        raise ValueError(f"a {kind} does not predict the next token: pass a decoder.")
    if model.training:
        raise ValueError("the model is in training mode: call its .eval() first.")
    if any(getattr(part, "positions_in_stream", False) for part in model.modules()):
        raise ValueError(
            "the model has positions_in_stream, which no page can repeat: build it without."
        )
    _check_choices(model)
    return Weights(as_bytes(model))


IN_PAGES = {
    "positions": ("sinusoidal", "learned", "rotary"),
    "norm_position": ("post", "pre"),
    "activation": (*ACTIVATIONS, "swiglu"),
    **{name: (value,) for name, value in LATER.items()},
}
"""The choices that transformer.js knows, where it does not know all."""


def _check_choices(model: nn.Module) -> None:
    """Refuse a model whose choices a page would leave out."""
    for config in (getattr(model, "source_config", None), getattr(model, "config", None)):
        for name, known in IN_PAGES.items():
            value = getattr(config, name, known[0])
            if value not in known:
                raise ValueError(
                    f"{name} is {value!r}, but a page computes only with "
                    f"{' or '.join(map(repr, known))}: look into this model with `record` and "
                    "`head_view`."
                )


class ReadsTranslator(traitlets.HasTraits):
    """Mixin for explorables whose front end runs the trained translator."""

    weights = traitlets.Instance(Weights, allow_none=True).tag(
        sync=True, fact=True, **widget_serialization
    )
    source_words = traitlets.List().tag(sync=True, fact=True)
    missing = traitlets.Unicode(MISSING).tag(sync=True, fact=True)

    @traitlets.default("weights")
    def _translator(self) -> Weights | None:
        return _weights()

    @traitlets.default("source_words")
    def _english(self) -> list[str]:
        return sorted(english_words())


class FollowsText(ReadsTranslator):
    """Mixin for explorables that follow a typed text through the translator or your own model.

    Raises:
        ValueError: a model without its tokenizer, or one that is too large for a page.
    """

    text = Text(SENTENCE).tag(sync=True)

    def __init__(
        self,
        model: nn.Module | None = None,
        tokenizer: Tokenizer | None = None,
        text: str = SENTENCE,
        **values,
    ):
        if weights := own_weights(model, tokenizer):
            values |= {"weights": weights, "source_words": []}
        super().__init__(text=text, **values)
