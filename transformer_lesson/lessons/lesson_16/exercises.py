"""Lesson 16: the probability of a text, learning from comparisons and rewards, adapters, pass@k.

Long because it is data: six exercises whole, with their inputs and all their wrong turns.
"""

import math

import torch
import torch.nn.functional as F

from transformer_lesson.exercises import random_layers
from transformer_lesson.exercises.engine.choosing import choose
from transformer_lesson.exercises.engine.specification import Draw, breaks, exercise
from transformer_lesson.model import lora as adapters
from transformer_lesson.training import preferences


def _text_inputs(draw: Draw) -> tuple:
    """Padding at the end, none, nothing else, at the front; a model that never writes it.

    The last model is so sure that in single precision the other tokens' probabilities are 0.
    """
    vocab_size, n = draw.size("vocab_size", at_least=3), draw.size("n", at_least=2)
    batch = draw.size("batch")
    pad_id = draw.one_of((0, 2, 0, 1, 2, 0, 1))
    logits = (200 if draw.number == 6 else 2) * draw.normal("batch n vocab_size")
    labels = draw.integers("batch n", 0, vocab_size)
    labels[labels == pad_id] = (pad_id + 1) % vocab_size
    if draw.number != 1:
        labels[0, n - 1 :] = pad_id
    if draw.number == 3:
        labels[-1] = pad_id
    if draw.number == 4:
        labels[batch // 2, : n - 1] = pad_id
    if draw.number in (2, 5):
        logits[..., pad_id] = -math.inf
    return logits, labels, pad_id


@breaks("a log-probability that has a limit")
def _a_worse_logit_costs_more(answer, inputs: tuple, log_prob) -> str | None:
    """No small number or limit keeps the logarithm finite."""
    labels = torch.zeros(1, 1, dtype=torch.long)
    near, far = (
        float(answer(torch.tensor([[[0.0, 0.0, ahead]]]), labels, 1)) for ahead in (1000.0, 2000.0)
    )
    if near != far or not -math.inf < near < -1:
        return None
    return (
        f"Your log-probability is {near:.4g} for a label whose logit lies 1000 below another, and "
        "for one that lies 2000 below it as well.\nA limit, or a small number added before the "
        "logarithm, only hides the infinity. Which function of PyTorch takes softmax and "
        "logarithm in one step?"
    )


@exercise(
    reference="transformer_lesson.training.preferences:sequence_log_prob",
    make_inputs=_text_inputs,
    draws=7,
    returns={"log_prob": "batch"},
    hints=(
        "A product of probabilities is a sum of their logarithms. `logits.log_softmax(-1)` has "
        "the logarithm of every token's probability, at every position.",
        "`log_p.gather(-1, labels[..., None])` picks, at each position, the one of its label; its "
        "last axis has size 1.",
        "Where the label is padding the term must be 0. Multiplying with 0 is not enough: -inf "
        "times 0 is NaN. `masked_fill(labels == pad_id, 0.0)` writes the 0.",
    ),
    invariants=(
        _a_worse_logit_costs_more,
        random_layers.gradients_are_kept(preferences.sequence_log_prob),
    ),
)
def sequence_log_prob(logits, labels, pad_id):
    """Return the log-probability of each row's labels."""
    logits, labels = choose((logits, labels), shifted_again=(logits[:, :-1], labels[:, 1:]))
    log_p = choose(
        logits.log_softmax(-1),
        logits_as_they_are=logits,
        probabilities=logits.softmax(-1),
        over_positions=logits.log_softmax(1),
        logarithm_of_0=logits.softmax(-1).log(),
        padding_taken_out=logits.index_fill(-1, torch.tensor(pad_id), -math.inf).log_softmax(-1),
    )
    of_labels = choose(log_p.gather(-1, labels[..., None]).squeeze(-1), all_tokens=log_p.sum(-1))
    padding = choose(
        labels == pad_id,
        padding_counts=labels == -100,
        first_padding_ends=(labels == pad_id).cumsum(-1) > 0,
    )
    counted = of_labels.masked_fill(padding, 0.0)
    return _of_text(counted, padding)


def _of_text(counted, padding):
    """Return one number for each text."""
    n_tokens = (~padding).sum(-1)
    log_p = choose(
        counted.sum(-1),
        mean_of_tokens=counted.sum(-1) / n_tokens.clamp(min=1),
        probability=counted.sum(-1).exp(),
        product=counted.prod(-1),
    )
    return choose(log_p, loss=-log_p)


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
        beta * margin,
        beta_for_one=beta * gain - other,
        beta_subtracted=margin - beta,
        mean_too_early=(beta * margin).mean(),
    )
    each = choose(
        -F.logsigmoid(scaled),
        -F.logsigmoid(scaled.to(torch.float64)).to(scaled.dtype),
        sigmoid_alone=-scaled.sigmoid(),
        margin_alone=-scaled,
        beta_outside=-beta * F.logsigmoid(margin),
    )
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
    advantages = choose(
        ((groups - middle) / spread).masked_fill(equal, 0.0),
        nan_of_equals=(groups - middle) / spread,
        rewards_themselves=groups,
    )
    advantages = choose(advantages, over_prompts=advantages.mT).reshape(rewards.shape)
    equal = (rewards == rewards[:, :1]).all(1, keepdim=True)
    return _weighed(log_probs, mask, advantages)


