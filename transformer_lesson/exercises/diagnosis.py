"""Finding the wrong turns that give what an answer gives, on every draw."""

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import combinations, product

from transformer_lesson.exercises.choosing import fit_together, right_ways, turns, variant
from transformer_lesson.exercises.compare import same
from transformer_lesson.exercises.recognition import Outcome, outcome
from transformer_lesson.exercises.specification import Draw, Exercise


def diagnose(exercise: Exercise, answer: Callable) -> list[tuple[str, ...]]:
    """Return the fewest wrong turns that together give what an answer gives on every draw.

    One wrong turn explains more than two, and two are the most that are looked for. Where several
    explanations fit equally well, all are returned; where none does, nothing is. An error of the
    same type may come from anything: a draw on which the answer raises counts only as long as
    something fits it too, and an answer that gives no wrong value anywhere gets no explanation.

    Args:
        exercise: with a marked function.
        answer: fails the exercise's check.
    """
    given = partial(_given, exercise.marked, exercise.make_inputs)
    mine = [outcome(answer, exercise.make_inputs(Draw(n))) for n in range(exercise.draws)]
    # the draws in which the answer is wrong come first: they tell most turns apart from it
    order = sorted(range(len(mine)), key=lambda n: same(given(frozenset(), n), mine[n]))
    valued = [n for n in order if not mine[n].raised]
    if not valued or same(given(frozenset(), valued[0]), mine[valued[0]]):
        return []
    for draws in (order, valued) if len(valued) < len(order) else (order,):
        for level in _levels(exercise.marked):
            fitting = [
                taken for taken in level if all(same(given(taken, n), mine[n]) for n in draws)
            ]
            if fitting:
                known = turns(exercise.marked)
                named = [tuple(turn for turn in known if turn in taken) for taken in fitting]
                return list(dict.fromkeys(named))
    return []


def _levels(marked: Callable) -> Iterator[list[frozenset[str]]]:
    """All that is tried: first one wrong turn, then two, each beside up to two right ways."""
    for n_wrong, n_right in product((1, 2), (0, 1, 2)):
        wrong, right = (
            combinations(turns(marked), n_wrong),
            combinations(right_ways(marked), n_right),
        )
        found = [frozenset(one + other) for one, other in product(wrong, right)]
        yield [taken for taken in found if fit_together(marked, taken)]


@lru_cache(maxsize=2000)
def _given(marked: Callable, make_inputs: Callable, taken: frozenset[str], number: int) -> Outcome:
    """Return what a variant gives on a draw."""
    return outcome(variant(marked, taken), make_inputs(Draw(number)))
