"""Every wrong turn, and every two, are called by their names.

The tests of one exercise run one after the other: so each variant is called once, and kept.
"""

import re
from itertools import combinations

import pytest
import torch

from transformer_lesson.exercises import check, ways_to_fail
from transformer_lesson.exercises.engine import choosing, diagnosis, hints
from transformer_lesson.exercises.engine.attempt import outcome
from transformer_lesson.exercises.engine.catalog import EXERCISES
from transformer_lesson.exercises.engine.choosing import TAKEN, fit_together, turns, variant
from transformer_lesson.exercises.engine.compare import same
from transformer_lesson.exercises.engine.diagnosis import diagnose
from transformer_lesson.exercises.engine.specification import Draw
from transformer_lesson.exercises.engine.wording import words
from transformer_lesson.model.attention import merge_heads, split_heads

PAIRS = 8  # of an exercise, that are tried
each_exercise = pytest.mark.parametrize("name", EXERCISES, scope="module")


@pytest.fixture(autouse=True)
def one_thread(unchecked):
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def outcomes(name, function) -> list:
    exercise = EXERCISES[name]
    tried = exercise.tried(function)
    return [outcome(tried, exercise.make_inputs(Draw(i))) for i in range(exercise.draws)]


def variant_of(name, *taken):
    return variant(EXERCISES[name].marked, frozenset(taken))


def outcomes_of(name, *taken) -> list:
    exercise = EXERCISES[name]
    key = exercise.marked, exercise.trial, exercise.make_inputs, frozenset(taken)
    return [diagnosis._variant_outcome(*key, i) for i in range(exercise.draws)]


@each_exercise
def test_each_turn_has_a_name_of_its_own_and_a_reason(name):
    said = words(name)
    assert set(said) == set(turns(EXERCISES[name].marked))
    assert len({turn.name for turn in said.values()}) == len(said)
    for turn in said.values():
        assert turn.name[0] == turn.name[0].lower() and turn.why.endswith((".", "?"))
        assert turn.why.count("`") % 2 == 0


@pytest.mark.slow
@each_exercise
def test_without_a_turn_it_is_the_packages_own(name):
    ours = outcomes(name, EXERCISES[name].load_reference())
    assert not any(one.raised for one in ours)
    for way in ((), *((way,) for way in choosing.right_ways(EXERCISES[name].marked))):
        assert all(map(same, ours, outcomes_of(name, *way))), way


@pytest.mark.slow
@each_exercise
def test_each_turn_fails_and_is_named(name, monkeypatch):
    """And stands, with what it gets wrong, among the ways to fail."""
    unnamed, messages, known = {}, {}, words(name)
    for turn, said in known.items():
        report = check(name, variant_of(name, turn))
        messages[frozenset([turn])] = report.message
        named = report.status == "failed" and report.mistake == said.name
        if not named or said.why not in report.message:
            unnamed[turn] = report.message
        assert len(str(report).splitlines()) <= 25, report
    assert unnamed == {}
    monkeypatch.setattr(
        hints, "run_checks", lambda exercise, answer: messages[answer.__globals__[TAKEN]]
    )
    fold = ways_to_fail(name)
    assert repr(fold) == f"{name}: {len(known)} ways to fail"
    shown = re.findall(r"^\d+\. \*\*(.*)\.\*\* .*\n\n```text\n(.+)", fold.body, re.MULTILINE)
    assert shown == [
        (turn.name, message.splitlines()[0])
        for turn, message in zip(known.values(), messages.values(), strict=True)
    ]


