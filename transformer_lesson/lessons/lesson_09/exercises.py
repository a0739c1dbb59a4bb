"""Lesson 09: choosing the next token, keeping to a form, searching with beams, a cache.

Long because it is data: exercises whole, with their inputs and all their wrong turns.
"""

import math
import re

import torch
from torch import Tensor

from transformer_lesson.exercises.engine.choosing import choose
from transformer_lesson.exercises.engine.specification import Draw, breaks, exercise
from transformer_lesson.exercises.random_layers import Table
from transformer_lesson.generation import constrained


class Ending(Table):
    """A `Table` whose likeliest token is `<eos>` from some length on, but not twice running."""

    def __init__(self, table: Tensor, eos_id: int, tokens: int):
        super().__init__(table)
        self.eos_id, self.tokens = eos_id, tokens

    def __call__(self, ids: list) -> Tensor:
        """Return logits, shape (vocab_size,)."""
        logits = super().__call__(ids)
        ends = len(ids) >= self.tokens and ids[-1] != self.eos_id
        logits[self.eos_id] = logits.max() + (1.0 if ends else -1.0)
        return logits

    def __repr__(self) -> str:
        return f"{super().__repr__()}, <eos> likeliest from {self.tokens} ids on, not twice running"


SPECIAL_IDS = ((1, 2), (3, 0), (0, 4))
"""Of `<bos>` and `<eos>`: the first and the last of the smallest vocabulary among them."""


def _greedy_inputs(draw: Draw) -> tuple:
    """Texts that end early, that max_len cuts off, at `<eos>` or before it, and that are short."""
    tokens, max_len = draw.one_of(((5, 7), (6, 6), (4, 5), (3, 1), (1, 6), (3, 2)))
    bos_id, eos_id = SPECIAL_IDS[(draw.number + 1) % 3]
    if draw.small and max_len > 2:
        tokens, max_len = min(tokens, 2), max_len - tokens + min(tokens, 2)
    elif not draw.small:
        draw.sizes |= {"row": 7, "vocab_size": 11}
    if draw.number == 4 and not draw.small:
        draw.sizes["vocab_size"], eos_id = 400, 399  # Python keeps one int of each up to 256
    draw.size("vocab_size", at_least=5)
    table = draw.normal("row vocab_size")
    table[:, bos_id] += 1
    if draw.number == 2:
        table = 100 * table + 500  # the exponentials are infinite
    return Ending(table, eos_id, tokens), bos_id, eos_id, max_len


@breaks("another text at each call")
def _same_text_again(answer, inputs: tuple, ids: list) -> str | None:
    again = answer(*inputs)
    if again == ids:
        return None
    return (
        f"Called twice with the same arguments, yours writes {ids} and then {again}.\n"
        "Greedy takes the likeliest token every time and leaves nothing to chance."
    )


@breaks("a list that does not go from <bos> to <eos>")
def _bos_first_eos_last(answer, inputs: tuple, ids: list, *score) -> str | None:
    _, bos_id, eos_id, *_, max_len = inputs
    if ids[:1] != [bos_id]:
        return f"The list must start with `<bos>`, id {bos_id}. Yours is {ids}."
    if eos_id in ids[:-1]:
        return (
            f"Nothing comes after `<eos>`, id {eos_id}. Yours goes on: {ids}.\n"
            "Where does your loop look at the token that it has appended?"
        )
    if len(ids) > max_len:
        return (
            f"With max_len = {max_len} the list has at most {max_len} ids, `<bos>` included. "
            f"Yours has {len(ids)}."
        )
    return None


