"""What every explorable is: controls above a picture that a pure function draws.

The picture travels as HTML and nothing is printed, so a notebook stores the widget, a PNG for
pages that show no widgets, and one short line of text.
"""

import base64
import html
import reprlib
import struct
import textwrap
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

import ipywidgets
from matplotlib.font_manager import FontProperties, findfont, get_font

from transformer_lesson.figures.plots import Figure
from transformer_lesson.files import printable


class Rendering(NamedTuple):
    """A drawn state: the picture as a PNG file, and the same facts in words."""

    png: bytes
    text: str


class Explorable(ipywidgets.VBox):
    """Controls above a picture that is drawn again whenever a control's value changes.

    A subclass hands its controls to `__init__` and writes `render`, which gives `self.values`
    to a pure function of its module:

        class Doubler(Explorable):
            def __init__(self, n=3):
                super().__init__({"n": ipywidgets.IntSlider(n, 0, 9, description="n")})

            def render(self):
                return render_doubler(**self.values)

    Offer few options as `ToggleButtons`, not as a `Dropdown`: JupyterLab takes a drop-down's
    arrow keys to go to another cell, so the keyboard alone does not reach its options.

    Args:
        controls: name of each value to the widget that sets it, in the order of the page.
    """

    still_values: Mapping[str, Sequence[float]] | None = None
    """Where its states are few enough to be drawn beforehand, for a page without a kernel: the
    values of each slider that has too many; other controls take all of theirs."""

    _held = False

    def __init__(self, controls: Mapping[str, ipywidgets.DOMWidget]):
        self.controls = dict(controls)
        self.picture = ipywidgets.HTML()
        row = ipywidgets.HBox(list(controls.values()))
        row.layout.flex_flow, row.layout.grid_gap = "row wrap", "0 1.5em"
        super().__init__([row, self.picture])
        self.add_class("explorable")
        for control in controls.values():
            control.style.description_width = "initial"  # as wide as its words
            if isinstance(control, ipywidgets.ToggleButtons):
                control.layout.width = control.style.button_width = "auto"
            control.observe(self._redraw, "value")
        self._redraw()

    @property
    def values(self) -> dict[str, object]:
        """The present value of every control, by name."""
        return {name: control.value for name, control in self.controls.items()}

    def render(self) -> Rendering:
        """Draw the present values."""
        raise NotImplementedError(f"{type(self).__name__} has to define render().")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Draw nothing while controls set each other; the change that led to it is drawn."""
        before, self._held = self._held, True
        try:
            yield
        finally:
            self._held = before

    def _redraw(self, change=None) -> None:
        if self._held:
            return
        drawn = self.render()
        self.rendering = drawn._replace(text=printable(drawn.text))
        self.picture.value = as_html(self.rendering)

    def __repr__(self) -> str:
        values = (f"{name}={reprlib.repr(value)}" for name, value in self.values.items())
        return f"{type(self).__name__}({', '.join(values)})"

    def _repr_mimebundle_(self, **kwargs):
        widget = super()._repr_mimebundle_(**kwargs)
        picture = {"image/png": self.rendering.png, "text/plain": repr(self)}
        return widget | picture, {"image/png": {"alt": self.rendering.text}}


def sendable(text: str) -> str:
    """Replace half of a surrogate pair, which no message to the browser can hold, by "?"."""
    return text.encode(errors="replace").decode()


def as_html(rendering: Rendering) -> str:
    """Return the picture, with its text below, as HTML in which typed text cannot act."""
    width, height = struct.unpack(">II", rendering.png[16:24])  # from the PNG's header
    data = base64.b64encode(rendering.png).decode()
    text = html.escape(rendering.text)
    return (
        f'<img alt="{text}" width="{width}" height="{height}" '
        f'style="max-width: 100%; height: auto" src="data:image/png;base64,{data}">'
        f'<p role="status" style="line-height: 1.4; max-width: {width}px">{text}</p>'
    )


def sentence(text: str) -> Rendering:
    """Draw nothing but a sentence, which says what to change."""
    lines = textwrap.wrap(drawable(text), 72)
    made = Figure("", text, width=6.0, height=0.5 + 0.2 * len(lines))
    made.text(0.03, 0.5, "\n".join(lines), va="center", parse_math=False)
    return Rendering(made.png(), text)


@cache
def _drawn_characters() -> frozenset[int]:
    return frozenset(get_font(findfont(FontProperties())).get_charmap())


def drawable(text: str) -> str:
    """Replace what matplotlib's font has no shape for (most emoji, Chinese, a line break) by □.

    Without this, matplotlib warns into the notebook for each such character, and Pillow gives up
    at some control characters, for which the font does have a shape.
    """
    return "".join(c if ord(c) in _drawn_characters() and _has_shape(c) else "□" for c in text)


def _has_shape(character: str) -> bool:
    """Whether it is no control, no direction and no line break."""
    kind = unicodedata.category(character)
    return kind[0] != "C" and kind not in ("Zl", "Zp")