def _weighed(log_probs, mask, advantages):
    """Return the loss of answers whose advantages are known."""
    of_tokens = choose(
        log_probs.masked_fill(~mask, 0.0), probabilities=log_probs.exp().masked_fill(~mask, 0.0)
    )
    of_answers = choose(
        of_tokens.sum(-1) / mask.sum(-1),
        sum_of_tokens=of_tokens.sum(-1),
        mask_ignored=log_probs.mean(-1),
    )
    each = advantages * of_answers
    mean = choose(
        each.mean(), over_all_tokens=(advantages[..., None] * of_tokens).sum() / mask.sum()
    )
    return -mean


ALPHAS = (8.0, 1.0, 3.0, 16.0)


def _layer_inputs(draw: Draw) -> tuple:
    """A layer with an adapter of rank 1 and of more; alpha below, at and above its rank."""
    if draw.number == 2:
        draw.sizes["rank"] = 1
    x, W = draw.normal("batch n d_in"), draw.normal("d_out d_in")
    A, B = draw.normal("rank d_in"), draw.normal("d_out rank")
    return x, W, A, B, draw.one_of(ALPHAS)


@exercise(
    reference="transformer_lesson.model.lora:lora",
    make_inputs=_layer_inputs,
    draws=4,
    returns={"output": "batch n d_out"},
    hints=(
        "`x @ W.mT` is what the layer gave before: W is laid out as in `nn.Linear`, outputs first.",
        "The adapter reads x as well: `x @ A.mT` has r numbers for each token, and `@ B.mT` brings "
        "them to the size of the output.",
        "`x @ W.mT + alpha / A.size(0) * (x @ A.mT) @ B.mT`. The rank is the number of A's rows.",
    ),
    invariants=(random_layers.gradients_are_kept(adapters.lora, "x", "A", "B"),),
)
def lora(x, W, A, B, alpha):
    """Return x W^T + alpha / r * (x A^T) B^T."""
    scale = _loudness(A, B, alpha)
    before = choose(x @ W.mT, W_reshaped=x @ W.reshape(W.size(1), W.size(0)))
    narrow = choose(x @ A.mT, A_reshaped=x @ A.reshape(A.size(1), A.size(0)))
    adapter = narrow @ B.mT
    return choose(
        before + scale * adapter, x @ (W + scale * B @ A).mT, multiplied=before * scale * adapter
    )


def _loudness(A, B, alpha):
    """Return alpha / r, by which an adapter is multiplied."""
    rank = choose(
        A.size(0),
        rank_left_out=1,
        by_d_in=A.size(1),
        by_d_out=B.size(0),
        root_of_rank=math.sqrt(A.size(0)),
    )
    return choose(
        alpha / rank,
        times_rank=alpha * rank,
        no_scale=1.0,
        upside_down=rank / alpha,
        whole_division=alpha // rank,
    )


def _matrix_inputs(draw: Draw) -> tuple:
    return _layer_inputs(draw)[1:]


@exercise(
    reference="transformer_lesson.model.lora:merged_lora",
    make_inputs=_matrix_inputs,
    draws=4,
    returns={"merged": "d_out d_in"},
    hints=(
        "Which single matrix M makes `x @ M.mT` equal to what `lora` returns?",
        "`B @ A` has W's shape: (d_out, r) times (r, d_in).",
        "`W + alpha / A.size(0) * B @ A`, as a new matrix. W itself must stay as it was.",
    ),
)
def merged_lora(W, A, B, alpha):
    """Return W + alpha / r * B A."""
    scale = _loudness(A, B, alpha)
    change = choose(B @ A, (A.mT @ B.mT).mT, first_rank_alone=B[:, :1] @ A[:1])
    merged = choose(W + scale * change, multiplied=W * scale * change)
    return choose(merged, transposed=merged.mT)


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
        upside_down=math.comb(n, k) / math.comb(n - c, k),
    )
    return choose(
        1 - lost,
        chance_of_all=math.comb(c, k) / math.comb(n, k),
        few_wrong_ones=0.0 if n - c < k else 1 - lost,
        k_times_one=k * c / n,
        exactly_one=c * math.comb(n - c, k - 1) / math.comb(n, k),
    )
