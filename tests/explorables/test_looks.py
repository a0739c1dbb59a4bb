"""What a reader sees of each explorable, in every state that its controls reach.

`looks.js` measures the page: how tall the explorable is, and which texts are cut, overprinted or
pale. `drive.js` plays it, moves each control to its ends, presses each button, and
walks on at random.
"""

import pytest

from tests.explorables.looks import DRIVEN, LOOK, faults
from tests.explorables.stills import as_stored, one_of_each_kind, stills

SCREEN = 620
"""The most pixels of height where an explorable is 944 wide, as in the site's column at 1280."""


def open_still(name: str, show, width: int):
    """Show a lesson's explorable where it is so wide, in a window that is taller than it."""
    return show(as_stored(name), viewport={"width": width + 24 * (width > 390), "height": 1700})


@pytest.mark.everything
@pytest.mark.parametrize("name", stills())
def test_each_state_fits_a_screen_and_all_of_it_is_read(name, show):
    found = open_still(name, show, 944).page.evaluate(DRIVEN)
    assert faults(found) == {}
    tall = {one["state"]: one["height"] for one in found if one["height"] > SCREEN}
    assert tall == {}
    assert grown(found) == []


def grown(found: list[dict]) -> list[int]:
    """The heights to which Play lets it grow, so that what is below jumps."""
    played = [one["height"] for one in found if one["state"].startswith(("opening", "tick"))]
    return [height for height in played if height > played[0]]


@pytest.mark.everything
@pytest.mark.parametrize("name", stills())
def test_as_it_opens_it_is_read_on_the_narrowest_phone(name, show):
    assert faults([{"state": "opening", **open_still(name, show, 320).read(LOOK)}]) == {}


@pytest.mark.release
@pytest.mark.parametrize("name", [case.values[0] for case in one_of_each_kind() if not case.marks])
def test_each_state_is_read_on_a_phone(name, show):
    found = open_still(name, show, 390).page.evaluate(DRIVEN)
    assert faults(found) == {} and grown(found) == []
