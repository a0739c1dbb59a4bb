"""Explorables for pages without a kernel: every state of a few values, drawn beforehand.

As an IPython extension it adds this to what a kernel shows. `make notebooks` loads it and keeps
the result beside the lessons, in `docs/stills`; the web site puts it into its pages.
"""

import base64
import io
from collections.abc import Iterator, Mapping
from itertools import product

import ipywidgets
from PIL import Image

from transformer_lesson.explorables.base import Explorable, Rendering
from transformer_lesson.figures.attention_view.view import AttentionView

MIME = "application/vnd.transformer-lesson.still+json"
Settings = Mapping[str, object]  # values of traits, by name


def pre_rendered(explorable: Explorable) -> dict[str, object]:
    """Draw an explorable at every combination of its controls' values.

    Of a slider the values are those in `explorable.still_values`, if it stands there, and the
    present one; of any other control all. A typed text stays as it is.

    Returns:
        Plain data: `name`; `controls`, each with `label`, `kind` ("range", "buttons" or
        "checkbox"), `options` in words and `start`, the number of the present one; `states`, a
        pair (number of the picture, text) for each combination, the last control's options
        varying fastest; `pictures`, different WebP files in base64.

    Raises:
        ValueError: the explorable has no `still_values`, because its states are too many.
    """
    if explorable.still_values is None:
        raise ValueError(
            f"{type(explorable).__name__} has too many states to draw them all: name the values "
            "of its sliders in `still_values`, or show its picture."
        )
    moved = {
        name: settings
        for name, control in explorable.controls.items()
        if (settings := _settings(control, explorable.still_values.get(name)))
    }
    controls = [_described(explorable.controls[name], settings) for name, settings in moved.items()]
    pictures: dict[str, int] = {}
    states = [
        (pictures.setdefault(_small(drawn.png), len(pictures)), drawn.text)
        for drawn in _drawn(explorable, moved)
    ]
    name = type(explorable).__name__
    return {"name": name, "controls": controls, "states": states, "pictures": list(pictures)}


def _settings(control: ipywidgets.DOMWidget, values) -> list[Settings]:
    """Return what to set so that a control takes one value after the other; nothing for a text."""
    if isinstance(control, ipywidgets.Checkbox):
        return [{"value": False}, {"value": True}]
    if isinstance(control, (ipywidgets.ToggleButtons, ipywidgets.SelectionSlider)):
        return [{"index": i} for i in range(len(control.options))]
    if isinstance(control, (ipywidgets.IntSlider, ipywidgets.FloatLogSlider)):
        values = values or range(control.min, control.max + 1, control.step)
        return [{"value": value} for value in sorted({*values, control.value})]
    return []


def _described(control: ipywidgets.DOMWidget, settings: list[Settings]) -> dict[str, object]:
    """Return what a page needs to know of a control."""
    now = [all(getattr(control, name) == it for name, it in each.items()) for each in settings]
    if isinstance(control, ipywidgets.Checkbox):
        kind, options = "checkbox", ["off", "on"]
    elif isinstance(control, (ipywidgets.ToggleButtons, ipywidgets.SelectionSlider)):
        kind = "buttons" if isinstance(control, ipywidgets.ToggleButtons) else "range"
        options = [str(it[0] if isinstance(it, tuple) else it) for it in control.options]
    else:
        kind = "range"
        options = [format(each["value"], control.readout_format) for each in settings]
    start = now.index(True)
    return {"label": control.description, "kind": kind, "options": options, "start": start}


def _drawn(explorable: Explorable, moved: Mapping[str, list[Settings]]) -> Iterator[Rendering]:
    """Draw every combination; afterwards the controls are as before."""
    before = explorable.values
    with explorable.held():
        for combination in product(*moved.values()):
            for name, settings in zip(moved, combination, strict=True):
                for trait, value in settings.items():
                    setattr(explorable.controls[name], trait, value)
            yield explorable.render()
        for name, value in before.items():
            explorable.controls[name].value = value


def _small(png: bytes) -> str:
    """Return a picture in 64 colors, enough for words and boxes, as a WebP file in base64."""
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    few = picture.quantize(64, dither=Image.Dither.NONE).convert("RGB")
    buffer = io.BytesIO()
    few.save(buffer, "WEBP", lossless=True, method=4)
    return base64.b64encode(buffer.getvalue()).decode()


def load_ipython_extension(shell) -> None:
    """Add what a page needs to whatever the kernel shows of an explorable or an attention view."""

    def with_states(explorable: Explorable):
        bundle, metadata = explorable._repr_mimebundle_()
        if explorable.still_values is None:
            return bundle, metadata
        return bundle | {MIME: pre_rendered(explorable)}, metadata

    def with_drawing(view: AttentionView):
        bundle, metadata = view._repr_mimebundle_()
        return bundle | {MIME: view.drawing}, metadata

    formatter = shell.display_formatter.mimebundle_formatter
    formatter.for_type(Explorable, with_states)
    formatter.for_type(AttentionView, with_drawing)
