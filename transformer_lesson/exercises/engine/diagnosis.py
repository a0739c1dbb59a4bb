"""Finding the mistakes that reproduce an answer's results on every draw.

Candidates are the exercise's own wrong turns, and families of mistakes possible in any function.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from itertools import chain, combinations, product
from typing import Any, NamedTuple

from transformer_lesson.exercises.engine.attempt import Outcome, outcome
from transformer_lesson.exercises.engine.choosing import fit_together, right_ways, turns, variant
from transformer_lesson.exercises.engine.compare import is_readable, same, whole_as_float
from transformer_lesson.exercises.engine.families import (
    Member,
    Ours,
    by_a_factor,
    by_an_argument,
    of_arguments,
    of_results,
)
from transformer_lesson.exercises.engine.specification import Draw, Exercise, Tried

Taken = frozenset[str]
SEEDS = range(1001, 1005)  # of extra draws, to tell apart turns that agree on the usual ones


class Diagnosis(NamedTuple):
    """The mistakes that explain an answer.

    Args:
        fits: alternative explanations, if no draw tells them apart; each is one or two mistakes
            that reproduce the answer: names of wrong turns, or members of families.
        exact: whether they also explain the errors it raises; see `_raises_alike`.
    """

    fits: list[tuple[str | Member, ...]]
    exact: bool = False


def diagnose(exercise: Exercise, answer: Callable) -> Diagnosis:
    """Return the fewest mistakes, one or two, that reproduce an answer's results on every draw.

    One mistake is preferred to two, and the exercise's own turns to families. What an answer raises
    or does to its inputs only decides between turns that give the same values, because it could
    have many causes.

    Args:
        exercise: has a marked function.
        answer: fails the exercise's check.
    """
    comparison = _Comparison(exercise, answer)
    if not comparison.valued:
        return Diagnosis([])
    for fits in (
        lambda: comparison.own(1),
        lambda: () if comparison.only_form else comparison.family(),
        lambda: comparison.own(2) if comparison.telling and not comparison.only_form else (),
        lambda: () if comparison.only_form else comparison.own_and_family(),
    ):
        fitting = list(fits())
        if fitting:
            return Diagnosis(fitting, comparison.exact)
    return Diagnosis([])


class _Comparison:
    """An answer's results on an exercise's draws, compared with ours and with variants'."""

    def __init__(self, exercise: Exercise, answer: Callable):
        self.exercise, self.answer = exercise, exercise.tried(answer)
        self.variant = partial(
            _variant_outcome, exercise.marked, exercise.trial, exercise.make_inputs
        )
        self.right = [self.variant(frozenset(), n) for n in range(exercise.draws)]
        outcomes = [
            outcome(self.answer, exercise.make_inputs(Draw(n))) for n in range(exercise.draws)
        ]
        self.outcomes = outcomes
        self.mine = [self.as_ours(theirs, n) for n, theirs in enumerate(outcomes)]
        is_right = [
            same(ours.result, theirs.result)
            for ours, theirs in zip(self.right, self.mine, strict=True)
        ]
        # the values are right but a rule is broken: families and pairs would explain anything
        self.only_form = all(map(same, self.right, self.mine))
        # draws with wrong values come first: they rule out most turns
        run = [n for n, theirs in enumerate(self.mine) if not theirs.raised]
        self.valued = sorted(run, key=lambda n: is_right[n])
        self.some_wrong = bool(self.valued) and not is_right[self.valued[0]]
        self.exact = False
        # a family may make NaN of anything: a logarithm, a root
        self.nowhere_finite = not any(_some_finite(self.mine[n].result) for n in run)
        # pairs of turns would fit a handful of booleans by chance
        self.telling = any(not isinstance(ours.result, bool) for ours in self.right)

    def as_ours(self, theirs: Outcome, n: int) -> Outcome:
        """Return an outcome with floats where ours has floats."""
        return theirs._replace(result=whole_as_float(self.right[n].result, theirs.result))

    def own(self, count: int) -> list[tuple[str, ...]]:
        """Return the sets of `count` wrong turns that fit, with the fewest other right ways."""
        for level in _levels(self.exercise.marked, count):
            fitting = [taken for taken in level if self.fits(partial(self.variant, taken))]
            exact = [taken for taken in fitting if self._is_exact(taken)]
            if exact or (fitting and self.some_wrong):
                names = self._told_apart(exact or fitting)
                self.exact = any(map(self._raises_alike, exact or fitting))
                return names
        return []

    def family(self) -> Iterable[tuple[Member]]:
        """Return the first member of a family that fits."""
        if not self.some_wrong or self.nowhere_finite:
            return ()
        ours = _ours(self.exercise)
        for related in (by_a_factor, by_an_argument):
            member = related(self.exercise, ours, self.mine, self.valued)
            if member:
                return [(member,)]
        members = chain(_of_results(self.exercise), _of_arguments(self.exercise))
        fitting = (member for member in members if self.fits(partial(ours.under, member)))
        return [(member,) for member in [next(fitting, None)] if member]

    def own_and_family(self) -> Iterable[tuple[str, Member]]:
        """Return the first wrong turn and family member that fit together."""
        if not self.some_wrong or self.nowhere_finite:
            return ()
        ours = _ours(self.exercise)
        for turn in turns(self.exercise.marked):
            base = partial(self.variant, frozenset([turn]))
            for member in _of_results(self.exercise):
                if self.fits(lambda n, m=member, b=base: ours.under(m, n, b(n))):
                    return [(turn, member)]
        return ()

    def fits(self, outcome_of: Callable[[int], Outcome]) -> bool:
        """Return whether a mistake reproduces the answer on each draw where the answer runs."""
        return all(_same_value(self.as_ours(outcome_of(n), n), self.mine[n]) for n in self.valued)

    def _is_exact(self, taken: Taken) -> bool:
        return all(same(self.variant(taken, n), theirs) for n, theirs in enumerate(self.outcomes))

    def _raises_alike(self, taken: Taken) -> bool:
        """Return whether turns first raise where the answer does, and only where it does."""
        answer_raises = [n for n, theirs in enumerate(self.outcomes) if theirs.raised]
        variant_raises = [n for n in range(self.exercise.draws) if self.variant(taken, n).raised]
        return variant_raises[:1] == answer_raises[:1] and {*variant_raises} <= {*answer_raises}

    def _told_apart(self, fitting: list[Taken]) -> list[tuple[str, ...]]:
        """Return the turns that also fit on extra draws; none if more than two do."""
        all_turns = turns(self.exercise.marked)
        named = {tuple(turn for turn in all_turns if turn in taken): taken for taken in fitting}
        for number, seed in product(self.valued, SEEDS):
            if len(named) < 2:
                break
            draw = partial(Draw, number, seed=seed)
            mine = outcome(self.answer, self.exercise.make_inputs(draw()))
            if mine.raised:
                continue
            still_fitting = {
                turns: taken
                for turns, taken in named.items()
                if _same_value(self._outcome_on(taken, draw()), self.as_ours(mine, number))
            }
            named = still_fitting or named
        return list(named) if len(named) < 3 else []

    def _outcome_on(self, taken: Taken, draw: Draw) -> Outcome:
        function = self.exercise.tried(variant(self.exercise.marked, taken))
        return outcome(function, self.exercise.make_inputs(draw))


