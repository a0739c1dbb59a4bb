"""Lesson 10: a language model, how it writes, what size does for it, a fair unit for its loss.

Long because it is data: exercises whole, with their inputs and all their wrong turns.
"""

import math
from statistics import linear_regression

import torch

from transformer_lesson.exercises import random_layers
from transformer_lesson.exercises.engine.choosing import choose
from transformer_lesson.exercises.engine.specification import Draw, breaks, exercise
from transformer_lesson.exercises.random_layers import Table
from transformer_lesson.generation.plain import write_on as our_write_on
from transformer_lesson.model.attention import multi_head_attention
from transformer_lesson.model.embedding import embed
from transformer_lesson.model.feed_forward import feed_forward
from transformer_lesson.model.masks import causal_mask
from transformer_lesson.model.norm import layer_norm
from transformer_lesson.model.positions import sinusoidal_encoding


def _gpt_inputs(draw: Draw) -> tuple:
    """One text, one token, one block."""
    draw.sizes |= ({}, {}, {"batch": 1}, {}, {"n": 1}, {})[draw.number]
    weights = random_layers.gpt_weights(draw)
    return draw.integers("batch n", 0, len(weights.table)), weights


@exercise(
    reference="transformer_lesson.model.gpt:gpt_forward",
    helpers=("transformer_lesson.model.gpt:_gpt_layer",),
    make_inputs=_gpt_inputs,
    draws=6,
    returns={"logits": "batch n vocab_size"},
    hints=(
        "Begin as in `encoder_forward`, with embeddings plus positions. The mask is the causal "
        "one, and every block gets it.",
        "Each block has two pre-norm branches. `residual_branch_pre(x, sublayer, norm)` takes "
        "functions of one argument, such as `lambda h: layer_norm(h, *block.norms[0], 1e-5)`.",
        "After the last block comes `layer_norm(x, *weights.last_norm, 1e-5)`, and then "
        "`@ weights.projection`.",
    ),
    invariants=(random_layers.is_deterministic,),
)
def gpt_forward(ids, weights):
    """Return logits: pre-norm blocks under a causal mask, a last norm, the projection."""
    n = ids.size(1)
    causal = causal_mask(n)
    mask = choose(causal, no_mask=None, inverted_mask=~causal, own_hidden=causal.tril(-1))
    PE = sinusoidal_encoding(n, weights.table.size(1))
    x = _placed(ids, weights.table, PE)
    stack = choose(
        weights.blocks,
        first_block_only=weights.blocks[:1],
        last_block_only=weights.blocks[-1:],
        last_block_each_time=weights.blocks[-1:] * len(weights.blocks),
    )
    n_heads = choose(weights.n_heads, single_head=1)
    for block in stack:
        x = _through(x, block, n_heads, mask)
    normed = choose(layer_norm(x, *weights.last_norm, 1e-5), no_last_norm=x)
    logits = choose(
        normed @ weights.projection, tied=normed @ weights.table.T, no_projection=normed
    )
    return choose(logits, probabilities=logits.softmax(-1))


def _placed(ids, table, PE):
    """Return embeddings plus positions."""
    x = embed(ids, table)
    x = choose(x, not_scaled=table[ids], scaled_twice=x * math.sqrt(table.size(1)))
    return choose(x + PE, no_positions=x)


def _through(x, block, n_heads, mask):
    """Return what a block makes of x."""
    norms = choose(block.norms, one_norm=block.norms[:1] * 2, norms_exchanged=block.norms[::-1])
    factors = choose(
        (1, 1), no_first_residual=(0, 1), no_second_residual=(1, 0), residual_twice=(2, 2)
    )
    read = choose(layer_norm(x, *norms[0], 1e-5), no_norms=x, post_norm=x)
    output = multi_head_attention(read, *block.self_attention, n_heads, mask)
    carried = choose(x, read_kept=read)
    N = factors[0] * carried + output
    N = choose(N, post_norm=layer_norm(N, *norms[0], 1e-5))
    read = choose(layer_norm(N, *norms[1], 1e-5), no_norms=N, post_norm=N)
    written = feed_forward(read, *block.feed_forward)
    carried = choose(N, read_kept=read)
    total = factors[1] * carried + written
    return choose(total, post_norm=layer_norm(total, *norms[1], 1e-5))


