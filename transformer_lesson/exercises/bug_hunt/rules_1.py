"""Lesson 14, first part: rules that every right repair obeys."""

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from transformer_lesson.exercises.bug_hunt.parts_1 import MEAN


class OperationCounter(TorchFunctionMode):
    """Counts the functions of PyTorch that are called."""

    count = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.count += 1
        return function(*args, **(kwargs or {}))


def count_operations(function, *inputs) -> int:
    """Return how many functions of PyTorch are called in function(*inputs)."""
    with OperationCounter() as counter:
        function(*inputs)
    return counter.count


def earlier_outputs_stay(answer, inputs: tuple, output: Tensor) -> str | None:
    """The last token must not move what stands at earlier positions."""
    changed = inputs[0].clone()
    changed[:, -1] += 1
    moved = (answer(changed, *inputs[1:]) - output)[:, :-1].abs().max()
    if moved < 1e-4:
        return None
    return (
        "Changing the last token must not move what stands at earlier positions. "
        f"Yours moves there by up to {moved:.4g}.\n"
        "Which attention still sees tokens that come later?"
    )


def padding_is_hidden(answer, inputs: tuple, mask: Tensor) -> str | None:
    """No real token may see padding, nor a later token."""
    ids, pad_id = inputs
    real = ids != pad_id
    for sentence, _, query, key in mask.nonzero().tolist():
        if key > query:
            return f"In your mask, token {query} sees token {key}, which comes later."
        if real[sentence, query] and not real[sentence, key]:
            return (
                f"In sentence {sentence}, ids {ids[sentence].tolist()} with pad_id {pad_id}, your "
                f"mask lets token {query} see token {key}, which is padding.\n"
                "The causal mask hides what comes later. What hides padding that comes before?"
            )
    return None


def empty_rows_get_nothing(answer, inputs: tuple, weights: Tensor) -> str | None:
    """A query that sees no key must get zeros, every other one weights that sum to 1."""
    sums, some = weights.double().sum(-1), inputs[1].any(-1).expand(weights.shape[:-1])
    if (sums[~some] != 0).any():
        return (
            "A query whose keys are all hidden has nothing to collect: its weights must be 0. "
            f"Yours sum to {sums[~some].max():.4g}."
        )
    if (weights.masked_fill(inputs[1], 0.0) > 1e-6).any():
        return "A key that the mask hides gets a weight above 0. True means: may attend."
    if ((sums[some] - 1).abs() > 1e-2).any():
        return "The weights of a query that sees some key must sum to 1 over the keys."
    return None


def gradient_is_finite(answer, inputs: tuple, weights: Tensor) -> str | None:
    """NaN must not come back through the gradient either."""
    scores = inputs[0].clone().requires_grad_()
    with torch.enable_grad():
        weights = answer(scores, inputs[1])
        if not weights.requires_grad:
            return (
                "The weights are right, but no gradient comes back to the scores: nothing before "
                "them would be trained.\nCompute them from the scores in PyTorch, without "
                "`detach` and `no_grad`."
            )
        (gradient,) = torch.autograd.grad(weights.square().sum(), scores)
    if gradient.isfinite().all():
        return None
    return (
        "The weights are right, but the gradient of the scores holds NaN: training would break.\n"
        "NaN was cleared away after the softmax, and the way back goes through the softmax too. "
        "Give the softmax a number that is finite."
    )


def rows_keep_their_token(answer, inputs: tuple, heads: Tensor) -> str | None:
    """Row i of every head must hold numbers of token i."""
    n, d_model = inputs[0].shape
    numbered = torch.arange(n)[:, None].repeat(1, d_model).to(inputs[0].dtype)
    found = answer(numbered, inputs[1])
    strays = (found != torch.arange(n)[:, None]).nonzero().tolist()
    if not strays:
        return None
    head, row, place = strays[0]
    return (
        f"Row {row} of head {head} must hold numbers of token {row}. Yours holds a number of "
        f"token {int(found[head, row, place])} there.\n"
        "Cut each token's numbers first. Only then bring the heads forward."
    )


def operations_do_not_grow(answer, inputs: tuple, heads: Tensor) -> str | None:
    """More heads must not mean more operations."""
    x, *matrices = inputs
    few = count_operations(answer, x, *(W[:2] for W in matrices))
    many = count_operations(answer, x, *(W[:1].repeat(12, 1, 1) for W in matrices))
    if many < few + 10:  # twelve heads in a loop start at least ten more
        return None
    return (
        f"The numbers may be right, but 2 heads start {few} operations and 12 heads {many}: "
        "each head waits for the one before.\n"
        "`torch.einsum` or `@` with one more axis takes all heads' matrices at once."
    )


def softmax_is_not_linear(answer, inputs: tuple, linear: bool) -> str | None:
    """Self-attention whose weights depend on the tokens is not linear."""
    if not linear or repr(inputs[0]) == MEAN:
        return None
    return (
        f"You call {inputs[0]!r} linear. In self-attention one x is query, key and value, and "
        "here the weights depend on it. Does your test change all three?"
    )


def cutting_changes_nothing(answer, inputs: tuple, count: int) -> str | None:
    """All heads' matrices side by side are d_model wide, however many heads there are."""
    d_model, n_heads = inputs
    alone = answer(d_model, 1)
    if alone == count:
        return None
    return (
        f"For d_model {d_model} you count {alone} with 1 head and {count} with {n_heads}. Heads "
        "cut the same three matrices in pieces; the pieces hold as many numbers as the whole.\n"
        "How many numbers does a token have that comes to a head's W_Q?"
    )


def first_row_is_angle_zero(answer, inputs: tuple, encoding: Tensor) -> str | None:
    """Position 0 has angle 0 in every column."""
    first = torch.tensor([0.0, 1.0]).repeat(encoding.size(1) // 2)
    if torch.allclose(encoding[0].float(), first, atol=1e-5):
        return None
    return (
        "The first row is position 0, so all its angles are 0: sine 0, cosine 1, in turn.\n"
        f"Yours begins {', '.join(f'{x:.3f}' for x in encoding[0, :4].tolist())}."
    )


def same_sentence_same_vectors(answer, inputs: tuple, x: Tensor) -> str | None:
    """Two equal sentences of a batch must stay equal, and two places must differ."""
    tokens, table = inputs
    added = answer(torch.zeros_like(tokens), table)
    if (added - added[:1]).abs().max() > 1e-5:
        return (
            "Two equal sentences of one batch get different vectors from you. A position is the "
            "place in the sentence, not the sentence's place in the batch."
        )
    if (added[:, 1:] - added[:, :1]).abs().amax(-1).min() < 1e-5:
        return "Two places of one sentence get the same vector from you."
    return None


def fastest_comes_first(answer, inputs: tuple, speeds: Tensor) -> str | None:
    """The first pair turns by one radian per token, each next one more slowly."""
    if abs(float(speeds[0]) - 1) > 1e-5:
        return (
            "The first pair turns by 1 radian per token: 10000 to the power 0 is 1. "
            f"Yours turns by {float(speeds[0]):.4g}."
        )
    if (speeds.diff() >= 0).any():
        return "Each pair must turn more slowly than the one before. Yours does not."
    return None
