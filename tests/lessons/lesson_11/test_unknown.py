"""Unknown models: thirty rules, each as learned; forty runs; a check that no rule can upset."""

import itertools
import re

import pytest
import torch

from transformer_lesson.lessons.lesson_11 import hidden_rules, unknown
from transformer_lesson.lessons.lesson_11.train_unknown import drawn
from transformer_lesson.lessons.lesson_11.unknown import RUNS, Unknown

IDS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]


def hidden(number):
    return lambda ids: hidden_rules.hidden_rule(number, torch.tensor([ids]))[0].tolist()


@pytest.fixture
def model():
    return Unknown(3)


def test_each_number_has_a_rule_of_its_own_and_follows_it_where_it_was_trained():
    probe, said = drawn(64, torch.Generator().manual_seed(1)), []
    for number in range(1, hidden_rules.MODELS + 1):
        own = hidden_rules.hidden_rule(number, probe)
        assert not any(torch.equal(own, other) for other in said)
        said.append(own)
        with torch.no_grad():
            same = hidden_rules.trained_model(number)(probe).argmax(dim=-1) == own
        assert same.float().mean() > 0.998, number
    for first in range(1, hidden_rules.MODELS, 3):  # each three have the three rules
        rules = {hidden_rules.renamed(first + i).rule for i in range(3)}
        assert rules == hidden_rules.RULES.keys()


def test_the_rules_are_what_they_say():
    def one(rule, *ids):
        return rule(torch.tensor([ids]))[0].tolist()

    assert one(hidden_rules.follow, 3, 7, 5, 3, 0, 7) == [3, 7, 5, 7, 3, 5]
    assert one(hidden_rules.distance, 5, 7, 1, 2) == [5, 7, 5, 7]
    assert one(hidden_rules.separator, 5, 0, 7, 1, 0, 2) == [5, 0, 7, 7, 7, 2]
    assert one(hidden_rules.separator, 0, 0, 3) == [0, 0, 3]


def test_a_run_shows_what_the_model_does_and_its_rule_is_nowhere_in_sight(model):
    run = model.record(torch.tensor(IDS))
    there = torch.tensor([IDS])
    wanted = hidden_rules.trained_model(3)(there).argmax(dim=-1)[0].tolist()
    assert run.guesses == wanted and run.ids == IDS and model.runs == [run]
    assert [w.shape for w in run.weights.values()] == [(12, 12)] * 4
    lines = repr(run).splitlines()
    assert lines[1].split() == ["token", *map(str, IDS)]
    assert lines[2].split() == ["guess", *map(str, wanted)]
    assert lines[-1].split()[3:] == [str(i) for i in run.weights["1.1"].argmax(-1).tolist()]
    assert repr(model) == "Unknown model 3: 39 of 40 runs left." and model.runs_left == 39
    assert not {"follow", "distance", "separator"} & {*repr(vars(model)).split()}


def test_a_head_that_sends_what_it_sent_for_another_sequence_is_the_only_change(model):
    other = [*IDS[:-1], 1]
    same = model.put_back(IDS, IDS, "1.0")
    assert same.guesses == model.record(IDS).guesses
    every = [model.put_back(IDS, other, head) for head in unknown.HEADS]
    assert all(run.guesses[:-1] == same.guesses[:-1] for run in every)  # they differ at the end
    assert every[2].changed == f"head 1.0 sent what it sends for {other}"
    assert every[2].changed in repr(every[2])
    heads_of_block_0 = [every[2].weights[name] for name in ("0.0", "0.1")]
    assert all(map(torch.equal, heads_of_block_0, list(same.weights.values())[:2]))


def test_forty_runs_and_a_forty_first_loses_nothing(model):
    for _ in range(RUNS):
        model.record([1, 2])
    for call in (lambda: model.record([1]), lambda: model.put_back([1], [2], "0.0")):
        with pytest.raises(ValueError, match=r"^All 40 runs are used up: .*`check` costs nothing"):
            call()
    assert len(model.runs) == 40 and model.check(hidden(3)).status == "half done"
    assert unknown.unknown(3) is unknown.unknown(3)  # a cell that runs again pays on


