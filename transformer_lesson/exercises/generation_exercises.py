"""Lesson 09: choosing the next token, searching with beams, remembering keys and values."""

import math

from torch import Tensor

from transformer_lesson.exercises.specification import Draw, Exercise


class Table:
    """A tiny language model: the tokens so far choose a row of its table.

    Args:
        table: logits, shape (row, vocab_size).
        normalized: give log-probabilities instead of logits.
    """

    def __init__(self, table: Tensor, normalized: bool = False):
        self.table, self.normalized = table, normalized

    def __call__(self, ids: list[int]) -> Tensor:
        """Return a row, shape (vocab_size,)."""
        if not isinstance(ids, list) or not ids or not all(type(i) is int for i in ids):
            raise TypeError(f"it takes the list of all ids so far, such as [1, 4], but got {ids!r}")
        row = self.table[sum(ids) % len(self.table)]
        return row.log_softmax(dim=-1) if self.normalized else row.clone()

    def __repr__(self) -> str:
        rows = [[round(number, 1) for number in row] for row in self.table.tolist()]
        shown = rows if self.table.numel() <= 20 else f"a {tuple(self.table.shape)} table"
        function = "log_softmax of row" if self.normalized else "row"
        return f"{function} sum(ids) % {len(rows)} of {shown}"


class Ending(Table):
    """A `Table` whose likeliest token is `<eos>` from a number of tokens on, and not before."""

    def __init__(self, table: Tensor, eos_id: int, tokens: int):
        super().__init__(table)
        self.eos_id, self.tokens = eos_id, tokens

    def __call__(self, ids: list[int]) -> Tensor:
        """Return logits, shape (vocab_size,)."""
        logits = super().__call__(ids)
        logits[self.eos_id] = 9.0 if len(ids) >= self.tokens else -9.0
        return logits

    def __repr__(self) -> str:
        return f"{super().__repr__()}, <eos> likeliest from {self.tokens} ids on"


def _special_ids(draw: Draw) -> tuple[int, int]:
    return (1, 2) if draw.number % 2 else (3, 0)


def _greedy_inputs(draw: Draw) -> tuple:
    bos_id, eos_id = _special_ids(draw)
    draw.size("vocab_size", at_least=5)
    tokens = draw.size("n", at_least=3)
    model = Ending(draw.normal("row vocab_size"), eos_id, tokens)
    return model, bos_id, eos_id, tokens + 1 + (2, -1, 5, 0, -2)[draw.number]


