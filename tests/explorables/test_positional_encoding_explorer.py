"""The drawn facts of the sinusoids."""

import math

import pytest

from transformer_lesson.explorables import PositionalEncodingExplorer
from transformer_lesson.explorables.positional_encoding_explorer import render_positional_encoding


def test_facts_of_one_state_by_hand():
    text = render_positional_encoding(d_model=4, length=3, base=100.0, dimension=1, position=1).text
    middle = 1 + 1  # sin² + cos² for each of the two pairs
    neighbor = math.cos(1) + math.cos(0.1)
    assert "Dimension 1 is a cosine that repeats every 6.3 tokens" in text
    assert f"at position 1 it is {math.cos(1):+.2f}" in text
    assert f"{middle:.1f} with itself, {neighbor:.1f} with position 0" in text


@pytest.mark.parametrize("dimension, wave", [(0, "sine"), (6, "sine"), (7, "cosine")])
def test_wavelength_follows_the_formula(dimension, wave):
    text = render_positional_encoding(8, 20, 10000.0, dimension, 3).text
    wavelength = 2 * math.pi * 10000 ** ((dimension - dimension % 2) / 8)
    assert f"is a {wave} that repeats every {wavelength:,.1f} tokens" in text


@pytest.mark.slow
@pytest.mark.parametrize("d_model, length", [(2, 2), (2, 200), (128, 2), (128, 200)])
@pytest.mark.parametrize("base", [10.0, 100000.0])
@pytest.mark.parametrize("last", [False, True])
def test_extremes(d_model, length, base, last):
    chosen = (d_model - 1, length - 1) if last else (0, 0)
    rendering = render_positional_encoding(d_model, length, base, *chosen)
    assert f"{d_model / 2:.1f} with itself" in rendering.text
    assert rendering == render_positional_encoding(d_model, length, base, *chosen)


def test_choices_stay_inside_a_smaller_encoding():
    explorable = PositionalEncodingExplorer(d_model=64, length=50, dimension=63, position=49)
    explorable.controls["d_model"].value = 8
    explorable.controls["length"].value = 5
    assert explorable.values == {
        "d_model": 8,
        "length": 5,
        "base": 10000.0,
        "dimension": 7,
        "position": 4,
    }
    assert explorable.rendering == render_positional_encoding(**explorable.values)
