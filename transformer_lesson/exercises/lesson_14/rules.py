"""Lesson 14: rules that every right repair obeys, broken ones in words."""

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from transformer_lesson.exercises.engine.compare import gradient_to
from transformer_lesson.exercises.lesson_14.inputs import MEAN


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
    if inputs[0].size(1) == 1:
        return None
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
        gradient = gradient_to(scores, weights)
        if gradient is None:
            return (
                "The weights are right, but no gradient comes back to the scores: nothing before "
                "them would be trained.\nCompute them from the scores in PyTorch, without "
                "`detach` and `no_grad`."
            )
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
    few = count_operations(answer, x, *(W[:1].repeat(2, 1, 1) for W in matrices))
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
    if added.size(1) > 1 and (added[:, 1:] - added[:, :1]).abs().amax(-1).min() < 1e-5:
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
        result = answer(x.clone().requires_grad_(), branch, block)
        if gradient_to(block.norm.weight, result) is not None:
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
