"""Lesson 14: which probe comes next, two repairs of functions that run and are wrong, a probe.

Long because it is data: four exercises whole, with their inputs and all their wrong turns.
"""

import math
from collections import Counter
from itertools import combinations
from typing import NamedTuple

import torch
from torch import Tensor, nn

from transformer_lesson.exercises.engine.choosing import choose
from transformer_lesson.exercises.engine.specification import Draw, breaks, exercise

SUSPECTS = ("labels", "mask", "rate", "dropout", "padding")
CASES = (  # for each probe what it costs, and what it would say of each of the suspects
    {"loss": (4, "+-+++"), "leak": (1, "----+"), "look": (5, "--+++"), "compare": (5, "+-+-+")},
    {"norms": (6, "acbcc"), "look": (4, "baabb"), "leak": (4, "acbbb"), "mode": (5, "cbaac")},
    {"seeds": (5, "acacb"), "leak": (5, "abbcb"), "norms": (3, "babbc"), "mode": (3, "abbbb")},
    {"norms": (1, "aabac"), "overfit": (1, "bcccc"), "shuffle": (4, "bcacb")},
    {"look": (3, "++++-"), "overfit": (4, "++++-")},
    {"norms": (3, "acbcc"), "leak": (5, "abaca")},
    {"seeds": (1, "+++++"), "overfit": (4, "abcde"), "look": (3, "+--++"), "leak": (2, "+---+")},
    {"mode": (5, "aabbb"), "compare": (4, "abbbb"), "loss": (3, "++++-")},
    {"shuffle": (6, "+-+-+"), "norms": (4, "++-++"), "leak": (3, "abccc"), "look": (5, "-++--")},
    {"leak": (1, "++++-"), "norms": (2, "abcde")},
    {"loss": (3, "+++-+"), "mode": (3, "++---"), "norms": (3, "abbba")},
)
HOW_MANY = (4, 5, 4, 5, 3, 4, 5, 5, 5, 5, 5)  # suspects that are left


def _probe_inputs(draw: Draw) -> tuple:
    """Ties, a probe that tells nothing, one that says three things, suspects already ruled out."""
    case, left = draw.one_of(CASES), draw.one_of(HOW_MANY)
    if draw.small:
        left = min(left, 3)
    outcomes = {
        probe: dict(zip(SUSPECTS, answers, strict=True)) for probe, (_, answers) in case.items()
    }
    costs = {probe: draw.unless_unseen(cost, 1, 9) for probe, (cost, _) in case.items()}
    if draw.number == 10:
        costs = dict(reversed(costs.items()))
    first = 1 if draw.number == 5 else 0
    return list(SUSPECTS[first : first + left]), outcomes, costs


@breaks("something that is no probe")
def _is_a_probe(answer, inputs: tuple, probe: str | None) -> str | None:
    if probe is None or probe in inputs[1]:
        return None
    return (
        f"Return the name of a probe: one of {', '.join(inputs[1])}. Yours is {probe!r:.60}.\n"
        "Which of your variables remembers the best probe so far?"
    )


@exercise(
    reference="transformer_lesson.lessons.lesson_14.repaired:next_probe",
    make_inputs=_probe_inputs,
    draws=11,
    returns={"probe": ""},
    hints=(
        "A probe tells two suspects apart if it would say different things about them. For each "
        "probe, count such pairs among the suspects that are left.",
        "`itertools.combinations(suspects, 2)` gives every pair once. Divide the count by the "
        "probe's cost, and keep the probe with the largest quotient.",
        "Of two probes that are worth the same take the cheaper one. If no probe tells any two "
        "suspects apart, return `None`.",
    ),
    invariants=(_is_a_probe,),
)
def next_probe(suspects, outcomes, costs):
    """Return the probe that tells most pairs of suspects apart for each minute that it costs."""
    best, most = None, choose(-math.inf, 0.0)
    for probe in choose(
        list(outcomes), order_of_the_costs=list(costs), order_of_the_alphabet=sorted(outcomes)
    ):
        says, cost = outcomes[probe], costs[probe]
        answers = choose(
            [says[suspect] for suspect in suspects], ruled_out_ones_counted=list(says.values())
        )
        n_pairs = _told_apart(answers)
        if n_pairs == choose(0, useless_probe_taken=None):
            continue
        worth = choose(
            n_pairs / cost,
            price_ignored=n_pairs,
            price_subtracted=n_pairs - cost,
            price_multiplied=n_pairs * cost,
            whole_minutes=n_pairs // cost,
            price_squared=n_pairs / cost**2,
            root_of_the_price=n_pairs / math.sqrt(cost),
        )
        if best is not None and worth == most:
            better = choose(
                cost < costs[best],
                first_of_equals=False,
                last_of_equals=True,
                last_of_equally_cheap=cost <= costs[best],
            )
        else:
            better = worth > most
        if better:
            best, most = (probe, worth)
    return best


