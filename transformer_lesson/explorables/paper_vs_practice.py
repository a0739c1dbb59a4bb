"""Where the norm stands, how long the warm-up is, how the weights begin: which runs learn."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from statistics import fmean

import ipywidgets

from transformer_lesson.experiments.since_2017 import (
    GRID_EVERY,
    INITIALIZATIONS,
    NORM_POSITIONS,
    WARMUPS,
    Setting,
    stored_grid,
)
from transformer_lesson.explorables.base import Explorable, Rendering
from transformer_lesson.explorables.base import sentence as say
from transformer_lesson.explorables.canvas import Canvas
from transformer_lesson.explorables.chart import Chart, Point
from transformer_lesson.explorables.player import Player
from transformer_lesson.figures.plots import COLORS

Runs = Sequence[Sequence[float]]  # one curve per seed
WIDTH, HEIGHT, LEFT, TOP = 900, 380, 60, 70
BEHIND = 0.3  # nats above the best setting from which a run counts as one that failed
GRAY = "#CCCCCC"


def render_paper_vs_practice(
    curves: Mapping[Setting, Runs], setting: Setting, point: int
) -> Rendering:
    """Draw the chosen setting's runs up to a point, over the last state of all the others.

    Args:
        curves: losses of every setting, a list per seed; a diverged run is shorter.
        setting: the one in color.
        point: how many stored points to draw of it, from 1; each stands for GRID_EVERY steps.
    """
    runs = [run[:point] for run in curves[setting]]
    longest = max(len(run) for runs in curves.values() for run in runs)
    ended = point >= longest
    ends = [run[-1] for run in runs]
    page = Canvas(_title(curves, setting, ends, point, ended), WIDTH, HEIGHT)
    losses = [y for runs in curves.values() for run in runs for y in run]
    frame = Chart(page, LEFT, TOP, 560, 240, [0, longest * GRID_EVERY], losses)
    frame.axes("step", "training loss, nats per character; gray: all other settings")
    for others in curves.values():
        for run in others:
            frame.line(_points(run), GRAY)
    for i, run in enumerate(runs):
        frame.line(_points(run), COLORS[i % 3])
    x, low = LEFT + 580, TOP + 10
    for i, end in enumerate(ends):
        page.box(x, low + 20 * i - 5, 10, 10, fill=COLORS[i % 3])
        lost = "  diverged" if len(curves[setting][i]) < min(point, longest) else ""
        page.text(x + 16, low + 20 * i, f"seed {i}: {end:.2f}{lost}", 12, anchor="lm")
    _draw_ranking(page, curves, setting, x, low + 20 * len(ends) + 16)
    return Rendering(page.png(), _text(curves, setting, ends, point))


def _points(run: Sequence[float]) -> list[Point]:
    """A stored value is the mean of GRID_EVERY steps; it stands at the last of them."""
    return [((i + 1) * GRID_EVERY, loss) for i, loss in enumerate(run)]


def _final(runs: Runs) -> float:
    return fmean(run[-1] for run in runs)


def _words(setting: Setting) -> str:
    warmup = f"warm-up {setting.warmup_steps}" if setting.warmup_steps else "no warm-up"
    weights = {"xavier": "Xavier"}.get(setting.initialization, setting.initialization)
    return f"{setting.norm_position}-norm, {warmup}, {weights} weights"


def _n_failed(curves: Mapping[Setting, Runs], setting: Setting) -> int:
    best = min(map(_final, curves.values()))
    return sum(run[-1] > best + BEHIND for run in curves[setting])


def _title(curves, setting: Setting, ends: Sequence[float], point: int, ended: bool) -> str:
    words = _words(setting)
    words = words[0].upper() + words[1:]
    if not ended:
        return f"{words}: loss {fmean(ends):.2f} after {point * GRID_EVERY} steps"
    failed, n = _n_failed(curves, setting), len(ends)
    if failed == 0:
        return f"{words}: learns, with every seed"
    return f"{words}: stays behind with {'every seed' if failed == n else f'{failed} of {n} seeds'}"


def _text(curves, setting: Setting, ends: Sequence[float], point: int) -> str:
    order = sorted(curves, key=lambda one: _final(curves[one]))
    words, best = _words(setting), order[0]
    seeds = "one seed" if len(ends) == 1 else f"{len(ends)} seeds"
    return (
        f"{words[0].upper()}{words[1:]}, step {point * GRID_EVERY}: loss {min(ends):.2f} to "
        f"{max(ends):.2f} over {seeds}. At the end its mean is {_final(curves[setting]):.2f}, "
        f"place {order.index(setting) + 1} of {len(order)}; the best, {_final(curves[best]):.2f}, "
        f"has {_words(best)}. {_n_failed(curves, setting)} of its seeds end more than "
        f"{BEHIND} above that."
    )


def _draw_ranking(page: Canvas, curves, setting: Setting, x: int, y: int) -> None:
    """List all settings by their mean loss at the end, the chosen one marked."""
    page.text(x, y, "mean loss at the end", 11, anchor="lm")
    for i, one in enumerate(sorted(curves, key=lambda one: _final(curves[one]))):
        at = y + 17 * (i + 1)
        mark = "→ " if one == setting else "   "
        color = "black" if one == setting else "#666666"
        warmup = f"warm-up {one.warmup_steps}"
        words = f"{mark}{_final(curves[one]):.2f}  {one.norm_position}, {warmup}, "
        weights = _words(one).split()[-2]
        page.text(x, at, words + weights, 11, color, "lm", WIDTH - x - 6)


@lru_cache(maxsize=128)
def _drawn(setting: Setting, point: int) -> Rendering:
    return render_paper_vs_practice(stored_grid(), setting, point)


class PaperVsPractice(Explorable):
    """Choose where the norm stands, the warm-up and the weights, and replay the training runs.

    The runs were made by `benchmarks.paper_vs_practice`: six layers, three seeds, 200 steps on
    CPython's manual with Adam at a constant rate of 0.003 and without clipping.

    Args:
        norm_position: "post" (paper) or "pre".
        warmup_steps: 0, 20 or 100.
        initialization: "xavier" or "small" (standard deviation 0.02).
    """

    def __init__(
        self,
        norm_position: str = "post",
        warmup_steps: int = 0,
        initialization: str = "xavier",
    ):
        try:
            runs = [run for runs in stored_grid().values() for run in runs]
            longest = max(map(len, runs))
        except ValueError as error:
            self._missing, longest = str(error), 1
        else:
            self._missing = None
        point = ipywidgets.IntSlider(
            longest, 1, longest, description=f"Replay, {GRID_EVERY} steps each"
        )
        places = [("post (paper)", "post"), ("pre", "pre")]
        starts = [("Xavier", "xavier"), ("small, 0.02", "small")]
        assert [v for _, v in places] == [*NORM_POSITIONS]
        assert [v for _, v in starts] == [*INITIALIZATIONS]
        buttons = {
            "norm_position": (places, norm_position, "Norm"),
            "warmup_steps": (WARMUPS, warmup_steps, "Warm-up steps"),
            "initialization": (starts, initialization, "Weights"),
        }
        controls = {
            name: ipywidgets.ToggleButtons(options=options, value=value, description=label)
            for name, (options, value, label) in buttons.items()
        }
        super().__init__(controls | {"point": point})
        self.children[0].children += (Player(point, 0.15),)

    def render(self) -> Rendering:
        """Draw the chosen setting."""
        if self._missing:
            return say(self._missing)
        values = self.values
        point = values.pop("point")
        return _drawn(Setting(**values), point)
