"""A model that reads further than it was trained, in the page: against the package's reading."""

import math

import torch
import torch.nn.functional as F

from tests.explorables.examples import length_explorer
from tests.explorables.shown import assert_agree, assert_refused
from tests.explorables.tiny_models import language_model, long_reader
from tests.parity import randomized
from transformer_lesson.explorables import LengthExplorer
from transformer_lesson.lessons.lesson_13.longer import read_otherwise
from transformer_lesson.model.positions import rotary_angles, stretched_frequencies

STATES = [
    {"log10_base": 4.0, "factor": 1.0, "by_parts": False, "window": 256},
    {"log10_base": 4.7, "factor": 1.0, "by_parts": False, "window": 256},
    {"log10_base": 4.0, "factor": 4.0, "by_parts": False, "window": 256},
    {"log10_base": 4.0, "factor": 4.0, "by_parts": True, "window": 256},
    {"log10_base": 2.0, "factor": 1.5, "by_parts": True, "window": 24},
    {"log10_base": 6.0, "factor": 8.0, "by_parts": False, "window": 8},
]
D_HEAD, TRAINED = 8, 64


def speeds(log10_base, factor, by_parts, window):
    base = 10**log10_base
    if by_parts:
        return stretched_frequencies(D_HEAD, base, TRAINED, factor)
    return rotary_angles(torch.tensor([1]), D_HEAD, base)[0] / factor


def losses(model, ids) -> torch.Tensor:
    """The mean at each position over windows that begin 64 tokens after each other."""
    windows = ids.unfold(0, 257, 64)
    with torch.no_grad():
        logits = model(windows[:, :-1])
    return F.cross_entropy(logits.mT, windows[:, 1:], reduction="none").mean(0)


def points(name, loss) -> list[str]:
    means = loss.view(16, 16).mean(1)
    return [
        f"positions {16 * i} to {16 * i + 15}, {name}: {mean:.2f} nats"
        for i, mean in enumerate(means.tolist())
    ]


def pair_words(now, window) -> tuple[list[str], int]:
    """What each dial tells, and at how many of them the reading meets new angles."""
    trained, whole, told, new = rotary_angles(torch.tensor([1]), D_HEAD, 1e4)[0], 2 * math.pi, [], 0
    for j, (before, after) in enumerate(zip(trained.tolist(), now.tolist(), strict=True)):
        met, reached = (TRAINED - 1) * before, (min(window, 256) - 1) * after
        fresh = max(0.0, min(whole, reached) - min(whole, met)) / whole
        new += fresh >= 0.005
        words = f"{100 * fresh:.0f} % of the circle is new" if fresh >= 0.005 else "no angle is new"
        told.append(
            f"pair {j}: up to {met / whole:.2f} turns in training and {reached / whole:.2f} now, "
            f"{words}; from one token to the next {after / before:.2f} times the trained angle"
        )
    return told, new


def test_each_loss_and_each_angle_is_the_packages(show):
    explorable = length_explorer()
    model, ids = randomized(long_reader()), torch.tensor(explorable.ids)
    trained, page = losses(model, ids), show(explorable)
    for i, state in enumerate(STATES):
        page.set(**state)
        frequencies, shown = speeds(**state), page.all()
        now = losses(read_otherwise(model, frequencies, state["window"]), ids)
        told, new = pair_words(frequencies, state["window"])
        curves = points("as trained", trained) + (points("now", now) if i else [])
        assert_agree(shown["told"], curves + told)
        assert (f"{new} of 4 pairs meet angles" if new else "No pair meets an") in shown["said"]


def test_what_cannot_read_further_is_refused():
    model, ids = long_reader(), torch.zeros(300, dtype=torch.long)
    assert_refused("positions are 'sinusoidal'", LengthExplorer, language_model()[0], ids)
    assert_refused("there are 256 ids: a window needs", LengthExplorer, model, ids[:256])
    assert_refused("is in training mode", LengthExplorer, model.train(), ids)