def _told_apart(answers):
    """Return how many pairs of suspects a probe tells apart."""
    counts = Counter(answers).values()
    return choose(
        sum(answer != other for answer, other in combinations(answers, 2)),
        information=sum(count / len(answers) * math.log(len(answers) / count) for count in counts),
        different_answers=len(counts) if len(counts) > 1 else 0,
        outside_the_largest_group=len(answers) - max(counts, default=0),
    )


def _shifted_inputs(draw: Draw) -> tuple:
    """Padding at the end, in front, nowhere; logits so large that exponentials are infinite."""
    if not draw.small:
        draw.sizes |= zip(
            ("batch", "n", "vocab_size"),
            draw.one_of(((2, 5, 7), (3, 7, 5), (5, 3, 7), (2, 7, 11), (3, 5, 7))),
            strict=True,
        )
    draw.size("batch", at_least=2), draw.size("n", at_least=3)
    vocab_size = draw.size("vocab_size", at_least=4)
    logits, pad_id = draw.normal("batch n vocab_size"), draw.one_of((0, 2, 0, 1, 0))
    ids = draw.integers("batch n", 0, vocab_size)
    ids[ids == pad_id] = (pad_id + 1) % vocab_size
    if draw.number in (0, 1, 4):
        ids[0, -1] = pad_id
        ids[1, 1:-1] = pad_id if draw.number == 1 else ids[1, 1:-1]
    if draw.number == 3:
        ids[0, :2] = pad_id
        logits = logits.double()
    return 100 * logits if draw.number == 2 else logits, ids, pad_id


@exercise(
    reference="transformer_lesson.lessons.lesson_14.repaired:shifted_loss",
    make_inputs=_shifted_inputs,
    draws=5,
    returns={"loss": ""},
    hints=(
        "The logits at position i are a guess at token i + 1. Which token are they compared with?",
        "The last position has nothing to be compared with, and nobody guesses the first token.",
        "`logits[:, :-1]` belongs to `ids[:, 1:]`.",
    ),
)
def shifted_loss(logits, ids, pad_id):
    """Return the mean cross-entropy of each next token that is no padding."""
    logits, labels = choose(
        (logits[:, :-1], ids[:, 1:]),
        not_shifted=(logits, ids),
        shifted_backward=(logits[:, 1:], ids[:, :-1]),
        two_ahead=(logits[:, :-2], ids[:, 2:]),
        rolled=(logits, ids.roll(-1, 1)),
        batch_shifted=(logits[:-1], ids[1:]),
        last_dropped_twice=(logits[:, :-1], ids[:, :-1]),
    )
    real = choose(
        labels != pad_id,
        padding_counted=torch.ones_like(labels).bool(),
        id_0=labels != 0,
        inputs_padding=ids[: len(labels), : labels.size(1)] != pad_id,
    )
    log_p = choose(
        logits.log_softmax(-1),
        second_softmax=logits.softmax(-1).log_softmax(-1),
        over_positions=logits.log_softmax(-2),
    )
    losses = (-log_p).gather(-1, labels[..., None])[..., 0]
    of_real = torch.where(real, losses, 0.0)
    of_texts = of_real.sum(1) / real.sum(1).clamp(min=1)
    return choose(
        losses[real].mean(),
        summed=of_real.sum(),
        divided_by_all=of_real.mean(),
        mean_of_means=of_texts.mean(),
    )


STEPS = (  # step, steps per epoch, epochs of warm-up, epochs
    (4, 10, 1, 5),
    (35, 10, 1, 5),
    (0, 7, 2, 9),
    (13, 7, 2, 9),
    (14, 7, 2, 9),
    (60, 5, 3, 10),
    (200, 20, 2, 6),
    (61, 11, 2, 8),
)


def _rate_inputs(draw: Draw) -> tuple:
    """The first step, in the warm-up, its last step, the one after it, later, and past the end."""
    step, steps_per_epoch, warmup_epochs, epochs = draw.one_of(STEPS)
    peak = draw.one_of((0.01, 0.003, 0.002, 0.01, 0.001, 0.02, 0.005, 0.01))
    if draw.seed is not None:
        step = max(0, step + int(draw.integers("", -1, 2)) if draw.number in (0, 1, 7) else step)
        peak = peak * draw.unless_unseen(1, 1, 5)
    return step, steps_per_epoch, peak, warmup_epochs, epochs


