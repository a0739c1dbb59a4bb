"""Bosses: every bug shows and none hides another; probes cost, mended functions give points."""

import math
import re
from functools import cache

import pytest
import torch

from transformer_lesson.exercises import boss as bosses
from transformer_lesson.exercises import program as programs
from transformer_lesson.exercises.boss import (
    BUGS,
    SUITED,
    WORTH,
    WRONG,
    Boss,
    healthy,
    planted_bugs,
    printed,
)
from transformer_lesson.exercises.engine.attempt import outcome
from transformer_lesson.exercises.engine.catalog import find
from transformer_lesson.exercises.engine.choosing import turns, variant
from transformer_lesson.exercises.engine.compare import same
from transformer_lesson.exercises.engine.specification import Draw
from transformer_lesson.exercises.probing import PROBES
from transformer_lesson.exercises.program import FUNCTIONS, program, sources, started

SEED = 7
THIRTY = [SEED, *(pytest.param(n, marks=pytest.mark.release) for n in range(30) if n != SEED)]
pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def unchecked_shapes(unchecked):
    """As in a learner's notebook."""


def right(name):
    return find(name).load_reference()


@pytest.mark.parametrize("seed", THIRTY)
def test_each_bug_of_a_boss_shows_and_hides_no_other(seed):
    bugs = planted_bugs(seed)
    assert len(dict(bugs)) == BUGS
    whole = printed(bugs)
    for bug in bugs:
        alone, mended = printed([bug]), printed([one for one in bugs if one != bug])
        assert alone != printed() and mended != whole, bug
        assert bosses.whats_wrong(bug[0], variant(find(bug[0]).marked, frozenset([bug[1]])))
    losses = bosses._run_program(bugs)[1]
    assert all(map(math.isfinite, losses))


@pytest.mark.everything
@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_suited_turn_changes_what_is_printed_and_some_probe_tells_it(name):
    right = healthy()[0]
    for turn in SUITED[name].split():
        assert printed([(name, turn)]) != printed(), turn
        sick = started(program(((name, turn),)))
        probe = {"rate_at": "rates", "write_on": "trained weights"}.get(name, "layer by layer")
        said = PROBES[probe].take(sick, right)
        both = [one.partition(": ")[2] for one in said.splitlines()]
        assert f"`{name}`" in said if probe == "layer by layer" else both[0] != both[1], turn


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_that_was_tidied_does_what_its_variant_does(name):
    exercise = find(name)
    for turn in ("", *SUITED[name].split()[:2]):
        taken = frozenset(filter(None, [turn]))
        source = sources(((name, turn),) if turn else ())
        tidied = started("\n\n".join([programs.imports(source), *source.values()]))[name]
        for i in range(exercise.draws):
            inputs = exercise.make_inputs(Draw(i))
            expected = outcome(exercise.tried(variant(exercise.marked, taken)), inputs)
            assert same(expected, outcome(exercise.tried(tidied), exercise.make_inputs(Draw(i))))


def test_the_program_is_plain_python_that_learns_and_writes():
    for name, suited in SUITED.items():
        assert set(suited.split()) <= set(turns(find(name).marked)), name
    assert set(SUITED) == set(FUNCTIONS) and "choose" not in program()
    _, losses, sentences = healthy()
    assert losses[0] > 2.9 and losses[-1] < 0.8
    assert sentences[0].split()[-1] == "auf" and sentences[2].split()[-1] == "ein"


def test_mending_all_gives_full_points_and_makes_the_program_healthy():
    boss = Boss(SEED)
    assert "0 of 3 bugs" in repr(boss) and boss.check().status == "not attempted"
    names = [name for name, _ in planted_bugs(SEED)]
    assert all(boss.accuse(name).status == "failed" for name in names) and boss.points == 0
    symptoms = boss.losses
    report = boss.check(right(names[0]))
    assert "1 of 3 bugs" in report.message and boss.losses != symptoms  # it ran again
    assert not any(f"`{name}`" in report.message for name in names[1:])
    report = boss.check(*map(right, names[1:]))
    assert report.status == "passed" and boss.points == 30
    assert same(torch.tensor(boss.losses), torch.tensor(healthy()[1]))
    assert boss.sentences == healthy()[2] and "sick" not in repr(boss)


def test_code_is_closed_until_a_right_verdict_and_minutes_and_wrong_verdicts_cost_points():
    boss, names = Boss(SEED), [name for name, _ in planted_bugs(SEED)]
    sound = next(name for name in FUNCTIONS if name not in names)
    for name in (names[0], sound):
        for closed in (boss.show, lambda name: boss.check(right(name))):
            with pytest.raises(ValueError, match=f"`{name}` is closed until your verdict"):
                closed(name)
    boss.accuse(names[0])
    assert boss.show(names[0]) == sources(planted_bugs(SEED))[names[0]]
    assert "is not right yet" in boss.check(boss.names[names[0]]).message and boss.points == 0
    boss.check(right(names[0]))
    assert boss.points == 10
    for _ in range(2):  # the second time costs nothing
        assert f"`{sound}` is sound." in boss.accuse(sound).message and boss.points == 5
    assert "5 minutes" in boss.probe("layer by layer") and boss.points == 0
    assert "minus 5 for minutes of probes, minus 5 for wrong verdicts" in repr(boss)


