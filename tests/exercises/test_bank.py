"""Every mistake in the bank fails its check and is called by its own name."""

import pytest

from transformer_lesson.exercises import check
from transformer_lesson.exercises.catalog import EXERCISES
from transformer_lesson.exercises.mistakes import MISTAKES
from transformer_lesson.exercises.recognition import outcome
from transformer_lesson.exercises.specification import DRAWS, Draw

CASES = [
    pytest.param(name, mistake, id=f"{name}-{mistake.name}".replace(" ", "_"))
    for name, mistakes in MISTAKES.items()
    for mistake in mistakes
]

WRITTEN = [  # from nothing
    name for name, one in EXERCISES.items() if not one.start and not one.marked
]


def test_every_exercise_has_four_mistakes_or_more():
    assert set(MISTAKES) == set(EXERCISES)
    assert {name: len(known) for name, known in MISTAKES.items() if len(known) < 4} == {}


@pytest.mark.parametrize("name", MISTAKES)
def test_names_are_unique(name):
    names = [mistake.name for mistake in MISTAKES[name]]
    assert len(set(names)) == len(names)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "mistake"), CASES)
def test_mistake_fails_and_is_recognized(name, mistake, record_property):
    record_property("mistake", f"{name}|{mistake.name}")
    report = check(name, lambda *inputs: mistake.version(*inputs))  # no start, to a bug hunt
    assert report.status == "failed", f"{name}: {mistake.name} was not noticed"
    if EXERCISES[name].marked:  # a second mistake goes by a name of its own there
        assert mistake.name.partition(" (and")[0] in report.mistake
    else:
        assert report.mistake == mistake.name
        said = f"This is what {mistake.name} gives. {mistake.explanation}\n"
        assert report.message.startswith(said)
    assert len(report.message) < 3000


@pytest.mark.parametrize(("name", "mistake"), CASES)
def test_explanation_is_a_few_sentences(name, mistake):
    """The name completes "This is what ... gives."; the explanation stands after it."""
    assert mistake.name[0] == mistake.name[0].lower()
    assert not mistake.name.endswith(".")
    assert 40 <= len(mistake.explanation) <= 400
    assert mistake.explanation.endswith((".", "?"))
    assert "  " not in mistake.explanation
    assert mistake.explanation.count("`") % 2 == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITTEN)
def test_no_mistake_is_known_by_an_error_alone(name):
    """An error of the same type on every draw may come from anything, and gets no name."""
    for mistake in MISTAKES[name]:
        draws = [EXERCISES[name].make_inputs(Draw(number)) for number in range(DRAWS)]
        outcomes = [outcome(mistake.version, inputs) for inputs in draws]
        assert not all(one.raised for one in outcomes), mistake.name
