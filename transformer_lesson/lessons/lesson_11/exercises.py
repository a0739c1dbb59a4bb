"""Lesson 11: the circuit of a task, and that circuit by hand.

Long because it is data: exercises whole, with their inputs and all their wrong turns.
"""

from collections import Counter
from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_lesson.exercises.engine.choosing import choose
from transformer_lesson.exercises.engine.specification import Draw, breaks, exercise
from transformer_lesson.interpretability import circuits

LABELS = 64  # `accuracy` is a share of them


class EdgeAccuracy:
    """How much is right with some edges only: cuts cost labels, some of them only together.

    Args:
        n_right: labels that are right with all edges.
        costs: labels that are lost once all of these edges are cut, by the edges' names.
    """

    def __init__(self, n_right: int, costs: dict[str, int]):
        self.n_right, self.costs = n_right, costs

    def __call__(self, edges: Iterable[str]) -> float:
        """Return the share of the labels that is right with these edges."""
        if isinstance(edges, str) or not isinstance(edges, Iterable):
            raise TypeError(f"accuracy takes a list of the edges that stay, but got {edges!r}")
        kept, known = list(edges), [edge for edge in self.costs if len(edge) == 1]
        for edge in kept:
            if edge not in known:
                raise TypeError(f"accuracy knows no edge {edge!r}: pass edges of the list, {known}")
        lost = sum(cost for cut, cost in self.costs.items() if not set(cut) & set(kept))
        return max(0, self.n_right - lost) / LABELS

    def __repr__(self) -> str:
        cuts = [f"{' and '.join(cut)} {cost}" for cut, cost in self.costs.items()]
        return (
            f"{self.n_right} of {LABELS} right with all; labels that a cut costs: {', '.join(cuts)}"
        )


CIRCUITS = (  # right labels, the share to keep, each edge's cost, and what edges cost together
    (61, 0.9, (4, 40, 0, 3, 1, 20), {(2, 4): 3}),  # two cost more together
    (61, 0.95, (0, 40, 1, 2, 25), {(0, 2): 30, (0, 3): 30}),  # one replaces two others
    (61, 0.9, (12, 40, 2, 1, 5), {(0, 3): -11}),  # needed until another one is cut
    (61, 0.9, (12, 40, 1, 15), {(2, 3): -14, (0, 3): -11}),  # and that one until a third is cut
    (61, 0.9, (14, 1, 40, 12), {(0, 1): -13, (0, 3): -11}),
    (58, 0.95, (40, 4, -4, 1, 6, 30), {}),  # without one of them more is right
    (53, 0.8, (40, 2, 2, 2, 2, 2, 2), {}),
    (48, 0.5, (8, 40, 16, 20, 30), {}),  # what is left is just enough
    (47, 0.95, (40, 30), {}),
    (59, 0.9, (0, 40, 0, 3, 3, 1), {(0, 2): 30, (3, 4): 30}),
)


def _circuit_inputs(draw: Draw) -> tuple:
    """Some edge is always needed. Costs that add up or do not, equals, a limit just reached."""
    n_right, keep, costs, together = draw.one_of(CIRCUITS)
    n = min(len(costs), draw.size("edge", at_least=2)) if draw.small else len(costs)
    draw.sizes["edge"] = n
    edges = ["abcdefg"[i] for i in torch.randperm(n, generator=draw.generator)]
    lost = dict(zip(edges, costs, strict=False))
    lost |= {edges[i] + edges[j]: cost for (i, j), cost in together.items() if max(i, j) < n}
    return edges, EdgeAccuracy(n_right, lost), keep


@breaks("too many edges cut, or too few")
def _enough_is_left_and_nothing_more_can_go(answer, inputs: tuple, circuit: list) -> str | None:
    edges, accuracy, keep = inputs
    if foreign := [edge for edge in circuit if edge not in edges]:
        return f"Return edges of the list {edges}. Yours has {foreign[0]!r} among them."
    whole, left = accuracy(edges), accuracy(circuit)
    if left < keep * whole:
        return (
            f"What is left must reach {keep} times {whole:.3f}, the accuracy with all edges: "
            f"{keep * whole:.3f}. Yours reaches {left:.3f}.\n"
            "Do you cut one edge at a time, and look before each cut?"
        )
    for gone in circuit:
        rest = accuracy(_without(circuit, gone))
        if rest >= keep * whole:
            return (
                f"{gone!r} can still be cut: without it the accuracy is {rest:.3f}, and "
                f"{keep * whole:.3f} is enough.\n"
                "Do you go on until every edge that is left is needed?"
            )
    if circuit != (ordered := [edge for edge in edges if edge in circuit]):
        return f"The edges that stay keep their order, {ordered}. Yours are {circuit}."
    return None


