"""Lesson 09: choosing the next token, reading each once, keeping to a form, searching with beams.

Long because it is data: exercises whole, with their inputs and all their wrong turns.
"""

import math
import operator
import re

import torch
from torch import Tensor

from transformer_lesson.exercises.engine.choosing import choose
from transformer_lesson.exercises.engine.specification import Draw, breaks, exercise
from transformer_lesson.exercises.engine.wording import counted
from transformer_lesson.exercises.random_layers import Endless, Table
from transformer_lesson.generation import constrained, plain


class Kept(tuple):
    """What a `Reader` keeps: the ids that it has read."""


class Reader:
    """A tiny language model that goes on from what it has kept.

    The ids that it has read select a row of its table. `<eos>` is the likeliest from some number of
    them on, but not twice running.

    Args:
        table: logits, shape (row, vocab_size).
        eos_id: the id that ends a text.
        ends: how many ids it has read when `<eos>` is first the likeliest.
    """

    def __init__(self, table: Tensor, eos_id: int, ends: int):
        self.table, self.eos_id, self.ends = Table(table), eos_id, ends

    def __call__(self, ids: list, kept: Kept | None) -> tuple[Tensor, Kept]:
        """Return logits, shape (vocab_size,), and what is kept."""
        if not isinstance(ids, list | tuple) or not ids:
            raise TypeError(f"read takes a list of ids, such as [1, 4], but got {ids!r}")
        if kept is not None and not isinstance(kept, Kept):
            raise TypeError(f"kept is None or what read returned, but read got {kept!r}")
        kept = Kept([*(kept or ()), *map(operator.index, ids)])
        logits = self.table([*kept])
        ends = len(kept) >= self.ends and kept[-1] != self.eos_id
        logits[self.eos_id] = logits.max() + (1.0 if ends else -1.0)
        return logits, kept

    def __repr__(self) -> str:
        more = f"<eos> likeliest from {self.ends} ids on, not twice running"
        return f"a model that gives {self.table}, {more}".replace("sum(ids)", "sum(all read)")


READINGS = ((3, 4, 6, 2), (2, 9, 4, 0), (1, 5, 5, 4), (4, 9, 1, 1), (5, 3, 8, 399), (2, 1, 4, 0))
"""Draw by draw: ids in the prompt, new ids up to `<eos>`, max_new_tokens, the id of `<eos>`."""
CALLS, TOLD = 60, 12  # calls that show that a loop never ends; how many of them are shown


def _greedy_inputs(draw: Draw) -> tuple:
    """Ends early, cut off, ends at the last place, one token, a prompt with `<eos>`, at once."""
    n, n_new, most, eos_id = draw.one_of(READINGS)
    if draw.small:
        n, n_new, most = min(n, 2), min(n_new, 1 + draw.small[0]), min(most, 3)
    else:  # Python keeps one int of each up to 256
        draw.sizes |= {"row": 7, "vocab_size": 400 if eos_id == 399 else 11}
    eos_id = min(eos_id, draw.size("vocab_size", at_least=5) - 1)
    table = draw.normal("row vocab_size")
    if draw.number == 2:
        table = 100 * table + 500  # the exponentials are infinite
    prompt = [(eos_id + 1 + i) % table.size(1) for i in draw.integers(str(n), 0, 4).tolist()]
    if draw.number == 4:
        prompt[0] = eos_id
    return Reader(table, eos_id, n + n_new - 1), prompt, eos_id, most


def _with_calls(answer, read, prompt, eos_id, max_new_tokens):
    """Return the new ids, and how many ids each call handed over; of an endless loop the first."""
    handed, words = [], []

    def read_and_count(ids, kept):
        """Read, and count."""
        if len(handed) == CALLS:
            raise Endless
        logits, kept = read(ids, kept)
        handed.append(len(ids))
        words.append(int(logits.argmax()))
        return logits, kept

    read_and_count.__qualname__ = "read"  # as errors call it
    try:
        return [answer(read_and_count, prompt, eos_id, max_new_tokens), handed]
    except Endless:
        return [words[:TOLD], handed[:TOLD]]


@breaks("another text at each call")
def _same_text_again(answer, inputs: tuple, ids: list, handed: list) -> str | None:
    repeated, _ = answer(*inputs)
    if repeated == ids:
        return None
    return (
        f"Called twice with the same arguments, yours writes {ids} and then {repeated}.\n"
        "Greedy takes the likeliest token every time and leaves nothing to chance."
    )


@breaks("a text that doesn't end in time")
def _ends_in_time(answer, inputs: tuple, ids: list, handed: list) -> str | None:
    _, _, eos_id, most = inputs
    if eos_id in ids[:-1]:
        return f"Nothing comes after `<eos>`, id {eos_id}. Yours goes on: {ids}."
    if len(ids) > most:
        return f"max_new_tokens is {most}. Your list has {counted(len(ids), 'id')}: {ids}."
    return None


@breaks("more read than what is new")
def _only_what_is_new(answer, inputs: tuple, ids: list, handed: list) -> str | None:
    n = len(inputs[1])
    if handed[:1] != [n]:
        return (
            f"The prompt has {counted(n, 'id')}. Your first call of `read` hands over "
            f"{(*handed, 0)[0]}; it should hand over all of them."
        )
    if any(number != 1 for number in handed[1:]):
        call, number = next((i, number) for i, number in enumerate(handed[1:], 2) if number != 1)
        return (
            f"Call {call} of `read` hands over {counted(number, 'id')}, and only the newest one "
            "has not been read yet."
        )
    needed = max(len(plain.greedy_decode(*inputs)), len(ids))
    if len(handed) > needed:
        return f"Here you need only {counted(needed, 'call')} of `read`. Yours makes {len(handed)}."
    return None