@exercise(
    reference="transformer_lesson.generation.plain:greedy_decode",
    make_inputs=_greedy_inputs,
    draws=6,
    returns={"ids": "token"},
    hints=(
        "Start with `ids = [bos_id]`. Each round asks what follows **all** of ids, and appends "
        "the best token.",
        "Two things end the loop: you have appended `<eos>`, or the list holds max_len tokens. "
        "`<bos>` and `<eos>` both count, and both stay in the list.",
        "`while len(ids) < max_len:` append `int(next_logits(ids).argmax())`, then `break` "
        "if `ids[-1] == eos_id`.",
    ),
    invariants=(_same_text_again, _bos_first_eos_last),
)
def greedy_decode(next_logits, bos_id, eos_id, max_len):
    """Append the likeliest next token until it is `<eos>` or there are max_len tokens."""
    most = choose(max_len, one_too_many=max_len + 1, at_least_2=max(max_len, 2))
    ids = [bos_id]
    while len(ids) < most:
        logits = next_logits(choose(ids, last_only=ids[-1:], one_behind=ids[:-1] or ids))
        token = choose(
            logits.argmax().item(),
            overflow=logits.exp().argmax().item(),
            no_repeats=logits.index_fill(0, torch.tensor(ids), -math.inf).argmax().item(),
            no_bos=logits.index_fill(0, torch.tensor(bos_id), -math.inf).argmax().item(),
            least=logits.argmin().item(),
        )
        ids = ids + [token]
        if choose(ids[-1] == eos_id, id_0_ignored=eos_id and ids[-1] == eos_id, never=False):
            break
    return _written(ids, eos_id, max_len)


def _written(ids, eos_id, max_len):
    """Return the finished list."""
    ended = ids[-1] == eos_id
    ids = choose(
        ids,
        without_eos=ids[:-1] if ended else ids,
        filled_up=ids + [eos_id] * (max_len - len(ids)),
        eos_added=ids if ended else [*ids, eos_id],
    )
    return choose(ids, without_bos=ids[1:])


