"""Lesson 13: what today's models do in the places where the paper did something else.

Long because seven parts were exchanged, and each is an exercise with mistakes of its own.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_lesson.exercises import random_layers
from transformer_lesson.exercises.engine.choosing import choose
from transformer_lesson.exercises.engine.specification import Draw, breaks, exercise


def _rms_norm_inputs(draw: Draw) -> tuple:
    """A large epsilon shows where it is added, small tokens and a token of zeros that it is."""
    epsilon = draw.one_of((1e-5, 0.5, 1e-5, 1e-4, 1e-5, 0.0))
    if draw.number == 4:
        draw.sizes["n"] = 1
    draw.size("d_model", at_least=2)
    x = draw.normal("batch n d_model")
    if draw.number == 2:
        x = x.double().mT.contiguous().mT
    if draw.number in (3, 5):
        x = 0.01 * x
    if draw.number == 3:
        x[0, 0] = 0.0
    return x, draw.positive("d_model"), epsilon


@breaks("a mean square that is not 1")
def _mean_square_is_one(answer, inputs: tuple, result: Tensor) -> str | None:
    x, gamma, epsilon = inputs
    if epsilon > 1e-3 or (x * x).mean(dim=-1).min() < 0.01:
        return None
    square = ((result / gamma) ** 2).mean(dim=-1)
    wrong = (square - 1).abs()
    if wrong.max() < 0.02:
        return None
    return (
        "Before gamma, the mean of each token's squared numbers must be 1. "
        f"Yours reaches {square.flatten()[wrong.argmax()]:.4g}.\n"
        "Over which axis do you take the mean, and of what?"
    )


@exercise(
    reference="transformer_lesson.model.norm:rms_norm",
    make_inputs=_rms_norm_inputs,
    draws=6,
    returns={"normalized": "batch n d_model"},
    hints=(
        "LayerNorm without its mean and its beta. What is left to divide by is the root of "
        "the mean of the squares of each token's own numbers.",
        "`(x * x).mean(dim=-1, keepdim=True)` is the mean square, shape (batch, n, 1). "
        "Epsilon is added to it, inside the root.",
        "`x / (mean_square + epsilon).sqrt() * gamma`.",
    ),
    invariants=(_mean_square_is_one,),
)
def rms_norm(x, gamma, epsilon):
    """Return x / sqrt(mean(x^2) + epsilon) * gamma, token by token."""
    epsilon = choose(
        epsilon,
        library_default=torch.finfo(x.dtype).eps,
        next_to_nothing=1e-24,
        none_for_0=epsilon or 1e-5,
        squared_epsilon=epsilon**2,
    )
    distance = x - x.mean(-1, keepdim=True)
    size = _size(x, distance, epsilon)
    numbers = choose(x, mean_subtracted=distance)
    normalized = choose(numbers / size, multiplied=numbers * size)
    gamma = choose(gamma, no_gamma=1.0, one_plus_gamma=1 + gamma)
    return normalized * gamma


def _size(x, distance, epsilon):
    """Return the root mean square of each token's numbers."""
    squares = choose(x * x, deviation=distance**2, mean_subtracted=distance**2, absolute=x.abs())
    mean = choose(
        squares.mean(-1, keepdim=True),
        sum_of_squares=squares.sum(-1, keepdim=True),
        divided_outside_the_root=squares.sum(-1, keepdim=True),
        over_tokens=squares.mean(-2, keepdim=True),
        over_a_sentence=squares.mean((1, 2), keepdim=True),
        over_everything=squares.mean(),
        one_fewer=squares.sum(-1, keepdim=True) / (x.size(-1) - 1),
    )
    return choose(
        (mean + epsilon).sqrt(),
        epsilon_outside=mean.sqrt() + epsilon,
        divided_outside_the_root=(mean + epsilon).sqrt() / x.size(-1),
        no_root=mean + epsilon,
        absolute=mean + epsilon,
        epsilon_as_a_limit=mean.clamp(min=epsilon).sqrt(),
    )


def _swiglu_inputs(draw: Draw) -> tuple:
    single = draw.one_of(("", "n", "", "batch"))
    if single:
        draw.sizes[single] = 1
    x = draw.normal("batch n d_model")
    W_gate, W_up, W_down = map(draw.normal, ("d_model d_ff", "d_model d_ff", "d_ff d_model"))
    if draw.number == 2:
        return x.double(), W_gate.double(), W_up.double(), W_down.double()
    return 100 * x if draw.number == 3 else x, W_gate, W_up, W_down


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
    one = choose(
        first * cos - second * sin,
        other_direction=first * cos + second * sin,
        two_plus_signs=first * cos + second * sin,
    )
    other = choose(
        second * cos_2 + first * sin_2,
        other_direction=second * cos_2 - first * sin_2,
        with_the_new_first=second * cos_2 + one * sin_2,
    )
    return choose(
        torch.cat([one, other], dim=-1), neighbors=torch.stack([one, other], dim=-1).flatten(-2)
    )


