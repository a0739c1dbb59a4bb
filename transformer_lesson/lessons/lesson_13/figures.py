"""Differences seed by seed, losses by rate and along texts, heads that rest and that copy."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import torch

from transformer_lesson.figures.plots import COLORS, Figure, as_array, figure, name_lines
from transformer_lesson.files import printable
from transformer_lesson.lessons.lesson_13.gemma import RUN, WINDOW
from transformer_lesson.lessons.lesson_13.longer import READ
from transformer_lesson.lessons.lesson_13.since_2017 import LENGTH, verdict

NATS = "nats per character"
FOUND = {"lower loss": COLORS[2], "higher loss": COLORS[1], "inside the noise": "#777777"}
STYLES = ("-", "--", "-.", ":")


def differences(
    title: str,
    rows: Mapping[str, Sequence[float]],
    beside: str = "the row above",
    unclear: str = "inside the noise",
) -> Figure:
    """Return a figure with a row per change: each seed's difference in loss, and the verdict.

    Args:
        title: the claim that the figure supports.
        rows: by change, the difference in loss of each seed.
        beside: what each change is compared with.
        unclear: what to call a difference that doesn't count.
    """
    colors = {**FOUND, unclear: FOUND["inside the noise"]}
    verdicts = {name: verdict(values) for name, values in rows.items()}
    verdicts = {name: answer if "loss" in answer else unclear for name, answer in verdicts.items()}
    details = [
        f"{name}: mean {fmean(values):+.3f}, {verdicts[name]}" for name, values in rows.items()
    ]
    picture, axes = figure(title, f"{'. '.join(details)}.", 8.2, 0.9 + 0.32 * len(rows))
    picture.subplots_adjust(left=0.31, right=0.83, bottom=0.6 / picture.get_figheight())
    for row, (name, values) in enumerate(rows.items()):
        color = colors[verdicts[name]]
        axes.plot([min(values), max(values)], [row, row], color=color, lw=5, alpha=0.25)
        axes.plot(values, [row] * len(values), "o", color=color, ms=5, alpha=0.8)
        axes.plot([fmean(values)], [row], "|", color="black", ms=14)
        axes.text(1.02, row, verdicts[name], transform=axes.get_yaxis_transform(), va="center",
                  fontsize=9, color=color)  # fmt: skip
    axes.axvline(0, color="black", lw=0.8)
    axes.set_yticks(range(len(rows)), [printable(name) for name in rows], fontsize=9)
    axes.set(ylim=(len(rows) - 0.5, -0.5), xlabel=f"{NATS}, against {beside}; a dot is a seed")
    axes.grid(axis="x", alpha=0.3)
    axes.locator_params(axis="x", nbins=5)
    return picture


def by_rate(title: str, runs: Mapping[str, Mapping[float, Sequence[float]]]) -> Figure:
    """Return a figure of recipes' losses over the rates tried, the mean and the seeds' range.

    Args:
        title: the claim that the figure supports.
        runs: by recipe and rate, the loss of each seed.
    """
    details = []
    picture, axes = figure(title, "", 8.2, 3.5)
    picture.subplots_adjust(right=0.71)
    for i, (name, losses) in enumerate(runs.items()):
        rates, values = list(losses), list(losses.values())
        means = [*map(fmean, values)]
        color = COLORS[i % len(COLORS)]
        axes.fill_between(rates, [*map(min, values)], [*map(max, values)], color=color, alpha=0.15,
                          lw=0)  # fmt: skip
        axes.plot(rates, means, STYLES[i % 4] + "o", ms=4, color=color, label=printable(name))
        points = zip(rates, means, strict=True)
        details.append(f"{name}: {', '.join(f'{mean:.2f} at {rate}' for rate, mean in points)}.")
    every = sorted({rate for losses in runs.values() for rate in losses})
    axes.set(xscale="log", xlabel="highest rate", ylabel=NATS)
    axes.set_xticks(every, [f"{rate:g}" for rate in every])
    axes.minorticks_off()
    axes.grid(axis="y", alpha=0.3)
    picture.alt = " ".join(details)
    name_lines(axes)
    return picture


def along_a_text(title: str, runs: Mapping[str, Sequence[Sequence[float]]]) -> Figure:
    """Return a figure of the loss along a text, the mean over seeds and their range.

    Args:
        title: the claim that the figure supports.
        runs: by way of reading, one list of losses per seed, at equal distances along the text.
    """
    picture, axes = figure(title, "", 8.2, 3.5)
    picture.subplots_adjust(right=0.71)
    axes.axvspan(0, LENGTH, color=COLORS[5], alpha=0.15, lw=0)
    details = []
    for i, (name, seeds) in enumerate(runs.items()):
        columns = list(zip(*seeds, strict=True))
        means, color = [*map(fmean, columns)], COLORS[i % len(COLORS)]
        middles = [READ / len(columns) * (j + 0.5) for j in range(len(columns))]
        axes.fill_between(middles, [*map(min, columns)], [*map(max, columns)], color=color,
                          alpha=0.15, lw=0)  # fmt: skip
        axes.plot(middles, means, STYLES[i % 4] + "o", ms=4, color=color, label=printable(name))
        details.append(f"{name}: {', '.join(f'{mean:.1f}' for mean in means)}")
    picture.alt = f"Losses along {READ} characters. {'; '.join(details)}."
    axes.set(xlabel="position in the text, in characters", ylabel=NATS, xlim=(0, READ))
    axes.set_xticks(range(0, READ + 1, LENGTH // 2))
    axes.text(LENGTH / 2, 0.97, "trained on", transform=axes.get_xaxis_transform(), ha="center",
              va="top", fontsize=9)  # fmt: skip
    axes.grid(axis="y", alpha=0.3)
    name_lines(axes)
    return picture


def shares(title: str, models: Mapping[str, Sequence[Sequence[float]]]) -> Figure:
    """Return a figure of tokens' experts: a bar for each block, the most used one at the bottom.

    Args:
        title: the claim that the figure supports.
        models: by panel, each block's share of tokens for each expert; they add up to 1.
    """
    details = [
        f"{name}: {', '.join(f'{max(block):.1f}' for block in blocks)}"
        for name, blocks in models.items()
    ]
    alt = f"The favorite's share in each block. {'; '.join(details)}."
    picture, panels = figure(title, alt, 8.2, 2.9, columns=len(models))
    for axes, (name, blocks) in zip(panels, models.items(), strict=True):
        bottoms = [0.0] * len(blocks)
        for rank, row in enumerate(zip(*(sorted(block)[::-1] for block in blocks), strict=True)):
            color = COLORS[0] if rank == 0 else str(0.62 + 0.045 * rank)
            axes.bar(
                range(len(blocks)), row, bottom=bottoms, color=color, edgecolor="white", lw=0.6
            )
            bottoms = [low + x for low, x in zip(bottoms, row, strict=True)]
        axes.axhline(1 / len(blocks[0]), color="black", lw=0.8, ls=":")
        axes.set(title=printable(name), ylim=(0, 1), xticks=[], xlabel="two blocks, three seeds")
    panels[0].set_ylabel("share of characters")
    return picture


def lookers(title: str, share: torch.Tensor) -> Figure:
    """Return a figure of the attention that each head gives to a text's first token.

    Args:
        title: the claim that the figure supports.
        share: shape (layer, head), from 0 to 1.
    """
    half = int((share > 0.5).sum())
    alt = (
        f"{share.size(0)} blocks of {share.size(1)} heads. Mean share "
        f"{share.mean():.2f}; {half} heads give over half."
    )
    picture, _ = _by_head(title, alt, share, "share of attention")
    return picture


def copiers(title: str, scores: torch.Tensor, far: Sequence[int]) -> Figure:
    """Return a figure of each head's induction score.

    Args:
        title: the claim that the figure supports.
        scores: shape (layer, head), from 0 to 1.
        far: the blocks that see everything.
    """
    best = scores.flatten().argsort(descending=True, stable=True)[:8]
    names = [
        f"{i // scores.size(1)}.{i % scores.size(1)} ({scores.flatten()[i]:.2f})" for i in best
    ]
    alt = f"The eight best heads, as block.head: {', '.join(names)}."
    picture, axes = _by_head(title, alt, scores, "induction score")
    local = {i // scores.size(1) for i in best.tolist() if scores.flatten()[i] > 0.3} - {*far}
    marks = {**{i: f"{i}\nsees all" for i in far}, **{i: f"{i}\nlocal" for i in local}}
    axes.set_xticks(list(marks), list(marks.values()), fontsize=9)
    return picture


def _by_head(title: str, alt: str, values: torch.Tensor, label: str) -> tuple[Figure, Any]:
    """Return a picture with a field for each block and head, and its axes."""
    picture, axes = figure(title, alt, 8.2, 2.6)
    picture.subplots_adjust(bottom=0.25)
    image = axes.imshow(as_array(values.T), aspect="auto", cmap="Blues", vmin=0, vmax=1)
    picture.colorbar(image, ax=axes, label=label)
    axes.set(xlabel="block", ylabel="head", yticks=range(values.size(1)))
    return picture, axes


def by_position(title: str, rises: Mapping[str, Sequence[Sequence[float]]]) -> Figure:
    """Return a figure of how much higher the loss is along texts, for each change of a model.

    Args:
        title: the claim that the figure supports.
        rises: by change and text, the mean rise of each run of 64 tokens.
    """
    picture, axes = figure(title, "", 8.2, 3.5)
    picture.subplots_adjust(right=0.71)
    details = []
    for i, (name, texts) in enumerate(rises.items()):
        runs = list(zip(*texts, strict=True))
        means, middles = [*map(fmean, runs)], [RUN * (j + 0.5) for j in range(len(runs))]
        style = STYLES[i % 4] + "o"
        axes.plot(middles, means, style, ms=4, color=COLORS[i], label=printable(name))
        axes.fill_between(
            middles, [*map(min, runs)], [*map(max, runs)], color=COLORS[i], alpha=0.15
        )
        near, far = fmean(means[: WINDOW // RUN]), fmean(means[WINDOW // RUN :])
        details.append(f"{name}: {near:+.2f} up to token {WINDOW}, {far:+.2f} after")
    n_tokens = RUN * len(runs)
    picture.alt = f"Rise of the loss along {n_tokens} tokens of {len(texts)} texts. " + (
        f"{'; '.join(details)}."
    )
    axes.text(WINDOW, 0.97, "the window begins to hide tokens ", va="top", ha="right", fontsize=9,
              transform=axes.get_xaxis_transform())  # fmt: skip
    axes.set(xlabel="position in the text, in tokens", ylabel="rise in nats per token")
    axes.set_xticks(range(0, n_tokens + 1, 256))
    axes.grid(axis="y", alpha=0.3)
    name_lines(axes)
    axes.axvline(WINDOW, color="black", lw=0.8, ls=":")
    axes.axhline(0, color="black", lw=0.8)
    return picture