def _top_k_inputs(draw: Draw) -> tuple:
    """One token, some, all but one, all, more than there are; equals, but none at the border."""
    if draw.number in (2, 4):
        draw.sizes["batch"] = 1
    draw.size("batch")
    n = draw.size("vocab_size", at_least=5 if draw.number == 5 else 2)
    logits = draw.normal("batch vocab_size")
    if draw.number == 5:
        ranked = logits.sort(dim=-1, descending=True)
        ranked.values[:, 1], ranked.values[:, -2] = ranked.values[:, 0], ranked.values[:, -1]
        logits = torch.zeros_like(logits).scatter(-1, ranked.indices, ranked.values)
        logits = logits.double().T.contiguous().T
    return logits, draw.one_of(((n + 1) // 2, 1, n - 1, n, n + 3, 3))


@breaks("another number of tokens kept than k")
def _k_stay(answer, inputs: tuple, filtered: Tensor) -> str | None:
    logits, k = inputs
    left, wanted = filtered.isfinite().sum(dim=-1), min(k, logits.size(-1))
    if (left == wanted).all():
        return None
    return (
        f"With k = {k} each row of {logits.size(-1)} logits keeps {wanted}, the others become "
        f"-inf. One of yours keeps {left[left != wanted][0]}.\n"
        "Are the others -inf, not 0? Does each row of the batch get its own k?"
    )


def _filtered(logits, keep):
    """Return the logits, minus infinity where they are not kept."""
    keep = choose(
        keep, first_row=keep[:1].expand(keep.shape), every_row=keep.all(0).expand(keep.shape)
    )
    rest = choose(
        -math.inf,
        zero=0.0,
        minus_1e9=-1e9,
        lowest_number=torch.finfo(logits.dtype).min,
        minus_1e4=-1e4,
    )
    filtered = choose(torch.where(keep, logits, rest), in_place=logits.masked_fill_(~keep, rest))
    return choose(
        filtered,
        probabilities=filtered.softmax(-1),
        stays_sorted=filtered.sort(dim=-1, descending=True).values,
    )


@exercise(
    reference="transformer_lesson.generation.strategies:top_k_filter",
    make_inputs=_top_k_inputs,
    draws=6,
    returns={"filtered": "batch vocab_size"},
    hints=(
        "Softmax turns minus infinity into 0, and a logit of 0 into something else. The k best "
        "logits keep their values and their places.",
        "`logits.topk(k, dim=-1)` gives the k best of each row as `.values` and `.indices`. "
        "It fails if k is larger than the row.",
        "Fill a tensor with `-math.inf` (`torch.full_like`), then write the best back: "
        "`.scatter(-1, best.indices, best.values)`.",
    ),
    invariants=(_k_stay,),
)
def top_k_filter(logits, k):
    """Keep the k highest logits of each row and set the others to -inf."""
    vocab_size = logits.size(-1)
    k = choose(k, one_too_few=min(k, vocab_size) - 1, border_out=k - 1 if k < vocab_size else k)
    n_kept = choose(min(k, vocab_size), no_limit=k)
    best = choose(logits.topk(n_kept), lowest=logits.topk(n_kept, largest=False))
    keep = torch.zeros_like(logits).bool().scatter(-1, best.indices, True)
    keep = choose(
        keep,
        whole_batch=logits >= logits.flatten().topk(min(k, logits.numel())).values[-1],
        places_as_ranks=logits.argsort(descending=True) < k,
        lowest_border=logits >= logits.sort().values[:, n_kept - 1, None],
    )
    return _filtered(logits, keep)


def _top_p_inputs(draw: Draw) -> tuple:
    """One token, most, all; equals, but none at the border; logits of 100; no sum close to p."""
    if draw.number in (2, 5):
        draw.sizes["batch"] = draw.number // 2
    draw.size("batch")
    draw.size("vocab_size", at_least=5)
    logits = draw.one_of((2, 0.1, 2, 2, 100, 2)) * draw.normal("batch vocab_size")
    if draw.number == 5:  # two best and two worst alike
        logits = logits.sort(dim=-1, descending=True).values
        logits[:, 1], logits[:, -2:] = logits[:, 0], logits[:, -1:] - 5
        logits = logits.double().roll(2, 1).T.contiguous().T
    return logits, draw.one_of((0.7, 0.97, 0.05, 0.5, 0.6, 0.8))


@breaks("too many or too few tokens kept")
def _just_enough_stay(answer, inputs: tuple, filtered: Tensor) -> str | None:
    logits, p = inputs
    probabilities = logits.softmax(dim=-1).masked_fill(~filtered.isfinite(), 0.0)
    sums = probabilities.sum(dim=-1)
    if (sums < p - 1e-4).any():
        return (
            f"The kept tokens of a row must hold p = {p} or more together. One of yours holds "
            f"{sums.min():.3g}.\nDoes the token that crosses p stay?"
        )
    least = probabilities.masked_fill(~filtered.isfinite(), math.inf).amin(dim=-1)
    if (sums - least >= p + 1e-4).any():
        return (
            f"The kept tokens of a row still hold p = {p} when the least likely of them leaves, "
            "so it must leave.\nDo you go from the likeliest down, and are the others -inf?"
        )
    return None


@exercise(
    reference="transformer_lesson.generation.strategies:top_p_filter",
    make_inputs=_top_p_inputs,
    draws=6,
    returns={"filtered": "batch vocab_size"},
    hints=(
        "Sort each row from the likeliest token down, take probabilities with softmax, and "
        "add them up with `cumsum`.",
        "A token stays if all the likelier ones **before** it add up to less than p. So the one "
        "that crosses p stays, and the first one always does.",
        "`before = probabilities.cumsum(dim=-1) - probabilities`; where `before >= p` the "
        "sorted logits become `-math.inf`; `scatter` them back to the indices of the sort.",
    ),
    invariants=(_just_enough_stay,),
)
def top_p_filter(logits, p):
    """Keep each row's fewest tokens whose probabilities add up to p; set the others to -inf."""
    p = choose(p, rest_of_p=1 - p)
    ids = torch.arange(logits.size(-1)).expand(logits.shape)
    sorting = choose(logits, batch_shares_sorted=logits.softmax(0))
    ranked, order = choose(
        sorting.sort(dim=-1, descending=True),
        least_first=logits.sort(dim=-1),
        unsorted=(logits, ids),
    )
    shares = _shares(ranked, logits)
    sums = shares.cumsum(-1)
    before = sums - shares
    kept = choose(
        before < p,
        crossing_dropped=sums < p,
        share_of_the_best=shares >= p * shares.amax(-1, keepdim=True),
        first_may_leave=(before < p) & (shares[:, :1] < p),
        row_0_kept=(before < p) & (shares[:, :1] < p) | (torch.arange(len(logits)) == 0)[:, None],
        share_of_tokens=ids < math.ceil(p * logits.size(-1)),
        two_at_least=(before < p) | (ids < 2),
    )
    keep = choose(torch.zeros_like(kept).scatter(-1, order, kept), sorted_marks=kept)
    return _filtered(logits, keep)


def _shares(ranked, logits):
    """Return the probabilities of the tokens in their new order."""
    return choose(ranked.softmax(-1), logits_summed=ranked, batch_shares_sorted=ranked)


WRITTEN = (
    "",
    '{"word": "',
    '{"word": "Fe',
    '{"word": "Tür", "gender": "',
    '{"word": "Hund", "gender": "m',
    '{"word": "Tür", "gender": "f"}',
    '{"wor',
    '{"',
    '{"word',
    '{"word":',
    '{"word": "gender',
    '{"word": "Ei",',
    '{"word": "Ei", "',
    '{"word": "n", "gender": "n"',
    '{"word": "Ei", ',
)
"""Draw by draw: a record that has begun, in each of its parts, and one that is whole."""

START = '{"word": "'

TOKENS = (
    *("{", '{"', '{"word": "K', "word", "d", 'd": "', '"', '": "', ': "', " ", "Ka", "ind", "ür"),
    *(
        "ende",
        '", "',
        '",',
        'er", "g',
        '"}',
        "}",
        "m",
        "n",
        'm"}',
        'f"',
        'M"',
        "mf",
        "7",
        "\n",
        '"}\n',
    ),
    *("gender", 'gender": "', 'n", "gender": "n"}', '""', "'", "x y", "-", "é"),
)


def _form_inputs(draw: Draw) -> tuple:
    """Tokens of one character and of several, legal ones and others, in any order."""
    order = torch.randperm(len(TOKENS), generator=draw.generator).tolist()
    if draw.small:
        first = sum(3**i * size for i, size in enumerate(draw.small))
        order = (order + order)[first : first + 3]
    draw.sizes["token"] = len(order)
    return draw.one_of(WRITTEN), [TOKENS[i] for i in order]


@breaks("a token judged wrongly")
def _each_token_is_judged(answer, inputs: tuple, legal: Tensor) -> str | None:
    written, tokens = inputs
    ours = constrained.legal_next(written, tokens).tolist()
    for token, right, yours in zip(tokens, ours, legal.tolist(), strict=True):
        if right != yours:
            can = "can still become" if right else "can no longer become"
            return (
                f"With the token {token!r} the text is {written + token!r}, which {can} a record, "
                f"so it must be {right}."
            )
    return None


@exercise(
    reference="transformer_lesson.generation.constrained:legal_next",
    make_inputs=_form_inputs,
    draws=len(WRITTEN),
    returns={"legal": "token"},
    hints=(
        "Don't make a list of what may follow. Ask the same question about every token: can "
        "`written + token` still become a record?",
        "Once you know the word there are only three whole records, one for each gender. The word "
        """is what stands behind `{"word": "`, up to the next quotation mark.""",
        "`any(record.startswith(written + token) for record in records)`. If no word has begun, "
        "put any letter in its place. And the word must pass `isalpha()`.",
    ),
    invariants=(_each_token_is_judged,),
)
def legal_next(written, tokens):
    """Return with which of the tokens the text can still become a record."""
    judged, written = [], choose(written, stripped=written.strip())
    for token in tokens:
        part = choose(token, first_character=token[0])
        text = choose(written + part, token_alone=part)
        legal = False
        for end in choose([text], searched=[text[first:] for first in range(len(text))]):
            legal |= _can_become_a_record(part, end, _records(_word(end)))
        judged.append(legal)
    legal = torch.tensor(judged)
    return choose(legal, numbers=legal.long())


def _word(text):
    """Return the word that the text has begun, or, where it has not, any word."""
    letters = choose(
        r"[^\W\d_]*",
        ascii_letters="[A-Za-z]*",
        digits_too=r"\w*",
        german_letters="[A-Za-zÄÖÜäöüß]*",
    )
    return re.match(letters, text[len(START) :])[0] or "A"


def _records(word):
    """Return all records with this word."""
    records = [f'{START}{word}", "gender": "{gender}"}}' for gender in "mfn"]
    return choose(records, gender_optional=[*records, f'{START}{word}"}}'])


def _can_become_a_record(token, text, records):
    """Return whether one of the records begins with the text."""
    legal = any(record.startswith(text) for record in records)
    return choose(legal, one_character=legal and len(token) == 1)


BEAMS = (
    (279, 2, 4, 0.0),
    (1753, 2, 4, 0.0),
    (331, 2, 5, 0.5),
    (33, 1, 6, 2.0),
    (50, 3, 6, 0.5),
    (95, 3, 6, 0.5),
    (157763, 2, 4, 1.0),  # a beam that is always full finds another text
    (0, 8, 4, 0.0),  # wider than the vocabulary
    (0, 3, 1, 0.0),
    (1, 2, 2, -9.0),  # none finishes
    (2, 3, 5, -9.0),
)
"""Models in which every way of searching finds something else: the seed of each, width, max_len,
and how easily a text finishes."""


def _beam_inputs(draw: Draw) -> tuple:
    """A model with at least as many rows as tokens: else two orders of the same tokens tie."""
    seed, width, max_len, ease = draw.one_of(BEAMS)
    bos_id, eos_id = SPECIAL_IDS[seed % 3]
    shape, of_seed = (11, 5), torch.Generator().manual_seed(seed)
    if draw.small:
        bos_id, eos_id, shape = 1, 2, (3, 3)
        width, max_len = min(width, draw.small[1]), min(max_len, 1 + draw.small[-1])
    draw.sizes |= zip(("row", "vocab_size"), shape, strict=True)
    table = 2 * torch.randn(shape, generator=of_seed)
    table = table.round(decimals=1) if draw.small else table + 0.03 * draw.normal("row vocab_size")
    table[:, eos_id] += ease
    return Table(table, normalized=True), bos_id, eos_id, width, max_len


@breaks("a score that its ids do not have")
def _score_is_normalized(answer, inputs: tuple, ids: list, score: float) -> str | None:
    model, length = inputs[0], len(ids) - 1
    if not 1 < length or not all(0 <= i < model.table.size(1) for i in ids):
        return None
    total = sum(model(ids[:i])[ids[i]].item() for i in range(1, len(ids)))
    wanted = total / ((5 + length) / 6) ** 0.6
    if math.isclose(score, wanted, rel_tol=1e-3):
        return None
    if math.isclose(score, total, rel_tol=1e-4):
        return (
            f"Your score {score:.4g} is the plain sum of {length} log-probabilities. Sums favor "
            "short texts.\nDivide by ((5 + n) / 6) ** 0.6 before you compare; n counts all tokens "
            "but <bos>."
        )
    return (
        f"The log-probabilities of your ids {ids} sum to {total:.4g}. With n = {length} that makes "
        f"a score of {wanted:.4g}; yours is {score:.4g}."
    )


@exercise(
    reference="transformer_lesson.generation.plain:beam_search",
    make_inputs=_beam_inputs,
    draws=len(BEAMS),
    returns={"ids": "token", "score": ""},
    hints=(
        "A hypothesis is a pair (ids, total). Each step makes one list of all extensions of "
        "all running hypotheses and keeps the `width` best by total.",
        "Of those you keep, the ones that end in `<eos>` move to a second list, and the others run "
        "on. Stop when none is running, or when they have max_len tokens.",
        "At the end divide each finished total by `((5 + n) / 6) ** 0.6` with "
        "`n = len(ids) - 1`, and return the best. If none is finished, use the running ones.",
    ),
    helpers=("transformer_lesson.generation.strategies:length_normalized",),
    invariants=(_score_is_normalized, _bos_first_eos_last),
)
def beam_search(next_log_probs, bos_id, eos_id, width, max_len):
    """Return the likeliest text found with `width` hypotheses kept at every step, and its score."""
    most = choose(max_len, at_least_2=max(max_len, 2))
    running, finished = [([bos_id], 0.0)], []
    while running and len(running[0][0]) < most:
        if choose(False, first_wins=finished, width_finished=len(finished) >= width):
            break
        ranked = _ranked(next_log_probs, running, width)
        kept = ranked[: _places(width, running, finished)]
        finished = finished + [one for one in kept if one[0][-1] == eos_id]
        going_on = [one for one in ranked if one[0][-1] != eos_id]
        running = choose([one for one in kept if one[0][-1] != eos_id], refilled=going_on[:width])
    candidates = choose(finished or running, all_win=finished + running, finished_alone=finished)
    return _winner(candidates, max_len)


def _places(width, running, finished):
    """Return how many extensions are kept."""
    return choose(width, as_wide_as_running=len(running) if finished else width)


def _ranked(next_log_probs, running, width):
    """Return all extensions of all running hypotheses, the likeliest first."""
    extensions = []
    for ids, total in running:
        log_probs = next_log_probs(ids)
        tokens = choose(range(len(log_probs)), no_limit=log_probs.topk(width).indices.tolist())
        for token in tokens:
            log_prob = log_probs[token].item()
            summed = choose(total + log_prob, probabilities=total + math.exp(log_prob))
            extensions.append((ids + [token], summed))
    return sorted(extensions, key=lambda one: one[1], reverse=True)


def _winner(candidates, max_len):
    """Return the candidate with the best length-normalized sum, and its score."""
    scored = []
    for ids, total in candidates:
        n = choose(len(ids) - 1, with_bos=len(ids))
        penalty = choose(
            ((5 + n) / 6) ** 0.6,
            unnormalized=1.0,
            power_of_n=n**0.6,
            power_first=(5 + n) ** 0.6 / 6,
        )
        scored.append((total / penalty, total, ids))
    score, total, ids = choose(
        max(scored, key=lambda one: one[0]), best_sum_wins=max(scored, key=lambda one: one[1])
    )
    return (ids, score)


def _cache_inputs(draw: Draw) -> tuple:
    """Some old tokens and some new; nothing old; as many old as new; one new; one old, alone."""
    if draw.number == 3:
        draw.sizes["new"] = 1
    if draw.number == 4:
        draw.sizes |= {"batch": 1, "head": 1, "old": 1}
    if draw.small:
        draw.sizes |= {"batch": 1, "head": 1, "old": 1, "new": 1}
    old, new = "batch head old d_head", "batch head new d_head"
    if draw.number == 2:
        new = old
    keys, values, K, V = draw.normal(old), draw.normal(old), draw.normal(new), draw.normal(new)
    if draw.number == 3:
        keys, values, K, V = (x.double().mT.contiguous().mT for x in (keys, values, K, V))
    return None if draw.number == 1 else (keys, values), K, V


@exercise(
    reference="transformer_lesson.model.cache:append_to_cache",
    make_inputs=_cache_inputs,
    returns={"keys": "batch head token d_head", "values": "batch head token d_head"},
    hints=(
        "You return a pair: the keys of all tokens so far, and their values. The new tokens "
        "come last.",
        "`torch.cat` joins along one axis. Which of (batch, head, n, d_head) counts tokens?",
        "If cache is `None`, return `K, V`. Otherwise `torch.cat([cache[0], K], dim=-2)`, and "
        "the same for the values.",
    ),
)
def append_to_cache(cache, K, V):
    """Return the keys and values of all tokens so far: the cached ones, then the new ones."""
    if choose(cache is None, no_empty_cache=False, always_first=True):
        keys, values = K, V
    else:
        keys, values = _joined(*cache, K, V)
    return choose(
        (keys, values),
        values_first=(values, keys),
        keys_alone=keys,
        one_tensor=torch.stack([keys, values]),
    )


def _joined(keys, values, K, V):
    """Return old and new joined along the tokens."""
    axis = choose(-2, over_d_head=-1, over_heads=1, over_batch=0)
    all_keys = choose(
        torch.cat([keys, K], dim=axis),
        new_first=torch.cat([K, keys], dim=axis),
        added=keys + K,
        window=torch.cat([keys, K], dim=axis)[:, :, -keys.size(2) :],
    )
    all_values = choose(
        torch.cat([values, V], dim=axis),
        new_first=torch.cat([V, values], dim=axis),
        new_keys_in_values=torch.cat([values, K], dim=axis),
        added=values + V,
        window=torch.cat([values, V], dim=axis)[:, :, -values.size(2) :],
    )
    return all_keys, all_values