@exercise(
    reference="transformer_lesson.model.feed_forward:swiglu",
    make_inputs=_swiglu_inputs,
    draws=4,
    returns={"output": "batch n d_model"},
    hints=(
        "Two maps widen x to d_ff, and their results are multiplied number by number. A third "
        "map narrows the product.",
        "Only the gate goes through swish, z * sigmoid(z), which PyTorch calls `F.silu`. The "
        "other stays linear.",
        "`gate = x @ W_gate`; the hidden layer is `gate * gate.sigmoid() * (x @ W_up)`.",
    ),
)
def swiglu(x, W_gate, W_up, W_down):
    """Return (swish(x W_gate) * x W_up) W_down."""
    W_gate, W_up = choose((W_gate, W_up), exchanged=(W_up, W_gate))
    gate = x @ W_gate
    up = choose(x @ W_up, gate_twice=gate)
    opened = choose(
        F.silu(gate),
        sigmoid=gate.sigmoid(),
        relu=gate.relu(),
        gelu=F.gelu(gate),
        no_activation=gate,
        hard_swish=F.hardswish(gate),
    )
    hidden = choose(opened * up, added=opened + up, over_the_product=F.silu(gate * up))
    output = hidden @ W_down
    return choose(
        output,
        residual=x + output,
        activated_again=F.silu(output),
        scaled=output / hidden.size(-1) ** 0.5,
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


def _repeat_inputs(draw: Draw) -> tuple:
    """One key head, one query head for each, one token, one sentence."""
    single = draw.one_of(("", "", "", "kv_head", "batch", "n"))
    if single:
        draw.sizes[single] = 1
    draw.size("kv_head", at_least=2)
    n_groups = draw.one_of((3, 2, 4, 3, 1, 5))
    draw.sizes["head"] = draw.size("kv_head") * n_groups
    x = draw.normal("batch kv_head n d_head")
    return x.mT.contiguous().mT if draw.number == 2 else x, n_groups


@exercise(
    reference="transformer_lesson.model.attention:repeat_kv",
    make_inputs=_repeat_inputs,
    draws=6,
    returns={"repeated": "batch head n d_head"},
    hints=(
        "Neighbors share: with 2 key heads and n_groups = 3, query heads 0, 1, 2 read key "
        "head 0, and 3, 4, 5 read key head 1.",
        "Heads are axis 1. `repeat` writes 0, 1, 0, 1; `repeat_interleave` writes 0, 0, 1, 1. "
        "Which is wanted?",
        "`x.repeat_interleave(n_groups, dim=1)`.",
    ),
)
def repeat_kv(x, n_groups):
    """Return each key head n_groups times, its copies side by side."""
    batch, kv_heads, n, d_head = x.shape
    repeated = choose(
        x.repeat_interleave(n_groups, dim=1),
        in_turns=x.repeat(1, n_groups, 1, 1),
        tokens_repeated=x.repeat_interleave(n_groups, dim=2),
        flat=x.repeat_interleave(n_groups),
    )
    return choose(repeated, divided=repeated / n_groups, last_head_first=repeated.flip(1))


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
    window = choose(window, one_token_fewer=window - 1)
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
    share = by_key / (heads * n)
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
    learning = W_router.clone().requires_grad_()
    for name, one in zip(("weights", "balance"), answer(x.clone(), learning, k), strict=True):
        if not one.requires_grad:
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
        "its k largest numbers as they are, and put 0 in the place of the others.",
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
    mean = choose(P.mean(0), mean_of_what_was_kept=kept.mean(0))
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
    written = _written(state, k, v)
    new = choose(
        state + written,
        mean=(state + written) / 2,
        fading=0.9 * state + written,
        multiplied=state * written,
        rows_of_length_1=F.normalize(state + written, dim=-1),
        squashed=(state + written).tanh(),
    )
    read = choose(new, read_before_writing=state, own_token_alone=written)
    output = _found(read, q)
    kept = choose(new, old_state_returned=state)
    return (output, kept)


def _written(state, k, v):
    """Return the new token's matrix."""
    return choose(torch.outer(k, v), difference_written=torch.outer(k, v - k @ state))


def _found(read, q):
    """Return what the q finds in a state."""
    output = q @ read
    return choose(output, scaled=output / q.size(-1) ** 0.5)
