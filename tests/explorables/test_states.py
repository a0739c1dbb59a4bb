"""Explorables drawn beforehand: every state, and the explorable as it was."""

import base64
import io
import math

import ipywidgets
import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell
from PIL import Image

from transformer_lesson.explorables.base import Explorable, Rendering
from transformer_lesson.explorables.canvas import Canvas
from transformer_lesson.explorables.states import MIME, load_ipython_extension, pre_rendered
from transformer_lesson.figures.attention_view.view import head_view


class Sum(Explorable):
    """Every kind of control, and a picture that says what was chosen."""

    still_values = {"n": (2, 7)}

    def __init__(self):
        super().__init__(
            {
                "n": ipywidgets.IntSlider(3, 0, 9, description="n"),
                "power": ipywidgets.FloatLogSlider(
                    10.0, base=10, min=0, max=1, step=1, readout_format=",.0f"
                ),
                "word": ipywidgets.Text("typed"),
                "sign": ipywidgets.ToggleButtons(options=[("plus", 1), ("minus", -1)], value=-1),
                "twice": ipywidgets.Checkbox(True, description="twice"),
                "place": ipywidgets.SelectionSlider(options=["a", "b"], value="b"),
            }
        )
        self.still_values = self.still_values | {"power": (1.0,)}

    def render(self) -> Rendering:
        values = self.values
        text = " ".join(map(str, values.values()))
        return Rendering(Canvas(f"{values['n'] * values['sign']}", 80, 40).png(), text)


class Endless(Sum):
    """Too many states to draw them beforehand."""

    def __init__(self):
        super().__init__()
        self.still_values = None


def test_every_combination_is_drawn_in_the_order_that_a_page_counts():
    still = pre_rendered(Sum())
    sizes = [len(control["options"]) for control in still["controls"]]
    assert sizes == [3, 2, 2, 2, 2] and len(still["states"]) == math.prod(sizes)
    texts = [text for _, text in still["states"]]
    assert texts[0] == "2 1.0 typed 1 False a" and texts[1] == "2 1.0 typed 1 False b"
    assert texts[-1] == "7 10.0 typed -1 True b"
    number = 0
    for control in still["controls"]:
        number = number * len(control["options"]) + control["start"]
    assert texts[number] == "3 10.0 typed -1 True b"  # what was shown


def test_controls_are_described_in_words():
    controls = pre_rendered(Sum())["controls"]
    kinds = ["range", "range", "buttons", "checkbox", "range"]
    assert [control["kind"] for control in controls] == kinds
    assert [control["options"] for control in controls[:3]] == [
        ["2", "3", "7"],
        ["1", "10"],
        ["plus", "minus"],
    ]


def test_equal_pictures_are_kept_once_and_can_be_read():
    still = pre_rendered(Sum())
    assert len(still["pictures"]) == 6  # three numbers with two signs
    for data in still["pictures"]:
        picture = Image.open(io.BytesIO(base64.b64decode(data)))
        assert (picture.format, picture.size) == ("WEBP", (80, 40))


def test_the_explorable_is_as_before():
    explorable = Sum()
    before = explorable.values, explorable.picture.value
    still = pre_rendered(explorable)
    assert (explorable.values, explorable.picture.value) == before
    assert explorable.rendering.text in [text for _, text in still["states"]]


def test_too_many_states_are_refused():
    with pytest.raises(ValueError, match="Endless has too many states"):
        pre_rendered(Endless())


@pytest.mark.slow
def test_a_kernel_with_the_extension_shows_what_a_page_needs():
    shell = InteractiveShell()
    load_ipython_extension(shell)
    view = head_view([torch.full((1, 1, 2, 2), 0.5)], ["a", "b"])
    for shown, expected in ((Sum(), 48), (view, None), (Endless(), 0)):
        data, _ = shell.display_formatter.format(shown)
        if expected:
            assert len(data[MIME]["states"]) == expected
        elif expected == 0:
            assert MIME not in data
        else:
            assert data[MIME] == view.drawing
        assert data["text/plain"] == repr(shown) and "image/png" in data
