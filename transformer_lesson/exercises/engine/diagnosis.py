"""Finding the mistakes that give what an answer gives, on every draw.

They are an exercise's own wrong turns, and those of the families that can befall any function.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from itertools import chain, combinations, product
from typing import NamedTuple

from transformer_lesson.exercises.engine.attempt import Outcome, outcome
from transformer_lesson.exercises.engine.choosing import fit_together, right_ways, turns, variant
from transformer_lesson.exercises.engine.compare import same, whole_as_float
from transformer_lesson.exercises.engine.families import (
    Member,
    Ours,
    by_a_factor,
    of_arguments,
    of_results,
)
from transformer_lesson.exercises.engine.specification import Draw, Exercise, Tried

Taken = frozenset[str]
SEEDS = range(1001, 1005)  # of further draws, which tell apart what the usual ones do not


class Diagnosis(NamedTuple):
    """What explains an answer.

    Args:
        fits: each the fewest mistakes that together give what it gives: names of wrong turns, and
            members of families. One mistake, or two; more than one fit if no draw tells them apart.
        exact: whether they explain the errors that it raises, too: see `_raises_alike`.
    """

    fits: list[tuple[str | Member, ...]]
    exact: bool = False


def diagnose(exercise: Exercise, answer: Callable) -> Diagnosis:
    """Return the fewest mistakes that together give what an answer gives on every draw.

    One explains more than two, an own turn more than a family's member, and two are the most that
    are looked for. What an answer raises, or leaves of its inputs, only decides between turns that
    give the same values: it may come from anything.

    Args:
        exercise: with a marked function.
        answer: fails the exercise's check.
    """
    tried = _Tried(exercise, answer)
    if not tried.valued:
        return Diagnosis([])
    for fits in (
        lambda: tried.own(1),
        lambda: () if tried.only_form else tried.family(),
        lambda: tried.own(2) if tried.telling and not tried.only_form else (),
        lambda: () if tried.only_form else tried.own_and_family(),
    ):
        found = list(fits())
        if found:
            return Diagnosis(found, tried.exact)
    return Diagnosis([])


class _Tried:
    """An answer's results on an exercise's draws, beside ours."""

    def __init__(self, exercise: Exercise, answer: Callable):
        self.exercise, self.answer = exercise, exercise.tried(answer)
        self.made = partial(_given, exercise.marked, exercise.trial, exercise.make_inputs)
        self.right = [self.made(frozenset(), n) for n in range(exercise.draws)]
        given = [outcome(self.answer, exercise.make_inputs(Draw(n))) for n in range(exercise.draws)]
        self.given = given
        self.mine = [self.as_ours(one, n) for n, one in enumerate(given)]
        is_right = [
            same(own.result, one.result) for own, one in zip(self.right, self.mine, strict=True)
        ]
        # or it breaks a rule alone: two turns would explain anything
        self.only_form = all(map(same, self.right, self.mine))
        # the draws in which the answer is wrong come first: they tell most turns apart from it
        run = [n for n, one in enumerate(self.mine) if not one.raised]
        self.valued = sorted(run, key=lambda n: is_right[n])
        self.some_wrong = bool(self.valued) and not is_right[self.valued[0]]
        self.exact = False
        # two turns would fit a handful of truths by chance
        self.telling = any(not isinstance(one.result, bool) for one in self.right)

    def as_ours(self, one: Outcome, n: int) -> Outcome:
        """Return an outcome with floats where ours has some."""
        return one._replace(result=whole_as_float(self.right[n].result, one.result))

    def own(self, count: int) -> list[tuple[str, ...]]:
        """Return the wrong turns, so many at once, that fit, the fewest other right ways first."""
        for level in _levels(self.exercise.marked, count):
            fitting = [taken for taken in level if self.fits(partial(self.made, taken))]
            exact = [taken for taken in fitting if self._is_exact(taken)]
            if exact or (fitting and self.some_wrong):
                left = self._told_apart(exact or fitting)
                self.exact = any(map(self._raises_alike, exact or fitting))
                return left
        return []

    def family(self) -> Iterable[tuple[Member]]:
        """Return the first member of a family that fits."""
        if not self.some_wrong:
            return ()
        ours = _ours(self.exercise)
        factor = by_a_factor(self.exercise, ours, self.mine, self.valued)
        if factor:
            return [(factor,)]
        members = chain(_of_results(self.exercise), _of_arguments(self.exercise))
        found = (one for one in members if self.fits(partial(ours.under, one)))
        return [(one,) for one in [next(found, None)] if one]

    def own_and_family(self) -> Iterable[tuple[str, Member]]:
        """Return the first wrong turn and member of a family that fit together."""
        if not self.some_wrong:
            return ()
        ours = _ours(self.exercise)
        for turn in turns(self.exercise.marked):
            base = partial(self.made, frozenset([turn]))
            for member in _of_results(self.exercise):
                if self.fits(lambda n, m=member, b=base: ours.under(m, n, b(n))):
                    return [(turn, member)]
        return ()

    def fits(self, given: Callable[[int], Outcome]) -> bool:
        """Return whether a mistake gives on each draw what the answer gives where it runs."""
        return all(_same_value(self.as_ours(given(n), n), self.mine[n]) for n in self.valued)

    def _is_exact(self, taken: Taken) -> bool:
        return all(same(self.made(taken, n), one) for n, one in enumerate(self.given))

    def _raises_alike(self, taken: Taken) -> bool:
        """Return whether turns raise where the answer raises first, and nowhere where it runs."""
        mine = [n for n, one in enumerate(self.given) if one.raised]
        made = [n for n in range(self.exercise.draws) if self.made(taken, n).raised]
        return made[:1] == mine[:1] and {*made} <= {*mine}

    def _told_apart(self, fitting: list[Taken]) -> list[tuple[str, ...]]:
        """Return the turns that still fit on further draws; none if more than two do."""
        known = turns(self.exercise.marked)
        named = {tuple(turn for turn in known if turn in taken): taken for taken in fitting}
        for number, seed in product(self.valued, SEEDS):
            if len(named) < 2:
                break
            draw = partial(Draw, number, seed=seed)
            mine = outcome(self.answer, self.exercise.make_inputs(draw()))
            if mine.raised:
                continue
            left = {
                turns: taken
                for turns, taken in named.items()
                if _same_value(self._on(taken, draw()), self.as_ours(mine, number))
            }
            named = left or named
        return list(named) if len(named) < 3 else []

    def _on(self, taken: Taken, draw: Draw) -> Outcome:
        made = self.exercise.tried(variant(self.exercise.marked, taken))
        return outcome(made, self.exercise.make_inputs(draw))


def _same_value(one: Outcome, other: Outcome) -> bool:
    """Return whether both give the same; a None that is returned is not an error that is raised."""
    return not one.raised and same(one.result, other.result)


def _levels(marked: Callable, n_wrong: int) -> Iterator[list[Taken]]:
    """All that is tried with so many wrong turns: each beside up to two right ways."""
    for n_right in (0, 1, 2):
        wrong = combinations(turns(marked), n_wrong)
        right = combinations(right_ways(marked), n_right)
        found = [frozenset(one + other) for one, other in product(wrong, right)]
        yield [taken for taken in found if fit_together(marked, taken)]


@lru_cache(maxsize=2500)
def _given(
    marked: Callable,
    trial: Callable | None,
    make_inputs: Callable,
    taken: Taken,
    number: int,
) -> Outcome:
    """Return what a variant gives on a draw."""
    made = variant(marked, taken)
    return outcome(Tried(trial, made) if trial else made, make_inputs(Draw(number)))


_KEPT: dict[str, tuple[Ours, tuple[Member, ...], tuple[Member, ...]]] = {}


def _kept(exercise: Exercise) -> tuple[Ours, tuple[Member, ...], tuple[Member, ...]]:
    if exercise.name not in _KEPT:
        ours = Ours(exercise)
        made = tuple(of_results(exercise, ours)), tuple(of_arguments(exercise, ours))
        _KEPT[exercise.name] = ours, *made
    return _KEPT[exercise.name]


def _ours(exercise: Exercise) -> Ours:
    return _kept(exercise)[0]


def _of_results(exercise: Exercise) -> tuple[Member, ...]:
    return _kept(exercise)[1]


def _of_arguments(exercise: Exercise) -> tuple[Member, ...]:
    return _kept(exercise)[2]


def forget() -> None:
    """Drop what variants gave: it is kept, for one answer is often tried and mended again."""
    _given.cache_clear()
    _KEPT.clear()
