"""All signs that differences could have had; what a forecast was drawn from, and what came."""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from statistics import fmean

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from transformer_lesson.capstone.plan import Plan, power_law
from transformer_lesson.figures.plots import COLORS, Figure, figure

Rule = Callable[[list[float]], bool]


def sign_lists(differences: Sequence[float], rules: Mapping[str, Rule]) -> Figure:
    """Return a figure of all sign lists' means, in order, and in which each rule is alarmed.

    Args:
        differences: change minus baseline, in nats; their own signs are marked.
        rules: by name, whether one sees a difference in a list.
    """
    lists = [
        [abs(difference) * sign for difference, sign in zip(differences, signs, strict=True)]
        for signs in product((1, -1), repeat=len(differences))
    ]
    lists.sort(key=fmean)
    n, observed = len(lists), lists.index([*differences])
    seen = {name: [bool(rule(sample)) for sample in lists] for name, rule in rules.items()}
    shares = [f"{name}: {sum(alarms)} of {n}" for name, alarms in seen.items()]
    title = f"If the change does nothing, these {n} lists are equally likely"
    alt = (
        f"Above, the means of {n} lists, {fmean(lists[0]):.3f} to {fmean(lists[-1]):.3f} nats; the "
        f"observed one is number {observed + 1}. Below, the lists in which a rule sees a "
        f"difference. {'; '.join(shares)}."
    )
    picture = Figure(title, alt, 8.4, 3.6)
    top, below = picture.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    for axes in (top, below):
        axes.spines[["top", "right"]].set_visible(False)
    colors = [COLORS[1] if i == observed else "0.6" for i in range(n)]
    top.bar(range(n), [fmean(sample) for sample in lists], color=colors, width=0.8)
    top.axhline(0, color="black", linewidth=0.8)
    at = observed, fmean(lists[observed])
    top.annotate(
        "what was observed",
        at,
        (observed + 6, at[1]),
        color=COLORS[1],
        va="center",
        arrowprops={"arrowstyle": "->", "color": COLORS[1]},
    )
    top.set_ylabel("mean, nats")
    _alarms(below, seen, observed)
    top.spines["bottom"].set_visible(False)
    top.tick_params(axis="x", length=0)
    picture.subplots_adjust(0.21, 0.1, 0.92, 0.88, hspace=0.12)
    return picture


def _alarms(axes: Axes, seen: Mapping[str, Sequence[bool]], observed: int) -> None:
    """Draw a row for each rule: a cell for each list, colored where the rule is alarmed."""
    n = len(next(iter(seen.values())))
    for row, alarms in enumerate(seen.values()):
        for i in range(n):
            color = "0.92" if not alarms[i] else COLORS[1] if i == observed else COLORS[0]
            axes.add_patch(Rectangle((i - 0.4, row - 0.35), 0.8, 0.7, color=color))
        axes.text(n + 0.3, row, f"{sum(alarms)} of {n}", va="center", fontsize=9)
    axes.set_yticks(range(len(seen)), [*seen], fontsize=9)
    axes.set(ylim=(len(seen) - 0.4, -0.6), xlim=(-0.8, n - 0.2))
    axes.set_xlabel("the lists, from the lowest mean to the highest; colored: the rule is alarmed")
    axes.set_xticks([])
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.tick_params(length=0)


def forecast(plan: Plan, reached: float, runs: Sequence[float]) -> Figure:
    """Return a figure of a plan's two short runs, their line, what it expects and what was reached.

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
    label = f"its end, had it missed as each of our {len(runs)} runs did"
    axes.plot(places, missed, "_", color="0.6", markersize=9, label=label)
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
    axes.legend(fontsize=8, loc="lower left", frameon=False)
    return picture