@pytest.mark.everything
@pytest.mark.slow
@each_exercise
def test_two_turns_at_once_are_both_named(name):
    """Or the one that acts alike, or none; what only raises errors may come from anything.

    Nothing need be said of two that act as two others do: nobody could know.
    """
    exercise, found = EXERCISES[name], {"named": 0, "wrongly": 0, "unsaid": 0, "passing": []}
    pairs = combinations(turns(exercise.marked), 2)
    pairs = [pair for pair in pairs if fit_together(exercise.marked, pair)]
    pairs = pairs[:: 1 + len(pairs) // PAIRS]
    right, done = outcomes_of(name), {pair: outcomes_of(name, *pair) for pair in pairs}
    for pair, mine in done.items():
        if all(one.raised for one in mine):
            continue
        if all(map(same, right, mine)):
            found["passing"].append(pair)
        said = [set(taken) for taken in diagnose(exercise, variant_of(name, *pair)).fits]
        alike = set(pair) in said or any(len(taken) == 1 for taken in said)
        twins = sum(all(map(same, mine, other)) for other in done.values()) - 1
        if said or not twins:
            found["named" if alike else "wrongly" if said else "unsaid"] += 1
    assert found["passing"] == [] and found["wrongly"] == 0
    if not isinstance(right[0].result, bool):  # of a few truths, two turns may make anything
        assert found["unsaid"] <= max(1, 0.1 * (found["named"] + found["unsaid"]))


@pytest.mark.slow
@each_exercise
def test_two_turns_never_act_alike(name):
    """Then nobody could say which of the two an answer takes."""
    known = turns(EXERCISES[name].marked)
    made = {turn: outcomes_of(name, turn) for turn in known}
    alike = [(a, b) for a, b in combinations(made, 2) if all(map(same, made[a], made[b]))]
    assert alike == []


@pytest.mark.slow
@pytest.mark.release
@each_exercise
def test_what_no_turns_explain_has_no_name(name):
    report = check(name, lambda *inputs: nudged(EXERCISES[name].load_reference()(*inputs)))
    own = {turn.name for turn in words(name).values()}
    assert report.status == "failed" and not own & {report.mistake}, report
    assert not any(one in (report.mistake or "") for one in own), report


def nudged(result):
    """Another result of the same type and shape."""
    if isinstance(result, tuple | list):
        return type(result)(map(nudged, result))
    if isinstance(result, str):
        return result + "?"
    return result * 7.3 - 1.9 if isinstance(result, float) else result * 7 - 19


def unscaled(Q, K):
    return Q @ K.mT


def for_four_axes(Q, K):
    return torch.einsum("bhqd,bhkd->bhqk", Q, K)


def for_three_axes(Q, K):
    return torch.einsum("bqd,bkd->bqk", Q, K) / Q.size(-1) ** 0.5


def unscaled_at_first(Q, K):
    return unscaled(Q, K) if Q.dim() == 4 else 3 * unscaled(Q, K)


def unscaled_and_in_place(Q, K):
    scores = unscaled(Q, K)
    Q.zero_()
    return scores


BUFFER = torch.empty(10**5)


def unscaled_into_buffer(Q, K):
    result = unscaled(Q, K)
    return BUFFER[: result.numel()].view(result.shape).copy_(result)


DIAGNOSED = {
    "unscaled": (unscaled, "unscaled"),
    "what is raised elsewhere hides no mistake": (for_four_axes, "unscaled"),
    "what is right wherever it raises nothing takes no turn": (for_three_axes, None),
    "a turn must fit on every draw": (unscaled_at_first, None),
    "an argument changed in place hides no mistake": (unscaled_and_in_place, "unscaled"),
    "NaN alone is no logarithm": (lambda Q, K: unscaled(Q, K) * torch.nan, None),
    "results may share one buffer": (unscaled_into_buffer, "unscaled"),
}


@pytest.mark.parametrize("answer, turn", DIAGNOSED.values(), ids=DIAGNOSED)
def test_a_turn_is_found_behind_other_faults(answer, turn):
    assert diagnose(EXERCISES["attention_scores"], answer).fits == ([(turn,)] if turn else [])


def source_asks_target(y, memory, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    """No shape fits unless both are equally long, and no draw without a mask comes through."""
    Q, K, V = (split_heads(x, n_heads) for x in (memory @ W_Q, y @ W_K, y @ W_V))
    scores = (Q @ K.mT / Q.size(-1) ** 0.5).masked_fill(mask == 0, -torch.inf)
    return merge_heads(scores.softmax(-1) @ V).reshape(y.shape) @ W_O


def test_swapped_roles_are_named_although_the_shapes_clash():
    report = check("cross_attention", source_asks_target)
    assert report.mistake == words("cross_attention")["arguments_swapped"].name
    assert "must match the size" in report.message


def never_empty(ids, pad_id):
    mask = ids != pad_id
    mask[~mask.any(dim=1), 0] = True
    return mask[:, None, None, :]


def mirrored(before, after):
    (s, c), (t, u) = before.view(-1, 2).T, after.view(-1, 2).T
    p, q = s * t - c * u, c * t + s * u
    return torch.block_diag(*torch.stack([p, q, q, -p], dim=1).view(-1, 2, 2))


@pytest.mark.parametrize(
    ("name", "answer", "mistake"),
    [
        ("padding_mask", never_empty, "a sentence of nothing but padding that shows a key"),
        ("rotation_between", mirrored, "a mirror in place of a rotation"),
    ],
)
def test_a_rule_names_what_no_turn_makes(name, answer, mistake):
    assert check(name, answer).mistake == mistake
