"""A claim about training small language models, registered before its runs and tested by them.

`claim` asks for what a fair comparison needs, refuses what would make it unfair, trains, and says
what came out, how often its rule would be wrong and what it could not have seen.

1. Each side is tried at the same rates, with two seeds; where a side's best one is the first or the
   last, all sides get another.
2. Each side, at its own best rate, learns from new seeds that chose nothing. All sides of a seed
   read the same batches.
3. The verdict rests on the differences of pairs: change minus baseline, control minus baseline.

It is long because a claim is one thing with four faces: what it refuses, its runs, its verdict, and
the page that shows them.
"""

import base64
import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from html import escape
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import torch

from transformer_lesson.capstone.material import Source, read
from transformer_lesson.figures import plots
from transformer_lesson.files import printable, write_atomically
from transformer_lesson.intervals import STUDENT, student
from transformer_lesson.model.config import ModelConfig, Rule, in_python, is_number
from transformer_lesson.model.parameters import count_parameters
from transformer_lesson.model.transformers import DecoderOnlyTransformer
from transformer_lesson.text import WindowBatches
from transformer_lesson.text.batches import windows_in_order
from transformer_lesson.text.tokenizers import CharacterTokenizer
from transformer_lesson.training import TrainConfig, TrainingDiverged, train, validation_loss

SIDES = ("baseline", "change", "control")
TRIES = 2  # seeds for each rate; the comparison has others
LENGTH, BATCH_SIZE, VALIDATED = 64, 16, 4096  # characters in a window, windows, characters
MODEL = {"d_model": 64, "n_heads": 4, "n_layers": 2, "d_ff": 256, "dropout": 0.0}
MODEL |= {"activation": "gelu", "positions": "rotary"}
TRAINING = {"schedule": "cosine", "warmup_steps": 20}
ALIKE = 0.02  # share by which the sizes of two models may differ
MOST_RATES = 8  # after widening
PREDICTIONS = ("lower", "higher", "no difference")
_SAID = {  # of each verdict
    "held": "As predicted, and more so than the control.",
    "refuted": "It went the other way.",
    "not refuted": "As predicted, no difference was seen. These seeds would often miss one of less "
    "than {visible:.3f} nats.",
    "not shown": "A difference was predicted, but the interval holds 0: these seeds show none.",
    "the control does it, too": "As predicted, but what you changed need not be the reason.",
    "not told apart": "As predicted, but these seeds can't tell the change from its control: take "
    "more of them.",
    "no optimum": "The best rate of {edge} is the first or the last that was tried, so nobody "
    "knows what its best would be. Pass smaller or larger rates.",
}
Side = Mapping[str, Any]

minutes_rule = Rule("a number of minutes from 0 to 600", lambda x: is_number(x) and 0 < x <= 600)
seeds_rule = Rule(
    f"a whole number from 3 to {len(STUDENT) + 1}",
    lambda x: is_number(x, int) and 3 <= x <= len(STUDENT) + 1,
)
steps_rule = Rule(
    "a whole number from 40 to 10000", lambda x: is_number(x, int) and 40 <= x <= 10_000
)


