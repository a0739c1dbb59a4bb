"""Lesson 13: what replaced the paper's parts, and how to tell what a replacement is worth.

It is long because it holds eight exercises, those of the lesson and of the notebooks behind it.
"""

import math
from functools import cache, lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_lesson.exercises import random_layers
from transformer_lesson.exercises.engine.choosing import choose
from transformer_lesson.exercises.engine.compare import same
from transformer_lesson.exercises.engine.specification import Draw, breaks, exercise
from transformer_lesson.lessons.lesson_13 import since_2017
from transformer_lesson.lessons.lesson_13.gemma_block import GemmaBlock, geglu
from transformer_lesson.model import experts
from transformer_lesson.model.attention import (
    merge_heads,
    scaled_dot_product_attention,
    split_heads,
)
from transformer_lesson.model.attention import repeat_kv as repeat_heads
from transformer_lesson.model.feed_forward import swiglu
from transformer_lesson.model.masks import causal_mask, window_mask
from transformer_lesson.model.norm import rms_norm
from transformer_lesson.model.positions import apply_rotary as rotated


def _groups_inputs(draw: Draw) -> tuple:
    """Several heads for several query heads each; one head; one query head for each."""
    if draw.number == 3:
        draw.sizes["kv_head"] = 1
    x = draw.normal("batch kv_head n d_head")
    n_groups = draw.one_of((2, 4, 1, 3, 2))
    draw.sizes["head"] = x.size(1) * n_groups
    return x.double() if draw.number == 1 else x, n_groups


@exercise(
    reference="transformer_lesson.model.attention:repeat_kv",
    make_inputs=_groups_inputs,
    returns={"repeated": "batch head n d_head"},
    hints=(
        "With two heads and `n_groups` 2, four query heads read heads 0, 0, 1, 1, in this order.",
        "`repeat` writes the whole row of heads again: 0, 1, 0, 1. `repeat_interleave` repeats "
        "each one in its place.",
        "The heads are axis 1: `x.repeat_interleave(n_groups, dim=1)`.",
    ),
)
def repeat_kv(x, n_groups):
    """Return x with each head n_groups times, one for each query head."""
    return choose(
        x.repeat_interleave(n_groups, dim=1),
        in_turns=x.repeat(1, n_groups, 1, 1),
        first_head_for_all=x[:, :1].expand(-1, x.size(1) * n_groups, -1, -1),
        mean_of_all=x.mean(1, keepdim=True).expand(-1, x.size(1) * n_groups, -1, -1),
        backwards=x.flip(1).repeat_interleave(n_groups, dim=1),
        tokens_repeated=x.repeat_interleave(n_groups, dim=2),
        sentences_repeated=x.repeat_interleave(n_groups, dim=0),
        shared_out=x.repeat_interleave(n_groups, dim=1) / n_groups,
    )


def _rotary_inputs(draw: Draw) -> tuple:
    """Tokens from 0 on, from elsewhere on, and in any order; one token; one pair."""
    single = draw.one_of(("", "", "batch", "d_half", "head", "n"))
    if single:
        draw.sizes[single] = 1
    x = torch.cat([draw.normal("batch head n d_half") for _ in range(2)], dim=-1)
    draw.sizes["d_head"] = x.size(-1)
    n = draw.size("n")
    positions = torch.arange(n) + draw.number if draw.number < 2 else draw.integers("n", 0, 40)
    if draw.number == 3:  # before the first token, and far on: exact for a single pair
        positions = draw.integers("n", 0, 5000)
    if draw.number == 2:
        x = x.double()
    return x, positions, draw.one_of((10000.0, 10000.0, 100.0, 500000.0, 10.0, 10000.0))


@breaks("vectors that change their length")
def _lengths_stay(answer, inputs: tuple, rotated: Tensor) -> str | None:
    before, after = (t.double().norm(dim=-1) for t in (inputs[0], rotated))
    if torch.allclose(before, after, 1e-3, 1e-4):
        return None
    worst = (before - after).abs().argmax()
    return (
        "A rotation leaves the length of each vector as it is. Yours turns a length of "
        f"{before.flatten()[worst]:.4g} into {after.flatten()[worst]:.4g}.\n"
        "Write (a cos - b sin, b cos + a sin) for each pair (a, b)."
    )


