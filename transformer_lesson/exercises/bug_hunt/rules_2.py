"""Lesson 14, second part: rules that every repaired function obeys, broken ones in words."""

import torch
from torch import Tensor, nn


def ends_with_the_norm(answer, inputs: tuple, output: Tensor) -> str | None:
    """After the norm, a token's numbers have mean 0."""
    means = output.mean(dim=-1).abs()
    if means.max() < 1e-3:
        return None
    return (
        f"Each token must leave with mean 0: the norm has no scale here. One of yours leaves with "
        f"{means.max():.3g}, and {int((output == 0).sum())} of {output.numel()} numbers are "
        "exactly 0.\nWhat happens last in your function, and on which tensor does dropout act?"
    )


def silent_sublayer(answer, inputs: tuple, output: Tensor) -> str | None:
    """A sub-layer that gives 0 leaves norm(x)."""
    x, _, dropout, norm = inputs
    alone = answer(x.clone(), torch.zeros_like, dropout, norm)
    if torch.allclose(alone.double(), norm(x).double(), atol=1e-4):
        return None
    return (
        "With a sub-layer that gives 0, the result must be norm(x): x goes past the sub-layer "
        f"whole. Yours differs by up to {(alone - norm(x)).abs().max():.3g}.\n"
        "Does x itself go through dropout, or is it missing from the sum?"
    )


def same_twice(answer, inputs: tuple, output: Tensor) -> str | None:
    """In evaluation nothing is random."""
    block = inputs[2]
    again = answer(*inputs)
    if block.training or torch.allclose(output.double(), again.double(), atol=1e-5):
        return None
    return (
        "The block is in eval mode. Two calls with the same input give results that differ by up "
        f"to {(output - again).abs().max():.3g}.\nWhose dropout is it? `block.eval()` reaches "
        "only modules that belong to the block."
    )


def norm_is_trained(answer, inputs: tuple, output: Tensor) -> str | None:
    """The gradient reaches the block's own norm."""
    x, branch, block = inputs
    with torch.enable_grad():
        result = answer(x, branch, block)
        if isinstance(result, Tensor) and result.requires_grad:
            gradient = torch.autograd.grad(result.sum(), block.norm.weight, allow_unused=True)[0]
            if gradient is not None:
                return None
    return (
        "No gradient reaches `block.norm.weight`: the optimizer would have nothing to train.\n"
        "Which norm is in your result, the block's own or a new one?"
    )


def are_no_probabilities(answer, inputs: tuple, logits: Tensor) -> str | None:
    """Logits are linear in the projection."""
    x, W, b = inputs
    twice = answer(x, 2 * W, 2 * b)
    if torch.allclose(twice.double(), 2 * logits.double(), atol=1e-3):
        return None
    sums = logits.sum(dim=-1)
    hint = " They sum to 1." if torch.allclose(sums, torch.ones_like(sums), atol=1e-3) else ""
    return (
        "Twice the projection must give twice the logits: they are the projection and nothing "
        f"else. Yours are not doubled.{hint}\nWhat do you do after the projection?"
    )


def rows_sum_to_one(answer, inputs: tuple, targets: Tensor) -> str | None:
    """Each row is a distribution."""
    sums = targets.sum(dim=-1)
    if torch.allclose(sums, torch.ones_like(sums), atol=1e-4):
        return None
    worst = sums[(sums - 1).abs().argmax()]
    return (
        f"Each row is a distribution and must sum to 1. One of yours sums to {worst:.4g}.\n"
        "What does the label lose, and what do all classes together get?"
    )


def all_spread(answer, inputs: tuple, targets: Tensor) -> str | None:
    """Smoothing 1 leaves nothing of the label."""
    labels, n_classes, _ = inputs
    even = answer(labels, n_classes, 1.0)
    if torch.allclose(even.double(), torch.full_like(even, 1 / n_classes).double(), atol=1e-4):
        return None
    return (
        f"With smoothing 1 nothing is left of the label, and all {n_classes} classes must get "
        f"1/{n_classes} = {1 / n_classes:.3g}. Yours give the label {even[0, labels[0]]:.3g}.\n"
        "Among how many classes is the smoothing shared out?"
    )


def sure_and_right(answer, inputs: tuple, loss: Tensor) -> str | None:
    """Who is sure and right has no loss."""
    logits, labels = inputs
    vocab_size = logits.size(-1)
    sure = float(answer(100 * nn.functional.one_hot(labels, vocab_size).float(), labels))
    if abs(sure) < 0.01:
        return None
    return (
        f"With logit 100 for the right token and 0 for the other {vocab_size - 1}, the loss must "
        f"be 0. Yours is {sure:.3f}.\nWhat does `F.cross_entropy` expect, and what does it get?"
    )


def stops_at_the_end(answer, inputs: tuple, ids: list) -> str | None:
    """The prompt, then new tokens up to `<eos>`."""
    _, prompt, eos_id, max_new_tokens = inputs
    if ids[: len(prompt)] != prompt:
        return f"The result must begin with the prompt {prompt}. Yours is {ids}."
    new = ids[len(prompt) :]
    if eos_id in new[:-1]:
        return (
            f"`<eos>`, id {eos_id}, is written, and yours goes on: {ids}, a prompt of "
            f"{len(prompt)}.\nWhere does the loop look at the token that it has appended?"
        )
    if len(new) > max_new_tokens:
        return f"At most {max_new_tokens} tokens may be new. Yours appends {len(new)}."
    return None


def names_two_widths(answer, inputs: tuple, message: str) -> str | None:
    """The sentence names the two widths."""
    x, table = inputs
    right = f"Expected vectors of {table.shape[1]} numbers, but got {x.shape[-1]}."
    if message == right:
        return None
    return (
        f"The table has shape {tuple(table.shape)}, x has {tuple(x.shape)}. The message must be:\n"
        f"{right}\nYours:\n{message[:300]}\nIs the first number the size of an axis, and of which?"
    )


PUBLISHED = {  # GPT-2's heads: layers, parameters
    12: (12, 124_439_808),
    16: (24, 354_823_168),
    20: (36, 774_030_080),
    25: (48, 1_557_611_200),
}


def gpt2_parameters(d_model: int, n_layers: int) -> int:
    """Return how many parameters a GPT-2 of that width and depth has."""
    return 12 * n_layers * d_model**2 + (13 * n_layers + 50_257 + 1024 + 2) * d_model


def weighs_what_was_published(answer, inputs: tuple, d_model: int) -> str | None:
    """The width gives the published number of parameters."""
    n_heads = inputs[0]
    if n_heads not in PUBLISHED:
        return None
    n_layers, published = PUBLISHED[n_heads]
    parameters = gpt2_parameters(d_model, n_layers)
    if parameters == published:
        return None
    return (
        f"For {n_heads} heads yours gives d_model = {d_model}. With {n_layers} layers that is a "
        f"model of {parameters:,} parameters; the published one has {published:,}.\n"
        "How many numbers does each head have?"
    )
