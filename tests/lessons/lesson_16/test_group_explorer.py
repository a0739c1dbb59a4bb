"""A group of answers in the page: advantages and one step, against `grpo_loss` and autograd."""

import pytest
import torch

from tests.explorables.shown import assert_agree
from transformer_lesson.explorables import GroupExplorer
from transformer_lesson.training.preferences import grpo_loss

STATES = [
    {"prompt": 0, "flipped": [], "rate": 10.0},
    {"prompt": 0, "flipped": [0, 3], "rate": 40.0},
    {"prompt": 1, "flipped": [9], "rate": 25.0},
    {"prompt": 2, "flipped": [17], "rate": 3.0},
]
WRONG = [f"answer {i}" for i in ("2, “kein”", "3, “das”", "4, “die”", "6, “das”", "8, “das”")]


def after_step(group: dict, rewards: list[float], rate: float) -> list[torch.Tensor]:
    """The probabilities at each beginning after one step of gradient descent on its logits."""
    logits = [torch.tensor(one["logits"], requires_grad=True) for one in group["contexts"]]
    answers = group["answers"]
    longest = max(len(answer["at"]) for answer in answers)
    rows, mask = [], torch.zeros(1, len(answers), longest, dtype=torch.bool)
    for i, answer in enumerate(answers):
        places = zip(answer["at"], answer["chosen"], strict=True)
        row = torch.stack([logits[place].log_softmax(-1)[k] for place, k in places])
        mask[0, i, : len(row)] = True
        rows.append(torch.nn.functional.pad(row, (0, longest - len(row))))
    grpo_loss(torch.stack(rows)[None], mask, torch.tensor([rewards])).backward()
    with torch.no_grad():
        return [(one - rate * one.grad).softmax(-1) for one in logits]


def rewards_of(group: dict, flipped: list[int], prompt: int) -> list[float]:
    n = len(group["answers"])
    return [
        float(answer["right"] != (prompt * n + i in flipped))
        for i, answer in enumerate(group["answers"])
    ]


def test_every_probability_after_the_step_is_that_of_autograd(show):
    explorable = GroupExplorer(stage=4)
    page = show(explorable)
    for state in STATES:
        page.set(**state)
        group = explorable.groups[state["prompt"]]
        rewards = rewards_of(group, state["flipped"], state["prompt"])
        after = after_step(group, rewards, state["rate"])
        wanted = []
        for i, answer in enumerate(group["answers"]):
            said = []
            for place, k in zip(answer["at"], answer["chosen"], strict=True):
                one = group["contexts"][place]
                start = " ".join(said) or "the start"
                p = torch.tensor(one["logits"]).softmax(-1)[k]
                said.append(one["words"][k])
                wanted.append(
                    f"answer {i + 1}, “{said[-1]}” after “{start}”: {p:.3f}, "
                    f"after the step {after[place][k]:.3f}"
                )
        assert_agree([one for one in page.told() if ", after the step" in one], wanted)
        chosen = group["answers"][0]["at"][1]
        options = zip(group["contexts"][chosen]["words"], after[chosen].tolist(), strict=True)
        shown = page.told()[-len(after[chosen]) :]
        assert [one.split("”")[0][1:] for one in shown] == group["contexts"][chosen]["words"]
        assert_agree([one.split(" → ")[1] for one in shown], [f"{p:.3f}" for _, p in options])


def test_advantages_are_those_of_the_loss_divided_or_not(show):
    page, rewards = show(GroupExplorer(stage=3)), torch.tensor([1, 0, 0, 0, 1, 0, 1, 0.0])
    for divided in (True, False):
        page.set(divided=divided)
        centered = rewards - rewards.mean()
        wanted = centered / rewards.std(correction=0) if divided else centered
        lines = [one for one in page.told() if "advantage" in one]
        values = [float(one.split()[-1].replace("−", "-")) for one in lines]
        assert values == pytest.approx(wanted.tolist(), abs=0.006)


def test_a_turned_reward_is_worth_something_and_equal_ones_teach_nothing(show):
    page = show(GroupExplorer(stage=4, prompt=1))
    assert page.title == "All 8 rewards are 0: this group teaches nothing"
    before = [one for one in page.told() if ", after the step" in one]
    assert all(one.split(": ")[1].split(",")[0] == one.split()[-1] for one in before)
    page.click("answer 2, reward 0")
    assert page.get("flipped") == [9] and page.title.startswith("A step takes the first")
    page.click("answer 2, reward 1, flipped")
    assert page.get("flipped") == [] and page.title.endswith("teaches nothing")


def test_answers_come_one_by_one_and_where_each_leaves_the_right_one_is_marked(show):
    explorable = GroupExplorer(drawn=3)
    page, group = show(explorable), explorable.groups[0]
    whole = torch.ones(8)
    for i, answer in enumerate(group["answers"]):
        for place, k in zip(answer["at"], answer["chosen"], strict=True):
            whole[i] *= torch.tensor(group["contexts"][place]["logits"]).softmax(-1)[k]
    for drawn, times in ((3, [1, 1, 1]), (8, [3, 1, 3, 1, 3, 3, 3, 3])):
        page.set(drawn=drawn)
        expected = [
            f"answer {i + 1}, drawn {n} of {drawn} times, {drawn * whole[i]:.2f} to be expected"
            for i, n in enumerate(times)
        ]
        assert_agree([one for one in page.told() if "to be expected" in one], expected)
    marked = [one for one in page.told() if one.endswith("leaves the right answer")]
    assert [one.split(" after ")[0] for one in marked] == WRONG
    page.set(drawn=3)
    page.click("answer 1, “heute” after “the start”")
    assert page.get("drawn") == 8
