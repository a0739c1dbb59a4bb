"""How long each explorable takes from a control's move to the new picture, in the kernel.

Goal: a median of at most 50 ms and a 95th percentile of at most 100 ms on two cores.
"""

import random
import statistics
import time

import torch

from transformer_lesson import explorables
from transformer_lesson.explorables.base import Explorable

WARM_UP, MOVES = 10, 100
TEXTS = [
    "Restart the kernel",
    "Every object has an identity, a type and a value.",
    "Close all tabs\nYou have unsaved changes.\nUndo\nRun all cells below",
    "שלום <script> 😀 中文 $x$",
    "",
]


def values(control) -> list:
    """Values that the control can take."""
    if hasattr(control, "options"):  # (label, value), or a value that is its own label
        return [option[1] if isinstance(option, tuple) else option for option in control.options]
    if isinstance(control.value, bool):
        return [True, False]
    if isinstance(control.value, str):
        return TEXTS
    if hasattr(control, "base"):  # a logarithmic slider
        exponents = range(int(control.min), int(control.max) + 1)
        return [control.base**exponent for exponent in exponents]
    steps = int((control.max - control.min) / control.step)
    return [control.min + control.step * i for i in range(steps + 1)]


def move(explorable) -> float:
    """Set one control to another value and return the seconds until the picture is there."""
    moves = [
        (control, others)
        for control in explorable.controls.values()
        if (others := [value for value in values(control) if value != control.value])
    ]
    control, others = random.choice(moves)
    value = random.choice(others)
    start = time.perf_counter()
    control.value = value
    return time.perf_counter() - start


def main() -> None:
    torch.set_num_threads(2)
    random.seed(0)
    print(f"{'explorable':30}{'median, ms':>12}{'95 %, ms':>12}{'largest, ms':>13}")
    for name in explorables.__all__:
        if not issubclass(getattr(explorables, name), Explorable):
            continue  # of these `benchmarks.page_explorables` tells
        explorable = getattr(explorables, name)()
        for _ in range(WARM_UP):
            move(explorable)
        times = [1000 * move(explorable) for _ in range(MOVES)]
        percentile = statistics.quantiles(times, n=20)[-1]
        print(f"{name:30}{statistics.median(times):12.1f}{percentile:12.1f}{max(times):13.1f}")


if __name__ == "__main__":
    main()