@exercise(
    reference="transformer_lesson.model.positions:apply_rotary",
    helpers=(
        "transformer_lesson.model.positions:rotary_angles",
        "transformer_lesson.model.positions:turn_pairs",
    ),
    make_inputs=_rotary_inputs,
    draws=6,
    returns={"rotated": "batch head n d_head"},
    hints=(
        "Number j and number j + d_head / 2 are a pair (a, b), a point in a plane. Turn it by "
        "the angle position / base^(2j / d_head), with j from 0 to d_head / 2 - 1.",
        "All angles at once: `positions[:, None] * frequency`, shape (n, d_head / 2), with "
        "`frequency = base ** (-torch.arange(half) / half)`. It broadcasts over batch and head.",
        "`first, second = x[..., :half], x[..., half:]`; join `first * cos - second * sin` "
        "and `second * cos + first * sin` with `torch.cat` along the last axis.",
    ),
    invariants=(_lengths_stay,),
)
def apply_rotary(x, positions, base=10000.0):
    """Return x with each pair (j, j + d_head / 2) turned by its angle."""
    half = x.size(-1) // 2
    angle = _angles(positions, base, half)
    angles = choose(
        (angle, angle), side_by_side=angle.repeat_interleave(2, dim=-1).chunk(2, dim=-1)
    )
    (cos, cos_2), (sin, sin_2) = [a.cos() for a in angles], [a.sin() for a in angles]
    cos, sin = choose((cos, sin), sine_and_cosine_exchanged=(sin, cos))
    cos_2, sin_2 = choose((cos_2, sin_2), sine_and_cosine_exchanged=(sin_2, cos_2))
    first, second = choose((x[..., :half], x[..., half:]), neighbors=(x[..., ::2], x[..., 1::2]))
    new_first = choose(
        first * cos - second * sin,
        other_direction=first * cos + second * sin,
        two_plus_signs=first * cos + second * sin,
    )
    new_second = choose(
        second * cos_2 + first * sin_2,
        other_direction=second * cos_2 - first * sin_2,
        with_the_new_first=second * cos_2 + new_first * sin_2,
    )
    return choose(
        torch.cat([new_first, new_second], dim=-1),
        neighbors=torch.stack([new_first, new_second], dim=-1).flatten(-2),
    )


def _angles(positions, base, half):
    """Return each pair's angle at each position, shape (n, d_head / 2)."""
    positions = choose(
        positions,
        counted_from_0=torch.arange(len(positions)),
        counted_on_from_the_first=positions[0] + torch.arange(len(positions)),
    )
    j = torch.arange(half)
    exponent = choose(j / half, half_the_exponent=j / (2 * half))
    frequency = choose(base**-exponent, growing=base**exponent)
    angle = positions[:, None] * frequency
    return choose(angle, degrees=angle.deg2rad())


ROWS, SCALES = 2000, (0.02, 1.0)  # comparisons, and how far the differences of seeds scatter
ALLOWED = {3: (0.115, "One in ten is"), 5: (0.115, "One in ten is"), 10: (0.026, "2 % are")}
"""False alarms that may be, by the number of seeds: what is asked for, and what chance may add."""


