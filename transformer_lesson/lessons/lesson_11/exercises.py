"""Lesson 11: scores and ablation of a head, the circuit of a task, and that circuit by hand.

Long because it is data: exercises whole, with their inputs and all their wrong turns.
"""

import math
from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_lesson.exercises.engine.choosing import choose
from transformer_lesson.exercises.engine.specification import Draw, breaks, exercise


def _score_inputs(draw: Draw) -> tuple:
    """Periods from 1 to n - 1; one sentence, one head; with and without a causal mask."""
    longest = None
    if draw.small:
        longest = 1 + max(draw.small[1:])
        draw.sizes |= {"head": 1, "n": longest + 2}
    elif draw.number == 5:
        draw.sizes |= {"batch": 1, "n": 29}  # longer than the lesson's own period
    elif draw.number == 6:
        draw.sizes["head"] = 1
    n = draw.size("n", at_least=7)
    scores = 3 * draw.normal("batch head n n")
    if draw.number not in (3, 6):
        scores = scores.masked_fill(~torch.ones(n, n).tril().bool(), -torch.inf)
    weights = scores.softmax(dim=-1)
    if draw.number == 5:  # queries and keys have changed places in memory
        weights = weights.mT.contiguous().mT
    return weights, min(draw.one_of((3, n // 2, 2, n - 2, n - 1, 5, 4, 1)), longest or n)


@breaks("a perfect head that does not score 1")
def _perfect_head_scores_1(answer, inputs: tuple, score: Tensor) -> str | None:
    weights, period = inputs
    n, perfect = weights.size(-1), torch.zeros_like(weights)
    for query in range(period, n):
        perfect[..., query, query - period + 1] = 1.0
    perfect[..., :period, 0] = 1.0  # these have seen no token twice
    yours = answer(perfect, period)
    if torch.allclose(yours.double(), torch.ones(weights.size(1)).double(), atol=1e-5):
        return None
    return (
        f"A head that always looks at what followed its token {period} tokens ago must score 1 "
        f"(n = {n}, period = {period}). Yours gives it {float(yours.reshape(-1)[0]):.3g}.\n"
        "Which key is that for query i, and from which query on does it exist?"
    )


@exercise(
    reference="transformer_lesson.interpretability.head_scores:induction_score",
    make_inputs=_score_inputs,
    draws=8,
    returns={"score": "head"},
    helpers=("transformer_lesson.interpretability.head_scores:_mean_weight_back",),
    hints=(
        "Query i stands on a token that stood at i - period before. What came after it then? "
        "That key's weight is what you want, for every i from `period` on.",
        "The keys lie on a diagonal, `period - 1` below the main one: "
        "`weights.diagonal(1 - period, dim1=-2, dim2=-1)`. Its first query is period - 1, "
        "which has seen nothing twice.",
        "Leave out that first entry, `[..., 1:]`, and take the mean over batch and queries: "
        "`.mean(dim=(0, 2))` leaves one number per head.",
    ),
    invariants=(_perfect_head_scores_1,),
)
def induction_score(weights, period):
    """Return each head's mean weight on what followed the query's token one period ago."""
    n = weights.size(-1)
    back = choose(
        period - 1,
        same_token=period,
        token_before=period + 1,
        two_after=max(period - 2, 0),
        previous_token=1,
        itself=0,
    )
    first = choose(period, one_query_more=period - 1, all_queries=0)
    queries = torch.arange(n)[first:]
    queries = choose(queries, queries[queries >= back], one_period_alone=queries[:period])
    return _mean_of_heads(_looked_at(weights, queries, back, period), n)


def _looked_at(weights, queries, back, period):
    """Return each query's weight on its key, shape (batch, head, query)."""
    rows = weights[:, :, queries]
    behind = queries[:, None] - back - torch.arange(rows.size(-1))  # how far behind the right key
    return choose(
        weights[:, :, queries, queries - back],
        all_occurrences=(rows * ((behind >= 0) & (behind % period == 0))).sum(-1),
        share_of_hits=(rows.argmax(-1) == queries - back).float(),
    )


def _mean_of_heads(looked_at, n):
    """Return one number for each head."""
    of_sentences = choose(
        looked_at.mean(-1),
        sum=looked_at.sum(-1),
        sum_of_queries=looked_at.sum(-1),
        divided_by_all=looked_at.sum(-1) / n,
    )  # (batch, head)
    return choose(
        of_sentences.mean(0), sum=of_sentences.sum(0), best_of_means=looked_at.mean(0).amax(-1)
    )


def _ablate_inputs(draw: Draw) -> tuple:
    """The first head, the last and others; one sentence, one head, one token."""
    if draw.number in (4, 5, 6):
        draw.sizes[("batch", "head", "n")[draw.number - 4]] = 1
    head_outputs = draw.normal("batch head n d_head")
    n_heads = draw.size("head")
    if draw.number == 7:  # as split_heads leaves it: heads and tokens have changed places in memory
        head_outputs = head_outputs.transpose(1, 2).contiguous().transpose(1, 2)
    return head_outputs, draw.one_of((1, n_heads - 1, 0, 1, n_heads // 2, 0, 1, 1)) % n_heads


@breaks("another change than one head's zeros")
def _only_that_head_changes(answer, inputs: tuple, ablated: Tensor) -> str | None:
    head_outputs, head = inputs
    others = [i for i in range(head_outputs.size(1)) if i != head]
    if ablated[:, head].count_nonzero():
        return f"Head {head} must be zero everywhere. Yours still has numbers in it."
    if not torch.allclose(ablated[:, others].double(), head_outputs[:, others].double()):
        return (
            f"Only head {head} is taken away; the others keep their numbers. Yours changes them.\n"
            "Which axis of (batch, head, n, d_head) does your index count along?"
        )
    return None


@exercise(
    reference="transformer_lesson.interpretability.interventions:ablate_head",
    make_inputs=_ablate_inputs,
    draws=8,
    returns={"ablated": "batch head n d_head"},
    hints=(
        "The result is the same tensor with one slice of it zero. Along which axis do heads lie?",
        "The caller still needs its own numbers, so work on a copy: `head_outputs.clone()`.",
        "`ablated[:, head] = 0` sets one head of every sentence, at every position.",
    ),
    invariants=(_only_that_head_changes,),
)
def ablate_head(head_outputs, head):
    """Return a copy in which one head's numbers are zero."""
    ablated = choose(head_outputs.clone(), in_place=head_outputs)
    n_heads = head_outputs.size(1)
    number = choose(head, head_before=head - 1, always_first=0)
    index = [slice(None)] * 4
    index[0] = choose(index[0], first_sentence=0)
    index[2] = choose(index[2], first_position=0)
    index[choose(1, sentence=0, position=2)] = choose(
        number,
        other_heads=[other for other in range(n_heads) if other != number],
        heads_from_it_on=slice(number, None),
        everything=slice(None),
        nothing=slice(0),
    )
    place = tuple(index)
    ablated[place] = _replacement(ablated[place], ablated)
    return ablated


def _replacement(removed, all_heads):
    """Return what stands in the place of the numbers that were removed."""
    return choose(
        torch.zeros_like(removed),
        mean_over_sentences=removed.mean(0, keepdim=True),
        mean_of_heads=all_heads.mean(1),
        minus_infinity=torch.full_like(removed, -math.inf),
        negative=-removed,
    )


LABELS = 64  # of which a circuit gets some right


class EdgeAccuracy:
    """How much is right with some edges only: cuts cost labels, some of them only together.

    Args:
        right: labels that are right with all edges.
        costs: labels that are lost once all of these edges are cut, by the edges' names.
    """

    def __init__(self, right: int, costs: dict[str, int]):
        self.right, self.costs = right, costs

    def __call__(self, edges: Iterable[str]) -> float:
        """Return the share of the labels that is right with these edges."""
        if isinstance(edges, str) or not isinstance(edges, Iterable):
            raise TypeError(f"accuracy takes a list of the edges that stay, but got {edges!r}")
        kept, known = list(edges), [one for one in self.costs if len(one) == 1]
        for edge in kept:
            if edge not in known:
                raise TypeError(f"accuracy knows no edge {edge!r}: pass edges of the list, {known}")
        lost = sum(cost for cut, cost in self.costs.items() if not set(cut) & set(kept))
        return max(0, self.right - lost) / LABELS

    def __repr__(self) -> str:
        told = [f"{' and '.join(cut)} {cost}" for cut, cost in self.costs.items()]
        return (
            f"{self.right} of {LABELS} right with all; labels that a cut costs: {', '.join(told)}"
        )


CIRCUITS = (  # right labels, the share to keep, each edge's cost, and what edges cost together
    (61, 0.9, (4, 40, 0, 3, 1, 20), {(2, 4): 3}),  # two cost more together
    (61, 0.95, (0, 40, 1, 2, 25), {(0, 2): 30, (0, 3): 30}),  # one replaces two others
    (61, 0.9, (12, 40, 2, 1, 5), {(0, 3): -11}),  # needed until another one is cut
    (58, 0.95, (40, 4, -4, 1, 6, 30), {}),  # without one of them more is right
    (53, 0.8, (40, 2, 2, 2, 2, 2, 2), {}),
    (48, 0.5, (8, 40, 16, 20, 30), {}),  # what is left is just enough
    (47, 0.95, (40, 30), {}),
    (59, 0.9, (0, 40, 0, 3, 3, 1), {(0, 2): 30, (3, 4): 30}),
)


def _circuit_inputs(draw: Draw) -> tuple:
    """Some edge is always needed. Costs that add up or do not, equals, a limit just reached."""
    right, keep, costs, together = draw.one_of(CIRCUITS)
    n = min(len(costs), draw.size("edge", at_least=2)) if draw.small else len(costs)
    draw.sizes["edge"] = n
    edges = ["abcdefg"[i] for i in torch.randperm(n, generator=draw.generator)]
    lost = dict(zip(edges, costs, strict=False))
    lost |= {edges[i] + edges[j]: cost for (i, j), cost in together.items() if max(i, j) < n}
    return edges, EdgeAccuracy(right, lost), keep


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


@exercise(
    reference="transformer_lesson.interpretability.circuits:smallest_circuit",
    make_inputs=_circuit_inputs,
    draws=len(CIRCUITS),
    returns={"circuit": "edge"},
    hints=(
        "Two numbers come first: the accuracy with all edges, and the least that you accept, "
        "`keep` times that. Then it is the same round again and again. What happens in one?",
        "A round tries each edge that is left: what is the accuracy with all the others that are "
        "left? The edge without which it is highest goes, if what remains is enough.",
        "`without = [[e for e in kept if e != gone] for gone in kept]` has each candidate's rest. "
        "Take the first with the highest accuracy; if that is under `lowest`, return `kept`.",
    ),
    invariants=(_enough_is_left_and_nothing_more_can_go,),
)
def smallest_circuit(edges, accuracy, keep=0.95):
    """Cut the edge that is missed least, again and again, while enough is left."""
    whole = accuracy(list(edges))
    lowest = choose(
        keep * whole,
        absolute=keep,
        points_lost=whole - (1 - keep),
        share_lost=(1 - keep) * whole,
        keep_lost=whole - keep,
    )
    lowest = choose(lowest, equal_is_too_little=lowest + 1e-9)
    kept = choose(
        _least_missed(edges, accuracy, lowest, keep),
        one_pass=_one_pass(edges, edges, accuracy, lowest),
        one_pass_back=_one_pass(edges, edges[::-1], accuracy, lowest),
        ranked_once=_one_pass(edges, _ranked(edges, accuracy), accuracy, lowest),
        ranked_to_the_first=_until_one_fails(_ranked(edges, accuracy), edges, accuracy, lowest),
        first_that_can_go=_first_that_can_go(edges, accuracy, lowest),
    )
    return choose(kept, cut_edges=[edge for edge in edges if edge not in kept])


def _least_missed(edges, accuracy, lowest, keep):
    """Return what is left once nothing more can be cut."""
    kept = list(edges)
    gone, dropped = [], []
    while kept:
        tried = choose(kept, needed_once=[edge for edge in kept if edge not in dropped])
        scores = [accuracy(_without(kept, gone)) for gone in tried]
        scores = choose(
            scores, missed_most=[-score if score >= lowest else -math.inf for score in scores]
        )
        dropped += [one for one, score in zip(tried, scores, strict=True) if score < lowest]
        if not scores:
            break
        place = scores.index(max(scores))
        best = accuracy(_without(kept, tried[place]))
        if best < lowest:
            break
        gone.append(tried[place])
        kept.remove(gone[-1])
        lowest = choose(lowest, of_the_last=keep * best)
    return kept


def _without(edges, gone):
    """Return all edges but one."""
    return [edge for edge in edges if edge != gone]


def _ranked(edges, accuracy):
    """Return the edges in the order in which they are missed alone, the least first."""
    return sorted(edges, key=lambda edge: accuracy(_without(edges, edge)), reverse=True)


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


def _first_that_can_go(edges, accuracy, lowest):
    """Return what is left if the first edge that can go does, in every round."""
    kept = list(edges)
    while rests := [
        rest for rest in (_without(kept, edge) for edge in kept) if accuracy(rest) >= lowest
    ]:
        kept = rests[0]
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
        for i, (token, one) in enumerate(zip(row, guesses, strict=True)):
            if (one == -1) != (token not in row[:i]):
                return (
                    f"In the row {row} token {token} at {i} "
                    + ("stood before" if token in row[:i] else "is new")
                    + f", and your guess there is {one}.\n"
                    "-1 stands where the token is new, and only there."
                )
    return None


@breaks("a guess that knows what comes later")
def _what_comes_later_changes_nothing(answer, inputs: tuple, guess: Tensor) -> str | None:
    (ids,) = inputs
    other = ids.clone()
    other[:, -1] = ids.max() + 1  # a token that is nowhere else
    again = answer(other)
    if torch.equal(again[:, :-1], guess[:, :-1]):
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
        "what stands one further. What if it never stood before?",
        "`ids[:, :, None] == ids[:, None, :]` compares each token with each, (batch, query, key). "
        "`.tril(-1)` keeps the keys before the query.",
        "`torch.where(same, torch.arange(n), -1).amax(-1)` is the last earlier place, or -1. "
        "`ids.gather(1, …)` takes the token one place later; `torch.where` puts -1 in the rest.",
    ),
    invariants=(_new_tokens_have_no_past, _what_comes_later_changes_nothing),
)
def continue_by_hand(ids):
    """Return what followed each token's last earlier place, and -1 where there is none."""
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
    found = last >= 0
    guess = torch.where(found, _what_followed(ids, last), -1)
    guess = choose(
        guess,
        rows_as_one_text=_remembered(ids.reshape(1, -1)).view_as(ids),
        next_token=F.pad(ids[:, 1:], (0, 1), value=-1),
    )
    return _as_guesses(guess)


def _as_guesses(guess):
    """Return the guesses as the function's result, with what stands for no guess."""
    none = choose(-1, zero=0)
    guess = torch.where(guess == -1, none, guess)
    return choose(guess, transposed=guess.T)


def _first(places):
    """Return the first of the places in each row, -1 where there is none."""
    first, n = places.amin(-1), places.size(-1)
    return torch.where(first < n, first, -1)


def _what_followed(ids, last):
    """Return a token for each place, whatever stands where nothing was found."""
    n = ids.size(1)
    source = last + choose(1, same_token=0)
    return ids.gather(1, source.clamp(0, n - 1))


def _remembered(ids, one_memory=False, ahead=0):
    """Return guesses from a memory of who follows whom, as far as it has read."""
    follower, guesses = {}, []
    for row in ids.tolist():
        follower = follower if one_memory else {}
        for i, token in enumerate(row):
            follower.update(zip(row[: max(0, i + ahead)], row[1 : i + ahead + 1], strict=False))
            guesses.append(follower.get(token, -1))
        follower.update(zip(row[:-1], row[1:], strict=True))
    return torch.tensor(guesses).view_as(ids)