def test_guessing_pays_little_and_the_dearest_probe_alone_pays_more():
    @cache
    def guessed(found: int, sound: int) -> float:
        """The mean points of somebody who accuses at random, and stops at the best moment."""
        now, left = max(0, WORTH * found - WRONG * sound), len(FUNCTIONS) - found - sound
        chance = (BUGS - found) / left if left else 0
        if not chance:
            return now
        hit, miss = guessed(found + 1, sound), guessed(found, sound + 1)
        return max(now, chance * hit + (1 - chance) * miss)

    assert guessed(0, 0) < 6 and WORTH * BUGS < WRONG * (len(FUNCTIONS) - BUGS)
    boss = Boss(16)
    for _ in range(BUGS):
        name = re.search("`(.+)`", boss.probe("layer by layer"))[1]
        boss.accuse(name)
        boss.check(right(name))
    assert boss.points == 15


def test_a_probe_leaves_the_program_as_it_was_and_says_the_same_twice():
    boss = Boss(SEED)
    before, state = dict(boss.names), torch.get_rng_state()
    for name in PROBES:
        first, second = boss.probe(name), boss.probe(name)
        assert first.splitlines()[:-1] == second.splitlines()[:-1], name
    assert boss.names == before and torch.equal(torch.get_rng_state(), state)
    assert boss.minutes == 2 * sum(probe.cost for probe in PROBES.values())


TOLD = {
    "leak": ("causal_mask", "one_ahead"),
    "padding": ("padding_mask", "inverted"),
    "order": ("sinusoidal_encoding", "frequency_alone"),
    "rates": ("rate_at", "in_epochs"),
    "gradients": ("feed_forward", "signs"),
    "one batch": ("rate_at", "tenth_of_the_rate"),
    "trained weights": ("write_on", "multiplied"),
    "initial loss": ("shifted_loss", "second_softmax"),
}


@pytest.mark.parametrize("name", TOLD)
def test_a_probe_tells_what_it_is_for(name):
    sick = started(program((TOLD[name],)))
    said = PROBES[name].take(sick, healthy()[0]).splitlines()
    assert said[0].partition(": ")[2] != said[1].partition(": ")[2]
    for turn in SUITED["padding_mask"].split() if name == "padding" else ():
        found = PROBES[name].take(started(program((("padding_mask", turn),))), healthy()[0])
        moved = [float(line.rpartition(" ")[2]) for line in found.splitlines()]
        assert moved[0] > 0.1 and moved[1] == 0  # by more than rounding


def test_layer_by_layer_names_the_first_of_several_and_then_the_next():
    sick = started(program((("causal_mask", "everything"), ("layer_norm", "swapped"))))
    for name in ("causal_mask", "layer_norm"):
        assert f"`{name}`" in PROBES["layer by layer"].take(sick, healthy()[0])
        sick[name] = right(name)
    assert "every function" in PROBES["layer by layer"].take(sick, healthy()[0])


def test_the_last_boss_is_the_learners_own(tmp_path, monkeypatch):
    def layer_norm(*inputs):
        return right("layer_norm")(*inputs)

    found = {"layer_norm": layer_norm, "causal_mask": lambda n: torch.ones(1, 1, n, n).bool()}
    monkeypatch.setattr(bosses, "collection_folder", lambda: tmp_path)
    monkeypatch.setattr(bosses, "load_collected", lambda folder: (found, {}))
    boss = Boss(SEED, mine=True)
    assert boss.yours == {"layer_norm": layer_norm}  # what is wrong is not taken
    ((sick, turn),) = planted_bugs(SEED, 1)
    for closed in (lambda: boss.show(sick), lambda: boss.check(right(sick))):
        with pytest.raises(ValueError, match="a verdict is all"):
            closed()
    other = next(name for name in FUNCTIONS if name != sick)
    assert boss.accuse(other).status == "failed"
    report = boss.accuse(sick)
    assert report.status == "passed" and boss.points == 5
    assert not [*tmp_path.iterdir()]


def test_what_a_boss_does_not_know_gets_a_sentence():
    for seed in (-1, 10_000, 3.0, True, "7", None):
        with pytest.raises(ValueError, match="whole number from 0 to 9999"):
            Boss(seed)
    for call in (Boss(SEED).show, Boss(SEED).accuse):
        with pytest.raises(ValueError, match="has no exercise 'beam_search'"):
            call("beam_search")
