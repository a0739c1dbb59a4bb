"""Lesson 14: which probe comes next, and five repairs of programs that run and are wrong.

Long because it is data: exercises whole, with their inputs and all their wrong turns.
"""

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
    for probe in choose(list(outcomes), order_of_the_costs=list(costs)):
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
            better = cost < costs[best]
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
    start="transformer_lesson.lessons.lesson_14.faulty:shifted_loss",
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
        labels != pad_id, padding_counted=torch.ones_like(labels).bool(), id_0=labels != 0
    )
    log_p = choose(
        logits.log_softmax(-1),
        second_softmax=logits.softmax(-1).log_softmax(-1),
        over_positions=logits.log_softmax(-2),
    )
    losses = (-log_p).gather(-1, labels[..., None])[..., 0]
    kept = torch.where(real, losses, 0.0)
    return choose(losses[real].mean(), summed=kept.sum())


NAMES = (
    {"embedding.weight": 2, "norm.weight": 1, "W_Q": 2, "W_O": 2, "b_O": 1},
    {"blocks.0.attention.bias": 1, "blocks.0.weight": 3, "gamma": 1, "beta": 1, "scale": 0},
    {"token_embedding": 2, "position_embedding": 2, "head.weight": 2, "head.bias": 1},
    {"norm_1.weight": 1, "norm_2.bias": 1, "weight_norm": 2, "biases": 4},
)
FROZEN = ("position_embedding", "W_O", "norm_2.bias")  # are not trained


def _decay_inputs(draw: Draw) -> tuple:
    """Names that help and names that mislead, three axes and none, weights that are frozen."""
    sizes = {0: "", 1: "d_model", 2: "d_model d_ff", 3: "head d_model d_ff", 4: "d_ff 1"}
    parameters = {name: draw.normal(sizes[axes]) for name, axes in draw.one_of(NAMES).items()}
    for name, weight in parameters.items():
        weight.requires_grad_(name not in FROZEN)
    return (parameters,)