def _same_value(one: Outcome, other: Outcome) -> bool:
    """Return whether both return the same; a returned None differs from a raised error."""
    return not one.raised and same(one.result, other.result)


def _some_finite(result: Any) -> bool:
    """Return whether a result holds anything but NaN."""
    if isinstance(result, list):
        return any(map(_some_finite, result))
    if is_readable(result):
        return not bool(result.isnan().all())
    return not (isinstance(result, float) and math.isnan(result))


def _levels(marked: Callable, n_wrong: int) -> Iterator[list[Taken]]:
    """Yield all combinations of `n_wrong` wrong turns with zero, one and two other right ways."""
    for n_right in (0, 1, 2):
        wrong = combinations(turns(marked), n_wrong)
        right = combinations(right_ways(marked), n_right)
        combined = [frozenset(turns + other) for turns, other in product(wrong, right)]
        yield [taken for taken in combined if fit_together(marked, taken)]


@lru_cache(maxsize=2500)
def _variant_outcome(
    marked: Callable,
    trial: Callable | None,
    make_inputs: Callable,
    taken: Taken,
    number: int,
) -> Outcome:
    """Return a variant's outcome on a draw."""
    function = variant(marked, taken)
    return outcome(Tried(trial, function) if trial else function, make_inputs(Draw(number)))


_FAMILIES: dict[str, tuple[Ours, tuple[Member, ...], tuple[Member, ...]]] = {}


def _ours_and_families(exercise: Exercise) -> tuple[Ours, tuple[Member, ...], tuple[Member, ...]]:
    if exercise.name not in _FAMILIES:
        ours = Ours(exercise)
        members = tuple(of_results(exercise, ours)), tuple(of_arguments(exercise, ours))
        _FAMILIES[exercise.name] = ours, *members
    return _FAMILIES[exercise.name]


def _ours(exercise: Exercise) -> Ours:
    return _ours_and_families(exercise)[0]


def _of_results(exercise: Exercise) -> tuple[Member, ...]:
    return _ours_and_families(exercise)[1]


def _of_arguments(exercise: Exercise) -> tuple[Member, ...]:
    return _ours_and_families(exercise)[2]


def forget() -> None:
    """Empty the caches, which exist because an answer is often checked and corrected repeatedly."""
    _variant_outcome.cache_clear()
    _FAMILIES.clear()