def _top_k_inputs(draw: Draw) -> tuple:
    logits = draw.normal("batch vocab_size")
    vocab_size = draw.size("vocab_size")
    k = (1, (vocab_size + 1) // 2, vocab_size - 1, vocab_size, vocab_size + 3)[draw.number]
    return logits, max(k, 1)


def _top_p_inputs(draw: Draw) -> tuple:
    draw.size("vocab_size", at_least=5)
    return 2 * draw.normal("batch vocab_size"), (0.7, 0.9, 0.05, 0.5, 0.99)[draw.number]


def _beam_inputs(draw: Draw) -> tuple:
    bos_id, eos_id = _special_ids(draw)
    draw.size("vocab_size", at_least=5)
    table = 2 * draw.normal("row vocab_size")
    table[:, eos_id] += (0.5, 0.5, -1, 1, 1.5)[draw.number]  # finishing is likely, not certain
    model = Table(table, normalized=True)
    return model, bos_id, eos_id, (3, 3, 1, 4, 4)[draw.number], (7, 6, 7, 5, 6)[draw.number]


def _cache_inputs(draw: Draw) -> tuple:
    old, new = "batch head old d_head", "batch head new d_head"
    cache = (draw.normal(old), draw.normal(old)) if draw.number else None
    return cache, draw.normal(new), draw.normal(new)


def _bos_first_eos_last(answer, inputs: tuple, ids: list) -> str | None:
    _, bos_id, eos_id, max_len = inputs
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


def _just_enough_stay(answer, inputs: tuple, filtered: Tensor) -> str | None:
    logits, p = inputs
    probabilities = logits.softmax(dim=-1).masked_fill(~filtered.isfinite(), 0.0)
    sums = probabilities.sum(dim=-1)
    if (sums < p - 1e-4).any():
        return (
            f"The kept tokens of a row must hold p = {p} or more together. One of yours holds "
            f"{sums.min():.3g}.\nDoes the token that crosses p stay?"
        )
    least = probabilities.masked_fill(probabilities == 0, math.inf).amin(dim=-1)
    if (sums - least >= p + 1e-4).any():
        return (
            f"The kept tokens of a row still hold p = {p} when the least likely of them leaves, "
            "so it must leave.\nDo you go from the likeliest down, and are the others -inf?"
        )
    return None


def _score_is_normalized(answer, inputs: tuple, ids: list, score: float) -> str | None:
    model, length = inputs[0], len(ids) - 1
    total = sum(model(ids[:i])[ids[i]].item() for i in range(1, len(ids)))
    if length == 1 or not math.isclose(score, total, rel_tol=1e-4):
        return None
    return (
        f"Your score {score:.4g} is the plain sum of {length} log-probabilities. Sums favor "
        "short texts.\nDivide by ((5 + n) / 6) ** 0.6 before you compare; n counts all tokens "
        "but <bos>."
    )


GENERATION_EXERCISES = (
    Exercise(
        name="greedy_decode",
        reference="transformer_lesson.generation.plain:greedy_decode",
        make_inputs=_greedy_inputs,
        returns={"ids": "token"},
        hints=(
            "Start with `ids = [bos_id]`. Each round asks for the logits of the token after "
            "**all** of ids and appends the best one.",
            "Two things end the loop: the token that was appended is `<eos>`, or there are "
            "max_len tokens. Both `<bos>` and `<eos>` count and stay in the list.",
            "`while len(ids) < max_len:` append `int(next_logits(ids).argmax())`, then `break` "
            "if `ids[-1] == eos_id`.",
        ),
        invariants=(_bos_first_eos_last,),
    ),
    Exercise(
        name="top_k_filter",
        reference="transformer_lesson.generation.strategies:top_k_filter",
        make_inputs=_top_k_inputs,
        returns={"filtered": "batch vocab_size"},
        hints=(
            "What softmax must turn into 0 has to be minus infinity, not 0. The k best logits "
            "keep their values and their places.",
            "`logits.topk(k, dim=-1)` gives the k best of each row as `.values` and `.indices`. "
            "It fails if k is larger than the row.",
            "Fill a tensor with `-math.inf` (`torch.full_like`), then write the best back: "
            "`.scatter(-1, best.indices, best.values)`.",
        ),
        invariants=(_k_stay,),
    ),
    Exercise(
        name="top_p_filter",
        reference="transformer_lesson.generation.strategies:top_p_filter",
        make_inputs=_top_p_inputs,
        returns={"filtered": "batch vocab_size"},
        hints=(
            "Sort each row from the likeliest token down, take probabilities with softmax, and "
            "add them up with `cumsum`.",
            "A token stays if the sum of all likelier ones **before** it is below p. So the one "
            "that crosses p stays, and the first one always does.",
            "`before = probabilities.cumsum(dim=-1) - probabilities`; where `before >= p` the "
            "sorted logits become `-math.inf`; `scatter` them back to the indices of the sort.",
        ),
        invariants=(_just_enough_stay,),
    ),
    Exercise(
        name="beam_search",
        reference="transformer_lesson.generation.plain:beam_search",
        make_inputs=_beam_inputs,
        returns={"ids": "token", "score": ""},
        hints=(
            "A hypothesis is a pair (ids, total). Each step makes one list of all extensions of "
            "all running hypotheses and keeps the `width` best by total.",
            "Of those kept, the ones that end in `<eos>` move to a second list, the others run "
            "on. Stop when none runs, or when they have max_len tokens.",
            "In the end divide each finished total by `((5 + n) / 6) ** 0.6` with "
            "`n = len(ids) - 1`, and return the best. If none is finished, use the running ones.",
        ),
        helpers=("transformer_lesson.generation.strategies:length_normalized",),
        invariants=(_score_is_normalized,),
    ),
    Exercise(
        name="append_to_cache",
        reference="transformer_lesson.model.cache:append_to_cache",
        make_inputs=_cache_inputs,
        returns={"keys": "batch head token d_head", "values": "batch head token d_head"},
        hints=(
            "The result is a pair: keys of all tokens so far, values of all tokens so far. The "
            "new tokens come last.",
            "`torch.cat` joins along one axis. Which of (batch, head, n, d_head) counts tokens?",
            "If cache is `None`, return `K, V`. Otherwise `torch.cat([cache[0], K], dim=-2)`, and "
            "the same for the values.",
        ),
    ),
)
