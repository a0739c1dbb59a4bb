"""Lesson 17: a picture as a row of tokens, a forecast with an interval.

What `own` makes of a learner's material is not checked: it has no right answer.
"""

import math
from statistics import mean, median, median_high

from transformer_lesson.exercises.engine.choosing import choose
from transformer_lesson.exercises.engine.specification import Draw, exercise


def _picture_inputs(draw: Draw) -> tuple:
    """One patch, patches of one pixel, one picture, and what lies in memory as its transpose."""
    squares, size = draw.one_of(((3, 2), (1, 5), (2, 5), (5, 3), (2, 3), (3, 1)))
    if draw.small:
        squares, size = draw.size("square", at_least=2), draw.size("pixel", at_least=2)
    else:
        draw.sizes |= {"square": squares, "pixel": size, "picture": draw.one_of((7, 2, 7, 1))}
    draw.sizes |= {"side": squares * size, "patch": squares**2, "number": size**2}
    pictures = draw.normal("picture side side")
    return (pictures.mT.contiguous().mT if draw.number == 4 else pictures), size


@exercise(
    reference="transformer_lesson.lessons.lesson_17.vision:patches",
    make_inputs=_picture_inputs,
    draws=6,
    returns={"patches": "picture patch number"},
    hints=(
        "Lesson 04 cut a row of numbers into heads with one `reshape`. Here two axes are cut: the "
        "rows of a picture and its columns. Into what does each fall?",
        "`pictures.reshape(n, k, size, k, size)` with k = side // size names every pixel by four "
        "numbers: row of the patch, row in the patch, column of the patch, column in the patch. "
        "The two that name the patch must stand together.",
        "`.transpose(2, 3)` brings them together. After it, `reshape(n, k * k, size * size)` joins "
        "both pairs.",
    ),
)
def patches(pictures, size):
    """Cut pictures into squares, row by row."""
    n, side, _ = pictures.shape
    k, size = (side // size, size)
    pictures = choose(
        pictures, upside_down=pictures.flip(1), mirrored=pictures.flip(2), scaled=pictures / 255
    )
    cut = choose(
        pictures.reshape(n, k, size, k, size),
        dealt_out=pictures.reshape(n, size, k, size, k).transpose(1, 2).transpose(3, 4),
        rows_dealt_out=pictures.reshape(n, size, k, k, size).transpose(1, 2),
    )
    squares = choose(
        cut.transpose(2, 3),
        no_transpose=cut,
        patches_by_columns=cut.permute(0, 3, 1, 2, 4),
        pixels_by_columns=cut.permute(0, 1, 3, 4, 2),
        patches_last=cut.permute(0, 2, 4, 1, 3),
        wrong_axes=cut.transpose(1, 2),
    )
    return _tokens(squares, pictures, k, size)


def _tokens(squares, pictures, k, size):
    """Return the squares as rows of numbers."""
    n = len(pictures)
    tokens = squares.reshape(n, k * k, size * size)
    return choose(
        tokens, overlapping=pictures.unfold(1, size, 1).unfold(2, size, 1).flatten(1, 2).flatten(2)
    )


def _forecast_inputs(draw: Draw) -> tuple:
    """Misses around 1, all below, all above, one alone, an even number of them, in any order."""
    first = int(draw.integers("", 20, 60))
    second = first * int(draw.integers("", 3, 7))
    steps = second * int(draw.integers("", 4, 9))
    high = 3 + float(draw.positive(""))
    low = high * (0.6 + 0.15 * float(draw.positive("")))
    n = draw.one_of((5, 4, 1, 7, 3, 6))
    spread = draw.one_of((0.5, 0.5, 0.0, 1.5, 0.2, 0.9))
    base = draw.one_of((0.8, 0.7, 1.0, 0.9, 1.0, 0.6))
    draw.sizes["miss"] = n
    misses = [base + spread * (float(one) - 0.5) for one in draw.positive("miss")]
    return [(first, high), (second, low)], steps, [round(one, 3) for one in misses]


@exercise(
    reference="transformer_lesson.capstone.plan:foresee",
    make_inputs=_forecast_inputs,
    draws=8,
    returns={"expected": "", "low": "", "high": ""},
    hints=(
        "loss = a * steps ** -b goes through both runs. What do you get when you divide one run's "
        "equation by the other's?",
        "b = log(first loss / second loss) / log(second steps / first steps). From the second run "
        "on, the loss is its loss times (steps / second steps) ** -b.",
        "Multiply that loss by `statistics.median(misses)`, `min(misses)` and `max(misses)`. None "
        "of the three is above the second run's loss: `min(..., second)`.",
    ),
)
def foresee(pilots, steps, misses):
    """Return what a long run is expected to reach, and the lowest and the highest."""
    (early, first), (late, second) = pilots
    slope = math.log(first / second) / math.log(late / early)
    b = choose(slope, exponent_inverted=1 / slope, exponent_in_steps=(first - second) / late)
    foreseen = choose(
        second * (steps / late) ** -b,
        from_the_first_run=first * (steps / late) ** -b,
        steps_from_the_first=second * (steps / early) ** -b,
        loss_rises=second * (steps / late) ** b,
        straight_in_steps=first + (second - first) * (steps - early) / (late - early),
        straight_in_log_steps=first + (second - first) * math.log(steps / early, late / early),
        exponential=second * (second / first) ** ((steps - late) / (late - early)),
        last_run=second,
        logarithm_left=math.log(second * (steps / late) ** -b),
    )
    middle = choose(
        median(misses),
        mean_of_misses=mean(misses),
        middle_place=misses[len(misses) // 2],
        upper_middle=median_high(misses),
    )
    ends = (min(misses), max(misses))
    missed = [foreseen * miss for miss in (middle, *ends)]
    return _forecast(missed, second)


def _forecast(missed, second):
    """Return the three numbers, none above the second run's."""
    capped = [min(one, second) for one in missed]
    expected, low, high = choose(capped, no_cap=missed)
    return (expected, low, high)
