"""The button that moves a slider."""

import asyncio

import ipywidgets

from transformer_lesson.explorables.player import Player


def play(slider, pressed_again_at=None) -> list[int]:
    """Press the button, and again when the slider is at a value; return what it went through."""
    player, seen = Player(slider, seconds=0.001), []
    slider.observe(lambda change: seen.append(change.new), "value")

    async def until_it_stops():
        player.value = True
        while player.value:
            await asyncio.sleep(0)
            if slider.value == pressed_again_at:
                player.value = False
        await asyncio.sleep(0.02)

    asyncio.run(until_it_stops())
    return seen


def test_plays_to_the_end_and_stops():
    slider = ipywidgets.IntSlider(2, 1, 5)
    assert play(slider) == [3, 4, 5]


def test_starts_again_from_the_end():
    assert play(ipywidgets.IntSlider(4, 1, 4)) == [1, 2, 3, 4]


def test_pressing_again_stops():
    assert play(ipywidgets.IntSlider(1, 1, 1000), pressed_again_at=4) == [2, 3, 4]


def test_a_slider_of_one_value_stops_at_once():
    assert play(ipywidgets.IntSlider(1, 1, 1)) == []


def test_has_a_name_for_screen_readers():
    assert Player(ipywidgets.IntSlider()).description == "▶ Play"