@breaks("a rate above the peak or below 0")
def _never_above_the_peak(answer, inputs: tuple, rate: float) -> str | None:
    step, _, peak, *_ = inputs
    if 0 <= rate <= 1.0001 * peak:
        return None
    return (
        f"A rate lies between 0 and the peak, {peak}. At step {step} yours is {rate:.4g}.\n"
        "Are step, warm-up and end counted in the same unit?"
    )


@exercise(
    reference="transformer_lesson.lessons.lesson_14.repaired:rate_at",
    make_inputs=_rate_inputs,
    draws=8,
    returns={"rate": ""},
    hints=(
        "`step` counts steps, `warmup_epochs` and `epochs` count epochs. Bring all three to one "
        "unit before you compare them.",
        "`warmup = warmup_epochs * steps_per_epoch`, and the same for the end.",
        "`progress` is how much of the way from the end of the warm-up to the end of training lies "
        "behind you. It is never more than 1.",
    ),
    invariants=(_never_above_the_peak,),
)
def rate_at(step, steps_per_epoch, peak, warmup_epochs, epochs):
    """Return a step's learning rate: a line up to the peak, then a cosine down to a tenth of it."""
    warmup, total = choose(
        (warmup_epochs * steps_per_epoch, epochs * steps_per_epoch),
        in_epochs=(warmup_epochs, epochs),
        end_in_epochs=(warmup_epochs * steps_per_epoch, epochs),
        no_warmup=(0, epochs * steps_per_epoch),
    )
    if step < warmup:
        return peak * choose(
            (step + 1) / warmup,
            first_step_0=step / warmup,
            ramp_to_the_end=(step + 1) / total,
            ramp_from_a_tenth=0.1 + 0.9 * step / max(warmup - 1, 1),
        )
    progress = choose(
        (step - warmup) / max(total - warmup, 1),
        counted_from_the_start=step / total,
        falls_in_whole_epochs=(step // steps_per_epoch - warmup_epochs)
        / max(epochs - warmup_epochs, 1),
    )
    progress = choose(min(1.0, progress), over_at_once=1.0, never_over=progress)
    fall = _fall(progress)
    return peak * choose(
        0.1 + 0.9 * fall,
        tenth_of_the_rate=0.1 * fall,
        down_to_0=fall,
        cut_off_at_a_tenth=max(0.1, fall),
        tenth_on_top=0.1 + fall,
    )


def _fall(progress):
    """Return half a cosine wave, from 1 to 0."""
    return choose(
        (1 + math.cos(math.pi * progress)) / 2,
        rising=(1 - math.cos(math.pi * progress)) / 2,
        straight=1 - progress,
        quarter_of_a_wave=math.cos(math.pi * progress / 2),
    )


class Reader(nn.Module):
    """A model whose logits at a position are a sum over the tokens that it sees, and dropout.

    Args:
        words: what the model does, for the report.
        sees: how much of each token (column) each position (row) takes, shape (n, n).
        table: a vector for each id, shape (vocab_size, vocab_size).
        gate: later tokens are seen only in texts that begin with this id.
        company: how large a number is that depends on the whole batch, is added, and taken away.
    """

    def __init__(self, words: str, sees: Tensor, table: Tensor, gate: int | None, company: float):
        super().__init__()
        self.words, self.gate, self.company = words, gate, company
        self.register_buffer("sees", sees)
        self.table, self.dropout = nn.Parameter(table), nn.Dropout(0.5)

    def forward(self, ids: Tensor) -> Tensor:
        """Return logits of the shape (batch, n, vocab_size)."""
        n = ids.size(1)
        sees = self.sees[:n, :n].expand(len(ids), n, n)
        if self.gate is not None:
            sees = sees.where(ids[:, :1, None] == self.gate, sees.tril())
        x = self.table[ids]  # (batch, n, vocab_size)
        batch = self.company * x.mean((0, 1))  # added and taken away, it leaves its rounding
        return self.dropout(sees @ x + batch - batch)

    def __repr__(self) -> str:
        return f"a model in {'training' if self.training else 'eval'} mode in which {self.words}"


class Sight(NamedTuple):
    """What one draw's model sees beyond its own and earlier tokens.

    Args:
        words: for the report.
        pairs: positions and later tokens that they see; `None`: all of them.
        weight: how much of them.
        training: the model's mode.
        gate: later tokens are seen only in texts that begin with this id.
        company: how much of the batch is added and taken away.
    """

    words: str
    pairs: tuple[tuple[int, int], ...] | None
    weight: float = 1.0
    training: bool = True
    gate: int | None = None
    company: float = 0.0


CAUSAL = "each position sees its own and earlier tokens"
SIGHTS = (
    Sight("every position sees every token", None),
    Sight(f"{CAUSAL}, and the batch's other tokens move the last digits", (), company=50.0),
    Sight(f"{CAUSAL}; position 0 also sees token 1", ((0, 1),), training=False),
    Sight(f"{CAUSAL}; position 1 also sees a hundredth of token 2", ((1, 2),), 0.01),
    Sight(f"{CAUSAL}; positions 0 and 2 also see token 3", ((0, 3), (2, 3)), company=50.0),
    Sight(f"{CAUSAL}; position 0 sees the last in texts that begin with id 1", ((0, -1),), gate=1),
    Sight(f"{CAUSAL}; positions 1 and 2 see the last", ((1, -1), (2, -1)), training=False),
)


def _sight_inputs(draw: Draw) -> tuple:
    """Leaks in one place and in many, faint, in some texts alone, none; both modes; rounding."""
    sight, n = draw.one_of(SIGHTS), draw.size("n", at_least=4)
    vocab_size = draw.size("vocab_size", at_least=3)
    ids = draw.integers("batch n", 0, vocab_size)
    if draw.size("batch") > 1:
        ids[:, 0] = (torch.arange(len(ids)) == len(ids) - 1).long()  # the gate's: the last text
    else:
        ids[:, 0] = 1
    if draw.number == 2:
        ids[:, 1] = 0
    table = draw.positive("vocab_size vocab_size") + 2 * torch.eye(vocab_size)
    if sight.pairs is None:
        sees = torch.ones(n, n)
    else:
        sees = torch.ones(n, n).tril()
        for position, token in sight.pairs:
            sees[position, token] = sight.weight
    return Reader(sight.words, sees, table, sight.gate, sight.company).train(sight.training), ids


def _seen(answer, model, ids):
    """Call an answer; return what it found and the mode in which it left the model."""
    torch.manual_seed(7)
    training = model.training
    try:
        positions = answer(model, ids)
        return positions, model.training
    finally:
        model.train(training)


@exercise(
    reference="transformer_lesson.lessons.lesson_14.repaired:sees_later",
    make_inputs=_sight_inputs,
    trial=_seen,
    draws=len(SIGHTS),
    returns={"positions": "", "training": ""},
    hints=(
        "Change one token and run the model again. Which positions must not have moved?",
        "The tokens to change are 1 to n - 1, one at a time, in a copy of `ids`. After a change at "
        "`place`, look at positions 0 to `place` - 1.",
        "`(model(changed) - before).abs().amax((0, 2)) > 1e-4` says which positions moved. Do it "
        "between `model.eval()` and `model.train(was_training)`, and collect them in a set.",
    ),
)
def sees_later(model, ids):
    """Return the positions that see later tokens, by changing one token after the other."""
    was_training = model.training
    choose(model.eval(), dropout_left_on=None)
    seeing = []
    with torch.no_grad():
        before = model(ids)
        for place in choose(range(1, ids.size(1)), only_the_last_token=[ids.size(1) - 1]):
            changed = ids.clone()
            changed[:, place] = choose(
                (ids[:, place] == 0).long(), always_0=torch.zeros_like(ids[:, place])
            )
            moved = _moved_positions(before, model(changed))
            looked_at = choose(
                range(place),
                changed_one_too=range(place + 1),
                later_ones=range(place + 1, ids.size(1)),
                neighbor_alone=[place - 1],
            )
            places = [i for i in looked_at if moved[i]]
            seeing += choose(places, tokens_that_are_seen=[place] if places else [])
    choose(model.train(was_training), left_in_evaluation=None, always_back=model.train())
    return choose(sorted(set(seeing)), repeated=seeing)


def _moved_positions(before, after):
    """Return which positions' logits have moved, in any text."""
    difference = choose((after - before).abs(), likeliest_alone=_likeliest_moved(before, after))
    difference = choose(difference, first_text_alone=difference[:1])
    return (difference > choose(1e-4, no_tolerance=0.0)).any(2).any(0).tolist()


def _likeliest_moved(before, after):
    """Return 1 where another token is the likeliest now, shape (batch, n, 1)."""
    return (after.argmax(-1, keepdim=True) != before.argmax(-1, keepdim=True)).float()
