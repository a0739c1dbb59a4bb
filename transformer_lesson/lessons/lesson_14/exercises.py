"""Lesson 14: which probe comes next, and three repairs of functions that run and are wrong."""

import math
from collections import Counter
from itertools import combinations

import torch
import torch.nn.functional as F
from torch import nn

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
    outcomes = {probe: dict(zip(SUSPECTS, said, strict=True)) for probe, (_, said) in case.items()}
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
        said = choose([says[one] for one in suspects], ruled_out_ones_counted=list(says.values()))
        told = _told_apart(said)
        if told == choose(0, useless_probe_taken=None):
            continue
        worth = choose(
            told / cost,
            price_ignored=told,
            price_subtracted=told - cost,
            price_multiplied=told * cost,
            whole_minutes=told // cost,
            price_squared=told / cost**2,
            root_of_the_price=told / math.sqrt(cost),
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


def _told_apart(said):
    """Return how many pairs of suspects a probe tells apart."""
    counts = Counter(said).values()
    return choose(
        sum(one != other for one, other in combinations(said, 2)),
        information=sum(one / len(said) * math.log(len(said) / one) for one in counts),
        different_answers=len(counts) if len(counts) > 1 else 0,
        outside_the_largest_group=len(said) - max(counts, default=0),
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
    kept = torch.where(real, losses, 0.0)
    of_texts = kept.sum(1) / real.sum(1).clamp(min=1)
    return choose(
        losses[real].mean(),
        summed=kept.sum(),
        divided_by_all=kept.mean(),
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


class _Noted(nn.Module):
    """A tiny model with dropout that notes whether a graph was kept."""

    def __init__(self, table: torch.Tensor):
        super().__init__()
        self.table, self.dropout = nn.Parameter(table.clone()), nn.Dropout(0.5)
        self.kept_graph = False

    def forward(self, ids):
        self.kept_graph |= torch.is_grad_enabled()
        return self.dropout(self.table[ids])


def _evaluated(answer, table, batches, pad_id, training):
    """Call an answer; return its loss, the model's mode after it, and whether a graph was kept."""
    torch.manual_seed(7)
    model = _Noted(table).train(training)

    def loss_function(logits, labels):
        """Return the mean cross-entropy of the labels that are no padding."""
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=pad_id)

    loss = answer(model, batches, loss_function, pad_id)
    loss = math.nan if loss is None else float(torch.as_tensor(loss).detach())
    return torch.tensor(loss), model.training, model.kept_graph


def _evaluation_inputs(draw: Draw) -> tuple:
    """Batches of different sizes with more and less padding; one batch; a model in each mode."""
    vocab_size = draw.size("vocab_size", at_least=4)
    table = 2 * draw.normal("vocab_size vocab_size")
    pad_id = draw.one_of((0, 1, 1, 0))
    batches = []
    for rows, n in draw.one_of(
        (((4, 3), (1, 5)), ((2, 6), (3, 2), (1, 3)), ((3, 4),), ((1, 7), (5, 2)))
    ):
        ids, labels = (draw.integers(f"{rows} {n}", 2, vocab_size) for _ in range(2))
        labels[0, -2 + len(batches) :] = pad_id if len(batches) < 2 else labels[0, -1]
        ids[0, n if batches else -1 :] = pad_id  # labels are one further
        batches.append((ids, labels))
    return table, batches, pad_id, draw.one_of((True, False, True, True))


@exercise(
    reference="transformer_lesson.lessons.lesson_14.repaired:evaluation_loss",
    make_inputs=_evaluation_inputs,
    trial=_evaluated,
    draws=4,
    returns={"loss": "", "training": "", "kept_graph": ""},
    hints=(
        "A batch with 3 labels and a batch with 300 get the same vote in a mean of means. How many "
        "labels does each of your losses stand for?",
        "`loss_function` gives a batch's mean over its real labels. Multiplied by their number, it "
        "is their sum.",
        "Add up `loss * (labels != pad_id).sum()` over the batches, and divide by all real labels.",
    ),
)
def evaluation_loss(model, batches, loss_function, pad_id):
    """Return the mean loss of all labels that are no padding, without dropout."""
    was_training = model.training
    choose(model.eval(), dropout_left_on=None, dropout_switched_on=model.train())
    batches = choose(batches, first_batch_alone=batches[:1])
    total, count, largest = 0.0, 0, 0.0
    with choose(torch.no_grad(), graph_kept=torch.enable_grad()):
        for inputs, labels in batches:
            loss = float(loss_function(model(inputs), labels))
            real = choose(
                int((labels != pad_id).sum()),
                mean_of_means=1,
                weighed_by_sentences=len(labels),
                padding_counted=labels.numel(),
                inputs_counted=int((inputs != pad_id).sum()),
            )
            total += loss * real if real else 0.0  # all padding: its loss is NaN
            count += real
            largest = max(largest, loss)
    choose(
        model.train(was_training), left_in_evaluation=None, always_back_to_training=model.train()
    )
    return choose(total / count, summed=total, largest_loss=largest)