def _write_inputs(draw: Draw) -> tuple:
    """Prompts shorter and longer than what is read; no number close to a border."""
    if not draw.small:
        draw.sizes |= {"row": 7, "vocab_size": 11}
    draw.size("vocab_size", at_least=3)
    table = Table(2 * draw.normal("row vocab_size"))
    prompt, length = draw.one_of(((2, 3), (4, 2), (1, 4), (3, 1), (5, 5), (2, 3)))
    n_new = draw.one_of((5, 4, 6, 3, 2, 6))
    if draw.small:
        prompt, n_new = min(prompt, 2), min(n_new, 2)
    temperature = draw.one_of((0.7, 2.0, 1.0, 0.5, 1.5, 0.8))
    ids = draw.integers(f"{prompt}", 0, draw.size("vocab_size")).tolist()
    draws, written = [], ids
    for _ in range(n_new):
        P = (table(written[-length:]) / temperature).softmax(dim=-1)
        tried = (torch.rand((50,), generator=draw.generator) * 0.98).round(decimals=2)
        distance = (tried[:, None] - P.cumsum(-1)).abs().amin(dim=1)
        draws.append(round(float(tried[distance > min(0.005, float(distance.max()) / 2)][0]), 2))
        written = our_write_on(table, written, draws[-1:], length, temperature)
    return table, ids, draws, length, temperature


@breaks("another text at each call")
def _draws_decide(answer, inputs: tuple, ids: list) -> str | None:
    other_ids = answer(*inputs)
    if other_ids == ids:
        return None
    return (
        f"Called twice with the same arguments, yours writes {ids} and then {other_ids}.\n"
        "All chance is in `draws`: one of its numbers decides each token. What else is random?"
    )


@exercise(
    reference="transformer_lesson.generation.plain:write_on",
    make_inputs=_write_inputs,
    draws=6,
    returns={"ids": "token"},
    hints=(
        "Do one round for each number in draws: ask for logits, divide by the temperature, take "
        "the softmax, choose a token and append it to a copy of ids.",
        "`P.cumsum(dim=-1)` says where on the line from 0 to 1 each token's part ends. The number "
        "hits the first part that ends beyond it.",
        "`token = int((P.cumsum(dim=-1) <= draw).sum())`. The model reads `ids[-length:]`.",
    ),
    invariants=(_draws_decide,),
)
def write_on(next_logits, ids, draws, length, temperature=1.0):
    """Append one token for each draw: the one on whose part of the line it falls."""
    prompt, n = ids, len(ids)
    ids = choose(list(ids), in_place=ids)
    numbers = choose(list(draws), one_number_for_all=[draws[0]] * len(draws))
    for draw in numbers:
        logits = next_logits(
            choose(
                ids[-length:],
                oldest_tokens=ids[:length],
                prompt_only=prompt[-length:],
                whole_text=ids,
                one_too_few=ids[1 - length :],
            )
        )
        scaled = choose(
            logits / temperature,
            no_temperature=logits,
            multiplied=logits * temperature,
            divided_too_late=logits,
        )
        P = choose(scaled.softmax(-1), divided_too_late=scaled.softmax(-1) / temperature)
        ranked, order = P.sort(descending=True)
        hit = _hit(choose(P, likeliest_first=ranked, sorted_line=ranked), draw)
        ids.append(choose(hit, sorted_line=int(order[hit])))
    return choose(ids, new_ones_alone=ids[n:])


def _hit(P, draw):
    return choose(
        min(int((P.cumsum(-1) <= draw).sum()), len(P) - 1),
        int((P.cumsum(-1) <= draw).sum()),
        one_before=max(int((P.cumsum(-1) <= draw).sum()) - 1, 0),
        greedy=int(P.argmax()),
        even_chances=int(draw * len(P)),
        nearest=int((P - draw).abs().argmin()),
    )