@pytest.mark.parametrize(
    "ids, said",
    [
        ([], "reads 1 to 32 tokens, and here are 0"),
        ([1] * 33, "and here are 33"),
        ([1, 12], "from 0 to 11, and 12 is none"),
        ([-1], "and -1 is none"),
        (7, "Pass a list of tokens"),
        ("ab", "Pass a list of tokens"),
        ([1.5], "Pass a list of tokens"),
        ([[1, 2]], "Pass a list of tokens"),
        (None, "Pass a list of tokens"),
    ],
)
def test_what_the_model_cannot_read_costs_nothing(model, ids, said, unchecked):
    for call in (lambda: model.record(ids), lambda: model.put_back([1], ids, "0.0")):
        with pytest.raises(ValueError, match=said):
            call()
    if ids is not None:
        with pytest.raises(ValueError, match=said):
            model.check(hidden(3), breaks=ids)
    with pytest.raises(ValueError, match="2 and 1 tokens: make them equally"):
        model.put_back([1, 2], [1], "0.0")
    with pytest.raises(ValueError, match="no head '2.0': take one of 0.0"):
        model.put_back([1], [1], "2.0")
    for number in (0, 31, 1.0, "1", True, None):
        with pytest.raises(ValueError, match="whole numbers from 1 to 30"):
            unknown.unknown(number)
    assert model.runs_left == 40


def test_a_rule_passes_if_it_holds_as_in_training_and_is_broken(model):
    holds = model.check(hidden(3))
    assert holds.status == "half done" and "200 of 200" in holds.message.splitlines()[0]
    assert "It holds as in training. Now break it" in holds.message.splitlines()[-1]
    unbroken = model.check(hidden(3), breaks=[1, 2])
    assert unbroken.status == "half done" and "agree at all 2 places" in unbroken.message
    assert "Break it elsewhere" in unbroken.message
    long = next(
        ids
        for ids in unknown._random(32, 12, 7).tolist()
        if unknown._read(3, ids).guesses != hidden(3)(ids)
    )
    cracked = model.check(lambda ids: torch.tensor(hidden(3)(ids)), breaks=torch.tensor(long))
    assert cracked.status == "passed" and "Your input breaks it: at place" in cracked.message
    assert "Cracked" in cracked.message and model.runs_left == 40


def test_a_rule_that_is_nearly_right_is_told_so_and_nothing_of_the_model(model):
    def without_the_joker(ids):
        return [
            ids[max(i for i in range(p) if ids[i] == t) + 1] if t in ids[:p] else t
            for p, t in enumerate(ids)
        ]

    report = model.check(without_the_joker, breaks=IDS)
    assert report.status == "failed" and "You are right at 9" in report.message
    assert "You are right at" in model.check(lambda ids: ids).message


def endless(ids):
    for _ in itertools.count():
        pass


def changing(ids):
    ids.append(1)
    return ids


def test_no_rule_upsets_the_check(model, monkeypatch, unchecked):
    monkeypatch.setattr(unknown, "ANSWER_SECONDS", 0.5)
    for rule, said in (
        (lambda ids: ids[99], "Your rule raised IndexError .* on "),
        (lambda ids: ids[:-1], "Return 24 guesses for 24 tokens: yours are 23"),
        (lambda ids: None, "Return a list of whole numbers, .*: yours is None"),
        (lambda ids: [0.5] * len(ids), "Return a list of whole numbers"),
        (lambda: 1, "Your rule raised TypeError"),
        (changing, "changes the list that it is given"),
        (endless, "did not come to its end within"),
        ([1, 2], "Pass the function itself"),
    ):
        report = model.check(rule)
        assert report.status == "failed"
        assert re.search(said, report.message), report.message

    def blank(ids):
        raise NotImplementedError

    assert model.check(blank).status == "not attempted"