def _searched(answer, edges, accuracy, keep) -> list:
    """Return the reference's circuit for any that is as good, in whatever order it was found."""
    circuit = answer(edges, accuracy, keep)
    if not isinstance(circuit, list | tuple) or any(edge not in edges for edge in circuit):
        return circuit
    if _enough_is_left_and_nothing_more_can_go(answer, (edges, accuracy, keep), [*circuit]):
        return circuit
    return circuits.smallest_circuit(edges, accuracy, keep)


@exercise(
    reference="transformer_lesson.interpretability.circuits:smallest_circuit",
    make_inputs=_circuit_inputs,
    draws=len(CIRCUITS),
    returns={"circuit": "edge"},
    hints=(
        "Two numbers come first: the accuracy with all edges, and the least that you accept, "
        "`keep` times that. Then try to cut one edge. When may it go for good?",
        "An edge may go if what is left without it is enough. Cutting one can change what another "
        "is worth, so go through what is left until a whole round cuts nothing.",
        "In a round: `for edge in list(kept):` make `rest`, all of `kept` but this edge; "
        "`if accuracy(rest) >= lowest: kept = rest`. Repeat rounds while one of them cuts.",
    ),
    invariants=(_enough_is_left_and_nothing_more_can_go,),
    trial=_searched,
)
def smallest_circuit(edges, accuracy, keep=0.95):
    """Cut what can go, in rounds, until a round finds nothing more."""
    whole = accuracy(list(edges))
    lowest = choose(
        keep * whole,
        absolute=keep,
        points_lost=whole - (1 - keep),
        share_lost=(1 - keep) * whole,
        keep_lost=whole - keep,
    )
    ranked = sorted(edges, key=lambda edge: accuracy(_without(edges, edge)), reverse=True)
    circuit = choose(
        _in_rounds(edges, accuracy, lowest, keep),
        each_against_all=[edge for edge in edges if accuracy(_without(edges, edge)) < lowest],
        one_pass=_one_pass(edges, edges, accuracy, lowest),
        one_pass_back=_one_pass(edges, edges[::-1], accuracy, lowest),
        ranked_once=_one_pass(edges, ranked, accuracy, lowest),
        ranked_to_the_first=_until_one_fails(ranked, edges, accuracy, lowest),
    )
    return choose(circuit, by_importance=[edge for edge in reversed(ranked) if edge in circuit])


def _in_rounds(edges, accuracy, lowest, keep):
    """Return what is left once nothing more can be cut."""
    kept, before = list(edges), None
    while kept != before:
        before = kept
        for edge in before:
            rest = _without(kept, edge)
            enough = choose(accuracy(rest) >= lowest, more_than_enough=accuracy(rest) > lowest)
            kept, gone = (rest, True) if enough else (kept, False)
            lowest = choose(lowest, of_the_last=keep * accuracy(kept) if gone else lowest)
    return kept


def _without(edges, gone):
    """Return all edges but one."""
    return [edge for edge in edges if edge != gone]


def _one_pass(edges, order, accuracy, lowest):
    """Return what is left if each edge gets one chance to go."""
    kept = list(edges)
    for edge in order:
        rest = _without(kept, edge)
        kept = rest if accuracy(rest) >= lowest else kept
    return kept


def _until_one_fails(order, edges, accuracy, lowest):
    """Return what is left if edges go in this order until one cannot."""
    kept = list(edges)
    for edge in order:
        rest = _without(kept, edge)
        if accuracy(rest) < lowest:
            break
        kept = rest
    return kept


