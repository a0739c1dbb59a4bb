"""Clock hands, matrix and curves of the sinusoids, in the page: against the package's encoding."""

import math

import torch

from tests.explorables.shown import assert_agree, assert_refused, lines
from transformer_lesson.explorables import PositionalEncodingExplorer
from transformer_lesson.model.positions import sinusoidal_encoding

STATES = [
    {"d_model": 16, "length": 50, "base": 10000.0, "dimension": 2, "position": 10, "distance": 4},
    {"d_model": 4, "length": 33, "base": 10.0, "dimension": 3, "position": 10, "distance": 19},
    {"d_model": 2, "length": 2, "base": 100000.0, "dimension": 0, "position": 0, "distance": 1},
    {"d_model": 6, "length": 20, "base": 100.0, "dimension": 5, "position": 19, "distance": 0},
    {"d_model": 8, "length": 9, "base": 1000.0, "dimension": 6, "position": 0, "distance": 8},
]
HANDS = """[...root.querySelectorAll('svg circle[aria-label*=" is "]')].map(tip => {
    const dial = [...root.querySelectorAll("svg circle.box")]
        [Number(/dimension (\\d+) is/.exec(tip.getAttribute("aria-label"))[1]) / 2];
    const [x, y, r] = ["cx", "cy", "r"].map(name => Number(dial.getAttribute(name)));
    return [(tip.getAttribute("cx") - x) / r, (y - tip.getAttribute("cy")) / r];
})"""


def periods(d_model: int, base: float) -> list[float]:
    """After how many tokens each hand is back, by the paper's formula."""
    return [2 * math.pi * base ** (2 * i / d_model) for i in range(d_model // 2)]


def expected(d_model, length, base, dimension, position, distance) -> dict[str, list]:
    encoding = sinusoidal_encoding(length, d_model, base)
    products, other = encoding @ encoding[position], position + distance
    turns = [f"{distance / period:.2f}" for period in periods(d_model, base)]
    told = [
        f"dimensions {2 * i} and {2 * i + 1}: once around in {period:,.1f} tokens, "
        f"{turns[i]} turns in {distance}"
        for i, period in enumerate(periods(d_model, base))
    ]
    hands = [(p, 2 * i) for i in range(d_model // 2) for p in (other, position)]
    tips = ((p, i, encoding[p, i], i + 1, encoding[p, i + 1]) for p, i in hands)
    told += lines("position {}: dimension {} is {:.2f}, dimension {} is {:.2f}", tips)
    cells = ((p, i, encoding[p, i]) for p in range(length) for i in range(d_model))
    told += lines("position {}, dimension {}: {:.2f}", cells)
    wave = enumerate(encoding[:, dimension])
    told += lines(f"dimension {dimension} at position {{}}: {{:.2f}}", wave)
    told += lines(f"position {position} · position {{}}: dot product {{:.2f}}", enumerate(products))
    places = [encoding[p, i : i + 2].tolist() for p, i in hands]
    return {"told": told, "hands": places}


def test_every_number_and_every_hand_is_that_of_the_encoding(show):
    page = show(PositionalEncodingExplorer())
    for state in STATES:
        page.set(**state)
        wanted = expected(**state)
        # cells that were there before another size come before its new ones
        assert_agree(sorted(page.told()), sorted(wanted["told"]))
        hands = torch.tensor(page.read(HANDS)), torch.tensor(wanted["hands"])
        torch.testing.assert_close(*hands, atol=1e-4, rtol=0)


def test_the_position_that_comes_close_is_not_named_and_choices_stay_inside(show):
    page = show(PositionalEncodingExplorer(distance=0, d_model=4, base=10.0))
    assert page.title == "Position 10 is most like itself; which other comes close?"
    assert "29" not in page.said
    page = show(PositionalEncodingExplorer(dimension=15, position=49, distance=4))
    turns = "the fastest hand makes {} turns".format
    assert page.title == f"From position 45 to 49 {turns(0.64)}, the slowest 0.00"
    page.set(distance=1)
    assert page.title == f"From position 48 to 49 {turns(0.16)}, the slowest 0.00"
    page.set(d_model=8, length=3, distance=4)
    assert page.title == f"From position 0 to 2 {turns(0.32)}, the slowest 0.00"
    page.set(d_model=16, length=50)
    assert page.title == f"From position 45 to 49 {turns(0.64)}, the slowest 0.00"


def test_clock_cell_and_points_choose_and_a_number_lights_up_wherever_it_stands(show):
    page = show(PositionalEncodingExplorer())
    page.named("position 10, dimension 2:", "img").focus()
    assert sorted(page.lit()) == ["circle", "circle", "rect"]  # the hand, the wave's, the cell
    refused = "d_model is 7: choose an even number from 2 to 64."
    assert_refused(refused, PositionalEncodingExplorer, 7)
    page.click("dimensions 6 and 7")
    assert page.get("dimension") == 6
    page.named("position 20, dimension 3:", "img").click()
    assert page.get("position", "dimension", "distance") == [20, 3, 4]
    page.click("position 20 · position 25")
    assert page.get("position", "distance") == [20, 5]
    page.named("dimension 3 at position 48").focus()
    assert page.press("Enter").startswith("dimension 3 at position 48")
    assert page.get("position", "distance") == [48, 1]
