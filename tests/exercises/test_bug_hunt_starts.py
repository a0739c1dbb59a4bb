"""The bug that a learner starts from is one of the wrong turns."""

import pytest

from transformer_lesson.exercises import check
from transformer_lesson.exercises.catalog import EXERCISES
from transformer_lesson.exercises.engine.attempt import outcome
from transformer_lesson.exercises.engine.choosing import turns, variant
from transformer_lesson.exercises.engine.compare import same
from transformer_lesson.exercises.engine.explanation import words
from transformer_lesson.exercises.engine.specification import Draw

STARTED = [name for name, one in EXERCISES.items() if one.start]


@pytest.mark.parametrize("name", STARTED)
def test_the_start_is_a_turn_and_is_named(name):
    exercise, start = EXERCISES[name], EXERCISES[name].load_start()

    def outcomes(function) -> list:
        return [outcome(function, exercise.make_inputs(Draw(i))) for i in range(exercise.draws)]

    given = outcomes(start)
    known = turns(exercise.marked)
    variants = {turn: variant(exercise.marked, frozenset([turn])) for turn in known}
    found = [turn for turn in known if all(map(same, outcomes(variants[turn]), given))]
    assert len(found) == 1
    report = check(name, lambda *inputs: start(*inputs))  # written anew
    assert (report.status, report.mistake) == ("failed", words(name)[found[0]].name)
