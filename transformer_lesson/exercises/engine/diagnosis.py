"""Finding the wrong turns that give what an answer gives, on every draw."""

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import combinations, islice, product

from transformer_lesson.exercises.engine.attempt import Outcome, outcome
from transformer_lesson.exercises.engine.choosing import fit_together, right_ways, turns, variant
from transformer_lesson.exercises.engine.compare import same, whole_as_float
from transformer_lesson.exercises.engine.specification import Draw, Exercise, Tried


def diagnose(exercise: Exercise, answer: Callable) -> list[tuple[str, ...]]:
    """Return the fewest wrong turns that together give what an answer gives on every draw.

    One wrong turn explains more than two, and two are the most that are looked for. Where several
    explanations fit equally well, all are returned; where none does, nothing is. What an answer
    raises, or leaves of its inputs, only decides between turns that give the same values: it may
    come from anything.

    Args:
        exercise: with a marked function.
        answer: fails the exercise's check.
    """
    made = partial(_given, exercise.marked, exercise.trial, exercise.make_inputs)
    ours = [made(frozenset(), n) for n in range(exercise.draws)]

    def as_ours(one: Outcome, n: int) -> Outcome:
        return one._replace(result=whole_as_float(ours[n].result, one.result))

    answer = exercise.tried(answer)
    given = [outcome(answer, exercise.make_inputs(Draw(n))) for n in range(exercise.draws)]
    mine = [as_ours(one, n) for n, one in enumerate(given)]
    right = [same(own.result, one.result) for own, one in zip(ours, mine, strict=True)]
    only_form = all(map(same, ours, mine))  # or it breaks a rule: two turns would explain anything
    # the draws in which the answer is wrong come first: they tell most turns apart from it
    valued = sorted((n for n, one in enumerate(mine) if not one.raised), key=lambda n: right[n])
    levels = islice(_levels(exercise.marked), 1 if only_form else None)
    for level in levels if valued else ():
        fitting = [
            taken
            for taken in level
            if all(_same_value(as_ours(made(taken, n), n), mine[n]) for n in valued)
        ]
        exact = [
            taken
            for taken in fitting
            if all(same(made(taken, n), one) for n, one in enumerate(given))
        ]
        if exact or (fitting and not right[valued[0]]):
            known = turns(exercise.marked)
            named = [tuple(turn for turn in known if turn in taken) for taken in exact or fitting]
            return list(dict.fromkeys(named))
    return []


def _same_value(one: Outcome, other: Outcome) -> bool:
    """Return whether both give the same; a None that is returned is not an error that is raised."""
    return not one.raised and same(one.result, other.result)


def _levels(marked: Callable) -> Iterator[list[frozenset[str]]]:
    """All that is tried: first one wrong turn, then two, each beside up to two right ways."""
    for n_wrong, n_right in product((1, 2), (0, 1, 2)):
        wrong, right = (
            combinations(turns(marked), n_wrong),
            combinations(right_ways(marked), n_right),
        )
        found = [frozenset(one + other) for one, other in product(wrong, right)]
        yield [taken for taken in found if fit_together(marked, taken)]


@lru_cache(maxsize=2500)
def _given(
    marked: Callable,
    trial: Callable | None,
    make_inputs: Callable,
    taken: frozenset[str],
    number: int,
) -> Outcome:
    """Return what a variant gives on a draw."""
    made = variant(marked, taken)
    return outcome(Tried(trial, made) if trial else made, make_inputs(Draw(number)))


forget = _given.cache_clear
"""Drop what variants gave: it is kept, for one answer is often tried and mended and tried again."""