@exercise(
    reference="transformer_lesson.lessons.lesson_14.repaired:decay_groups",
    make_inputs=_decay_inputs,
    start="transformer_lesson.lessons.lesson_14.faulty:decay_groups",
    draws=4,
    returns={"decayed": "", "others": ""},
    hints=(
        "Decay pulls numbers toward 0. A norm's gamma begins at 1 and should be free to stay "
        "there, and its name ends in `weight` too.",
        "Names mislead. Matrices have at least two axes; gammas and biases have one.",
        "`weight.ndim >= 2` decides, for those with `weight.requires_grad`.",
    ),
)
def decay_groups(parameters):
    """Return the names of the weights that decay, matrices, and of the others that are trained."""
    trained = choose(
        {name: weight for name, weight in parameters.items() if weight.requires_grad},
        frozen_ones_too=parameters,
        frozen_ones_alone={
            n: weight for n, weight in parameters.items() if not weight.requires_grad
        },
        sorted_names={n: parameters[n] for n in sorted(parameters) if parameters[n].requires_grad},
    )
    decayed = choose(
        [name for name, weight in trained.items() if weight.ndim >= 2],
        everything_decays=list(trained),
        nothing_decays=[],
        names_that_end_in_weight=[name for name in trained if name.endswith("weight")],
        names_with_weight=[name for name in trained if "weight" in name],
        names_without_bias=[name for name in trained if "bias" not in name],
        names_that_end_in_bias=[name for name in trained if not name.endswith("bias")],
        names_without_norm=[name for name in trained if "norm" not in name],
        names_without_norm_and_bias=[n for n in trained if "norm" not in n and "bias" not in n],
        embeddings_spared=[n for n, w in trained.items() if w.ndim >= 2 and "embedding" not in n],
        two_axes_exactly=[name for name, weight in trained.items() if weight.ndim == 2],
    )
    others = [name for name in trained if name not in decayed]
    return choose((decayed, others), exchanged=(others, decayed))


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
    start="transformer_lesson.lessons.lesson_14.faulty:rate_at",
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
            (step + 1) / warmup, first_step_0=step / warmup, ramp_to_the_end=(step + 1) / total
        )
    progress = choose(
        (step - warmup) / max(total - warmup, 1),
        counted_from_the_start=step / total,
        falls_in_whole_epochs=(step // steps_per_epoch - warmup_epochs)
        / max(epochs - warmup_epochs, 1),
    )
    progress = choose(min(1.0, progress), over_at_once=1.0)
    fall = _fall(progress)
    return peak * choose(0.1 + 0.9 * fall, tenth_of_the_rate=0.1 * fall)


def _fall(progress):
    """Return half a cosine wave, from 1 to 0."""
    return choose(
        (1 + math.cos(math.pi * progress)) / 2, rising=(1 - math.cos(math.pi * progress)) / 2
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
        batches.append((ids, labels))
    return table, batches, pad_id, draw.one_of((True, False, True, True))


@exercise(
    reference="transformer_lesson.lessons.lesson_14.repaired:evaluation_loss",
    make_inputs=_evaluation_inputs,
    trial=_evaluated,
    start="transformer_lesson.lessons.lesson_14.faulty:evaluation_loss",
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
    with torch.no_grad():
        for inputs, labels in batches:
            loss = float(loss_function(model(inputs), labels))
            real = choose(
                int((labels != pad_id).sum()),
                mean_of_means=1,
                weighed_by_sentences=len(labels),
                padding_counted=labels.numel(),
            )
            total += loss * real
            count += real
            largest = max(largest, loss)
    choose(
        model.train(was_training), left_in_evaluation=None, always_back_to_training=model.train()
    )
    return choose(total / count, summed=total, largest_loss=largest)


def _cached_inputs(draw: Draw) -> tuple:
    """One new token and several, with an empty cache too; more positions than are used."""
    if not draw.small:
        sizes = draw.one_of(((2, 1, 5), (2, 3, 5), (3, 1, 5), (3, 2, 5), (2, 5, 3)))
        draw.sizes |= zip(("batch", "n", "d_model"), sizes, strict=True)
    x = draw.normal("batch n d_model")
    n, n_cached = draw.size("n"), draw.one_of((4, 2, 1, 0, 3))
    n_cached = draw.unless_unseen(n_cached, 1, 8) if n_cached else 0
    draw.sizes["position"] = 2 * (n + n_cached) + 3
    return x, n_cached, draw.normal("position d_model")


@exercise(
    reference="transformer_lesson.lessons.lesson_14.repaired:cached_step",
    make_inputs=_cached_inputs,
    start="transformer_lesson.lessons.lesson_14.faulty:cached_step",
    draws=5,
    returns={"x": "batch n d_model", "mask": "query key"},
    hints=(
        "Cached tokens stand at positions 0 to n_cached - 1. Where does the first new one stand?",
        "Positions count from 0, so after 4 tokens comes position 4. Write down which keys the "
        "first new token may see: the 4 cached ones and itself.",
        "`table[n_cached : n_cached + n]`, and `tril(n_cached)` of a table of ones with n rows and "
        "n_cached + n columns.",
    ),
)
def cached_step(x, n_cached, table):
    """Return new tokens with their positions, and the mask of old and new keys."""
    n = x.size(1)
    first = choose(
        n_cached, position_early=n_cached - 1, position_late=n_cached + 1, from_0_again=0, from_1=1
    )
    places = choose(torch.arange(n), backward=torch.arange(n).flip(0))
    positions = table[(first + places) % len(table)]
    placed = x + positions
    mask = _allowed(n, n_cached)
    return (placed, mask)


def _allowed(n, n_cached):
    """Return which keys, cached and new, each new token may see."""
    full = torch.ones(n, n_cached + n, dtype=torch.bool)
    mask = choose(
        full.tril(n_cached),
        cache_hidden=full.tril(),
        mask_early=full.tril(n_cached - 1),
        mask_late=full.tril(n_cached + 1),
        upper_triangle=full.triu(n_cached),
        window=full.tril(n_cached) & full.triu(1),
    )
    return mask