def _continue_inputs(draw: Draw) -> tuple:
    """Tokens at random, neighbors alike among them; a repeated segment; all new; one sentence."""
    if draw.number == 4:
        draw.sizes["batch"] = 1
    batch, n = draw.size("batch"), draw.size("n", at_least=1 if draw.small else 5)
    ids = draw.integers("batch n", 0, 2 if draw.number == 3 else 3 + n // 3)
    if draw.number == 1:
        ids = ids[:, torch.arange(n) % max(2, n // 3)]
    if draw.number == 2:  # ids as large as a vocabulary's, and no 0
        ids = 47 - 5 * ids
    if draw.number == 5:
        ids = torch.stack([torch.randperm(n, generator=draw.generator) for _ in range(batch)])
    if draw.number == 4:  # tokens and sentences have changed places in memory
        ids = ids.T.contiguous().T
    return (ids,)


@breaks("−1 in other places than at new tokens")
def _new_tokens_have_no_past(answer, inputs: tuple, guess: Tensor) -> str | None:
    (ids,) = inputs
    for row, guesses in zip(ids.tolist(), guess.tolist(), strict=True):
        for i, (token, value) in enumerate(zip(row, guesses, strict=True)):
            if (value == -1) != (token not in row[:i]):
                return (
                    f"In the row {row} token {token} at {i} "
                    + ("stood before" if token in row[:i] else "is new")
                    + f", and your guess there is {value}.\n"
                    "-1 stands where the token is new, and only there."
                )
    return None


@breaks("a guess that knows what comes later")
def _what_comes_later_changes_nothing(answer, inputs: tuple, guess: Tensor) -> str | None:
    (ids,) = inputs
    other = ids.clone()
    other[:, -1] = ids.max() + 1  # a token that is nowhere else
    other_guess = answer(other)
    if torch.equal(other_guess[:, :-1], guess[:, :-1]):
        return None
    return (
        "A guess must know only the tokens up to its own place. With another last token, yours "
        "changes at earlier places.\nDoes a token's own place count as an earlier one?"
    )


@exercise(
    reference="transformer_lesson.interpretability.circuits:continue_by_hand",
    make_inputs=_continue_inputs,
    draws=6,
    returns={"guess": "batch n"},
    hints=(
        "Two heads did this in two steps: find where my token stood before, the last time; look at "
        "the token one place later. What if it never stood before?",
        "`ids[:, :, None] == ids[:, None, :]` compares each token with each, (batch, query, key). "
        "`.tril(-1)` keeps the keys before the query.",
        "`torch.where(same, torch.arange(n), -1).amax(-1)` is the last earlier place, or -1. "
        "`ids.gather(1, …)` takes the token one place later; `torch.where` puts -1 in the rest.",
    ),
    invariants=(_new_tokens_have_no_past, _what_comes_later_changes_nothing),
)
def continue_by_hand(ids):
    """Return what followed each token's last earlier place, and -1 where there is none."""
    shape = ids.shape
    ids = choose(ids, one_long_text=ids.reshape(1, -1))
    n = ids.size(1)
    key, query = torch.arange(n), torch.arange(n)[:, None]
    same = ids[:, :, None] == choose(ids, first_row=ids[:1])[:, None, :]  # (batch, query, key)
    pair = same & F.pad(same[:, :-1, :-1], (1, 0, 1, 0))
    earlier = choose(
        key < query,
        itself_too=key <= query,
        later_too=key != query,
        later_alone=key > query,
        no_triangle=key + query >= 0,
        neighbor_left_out=key < query - 1,
        neighbor_alone=key == query - 1,
    )
    hits = choose(same, two_tokens=pair) & earlier
    last = choose(torch.where(hits, key, -1).amax(-1), first=_first(torch.where(hits, key, n)))
    has_match = choose(last >= 0, (last >= 0) & (last < n - 1), place_0_is_none=last > 0)
    guess = torch.where(has_match, _what_followed(ids, last), choose(-1, zero_for_new=0))
    return choose(guess, most_frequent=_most_frequent(ids)).view(shape)


def _first(places):
    """Return the first of the places in each row, -1 where there is none."""
    first, n = places.amin(-1), places.size(-1)
    return torch.where(first < n, first, -1)


def _what_followed(ids, last):
    """Return a token for each place, whatever stands where nothing was found."""
    n = ids.size(1)
    source = last + choose(1, same_token=0)
    return choose(ids.gather(1, source.clamp(0, n - 1)), place_returned=source)


def _most_frequent(ids):
    """Return what followed each token most often so far, -1 where nothing did."""
    guesses = torch.full_like(ids, -1)
    for row, guess in zip(ids.tolist(), guesses, strict=True):
        followers = {token: Counter() for token in row}
        for i, token in enumerate(row):
            if i:
                followers[row[i - 1]][token] += 1
            if followers[token]:
                guess[i] = followers[token].most_common(1)[0][0]
    return guesses
