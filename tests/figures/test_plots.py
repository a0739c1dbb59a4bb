"""Every figure carries its text alternative, takes text literally and refuses wrong sizes."""

import io
import warnings

import numpy as np
import pytest
import torch
from matplotlib.text import Text
from PIL import Image

from transformer_lesson.figures import plots

HOSTILE = [r"$\frac$", "$x_1$", "<script>alert(1)</script>", "100 %", "a_b^c", r"\alpha", ""]
TOKENS = ["The", "for", "statement"]
WEIGHTS = torch.tensor([[0.9, 0.1, 0.0], [0.2, 0.7, 0.1], [0.0, 0.4, 0.6]])

CLAIM, ALT = "A claim", "alt text"
EXAMPLES = {
    "figure": lambda: plots.figure(CLAIM, ALT)[0],
    "heatmap": lambda: plots.heatmap(WEIGHTS, CLAIM, ALT),
    "attention_map": lambda: plots.attention_map(WEIGHTS, TOKENS, TOKENS, CLAIM, ALT),
    "curves": lambda: plots.curves({"a": [1, 2], "b": [3, 1]}, CLAIM, ALT, "step", "loss"),
}


def texts(figure) -> list[str]:
    return [artist.get_text() for artist in figure.findobj(Text)]


@pytest.fixture(autouse=True)
def warnings_are_errors():
    """A warning would land in the learner's notebook."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("default", ResourceWarning)  # of what others left
        yield


@pytest.mark.slow
@pytest.mark.parametrize("make", EXAMPLES.values(), ids=EXAMPLES)
def test_a_figure_shows_a_picture_with_its_text_alternative(make):
    made = make()
    assert isinstance(made, plots.Figure) and made.alt == "alt text"
    data, metadata = made._repr_mimebundle_()
    assert data["text/plain"] == metadata["image/png"]["alt"] == "alt text"
    picture = Image.open(io.BytesIO(data["image/png"]))
    assert picture.format == "PNG" and picture.size == tuple(made.bbox.size.astype(int))
    pixels = np.asarray(picture.convert("RGBA"))
    assert (pixels[0] == 255).all() and pixels[..., 3].min() == 255  # readable on a dark page
    assert len(np.unique(np.asarray(picture))) > 10  # something is drawn
    assert "A claim" in texts(made)
    assert make().png() == made.png()


@pytest.mark.slow
def test_text_is_taken_literally_everywhere():
    some, n = HOSTILE[1], len(HOSTILE)
    columns, axes = plots.figure(some, some, columns=n)
    for one, text in zip(axes, HOSTILE, strict=True):
        one.set(title=text, xlabel=text, ylabel=text)
    square = torch.eye(n)
    for made, often in (
        (columns, 3),
        (plots.heatmap(square, some, some, HOSTILE, HOSTILE, some, some), 2),
        (plots.attention_map(square, HOSTILE, HOSTILE, some), 2),
        (plots.curves({text: [i, 2] for i, text in enumerate(HOSTILE)}, some, some, some, some), 1),
    ):
        assert made.png()  # mathematics that does not parse would raise here
        assert all(texts(made).count(text) >= often + (text == some) for text in HOSTILE)
        ours = [a for a in made.findobj(Text) if a.get_text() in HOSTILE[:-1] and a.get_visible()]
        assert not any(artist.get_parse_math() for artist in ours)


def labels(axes) -> tuple[list[str], list[str]]:
    both = axes.get_xticklabels(), axes.get_yticklabels()
    return tuple([label.get_text() for label in each] for each in both)


def test_attention_map_has_a_row_per_query_a_column_per_key_and_names_the_strongest():
    made = plots.attention_map(WEIGHTS / 2, TOKENS, ["a", "b", "c"], CLAIM)
    said = "Strongest key of each query: The to a, for to b, statement to c."
    assert made.alt == f"A claim. {said}"
    axes = made.axes[0]
    assert labels(axes) == (["a", "b", "c"], TOKENS)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("key", "query")
    assert axes.images[0].get_clim() == (0, 1)


def test_curves_differ_in_style_and_take_x_values_and_axes_options():
    made = plots.curves({str(i): [i, i + 1] for i in range(4)}, CLAIM, ALT, "step", "loss")
    assert len({line.get_linestyle() for line in made.axes[0].lines}) == 4
    made = plots.curves({"loss": [3, 2]}, CLAIM, ALT, "step", "loss", x=[1, 10], xscale="log")
    axes = made.axes[0]
    assert axes.lines[0].get_xdata().tolist() == [1, 10] and axes.get_xscale() == "log"


@pytest.mark.slow
def test_any_kind_of_numbers_can_be_drawn():
    tensors = [WEIGHTS.clone().requires_grad_(), WEIGHTS.to(torch.bfloat16), WEIGHTS > 0.3]
    for values in [*tensors, WEIGHTS.tolist(), WEIGHTS.numpy()]:
        assert plots.attention_map(values, TOKENS, TOKENS, CLAIM).png()
        assert plots.curves({"a": values[0]}, CLAIM, ALT, "step", "loss").png()


SEVERAL = WEIGHTS[None, None]
REFUSED = {
    r"matrix has shape \(1, 2, 3\)": lambda: plots.heatmap(torch.zeros(1, 2, 3), "t", "a"),
    r"matrix has shape \(0, 0\)": lambda: plots.heatmap(torch.zeros(0, 0), "t", "a"),
    "x_labels has 4 texts.* 3 cells": lambda: plots.heatmap(WEIGHTS, "t", "a", ["a"] * 4),
    "y_labels has 1 texts.* 3 cells": lambda: plots.heatmap(WEIGHTS, "t", "a", None, ["a"]),
    r"\(1, 1, 3, 3\).* 3 query": lambda: plots.attention_map(SEVERAL, TOKENS, TOKENS, "t"),
    "2 query and 3 key": lambda: plots.attention_map(WEIGHTS, TOKENS[:2], TOKENS, "t"),
    "'loss' has 2 values": lambda: plots.curves({"loss": [1, 2]}, "t", "a", "x", "y", x=[1, 2, 3]),
}


def test_wrong_sizes_are_refused():
    for message, call in REFUSED.items():
        with pytest.raises(ValueError, match=message):
            call()