@exercise(
    reference="transformer_lesson.generation.plain:greedy_decode",
    make_inputs=_greedy_inputs,
    trial=_with_calls,
    draws=len(READINGS),
    returns={"ids": "token", "read_per_call": "call"},
    hints=(
        "Each round reads what is new: first the prompt, then the token that you have just "
        "written. So remember two things from round to round, `new` and `kept`.",
        "Read at the top of the round, not at its end: then nothing is read after the last token. "
        "Two things end the loop: you have appended `<eos>`, or there are max_new_tokens.",
        "`while len(ids) < max_new_tokens:` `logits, kept = read(new, kept)`, then "
        "`new = [int(logits.argmax())]`, append it, and `break` if it is `eos_id`.",
    ),
    invariants=(_same_text_again, _ends_in_time, _only_what_is_new),
)
def greedy_decode(read, prompt, eos_id, max_new_tokens):
    """Write the likeliest token at every step, reading each token once."""
    most = choose(
        max_new_tokens,
        one_too_many=max_new_tokens + 1,
        prompt_counted=max_new_tokens - len(prompt),
        never_begun=0 if eos_id in prompt else max_new_tokens,
    )
    last = prompt[-1:]
    new = choose(prompt, last_of_prompt=last, one_by_one=last, first_logits_lost=last)
    kept = choose(
        None,
        one_by_one=_read_one_by_one(read, prompt[:-1]),
        first_logits_lost=read(prompt, None)[1],
    )
    first, ids = None, []
    while len(ids) < most:
        handed = choose(new, everything_again=prompt + ids, everything_to_the_cache=prompt + ids)
        given = choose(kept, everything_again=None, nothing_kept=None, first_kept=first)
        handed = choose(handed, bare_number=handed if first is None else handed[0])
        logits, kept = read(handed, given)
        first = kept if first is None else first
        new = [int(choose(logits.argmax(), largest_logit=logits.max()))]
        ids = ids + new
        ended = new == [eos_id]
        if choose(ended, never=False, eos_in_prompt=eos_id in prompt + ids):
            break
    ended = ids[-1:] == [eos_id]
    choose(
        None,
        read_to_the_end=read(new, kept),
        last_place_read=None if ended else read(new, kept),
    )
    return choose(ids, with_prompt=prompt + ids, without_eos=ids[:-1] if ended else ids)


def _read_one_by_one(read, ids):
    """Return what is kept after reading ids one after the other."""
    kept = None
    for token in ids:
        _, kept = read([token], kept)
    return kept


def _filtered(logits, keep):
    """Return the logits, minus infinity where they are not kept."""
    keep = choose(
        keep, first_row=keep[:1].expand(keep.shape), every_row=keep.all(0).expand(keep.shape)
    )
    filler = choose(
        -math.inf,
        zero=0.0,
        minus_1e9=-1e9,
        lowest_number=torch.finfo(logits.dtype).min,
        minus_1e4=-1e4,
    )
    filtered = choose(
        torch.where(keep, logits, filler), in_place=logits.masked_fill_(~keep, filler)
    )
    return choose(
        filtered,
        probabilities=filtered.softmax(-1),
        stays_sorted=filtered.sort(dim=-1, descending=True).values,
    )


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
        each_by_itself=shares >= p,
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


SPECIAL_IDS = ((1, 2), (3, 0), (0, 4))
"""Of `<bos>` and `<eos>`: the first and the last of the smallest vocabulary among them."""


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


@breaks("a list that does not go from <bos> to <eos>")
def _bos_first_eos_last(answer, inputs: tuple, ids: list, score: float) -> str | None:
    _, bos_id, eos_id, _, max_len = inputs
    if ids[:1] != [bos_id]:
        return f"The list must start with `<bos>`, id {bos_id}. Yours is {ids}."
    if eos_id in ids[:-1]:
        return (
            f"Nothing comes after `<eos>`, id {eos_id}. Yours goes on: {ids}.\n"
            "Where does your loop look at the token that it has appended?"
        )
    if len(ids) > max_len:
        return (
            f"With max_len = {max_len} the list has at most {counted(max_len, 'id')}, `<bos>` "
            f"included. Yours has {len(ids)}."
        )
    return None


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
            f"Your score {score:.4g} is the plain sum of the log-probabilities. Sums favor short "
            "texts.\nDivide by ((5 + n) / 6) ** 0.6 before you compare; n counts all tokens but "
            "<bos>."
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
        finished = finished + [hypothesis for hypothesis in kept if hypothesis[0][-1] == eos_id]
        going_on = [hypothesis for hypothesis in ranked if hypothesis[0][-1] != eos_id]
        running = choose(
            [hypothesis for hypothesis in kept if hypothesis[0][-1] != eos_id],
            refilled=going_on[:width],
        )
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
    return sorted(extensions, key=lambda extension: extension[1], reverse=True)


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
        max(scored, key=lambda hypothesis: hypothesis[0]),
        best_sum_wins=max(scored, key=lambda hypothesis: hypothesis[1]),
    )
    return (ids, score)
