"""A button that moves a slider by itself.

Short, and apart from the explorables, because each that has steps uses it.
"""

import asyncio

import ipywidgets


class Player(ipywidgets.ToggleButton):
    """Moves a slider to its end, one value after the other, until it is pressed again.

    A slider that is at its end starts from its beginning.

    Args:
        slider: of integers; its ends may change later.
        seconds: from one value to the next.

    Differs: `ipywidgets.Play` does the same, but its buttons have no names, so that a screen
        reader cannot tell what they do.
    """

    def __init__(self, slider: ipywidgets.IntSlider, seconds: float = 0.7):
        super().__init__(description="▶ Play")
        self.slider, self.seconds = slider, seconds
        self.observe(self._switch, "value")

    def _switch(self, change) -> None:
        if change.new:
            self._task = asyncio.ensure_future(self._play())  # the kernel goes on meanwhile
        else:
            self._task.cancel()

    async def _play(self) -> None:
        slider = self.slider
        if slider.value == slider.max:
            slider.value = slider.min
        while slider.value < slider.max:
            await asyncio.sleep(self.seconds)
            slider.value += 1
        self.value = False
