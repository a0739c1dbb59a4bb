"""Losses after pretraining: from answers that are better or worse than others.

Pretraining asks for every token of a given text. Here whole answers are weighed: two that somebody
compared (DPO), or several of the model's own that got a reward (GRPO). Both need one quantity, the
log-probability of a text.
"""

import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor


def sequence_log_prob(
    logits: Float[Tensor, "batch n vocab_size"], labels: Int[Tensor, "batch n"], pad_id: int
) -> Float[Tensor, " batch"]:
    """Return the log-probability of each row's labels: the sum over those that are not padding.

    log P(text) = sum over its tokens of log P(token | the tokens before it), in nats.

    Args:
        logits: what the model gives at each position, before softmax.
        labels: the token that follows at each position.
        pad_id: the label that does not count.

    Source: Rafailov et al., "Direct Preference Optimization" (2023), where it is log pi(y | x).
    """
    log_p = logits.log_softmax(dim=-1)  # (batch, n, vocab_size)
    of_labels = log_p.gather(-1, labels[..., None]).squeeze(-1)  # (batch, n)
    return of_labels.masked_fill(labels == pad_id, 0.0).sum(dim=-1)


def dpo_loss(
    log_probs: Float[Tensor, "pair 2 n"],
    reference: Float[Tensor, "pair 2 n"],
    mask: Bool[Tensor, "pair 2 n"],
    beta: float,
) -> Float[Tensor, ""]:
    """Return the mean of -log sigmoid(beta * (gain of the chosen - gain of the rejected)).

    A gain is how much likelier the model finds an answer than the reference does, in nats.

    Args:
        log_probs: of each token of each answer, by the model that learns; in each pair, first the
            chosen answer, then the rejected one.
        reference: the same by a copy of the model before tuning.
        mask: `True` at the answers' tokens; `False` at prompts and padding.
        beta: how much a gain counts; the larger it is, the smaller the gain that suffices.

    Source: Rafailov et al. (2023), equation 7.
    """
    model, before = (one.masked_fill(~mask, 0.0).sum(dim=-1) for one in (log_probs, reference))
    gains = model - before  # (pair, 2)
    return -F.logsigmoid(beta * (gains[:, 0] - gains[:, 1])).mean()


def group_advantages(rewards: Float[Tensor, "prompt group"]) -> Float[Tensor, "prompt group"]:
    """Return how far each answer's reward is from its group's mean, in standard deviations.

    It is 0 in a group whose rewards are all equal.

    Source: Shao et al., "DeepSeekMath" (2024), section 4.1.2.
    """
    equal = (rewards == rewards[:, :1]).all(dim=1, keepdim=True)  # (prompt, 1)
    apart = rewards - rewards.mean(dim=1, keepdim=True)  # (prompt, group)
    return (apart / rewards.std(dim=1, keepdim=True, correction=0)).masked_fill(equal, 0.0)


def grpo_loss(
    log_probs: Float[Tensor, "prompt group n"],
    mask: Bool[Tensor, "prompt group n"],
    rewards: Float[Tensor, "prompt group"],
) -> Float[Tensor, ""]:
    """Return the loss that makes answers likelier if they are better than the rest of their group.

    It is the mean over all answers of -A times the mean of the log-probabilities of its tokens,
    where A is the answer's advantage.

    Args:
        log_probs: of each token of each answer, by the model that learns.
        mask: `True` where there is a token; `False` is padding.
        rewards: one for each answer.

    Source: Shao et al. (2024), equation 3.
    Differs: one update for each batch of answers, so that the ratio of new to old probabilities is
        1 and is never clipped; no penalty for moving away from a reference.
    """
    advantages = group_advantages(rewards)
    lengths = mask.sum(dim=-1).clamp(min=1)  # (prompt, group)
    of_answers = log_probs.masked_fill(~mask, 0.0).sum(dim=-1) / lengths  # (prompt, group)
    return -(advantages * of_answers).mean()
