"""Lesson 16: pass@k, and learning from comparisons and rewards.

Long because it is data: exercises whole, with their inputs and all their wrong turns.
"""

import math

import torch
import torch.nn.functional as F

from transformer_lesson.exercises import random_layers
from transformer_lesson.exercises.engine.choosing import choose
from transformer_lesson.exercises.engine.specification import Draw, breaks, exercise
from transformer_lesson.training import preferences


def _pair_inputs(draw: Draw) -> tuple:
    """Gains on both sides, one of them hopeless, one pair alone; beta from small to large."""
    if draw.number == 3:
        draw.sizes["pair"] = 1
    chosen, rejected = (-5 * draw.positive("pair") for _ in range(2))
    ref_chosen, ref_rejected = (-5 * draw.positive("pair") for _ in range(2))
    if draw.number == 2:  # sigmoid is 0 there in single precision, and its logarithm -inf
        chosen = chosen - 400
    return chosen, rejected, ref_chosen, ref_rejected, draw.one_of((0.5, 0.1, 2.0, 0.5, 1.5))


@breaks("a loss that has a limit")
def _a_worse_margin_costs_more(answer, inputs: tuple, loss) -> str | None:
    """No small number or limit keeps the loss finite."""
    none = torch.zeros(1)
    near, far = (float(answer(none - gain, none, none, none, 1.0)) for gain in (1000.0, 2000.0))
    if near != far or not 1 < near < math.inf:
        return None
    return (
        f"With beta = 1 your loss is {near:.4g} for a margin of -1000 and for one of -2000 as "
        "well, so such a pair gets no gradient any more.\nA limit, or a small number added before "
        "the logarithm, only hides the infinity. Which function of PyTorch takes sigmoid and "
        "logarithm in one step?"
    )


@exercise(
    reference="transformer_lesson.training.preferences:dpo_loss",
    make_inputs=_pair_inputs,
    draws=5,
    returns={"loss": ""},
    hints=(
        "Two gains: `chosen - ref_chosen` says how much likelier the better answer has become, "
        "`rejected - ref_rejected` the same for the worse one.",
        "The margin is the gain of the chosen answer minus that of the rejected one. Times beta, "
        "it goes through a sigmoid: the probability that the model prefers the right one.",
        "`-F.logsigmoid(beta * margin).mean()`. Sigmoid first and logarithm second gives log 0 "
        "where the margin is far below 0.",
    ),
    invariants=(
        _a_worse_margin_costs_more,
        random_layers.gradients_are_kept(preferences.dpo_loss, "chosen", "rejected"),
    ),
)
def dpo_loss(chosen, rejected, ref_chosen, ref_rejected, beta):
    """Return the mean of -log sigmoid(beta * margin)."""
    gain = choose(
        chosen - ref_chosen,
        no_reference=chosen,
        quotient=chosen / ref_chosen,
        probabilities=chosen.exp() - ref_chosen.exp(),
        ratios=(chosen - ref_chosen).exp(),
    )
    other = choose(
        rejected - ref_rejected,
        no_reference=rejected,
        quotient=rejected / ref_rejected,
        probabilities=rejected.exp() - ref_rejected.exp(),
        ratios=(rejected - ref_rejected).exp(),
    )
    margin = choose(
        gain - other,
        added=gain + other,
        chosen_alone=gain,
        rejected_alone=-other,
        product=gain * other,
    )
    return _loss_of_margin(margin, gain, other, beta)


def _loss_of_margin(margin, gain, other, beta):
    """Return the loss of a margin."""
    scaled = choose(
        beta * margin, beta_for_one=beta * gain - other, mean_too_early=(beta * margin).mean()
    )
    each = choose(-F.logsigmoid(scaled), -F.logsigmoid(scaled.to(torch.float64)).to(scaled.dtype))
    return each.mean()


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
    """Return minus the mean of advantage times mean log-probability."""
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
        variance=groups.var(1, keepdim=True, correction=0),
        not_divided=torch.ones_like(groups[:, :1]),
    )
    equal = (groups == groups[:, :1]).all(1, keepdim=True)
    advantages = ((groups - middle) / spread).masked_fill(equal, 0.0)
    advantages = choose(advantages, over_prompts=advantages.mT).reshape(rewards.shape)
    equal = (rewards == rewards[:, :1]).all(1, keepdim=True)
    return _weighed(log_probs, mask, advantages)


def _weighed(log_probs, mask, advantages):
    """Return the loss of answers whose advantages are known."""
    of_tokens = log_probs.masked_fill(~mask, 0.0)
    of_answers = choose(of_tokens.sum(-1) / mask.sum(-1), mask_ignored=log_probs.mean(-1))
    each = advantages * of_answers
    mean = choose(
        each.mean(), over_all_tokens=(advantages[..., None] * of_tokens).sum() / mask.sum()
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
    return choose(1 - lost, chance_of_all=math.comb(c, k) / math.comb(n, k))