def _fit_inputs(draw: Draw) -> tuple:
    """Three runs and more, in no order, and one floor or several.

    In each draw another judge than the squares of the distances takes another floor. In the last
    one, whose losses are larger, no floor is best, and a worse floor comes before it.
    """
    n_runs = 3 if draw.small else draw.one_of((5, 3, 4, 3, 4, 3, 5, 4))
    n_floors = draw.one_of((1, 3, 4, 3, 4, 3, 4, 4))
    none_is_best = draw.number == 7
    for _ in range(500):
        numbers = torch.rand((2 * n_runs + n_floors + 2,), generator=draw.generator).tolist()
        sizes = [round(1000 * 300 ** numbers.pop()) for _ in range(n_runs)]
        b, top = 0.1 + 0.4 * numbers.pop(), 1 + 3 * numbers.pop()
        least, top = (0, 10 * top) if none_is_best else (1, top)
        losses = [
            round(least + top * (size / 1000) ** -b * (0.85 + 0.3 * numbers.pop()), 2)
            for size in sizes
        ]
        floors = [round((min(losses) - 0.1) * number, 2) for number in numbers]
        floors[2:3] = [0.0] if none_is_best else floors[2:3]
        apart = min(abs(m / n - 1) for i, m in enumerate(sizes) for n in sizes[:i]) > 0.2
        judged = [_judged(sizes, losses, floor) for floor in floors]
        telling = _none_wins(judged) if none_is_best else _judges_differ(judged, draw.number % 7)
        if apart and (n_floors == 1 or telling):
            break
    return sizes, losses, floors


LARGEST = 4  # of the judges


def _judged(sizes, losses, floor) -> tuple:
    """Return what each judge of curves gives a floor's, the squares of the distances first."""
    x, logs = list(map(math.log, sizes)), [math.log(loss - floor) for loss in losses]
    line = linear_regression(x, logs)
    fitted = [line.intercept + line.slope * place for place in x]
    apart = [floor + math.exp(y) - loss for y, loss in zip(fitted, losses, strict=True)]
    in_logs = [y - log for y, log in zip(fitted, logs, strict=True)]
    squares, relative = (
        sum(d**2 for d in apart),
        sum((d / loss) ** 2 for d, loss in zip(apart, losses, strict=True)),
    )
    absolute, signed, largest = sum(map(abs, apart)), abs(sum(apart)), max(map(abs, apart))
    squares_of_logs = sum(d**2 for d in in_logs)
    return squares, squares_of_logs, absolute, relative, largest, signed, abs(apart[-1])


def _none_wins(judged: list[tuple]) -> bool:
    """Return whether of four floors the third is best, by far, then the last, then the first."""
    squares = [distances[0] for distances in judged]
    order = [squares[i] for i in (2, 3, 0, 1)]
    return order[0] > 1 and all(
        1.05 * lower < higher for lower, higher in zip(order, order[1:], strict=False)
    )


def _judges_differ(judged: list[tuple], which: int) -> bool:
    """Return whether a judge of curves, by number, takes another floor than the squares do."""
    if len(judged) == 1:
        return False
    first, second = sorted(distances[0] for distances in judged)[:2]
    picks = [min(range(len(judged)), key=lambda i: judged[i][k]) for k in range(7)]
    alike = which != LARGEST and picks[which] == picks[LARGEST]
    return picks[0] != picks[which] and not alike and second > 1.05 * first


@exercise(
    reference="transformer_lesson.training.scaling:fit_power_law",
    make_inputs=_fit_inputs,
    draws=8,
    returns={"floor": "", "a": "", "b": ""},
    hints=(
        "For each floor, fit a straight line to log(loss - floor) against log(size). What do the "
        "line's slope and intercept say about a and b?",
        "log(loss - floor) = log(a) - b * log(size), so a is `math.exp(line.intercept)` and b is "
        "`-line.slope`. Judge each curve by its distances from the losses themselves.",
        "For each floor, append `(sum of (floor + a * n**-b - loss) ** 2, floor, a, b)` to a list "
        "of fits. Then `min(fits)[1:]` is the result.",
    ),
)
def fit_power_law(sizes, losses, floors):
    """Return floor, a and b of loss = floor + a * size ** -b, with the floor that fits best."""
    fits = []
    sizes, losses = choose(
        (sizes, losses),
        sizes_sorted=(sorted(sizes), losses),
        each_list_sorted=(sorted(sizes), sorted(losses, reverse=True)),
    )
    for floor in choose(
        floors, floors_ignored=[0.0], zero_left_out=[floor for floor in floors if floor]
    ):
        x, y = _in_logarithms(sizes, losses, floor)
        slope, intercept = choose(
            linear_regression(x, y),
            axes_exchanged=linear_regression(y, x),
            two_runs_only=_line(x, y),
            through_the_origin=linear_regression(x, y, proportional=True),
        )
        a = choose(math.exp(intercept), log_of_a=intercept)
        b = -slope
        curve = [floor + a * size**-b for size in sizes]
        apart = [value - loss for value, loss in zip(curve, losses, strict=True)]
        apart = choose(apart, [-distance for distance in apart])
        in_logs = [intercept + slope * place - log for place, log in zip(x, y, strict=True)]
        error = _error(apart, in_logs)
        fits.append((error, floor, a, b))
    _, floor, a, b = _best(fits)
    return _law(floor, a, b)