@dataclass(frozen=True)
class Claim:
    """What was claimed beforehand, and what its runs came to.

    Args:
        says: the claim, in words.
        sides: by name, what differs from the course's small GPT.
        predicts: of the change's loss beside the baseline's.
        rates: tried on each side, in order.
        steps: of each run.
        source: name of the text.
        sizes: parameters of each side's model.
        tried: by side, the loss of each seed at each rate.
        best: each side's best rate.
        pairs: by side, the loss of each new seed at that rate, nats per character.
        seconds: all runs together.
        added: those of the rates that were not asked for, because a side's best was on an edge.
    """

    says: str
    sides: Mapping[str, Side]
    predicts: str
    rates: tuple[float, ...]
    steps: int
    source: str
    sizes: Mapping[str, int]
    tried: Mapping[str, list[list[float]]] = field(default_factory=dict)
    best: Mapping[str, float] = field(default_factory=dict)
    pairs: Mapping[str, list[float]] = field(default_factory=dict)
    seconds: float = 0.0
    added: tuple[float, ...] = ()

    def differences(self, side: str = "change", other: str = "baseline") -> list[float]:
        """Return one side's loss minus the other's, seed by seed, in nats per character."""
        both = zip(self.pairs[side], self.pairs[other], strict=True)
        return [loss - another for loss, another in both]

    @property
    def verdict(self) -> str:
        """One of the keys of `_SAID`."""
        if self.on_edge:
            return "no optimum"
        outcome = direction(self.differences())
        if outcome != self.predicts:
            return "not shown" if outcome == "no difference" else "refuted"
        if outcome == "no difference":
            return "not refuted"
        if direction(self.differences("change", "control")) == outcome:
            return "held"
        by_control = direction(self.differences("control"))
        return "the control does it, too" if by_control == outcome else "not told apart"

    @property
    def on_edge(self) -> list[str]:
        """The sides whose best rate is the smallest or largest that was tried."""
        return [name for name in SIDES if self.best[name] in (min(self.rates), max(self.rates))]

    @property
    def why(self) -> str:
        """The verdict in sentences."""
        measured = "Mean differences in nats, with 95 % intervals: "
        measured += f"change minus baseline {_interval(self.differences())}, "
        measured += f"control minus baseline {_interval(self.differences('control'))}, "
        measured += f"change minus control {_interval(self.differences('change', 'control'))}."
        verdict = _SAID[self.verdict].format(visible=self.visible, edge=" and ".join(self.on_edge))
        return f"{verdict} {measured}"

    @property
    def false_alarms(self) -> float:
        """How often the rule would see a difference if there were none, from 0 to 1.

        See `false_alarms`.
        """
        return false_alarms(self.differences(), lambda signed: direction(signed) != "no difference")

    @property
    def visible(self) -> float:
        """The smallest difference, in nats, that these seeds would show in 80 of 100 tries."""
        rng, n = random.Random(0), len(self.pairs["change"])
        spread = stdev(self.differences())
        draws = [[rng.gauss(0, 1) for _ in range(n)] for _ in range(2000)]
        needed = sorted(STUDENT[n - 2] * stdev(sample) / n**0.5 - fmean(sample) for sample in draws)
        return spread * needed[int(0.8 * len(needed))]

    def page(self, path: str | Path = "my_claim.html") -> Path:
        """Write one page with everything, and return where.

        Raises:
            OSError: the file cannot be written.
        """
        path = Path(path).expanduser()
        title = escape(printable(self.says))
        page = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        style = "<style>body{font-family:sans-serif;max-width:50em;margin:2em auto;padding:0 1em}"
        style += "img{max-width:100%}td,th{padding:.2em .8em;text-align:left}</style>"
        write_atomically(
            path, f"{page}{style}{self._repr_html_()}</html>".replace("h3>", "h1>").encode()
        )
        return path

    def _repr_html_(self) -> str:
        return _page(self)

    def __repr__(self) -> str:
        return f"{self.says}: {self.verdict}. {self.why}"


def claim(
    says: str,
    *,
    baseline: Side,
    change: Side,
    control: Side | None = None,
    predicts: str = "",
    rates: Sequence[float] | Mapping[str, Sequence[float]] = (0.0025, 0.005, 0.01, 0.02),
    seeds: int = 6,
    minutes: float = 10.0,
    steps: int = 150,
    source: Source = "manual",
    say: Callable[[str], object] = print,
) -> Claim:
    """Test a claim about a small language model: trained fairly on both sides, beside a control.

    A side is a dict of what differs from the course's small GPT (two blocks, four heads, d_model
    64, d_ff 256, GELU, rotary, a cosine after 20 steps of warm-up): fields of `ModelConfig` or of
    `TrainConfig`, or "edit", a function that changes the untrained model in place.

    Args:
        says: the claim, in words.
        baseline, change: the two sides.
        control: what else could do it: as the change, but without what you think is the reason.
        predicts: whether the change's loss is "lower" or "higher", or has "no difference".
        rates: learning rates, at least three, the same for all sides.
        seeds: new seeds for the comparison, from 3 to 20.
        minutes: the time for all runs, at most.
        steps: of each run.
        source: a text, as for `own`.
        say: receives progress messages.

    Raises:
        ValueError: the comparison would be unfair or takes longer; the message says what to change.
        KeyboardInterrupt: Ctrl-C was pressed.
    """
    sides = {"baseline": baseline, "change": change, "control": control}
    registered = _registered(says, sides, predicts, rates, steps, source)
    seeds, minutes = seeds_rule.check("seeds", seeds), minutes_rule.check("minutes", minutes)
    text = Text(source)
    registered = replace(registered, sizes=_sizes(sides, text))
    n_runs = len(SIDES) * (TRIES * len(registered.rates) + seeds)
    foreseen = _foreseen(n_runs, registered, text, seeds, minutes)
    say(f"{n_runs} runs, about {foreseen:.1f} minutes.")
    runs = _Runs(sides, text, steps, n_runs, 60 * minutes, say)
    tried, best = _sweep(runs, registered.rates, len(SIDES) * seeds)
    pairs = {name: [] for name in SIDES}
    for seed in range(TRIES, TRIES + seeds):
        for name in SIDES:
            pairs[name].append(runs.loss_of(name, best[name], seed))
    rates = tuple(sorted(tried["baseline"]))
    return replace(
        registered,
        rates=rates,
        tried={name: [losses[rate] for rate in rates] for name, losses in tried.items()},
        best=best,
        pairs=pairs,
        seconds=runs.seconds,
        added=tuple(rate for rate in rates if rate not in registered.rates),
    )