@cache
def _simulated(seeds: int, effect: float) -> Tensor:
    """Return comparisons between models whose losses really differ by `effect` deviations."""
    generator = torch.Generator().manual_seed(seeds)
    scales = torch.tensor(SCALES).repeat(ROWS // 2)[:, None]
    return scales * (torch.randn(ROWS, seeds, generator=generator) + effect)


@lru_cache(maxsize=16)
def _says(answer, seeds: int, effect: float) -> float:
    """Return in what share of those comparisons a rule says that the difference counts."""
    return answer(_simulated(seeds, effect).clone()).double().mean().item()


@breaks("a rule for noise of one size")
def _any_size_of_noise(answer, inputs: tuple, result: Tensor) -> str | None:
    for seeds in ALLOWED:
        small, large = (answer(scale * _simulated(seeds, 1.0)) for scale in (1, 1000))
        changed = (small != large).double().mean().item()
        if changed > 0.01:
            return (
                f"We took {ROWS:,} comparisons and made all their differences 1000 times as large. "
                f"Your rule then says something else of {changed:.0%} of them.\n"
                "It doesn't know how large the noise is: measure that by how far the seeds scatter."
            )
    return None


@breaks("a rule that finds differences where there are none")
def _few_false_alarms(answer, inputs: tuple, result: Tensor) -> str | None:
    for seeds, (most, wording) in ALLOWED.items():
        alarms = _says(answer, seeds, 0.0)
        if alarms > most:
            return (
                f"We changed nothing and compared {ROWS:,} times, with {seeds} seeds each. Your "
                f"rule says that the difference counts in {alarms:.1%} of them. {wording} the most."
            )
    return None


@breaks("a rule that overlooks true differences")
def _finds_what_is_there(answer, inputs: tuple, result: Tensor) -> str | None:
    for effect, side in ((1.0, "higher"), (-1.0, "lower")):
        share = _says(answer, 10, effect)
        if share < 0.48:
            return (
                f"Ten seeds, and the new loss is truly {side} by one standard deviation. Your rule "
                f"finds that in {share:.0%} of {ROWS:,} comparisons. It should in half of them."
            )
    return None


OF_RULES = (_any_size_of_noise, _few_false_alarms, _finds_what_is_there)
for _rule in OF_RULES:
    _rule.of_many_calls = True  # what is right of a single comparison depends on the rule


def _judged(answer, differences: Tensor) -> Tensor:
    """Return what a rule says; what ours says for each rule that is as good as it has to be."""
    result = answer(differences)
    is_rule = isinstance(result, Tensor) and result.dtype == torch.bool
    if not is_rule or result.shape != differences.shape[:1]:
        return result
    if any(rule(answer, (), result) for rule in OF_RULES):
        return result
    return since_2017.counts(differences)


def _counts_inputs(draw: Draw) -> tuple:
    """Three seeds, five and ten; one comparison; any size of noise, and no difference at all."""
    draw.sizes["seed"] = draw.one_of((3, 10, 5, 3))
    if draw.number == 3:
        draw.sizes["comparison"] = 1
    elif not draw.small:
        draw.sizes["comparison"] = 17
    noise = draw.normal("comparison seed")
    steps = torch.linspace(-2.5, 2.5, noise.size(0))[:, None]
    differences = noise + steps if noise.size(0) > 1 else noise
    return (differences.double() if draw.number == 2 else differences * draw.one_of(SCALES),)


@exercise(
    reference="transformer_lesson.lessons.lesson_13.since_2017:counts",
    make_inputs=_counts_inputs,
    draws=4,
    returns={"counts": "comparison"},
    hints=(
        "Ten seeds tell more about the mean than three do. What could the mean be compared with "
        "that gets smaller when there are more seeds?",
        "The mean of n numbers scatters by their standard deviation divided by the root of n: its "
        "standard error. How many of those must the mean be away from 0?",
        "`error = differences.std(dim=1) / differences.size(1) ** 0.5`. Twice that is too little "
        "for three seeds; try three times.",
    ),
    invariants=OF_RULES,
    trial=_judged,
    passes="Few false alarms, and half of the true effects found: as good as it has to be.",
)
def counts(differences):
    """Say of which comparisons the mean is beyond three standard errors."""
    n, mean = differences.size(1), differences.mean(1)
    deviation = choose(differences.std(1), of_all_n=differences.std(1, correction=0))
    errors = choose(3, two_errors=2, one_error=1)
    limit = choose(
        errors * deviation / n**0.5,
        three_deviations=3 * deviation,
        two_deviations=2 * deviation,
        one_deviation=deviation,
        divided_by_n=3 * deviation / n,
        largest_distance=differences.amax(1) - differences.amin(1),
    )
    size = choose(mean.abs(), higher_alone=mean, lower_alone=-mean)
    signs = (differences > 0).all(1) | (differences < 0).all(1)
    return choose(size > limit, signs_alone=signs, noise_instead=size <= limit)


def _fair_inputs(draw: Draw) -> tuple:
    """Best rates in the middle and at either edge; grids of unequal length; one seed."""
    draw.sizes["seed"] = 1 if draw.number == 4 else draw.size("seed", at_least=3)
    places = ((2, 1), (0, 2), (1, 3), (3, 0), (4, 1), (2, 2))[draw.number % 6]
    grids = []
    for rates, place in zip((5, 4), places, strict=True):
        away = (torch.arange(rates) - place)[:, None].abs()
        grids.append(2 + 0.2 * away + 0.3 * draw.normal("1 seed") + 0.08 * _runs(draw, rates))
    return (grids[0].double(), grids[1].double()) if draw.number == 3 else tuple(grids)


def _runs(draw: Draw, rates: int) -> Tensor:
    """Return what no seed has in common with another one."""
    return torch.randn(rates, draw.size("seed"), generator=draw.generator)


@exercise(
    reference="transformer_lesson.lessons.lesson_13.since_2017:at_their_best",
    make_inputs=_fair_inputs,
    draws=6,
    returns={"differences": "seed", "at an edge": ""},
    hints=(
        "A rate is chosen before anybody knows the seed. By which one number would you choose it?",
        "`old.mean(dim=1)` is each rate's mean over the seeds, and its smallest one the best rate. "
        "Each side has its own. All seeds of that row are compared.",
        "The first and the last row are edges: `best in (0, len(old) - 1)`. One side at its edge "
        "is enough.",
    ),
)
def at_their_best(old, new):
    """Return new minus old, each at its own best rate, and whether one of the two is at an edge."""
    best = [_best_row(old), _best_row(new)]
    rows = choose(
        [old[best[0]], new[best[1]]],
        each_seeds_best=[old.amin(0), new.amin(0)],
        olds_rate_for_both=[old[best[0]], new[min(best[0], len(new) - 1)]],
        rate_untouched=[old[0], new[0]],
    )
    edges = [row in (0, len(losses) - 1) for losses, row in zip((old, new), best, strict=True)]
    edge = choose(
        any(edges),
        olds_length_for_both=any(row in (0, len(old) - 1) for row in best),
        both_edges=all(edges),
        old_alone=edges[0],
        new_alone=edges[1],
        lower_alone=0 in best,
        last_alone=best[1] == len(new) - 1,
    )
    difference = choose(rows[1] - rows[0], old_minus_new=rows[0] - rows[1])
    return difference, edge


def _best_row(losses):
    """Return the number of the best rate."""
    means = losses.mean(1)
    return int(choose(means, luckiest_run=losses.amin(1), largest=-means).argmin())


def _cut_off_inputs(draw: Draw) -> tuple:
    """A window of one token, one that is longer than the text, one head, one token, double."""
    n, window = draw.one_of(((11, 3), (7, 2), (5, 1), (3, 4), (13, 5), (1, 1)))
    draw.sizes["n"] = n if not draw.small else min(n, draw.size("n"))
    if draw.number == 1:
        draw.sizes["head"] = 1
    head, n = draw.size("head"), draw.sizes["n"]
    scores = 2 * torch.randn(head, n, n, generator=draw.generator)
    future = torch.ones(n, n, dtype=torch.bool).triu(1)
    weights = scores.masked_fill(future, -math.inf).softmax(-1)
    return (weights.double() if draw.number == 4 else weights), window


@exercise(
    reference="transformer_lesson.interpretability.head_scores:cut_off",
    make_inputs=_cut_off_inputs,
    draws=6,
    returns={"shares": "n"},
    hints=(
        "Which queries i would no longer see token j? How far apart may i and j be, at most, if a "
        "window of 1 leaves each token only itself?",
        "`i = torch.arange(n)[:, None]`, `j = torch.arange(n)`: `i - j >= window` is True where "
        "the window cuts. Token j is a column of the weights.",
        "All heads together have `head * n` to give, 1 for each query: "
        "`(weights * far).sum(dim=(0, 1)) / (head * n)`.",
    ),
    invariants=(random_layers.is_deterministic,),
)
def cut_off(weights, window):
    """Return what a window would take from each token, as a share of all attention."""
    n = weights.size(-1)
    i, j = torch.arange(n)[:, None], torch.arange(n)
    window = choose(window, one_token_fewer=window - 1, one_token_more=window + 1)
    far = choose(
        i - j >= window,
        near_instead=(i - j < window) & (j <= i),
        its_edge_alone=i - j == window,
        first_hidden_one_alone=i - j == window - 1,
        first_tokens=(j < window).expand(n, n),
        late_queries=(i >= window).expand(n, n),
        nothing_cut=j <= i,
    )
    weights = choose(weights, loudest_head=weights.amax(0, keepdim=True))
    return _shares(weights, weights * far)


def _shares(weights, lost):
    """Return what is lost, token by token, as a share of all that there is to give."""
    heads, n = weights.shape[:2]
    by_key = choose(lost.sum((0, 1)), by_query=lost.sum((0, 2)))
    share = by_key / choose(
        heads * n,
        of_its_own=weights.sum((0, 1)),
        one_heads_rows=n,
        not_divided=1,
        of_what_stays=heads * n - lost.sum(),
    )
    return choose(share, listed=share.tolist())


def _route_inputs(draw: Draw) -> tuple:
    """More tokens than experts and fewer, one expert each, several, all of them."""
    draw.sizes |= ({}, {"n": 2}, {}, {}, {}, {"d_model": 1})[draw.number % 6]
    x = draw.normal("n d_model")
    W_router = draw.normal("d_model expert")
    if draw.small:  # no two experts alike
        x, W_router = x + (x == 0) * 1.0, W_router + 0.01 * torch.arange(W_router.size(1))
    n_experts = W_router.size(1)
    k = min(n_experts, (2, 1, 1, 3, n_experts, 2)[draw.number % 6])
    return (3 * x if draw.number == 2 else x), W_router, k


@breaks("another number of experts than k")
def _k_weights(answer, inputs: tuple, weights: Tensor, balance: Tensor) -> str | None:
    k, chosen = inputs[2], (weights != 0).sum(dim=1)
    if (chosen == k).all():
        return None
    token = int((chosen != k).nonzero()[0])
    return (
        f"Each token passes through k = {k} experts. In yours, token {token} passes "
        f"through {int(chosen[token])}."
    )


@breaks("a result that the router cannot learn from")
def _router_learns(answer, inputs: tuple, weights: Tensor, balance: Tensor) -> str | None:
    x, W_router, k = inputs
    if not all(map(same, experts.route(x, W_router, k), (weights, balance))):
        return None
    learning = W_router.clone().requires_grad_()
    for name, result in zip(("weights", "balance"), answer(x.clone(), learning, k), strict=True):
        if not result.requires_grad:
            return (
                f"The numbers are right, but no gradient of your {name} reaches W_router, and the "
                "router would not learn.\nSomething cuts its path: `detach`, `.item()`, `no_grad`, "
                "or a tensor made from scratch."
            )
    return None


_router_learns.of_gradients = "right results"


@exercise(
    reference="transformer_lesson.model.experts:route",
    make_inputs=_route_inputs,
    draws=6,
    returns={"weights": "n expert", "balance loss": ""},
    hints=(
        "`P = (x @ W_router).softmax(dim=-1)` is each token's distribution over the experts. Keep "
        "its k largest numbers as they are, and put 0 in place of the others.",
        "`best = P.topk(k, dim=-1).indices`; `torch.zeros_like(P).scatter(-1, best, 1.0)` is 1 "
        "where an expert was chosen. Its mean over the tokens, divided by k, is `share`.",
        "`balance = W_router.size(1) * (share * P.mean(dim=0)).sum()`.",
    ),
    invariants=(_k_weights, _router_learns),
)
def route(x, W_router, k):
    """Return each token's weights for the experts, and the balance loss."""
    logits, n_experts = x @ W_router, W_router.size(1)
    k = choose(k, all_of_them=n_experts)
    P = choose(
        logits.softmax(-1),
        over_tokens=logits.softmax(0),
        sigmoid=logits.sigmoid(),
        no_softmax=logits,
        over_everything=logits.flatten().softmax(0).view(logits.shape),
    )
    order = P.argsort(dim=-1, descending=True)
    best = order[:, :k]
    chosen = F.one_hot(best, n_experts).sum(1).to(P.dtype)
    kept = P * chosen
    weights = choose(kept, ones=chosen)
    return weights, _balance(P, chosen, kept, best, k)


def _balance(P, chosen, kept, best, k):
    """Return how unevenly the tokens spread over the experts: 1 if they do not."""
    n_experts = P.size(-1)
    share = choose(
        chosen.mean(0) / k,
        not_divided_by_k=chosen.mean(0),
        first_choice_alone=F.one_hot(best[:, 0], n_experts).to(P.dtype).mean(0),
    )
    mean = choose(P.mean(0), mean_of_what_was_kept=kept.mean(0), share_squared=share)
    return choose(n_experts * (share * mean).sum(), not_times_experts=(share * mean).sum())


def _linear_step_inputs(draw: Draw) -> tuple:
    """An empty state and one that was written to; as many numbers of a key as of a value."""
    if draw.number == 2 and not draw.small:
        draw.sizes |= {"d_k": 5, "d_v": 5}
    q, k, v = draw.normal("d_k"), draw.normal("d_k"), draw.normal("d_v")
    state = draw.normal("d_k d_v")
    if draw.number == 1:
        state = torch.zeros_like(state)
    if draw.number == 3:
        return state.double(), q.double(), k.double(), v.double()
    return state, q, k, v


@exercise(
    reference="transformer_lesson.model.linear_attention:linear_attention_step",
    make_inputs=_linear_step_inputs,
    draws=4,
    returns={"output": "d_v", "state": "d_k d_v"},
    hints=(
        "The output is the sum of (q . k) v over all tokens so far, this one too. Pull q out of "
        "the sum: what is left of each token is a matrix of d_k times d_v.",
        "The matrix of one token is `torch.outer(k, v)`, or `k[:, None] * v`. The state is the sum "
        "of these matrices.",
        "`state = state + torch.outer(k, v)`, then `q @ state`: write first, then read.",
    ),
)
def linear_attention_step(state, q, k, v):
    """Return what q reads after k and v were written, and the new state."""
    q, k = choose((q, k), made_positive=(F.elu(q) + 1, F.elu(k) + 1))
    written = _written(state, k, v)
    new = choose(
        state + written,
        replaced=written,
        mean=(state + written) / 2,
        fading=0.9 * state + written,
        multiplied=state * written,
        rows_of_length_1=F.normalize(state + written, dim=-1),
        squashed=(state + written).tanh(),
    )
    read = choose(new, read_before_writing=state, own_token_alone=written)
    output = _found(read, q)
    next_state = choose(new, old_state_returned=state)
    return (output, next_state)


def _written(state, k, v):
    """Return the new token's matrix."""
    return choose(torch.outer(k, v), difference_written=torch.outer(k, v - k @ state))


def _found(read, q):
    """Return what the q finds in a state."""
    output = q @ read
    return choose(output, scaled=output / q.size(-1) ** 0.5)


def _gemma_inputs(draw: Draw) -> tuple:
    """Heads wider than d_model / n_heads and narrower; one head of keys, several, one for each.

    The mask is a window in half of the draws. In one of them a token sees nothing.
    """
    n_heads, n_kv_heads, d_head = draw.one_of(
        ((4, 1, 6), (4, 2, 4), (6, 3, 2), (3, 3, 4), (6, 2, 4), (4, 2, 6))
    )
    draw.sizes |= ({}, {}, {"batch": 1}, {}, {"n": 1}, {})[draw.number]
    draw.sizes |= {"d_q": n_heads * d_head, "d_kv": n_kv_heads * d_head}
    n = draw.size("n", at_least=1 if draw.number == 4 else 4)
    mask = window_mask(n, 2) if draw.number % 2 else causal_mask(n)
    mask[..., 1:2, :] &= draw.number != 3  # this token sees nothing
    shapes = ("d_model d_q", "d_model d_kv", "d_model d_kv", "d_q d_model")
    matrices = [draw.normal(axes) / draw.size(axes.split()[0]) ** 0.5 for axes in shapes]
    gates = [draw.normal("d_model d_ff") / draw.size("d_model") ** 0.5 for _ in range(2)]
    W_down = draw.normal("d_ff d_model") / draw.size("d_ff") ** 0.5
    norms = [draw.positive("d_model") for _ in range(4)]
    of_heads = draw.positive(str(d_head)), draw.positive(str(d_head))
    base = draw.one_of((100.0, 10000.0, 1e6, 500.0))
    block = GemmaBlock(
        norms[0], *matrices, *of_heads, *norms[1:3], *gates, W_down, norms[3],
        n_heads, n_kv_heads, base,
    )  # fmt: skip
    positions = draw.integers("n", 1, 5).cumsum(0) + draw.one_of((-1, 20, 0, 3))
    return 2 * draw.normal("batch n d_model") + 0.5, block, mask, positions


@exercise(
    reference="transformer_lesson.lessons.lesson_13.gemma_block:gemma_block",
    make_inputs=_gemma_inputs,
    draws=6,
    returns={"x": "batch n d_model"},
    hints=(
        "Begin with lesson 12's `llama_block`. What is added to x has passed two norms: one before "
        "its sub-layer, and one behind it.",
        "Queries and keys get a norm, too: each head's own numbers, once they are in heads, and "
        "before they are rotated. `block.norm_Q` has d_head numbers.",
        "`found = attend(rms_norm(x, block.before_1, 1e-6))`, then "
        "`x = x + rms_norm(found, block.behind_1, 1e-6)`; the same with `geglu`. In `attend`, "
        "`Q = rms_norm(Q, block.norm_Q, 1e-6)` stands between `split_heads` and `apply_rotary`.",
    ),
    invariants=(random_layers.is_deterministic,),
)
def gemma_block(x, block, mask, positions):
    """Return x after both sub-layers."""
    block = choose(block, gammas_plus_one=_plus_one(block))
    (before_1, behind_1), (before_2, behind_2) = choose(
        ((block.before_1, block.behind_1), (block.before_2, block.behind_2)),
        before_and_behind_exchanged=(
            (block.behind_1, block.before_1),
            (block.behind_2, block.before_2),
        ),
        sublayers_exchanged=((block.before_2, block.behind_2), (block.before_1, block.behind_1)),
    )
    read = choose(rms_norm(x, before_1, 1e-6), no_norms_before=x)
    between = _added(x, _gemma_found(read, block, mask, positions), behind_1)
    read = choose(
        rms_norm(between, before_2, 1e-6),
        no_norms_before=between,
        side_by_side=rms_norm(x, before_2, 1e-6),
    )
    gates = block.W_gate, block.W_up, block.W_down
    exchanged = block.W_up, block.W_gate, block.W_down
    written = choose(
        geglu(read, *gates),
        swish=swiglu(read, *gates),
        gate_and_up_exchanged=geglu(read, *exchanged),
    )
    return _added(between, written, behind_2)


def _plus_one(block):
    """Return a block with 1 added to all gammas."""
    names = ("before_1", "behind_1", "before_2", "behind_2", "norm_Q", "norm_K")
    return block._replace(**{name: getattr(block, name) + 1 for name in names})


def _added(x, output, behind):
    """Return x with what a sub-layer found."""
    return choose(
        x + rms_norm(output, behind, 1e-6),
        no_norms_behind=x + output,
        sum_normalized=rms_norm(x + output, behind, 1e-6),
        no_residuals=rms_norm(output, behind, 1e-6),
    )


def _gemma_found(read, block, mask, positions):
    """Return what attention finds."""
    n_heads, n_kv_heads = block.n_heads, block.n_kv_heads
    Q, K = split_heads(read @ block.W_Q, n_heads), split_heads(read @ block.W_K, n_kv_heads)
    V = split_heads(read @ block.W_V, n_kv_heads)
    Q, K, V = _normed_and_turned(Q, K, V, block, positions)
    groups = n_heads // n_kv_heads
    K, V = choose(
        (repeat_heads(K, groups), repeat_heads(V, groups)),
        keys_in_turns=(K.repeat(1, groups, 1, 1), V.repeat(1, groups, 1, 1)),
    )
    n = mask.size(-1)
    mask = choose(mask, mask_ignored=causal_mask(n), mask_inverted=~mask)
    heads, _ = scaled_dot_product_attention(Q, K, V, mask)
    sees_nothing = ~mask.any(-1, keepdim=True)
    heads = choose(heads, nothing_is_nan=heads.masked_fill(sees_nothing, torch.nan))
    return merge_heads(heads) @ block.W_O


def _normed_and_turned(Q, K, V, block, positions):
    """Return queries and keys with their norms and positions, and values."""
    places = choose(positions, counted_by_itself=torch.arange(len(positions)))
    base = choose(block.base, usual_base=10000.0)
    of_Q, of_K = choose(
        (block.norm_Q, block.norm_K),
        norms_of_heads_exchanged=(block.norm_K, block.norm_Q),
        one_norm_for_both=(block.norm_Q, block.norm_Q),
    )

    def norm(heads, gamma):
        return rms_norm(heads, gamma, 1e-6)

    def turn(heads):
        return rotated(heads, places, base)

    Q, K = choose(
        (turn(norm(Q, of_Q)), turn(norm(K, of_K))),
        norm_behind_rotation=(norm(turn(Q), of_Q), norm(turn(K), of_K)),
        no_norms_of_heads=(turn(Q), turn(K)),
        not_turned=(norm(Q, of_Q), norm(K, of_K)),
    )
    return Q, K, choose(V, values_turned=turn(V), values_normed=norm(V, of_K))
