"""What a forecast was drawn from, and what came."""

from collections.abc import Sequence

from transformer_lesson.capstone.plan import Plan, power_law
from transformer_lesson.figures.plots import COLORS, Figure, figure


def forecast(plan: Plan, reached: float, runs: Sequence[float]) -> Figure:
    """Return a plan's two short runs, the line through them, what it expects and what was reached.

    Args:
        plan: as `make_plan` or `own` made it.
        reached: held-out bits per character of the long run.
        runs: what earlier runs reached, as shares of what their own line foresaw.
    """
    steps, bits = zip(*plan.pilots, strict=True)
    line = power_law(plan.pilots, plan.steps)
    title = f"Expected {plan.expected:.2f} bits per character, reached {reached:.2f}"
    alt = (
        f"Short runs of {steps[0]} and {steps[1]} steps reached {bits[0]:.2f} and {bits[1]:.2f}. "
        f"The line through them leads to {line:.2f} after {plan.steps}; {len(runs)} earlier runs "
        f"missed theirs by factors from {min(runs):.2f} to {max(runs):.2f}. This one was expected "
        f"between {plan.low:.2f} and {plan.high:.2f}, and reached {reached:.2f}."
    )
    picture, axes = figure(title, alt, width=7.0)
    axes.plot([*steps, plan.steps], [*bits, line], "--", color="0.5", label="line through both")
    axes.plot(steps, bits, "o", color=COLORS[0], label="two short runs")
    places = [plan.steps] * len(runs)
    missed = [line * share for share in runs]
    axes.plot(places, missed, "_", color="0.6", markersize=9, label="missed as our runs did")
    axes.errorbar(
        plan.steps * 1.15,
        plan.expected,
        [[plan.expected - plan.low], [plan.high - plan.expected]],
        fmt="D",
        color=COLORS[4],
        capsize=4,
        label="expected",
    )
    axes.plot(plan.steps * 1.3, reached, "*", color=COLORS[2], markersize=12, label="reached")
    axes.set(xscale="log", yscale="log", xlabel="steps", ylabel="bits per character, held out")
    ticks = [tick for tick in (1, 1.5, 2, 3, 4, 6) if 0.8 * reached < tick < 1.2 * bits[0]]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    marks = *steps, plan.steps
    axes.set_xticks(marks, [f"{mark:,}" for mark in marks])
    axes.minorticks_off()
    picture.subplots_adjust(right=0.68)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.02, 0.5))
    return picture