def _foreseen(n_runs: int, registered: Claim, text: "Text", seeds: int, minutes: float) -> float:
    """Return how many minutes the runs take here; refuse them if that is too long."""
    each = max(_seconds(side, text, registered) for side in registered.sides.values())
    foreseen = n_runs * each / 60
    if foreseen > minutes:
        raise ValueError(
            f"{n_runs} runs take about {foreseen:.1f} minutes here, but minutes is {minutes:g}: "
            f"give more, or ask for fewer seeds, rates or steps (of {seeds}, "
            f"{len(registered.rates)} and {registered.steps})."
        )
    return foreseen


class _Runs:
    """Trains sides, and says how far it is.

    Args:
        sides, text, steps: of the runs.
        n: how many there will be.
        most: seconds for all.
        say: receives progress messages.
    """

    def __init__(self, sides, text, steps, n, most, say):
        self.sides, self.text, self.steps, self.n, self.most = sides, text, steps, n, most
        self.say, self.done, self.began = say, 0, time.monotonic()

    @property
    def seconds(self) -> float:
        """Since the first run began."""
        return time.monotonic() - self.began

    def loss_of(self, name: str, rate: float, seed: int) -> float:
        """Return a run's loss on held-out text."""
        loss = trained_loss(self.sides[name], self.text, rate, seed, self.steps)
        self.done += 1
        if self.done % max(1, self.n // 6) == 0:
            self.say(f"{self.done} of {self.n} runs, {self.seconds:.0f} seconds.")
        return loss

    def afford(self, more: int, left: int) -> bool:
        """Whether there is time for more runs, and for those that are left; if so, count them."""
        fits = self.seconds * (1 + (more + left) / self.done) <= self.most
        self.n += more * fits
        return fits


def _sweep(
    runs: _Runs, rates: Sequence[float], left: int
) -> tuple[dict[str, dict[float, list[float]]], dict[str, float]]:
    """Try all sides at the same rates, and at more where a side's best is the first or the last.

    Args:
        runs: trains.
        rates: to begin with.
        left: runs that the comparison needs.

    Returns:
        By side, the losses at each rate; and each side's best rate.

    Raises:
        ValueError: a side diverged at every rate.
    """
    tried: dict[str, dict[float, list[float]]] = {name: {} for name in SIDES}
    best: dict[str, float] = {}
    while rates:
        for name, losses in tried.items():
            for rate in rates:
                losses[rate] = [runs.loss_of(name, rate, seed) for seed in range(TRIES)]
            best[name] = min(losses, key=lambda rate: fmean(losses[rate]))
        low, high = min(tried["baseline"]), max(tried["baseline"])
        wider = {low: low / 2, high: min(2 * high, (1 + high) / 2)}
        rates = [new for edge, new in wider.items() if edge in best.values()]
        n = len(tried["baseline"]) + len(rates)
        if rates and n <= MOST_RATES and runs.afford(len(SIDES) * TRIES * len(rates), left):
            ends = " and ".join(name for name in SIDES if best[name] in wider)
            more = " and ".join(f"{rate:g}" for rate in rates)
            runs.say(f"The best rate of {ends} is on the edge: all sides also get {more}.")
        else:
            rates = []
    for name, rate in best.items():
        if not math.isfinite(fmean(tried[name][rate])):
            raise ValueError(f"The {name} diverged at every rate: try smaller ones.")
    return tried, best


def direction(differences: Sequence[float]) -> str:
    """Return "lower" or "higher" if the 95 % interval of the mean leaves out 0."""
    _, low, high = student(differences)
    return "lower" if high < 0 else "higher" if low > 0 else "no difference"


def false_alarms(differences: Sequence[float], rule: Callable[[list[float]], bool]) -> float:
    """Return how often a rule would see a difference if there were none, from 0 to 1.

    If a change does nothing, each pair's difference could as well have the other sign. This is the
    share of all arrangements of signs in which the rule sees a difference; of more than 12 pairs,
    of 4,096 random ones.

    Args:
        differences: change minus baseline, one for each pair.
        rule: whether it sees a difference in such a list.

    Source: Fisher, "The Design of Experiments" (1935), chapter 3.
    """
    n = len(differences)
    patterns = range(2**n) if n <= 12 else map(random.Random(n).getrandbits, [n] * 4096)
    return fmean(
        bool(rule([d if pattern >> i & 1 else -d for i, d in enumerate(differences)]))
        for pattern in patterns
    )


def _interval(differences: Sequence[float]) -> str:
    """Return a mean and its 95 % interval in words."""
    return "{:+.3f} ({:+.3f} to {:+.3f})".format(*student(differences))


def _registered(says, sides, predicts, rates, steps, source) -> Claim:
    """Return the claim before any run; refuse what would make it unfair."""
    if not isinstance(says, str) or not says.strip():
        raise ValueError("says is empty: write down the claim in a sentence, before you run it.")
    if predicts not in PREDICTIONS:
        raise ValueError(
            f"predicts is {predicts!r:.60}, but it must be one of {', '.join(PREDICTIONS)}: what "
            "will the change's loss be, beside the baseline's?"
        )
    _refuse_alike(sides)
    if isinstance(rates, Mapping):
        each = {name: _learning_rates(rates.get(name, ())) for name in SIDES}
        if len(set(each.values())) > 1:
            raise ValueError(
                "The sides are tried at different rates ("
                + ", ".join(f"{name} {len(tried)}" for name, tried in each.items())
                + "): who gets more tries wins by luck. Pass one list for all."
            )
        rates = each["baseline"]
    rates = _learning_rates(rates)
    if len(rates) < 3:
        raise ValueError(
            f"rates has {len(rates)}, but it takes at least 3 to have a best one between others."
        )
    steps = steps_rule.check("steps", steps)
    for side in sides.values():
        TrainConfig(steps, rates[0], **TRAINING | _split(side)[1])
    return Claim(says.strip(), sides, predicts, rates, steps, str(source), {})


def _refuse_alike(sides: Mapping[str, Side | None]) -> None:
    """Refuse a side that is missing, is no side, or is another one again."""
    for name, side in sides.items():
        if not isinstance(side, Mapping):
            raise ValueError(
                f"{name} is {side!r:.60}, but it must be a dict of what differs, such as "
                '{"schedule": "linear"}.'
                + " What else could be the reason? Name it."
                * (name == "control")
            )
        _split(side)
    if whole(sides["change"]) == whole(sides["baseline"]):
        raise ValueError("The change is the baseline again: name what differs.")
    for name in ("baseline", "change"):
        if whole(sides["control"]) == whole(sides[name]):
            raise ValueError(
                f"The control is the {name} again: let it differ from the baseline as the change "
                "does, but without what you think is the reason."
            )


def _learning_rates(rates: Any) -> tuple[float, ...]:
    """Return learning rates in order, each once."""
    rates = in_python(rates)
    if not isinstance(rates, list | tuple | set) or not all(
        is_number(rate) and 0 < rate < 1 for rate in rates
    ):
        raise ValueError(
            f"rates is {rates!r:.60}, but it must be a list of numbers over 0 and under 1, "
            "such as (0.005, 0.01, 0.02)."
        )
    return tuple(sorted(set(map(float, rates))))


def _sizes(sides: Mapping[str, Side], text: "Text") -> dict[str, int]:
    """Return the parameters of each side's model; refuse idle edits and unequal sizes."""
    _refuse_idle(sides, text)
    sizes = {name: count_parameters(build(side, text, 0)) for name, side in sides.items()}
    _refuse_unequal(sizes)
    return sizes


def _refuse_idle(sides: Mapping[str, Side], text: "Text") -> None:
    """Refuse an edit after which a model is built and computes as before."""
    for name, side in sides.items():
        if not _split(side)[2]:
            continue
        both = [build(variant, text, 0).eval() for variant in (side, {**side, "edit": None})]
        with torch.no_grad():
            logits = [model(text.validation[0].inputs[0][:1]) for model in both]
        if repr(both[0]) == repr(both[1]) and torch.equal(*logits):
            raise ValueError(
                f"After the edit of the {name}, {_named({'edit': side['edit']})[6:]}, the model is "
                "as it was: change the model that it gets, in place; what it returns is not used."
            )


def _refuse_unequal(sizes: Mapping[str, int]) -> None:
    """Refuse a change that is larger or smaller than the baseline, unless the control is, too."""
    share = sizes["change"] / sizes["baseline"] - 1
    if abs(share) > ALIKE and abs(sizes["control"] / sizes["change"] - 1) > ALIKE:
        raise ValueError(
            f"The change has {sizes['change']:,} parameters, the baseline {sizes['baseline']:,} "
            f"({share:+.0%}), and the control {sizes['control']:,}: choose d_ff, which is "
            f"{MODEL['d_ff']} if a side names none, so that baseline and change differ by "
            f"{ALIKE:.0%} at most, or make the control as large as the change."
        )


class Text:
    """A text as character ids: to train on, and to validate on."""

    def __init__(self, source: Source):
        material = read(source)
        if material.kind != "text":
            raise ValueError(
                f"{printable(material.name)} holds pairs of sentences, but a claim is tested on a "
                "text: name a text."
            )
        held_out = "\n".join(material.held_out)
        self.tokenizer = CharacterTokenizer.train([material.training, held_out])
        self.training = self.tokenizer.encode(material.training)
        validation = self.tokenizer.encode(held_out)[: VALIDATED + 1]
        self.validation = windows_in_order(validation, 64, LENGTH)


def _split(side: Side) -> tuple[dict, dict, Callable | None]:
    """Return a side's model fields, training fields and edit; refuse others."""
    options = dict(side)
    edit = options.pop("edit", None)
    if edit is not None and not callable(edit):
        raise ValueError(f"edit is {edit!r:.60}, but it must be a function of the model.")
    names = [{field.name for field in fields(kind)} for kind in (ModelConfig, TrainConfig)]
    fixed = {"vocab_size", "max_len", "steps", "learning_rate", "seed"}
    for name in options:
        if name in fixed or name not in names[0] | names[1]:
            raise ValueError(
                f"{name!r} is no part of a side: name fields of ModelConfig or TrainConfig, but "
                f'none of {", ".join(sorted(fixed))}; or "edit", a function.'
            )
    of_model = {name: value for name, value in options.items() if name in names[0]}
    return of_model, {k: v for k, v in options.items() if k not in of_model}, edit


def whole(side: Side) -> tuple[ModelConfig, TrainConfig, Callable | None]:
    """Return all that a side is, named or not, for a vocabulary of 2.

    Raises:
        ValueError: a field that no side has, or a value that breaks its rule.
    """
    of_model, of_training, edit = _split(side)
    model = ModelConfig(2, max_len=LENGTH, **MODEL | of_model)
    return model, TrainConfig(40, 0.01, **TRAINING | of_training), edit


def build(side: Side, text: Text, seed: int) -> DecoderOnlyTransformer:
    """Return a side's untrained model; parts that sides share have equal weights."""
    of_model, _, edit = _split(side)
    torch.manual_seed(seed)
    config = ModelConfig(text.tokenizer.vocab_size, max_len=LENGTH, **MODEL | of_model)
    model = DecoderOnlyTransformer(config)
    if edit is not None:
        edit(model)
    return model


def trained_loss(side: Side, text: Text, rate: float, seed: int, steps: int) -> float:
    """Train a side's model; return its loss on held-out text, infinite if training diverged."""
    model = build(side, text, seed)
    config = TrainConfig(steps, rate, **TRAINING | _split(side)[1])
    try:
        train(model, WindowBatches(text.training, BATCH_SIZE, LENGTH, seed=seed), config)
    except TrainingDiverged:
        return math.inf
    return validation_loss(model, text.validation)


def _seconds(side: Side, text: Text, registered: Claim) -> float:
    """Return how long one run of a side takes here, from a run of 20 steps."""
    rate = registered.rates[0]
    trained_loss(side, text, rate, 0, 2 + TRAINING["warmup_steps"])  # what is loaded at first use
    began = time.monotonic()
    trained_loss(side, text, rate, 0, 2 + TRAINING["warmup_steps"])
    return (time.monotonic() - began) * registered.steps / (2 + TRAINING["warmup_steps"])


def _named(side: Side) -> str:
    """Return what differs, in words."""
    return (
        ", ".join(f"{name}: {getattr(value, '__name__', value)}" for name, value in side.items())
        or "the course's small GPT"
    )


def drawn(claim: Claim) -> plots.Figure:
    """Return two panels: what each rate came to, and the differences from new seeds."""
    n = len(claim.pairs["change"])
    alt = f"Best rates: {', '.join(f'{k} {v:g}' for k, v in claim.best.items())}. "
    alt += f"Change minus baseline from {n} new seeds: {_interval(claim.differences())}."
    alt += f" Change minus control: {_interval(claim.differences('change', 'control'))}."
    title = f"{printable(claim.says)}: {claim.verdict}"
    figure, (left, right) = plots.figure(title, alt, 8.5, 3.2, columns=2)
    figure.subplots_adjust(top=0.82, wspace=0.3)
    for i, name in enumerate(SIDES):
        means = [fmean(losses) for losses in claim.tried[name]]
        left.plot(claim.rates, means, "o-", color=plots.COLORS[i], label=name)
    left.set(xscale="log", xlabel="learning rate (log)", ylabel="loss, nats per character")
    left.set_xticks(claim.rates, [f"{rate:g}" for rate in claim.rates])
    left.minorticks_off()
    left.legend(frameon=False, fontsize=8)
    pairs = ("change", "baseline"), ("control", "baseline"), ("change", "control")
    for row, pair in enumerate(pairs):
        values = claim.differences(*pair)
        color = plots.COLORS[row + 1]
        right.plot(values, [row] * n, "o", color=color, alpha=0.5)
        mean, low, high = student(values)
        right.plot([low, high], [row + 0.2] * 2, color=color, lw=3)
        right.plot(mean, row + 0.2, "|", color=color, ms=12)
    right.axvline(0, color="black", lw=0.8)
    right.set(xlabel="difference of their losses, nats", ylim=(2.6, -0.6))
    right.set_yticks(range(3), [f"{one}\nminus {other}" for one, other in pairs], fontsize=8)
    return figure


def _page(claim: Claim) -> str:
    """Return the whole claim as HTML."""
    n, steps = len(claim.pairs["change"]), claim.steps
    rows = "".join(
        f"<tr><th scope='row'>{name}</th><td>{escape(printable(_named(claim.sides[name])))}</td>"
        f"<td>{claim.sizes[name]:,}</td><td>{claim.best[name]:g}</td>"
        f"<td>{fmean(claim.pairs[name]):.3f}</td></tr>"
        for name in SIDES
    )
    picture = drawn(claim)
    image = base64.b64encode(picture.png()).decode()
    predicted = claim.predicts if claim.predicts == "no difference" else f"a {claim.predicts} loss"
    rates, added = (
        ", ".join(f"{rate:g}" for rate in these) for these in (claim.rates, claim.added)
    )
    wider = f" ({added} because a side's best was on the edge)" if added else ""
    return f"""<h3>{escape(printable(claim.says))}</h3>
<p><b>{claim.verdict.capitalize()}.</b> {escape(claim.why)}</p>
<p><b>Registered before the runs.</b> Predicted: {predicted}. The loss says how much a small GPT is
surprised by text that it hasn't read, in nats per character; lower is better. All sides were tried
at the same learning rates, {rates}{wider}, with {TRIES} seeds each. Then each learned at its own
best rate from {n} new seeds, {steps} steps on “{escape(printable(claim.source))}”, the sides of a
seed from the same batches.</p>
<table><tr><th>side</th><th>what differs</th><th>parameters</th><th>best rate</th>
<th>mean loss</th></tr>
{rows}</table>
<img alt="{escape(picture.alt)}" src="data:image/png;base64,{image}" width="640">
<p>Left: every rate that was tried. Right: two sides of a new seed, a dot each; the bar is the 95 %
interval of their mean.</p>
<p><b>How often is the rule wrong?</b> It sees a difference where the interval leaves out 0. If the
change did nothing, it would do so in {claim.false_alarms:.0%} of such comparisons. A difference of
{claim.visible:.3f} nats it would see in 80 of 100; a smaller one it would often miss.</p>
<p><b>What it cannot have seen.</b> Another text, models larger or smaller than
{claim.sizes["baseline"]:,} parameters, longer training than {steps} steps, rates between those
tried.</p>
<p>It took {claim.seconds / 60:.1f} minutes.</p>"""