def _best(fits):
    """Return the fit that is taken: how badly it fits, and its three numbers."""
    return choose(min(fits), first_floor=fits[0])


def _law(floor, a, b):
    """Return the curve as the function's result."""
    return (floor, a, b)


def _error(apart, in_logs):
    """Return how badly a curve fits."""
    return choose(sum(d**2 for d in apart), judged_in_logs=sum(d**2 for d in in_logs))


def _in_logarithms(sizes, losses, floor):
    """Return the places and the heights through which the straight line goes."""
    log = math.log
    x = list(map(log, sizes))
    y = [log(loss - floor) for loss in losses]
    return x, y


def _line(x, y):
    """Return slope and intercept of the line through the first run and the last."""
    slope = (y[-1] - y[0]) / (x[-1] - x[0])
    return slope, y[0] - slope * x[0]


def _bits_inputs(draw: Draw) -> tuple:
    """Tokens of several characters, characters of several tokens, one token, no loss at all."""
    if draw.number == 7:
        return 2.5, 1, 5
    n_tokens = int(draw.integers("", 3, 9 if draw.small else 400))
    n_characters = draw.one_of((2, 3, 4, 1, 1, 0, 2)) * n_tokens
    n_characters += draw.one_of((1, 2, 3, 4, 0, n_tokens // 2, 0))
    return (0.0 if draw.number == 6 else 0.5 + draw.number), n_tokens, n_characters


@breaks("bits that depend on the cut into tokens")
def _cut_does_not_matter(answer, inputs: tuple, bits: float) -> str | None:
    loss, n_tokens, n_characters = inputs
    halved = float(answer(loss / 2, 2 * n_tokens, n_characters))
    if math.isclose(halved, float(bits), rel_tol=1e-4):
        return None
    return (
        "Cut every token into two that cost half as much: the text and its total loss are the "
        f"same, so the bits per character must be too. Yours go from {bits:.4g} to {halved:.4g}.\n"
        "What is the loss of all tokens together, and how many characters share it?"
    )


@breaks("fewer bits than none")
def _is_never_negative(answer, inputs: tuple, bits: float) -> str | None:
    if bits >= 0:
        return None
    return (
        f"A text cannot cost less than nothing, and yours costs {bits:.4g} bits per character.\n"
        "The loss has its minus sign already: it is -ln of a probability."
    )


@exercise(
    reference="transformer_lesson.training.loss:bits_per_character",
    make_inputs=_bits_inputs,
    draws=8,
    returns={"bits": ""},
    hints=(
        "How many nats does the whole text cost? A token costs `loss_in_nats` on average.",
        "A nat is 1 / ln 2 = 1.44 bits, so the same loss is a larger number in bits than in nats.",
        "Share the total in bits among the characters: `loss_in_nats / math.log(2) * "
        "n_tokens / n_characters`.",
    ),
    invariants=(_is_never_negative, _cut_does_not_matter),
)
def bits_per_character(loss_in_nats, n_tokens, n_characters):
    """Return the bits of all tokens, shared out among their characters."""
    n_tokens = choose(n_tokens, one_token_fewer=n_tokens - 1)
    bits_per_token = _in_bits(loss_in_nats)
    total = bits_per_token * n_tokens
    bits = choose(
        total / n_characters,
        per_token=bits_per_token,
        whole_tokens_per_character=bits_per_token * (n_tokens // n_characters),
    )
    bits = choose(bits, in_bytes=bits / 8)
    return choose(bits, perplexity=2**bits, two_decimals=round(bits, 2))


def _in_bits(loss_in_nats):
    """Return a token's cost in bits."""
    cost = choose(loss_in_nats, logarithm_of_loss=loss_in_nats)
    return choose(
        cost / math.log(2),
        nats=cost,
        times_ln_2=cost * math.log(2),
        logarithm_of_2_to_base_10=cost / math.log10(2),
        factor_of_1_44=cost * 1.44,
        ln_2_added=cost + math.log(2),
        logarithm_of_loss=math.log2(cost),
        fails_at_0=math.exp(math.log(cost) - math.log(math.log(2))),
    )
