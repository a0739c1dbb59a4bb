"""Lesson 16: pass@k, and learning from rewards.

Long because it is data: exercises whole, with their inputs and all their wrong turns.
"""

import math

import torch

from transformer_lesson.exercises import random_layers
from transformer_lesson.exercises.engine.choosing import choose
from transformer_lesson.exercises.engine.specification import Draw, breaks, exercise
from transformer_lesson.training import preferences


def _group_inputs(draw: Draw) -> tuple:
    """Rewards of 0 and 1 and in between; groups of equals; answers of unequal length."""
    prompts, n = draw.size("prompt"), draw.size("n", at_least=2)
    draw.size("group", at_least=2)
    log_probs = -2 * draw.positive("prompt group n")
    lengths = draw.integers("prompt group", 1, n + 1)
    lengths[0, 0], lengths[-1, -1] = 1, n
    mask = torch.arange(n) < lengths[..., None]
    rewards = draw.integers("prompt group", 0, 2).to(log_probs.dtype)
    rewards[:, 0], rewards[:, -1] = 1.0, 0.0
    if draw.number in (1, 4):  # rewards of their own size, neither from 0 to 1 nor around 0
        rewards = 3 + 4 * rewards + draw.integers("prompt group", 0, 4)
        rewards[:, 0], rewards[:, -1] = 9.0, 4.0
    if draw.number == 4:  # beside these, a number that is added to the deviation shows
        rewards = rewards / 1000
    if draw.number in (2, 4):
        rewards[prompts // 2] = 0.5
    if draw.number == 3:
        rewards[:] = 1.0
    return log_probs, mask, rewards


@exercise(
    reference="transformer_lesson.training.preferences:grpo_loss",
    helpers=("transformer_lesson.training.preferences:group_advantages",),
    make_inputs=_group_inputs,
    draws=5,
    returns={"loss": ""},
    hints=(
        "First the advantages, of shape (prompt, group): "
        "`rewards - rewards.mean(1, keepdim=True)`, divided by "
        "`rewards.std(1, keepdim=True, correction=0)`.",
        "Where all rewards of a group are equal, that is 0 / 0. Write 0 there: "
        "`advantages.masked_fill(spread == 0, 0.0)`.",
        "An answer counts by the mean of its own tokens' log-probabilities: "
        "`(log_probs * mask).sum(-1) / mask.sum(-1)`. The loss is minus the mean over all answers "
        "of advantage times that.",
    ),
    invariants=(random_layers.gradients_are_kept(preferences.grpo_loss),),
)
def grpo_loss(log_probs, mask, rewards):
    """Return the loss that makes answers likelier if they are better than their group."""
    groups = choose(rewards, all_prompts_one_group=rewards.reshape(1, -1), over_prompts=rewards.mT)
    middle = choose(
        groups.mean(1, keepdim=True),
        mean_of_all=rewards.mean().expand(len(groups), 1),
        no_mean=torch.zeros_like(groups[:, :1]),
        best_of_group=groups.amax(1, keepdim=True),
    )
    spread = choose(
        groups.std(1, keepdim=True, correction=0),
        one_less=groups.std(1, keepdim=True),
        deviation_of_all=rewards.std(correction=0).expand(len(groups), 1),
        variance=groups.var(1, keepdim=True, correction=0),
        not_divided=torch.ones_like(groups[:, :1]),
    )
    equal = (groups == groups[:, :1]).all(1, keepdim=True)
    advantages = (groups - middle) / spread
    advantages = choose(advantages.masked_fill(equal, 0.0), equal_rewards_forgotten=advantages)
    advantages = choose(advantages, over_prompts=advantages.mT).reshape(rewards.shape)
    equal = (rewards == rewards[:, :1]).all(1)
    return _weighed(log_probs, mask, advantages, equal)


def _weighed(log_probs, mask, advantages, equal):
    """Return the loss of answers whose advantages are known."""
    of_tokens = log_probs.masked_fill(~mask, 0.0)
    of_answers = choose(
        of_tokens.sum(-1) / mask.sum(-1),
        mask_ignored=log_probs.mean(-1),
        summed=of_tokens.sum(-1),
        padding_in_the_length=of_tokens.mean(-1),
    )
    each = advantages * of_answers
    mean = choose(
        each.mean(),
        over_all_tokens=(advantages[..., None] * of_tokens).sum() / mask.sum(),
        equal_groups_left_out=each.mean(1).sum() / (~equal).sum().clamp(min=1),
    )
    return -mean


ATTEMPTS = (
    (10, 3, 4),
    (8, 8, 2),
    (8, 0, 3),
    (6, 4, 3),
    (200, 7, 20),
    (7, 2, 1),
    (9, 1, 9),
    (12, 5, 6),
)


def _attempt_inputs(draw: Draw) -> tuple:
    """All right, none, fewer wrong ones than picks, one pick, all picked; of 200 attempts."""
    if draw.seed is None:
        return draw.one_of(ATTEMPTS)
    n = int(draw.integers("", 2, 60))
    return n, int(draw.integers("", 0, n + 1)), int(draw.integers("", 1, n + 1))


@breaks("a chance above 1 or below 0")
def _chances_lie_between_0_and_1(answer, inputs: tuple, chance: float) -> str | None:
    if -1e-9 <= chance <= 1 + 1e-9:
        return None
    return f"A chance lies between 0 and 1. Yours is {chance:.4g}.\nOf which ways is it a share?"


@exercise(
    reference="transformer_lesson.generation.attempts:pass_at_k",
    make_inputs=_attempt_inputs,
    draws=len(ATTEMPTS),
    returns={"chance": ""},
    invariants=(_chances_lie_between_0_and_1,),
    hints=(
        "Of all ways to pick k of the n attempts, which ones are lost? Those that pick wrong "
        "attempts only.",
        "`math.comb(n, k)` is the number of ways to pick k of n. How many ways are there to pick k "
        "of the wrong ones?",
        "`1 - math.comb(n - c, k) / math.comb(n, k)`. With fewer than k wrong ones, `comb` is 0.",
    ),
)
def pass_at_k(n, c, k):
    """Return the chance that at least one of k attempts is right."""
    lost = choose(
        math.comb(n - c, k) / math.comb(n, k),
        math.prod((n - c - i) / (n - i) for i in range(k)),
        put_back=(1 - c / n) ** k,
        none_fewer_each_time=math.prod(max(0, n - c - i) / n for i in range(k)),
        all_of_the_right_ones=math.comb(c, k) / math.comb(n, k),
        right_ones_put_back=(c / n) ** k,
        ways_not_divided=float(math.comb(n - c, k)),
        one_pick_fewer=math.comb(n - c, k - 1) / math.comb(n, k - 1),
        picked_from_too_few=math.comb(n - c, k) / math.comb(max(n - 1, k), k),
        order_in_one_place=math.comb(n - c, k) / math.perm(n, k),
        order_above_alone=math.perm(n - c, k) / math.comb(n, k),
    )
    return choose(
        1 - lost,
        chance_of_all=math.comb(c, k) / math.comb(n, k),
        exactly_one=c * math.comb(n - c, k - 1) / math.comb(n, k),
        expected_number=k * c / n,
    )
