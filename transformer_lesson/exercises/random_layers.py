"""Norms, sub-layers and whole models with random weights, as inputs of exercises.

Several lessons share these. The functions use elementary operations because torch's own softmax
and layer norm wake all threads even for ten numbers, and a diagnosis calls them a thousand times.
"""

import inspect
from collections.abc import Callable
from typing import Any

from torch import Tensor

from transformer_lesson.exercises.engine.compare import gradient_to, same
from transformer_lesson.exercises.engine.specification import Draw, breaks
from transformer_lesson.model.forward import BlockWeights, Weights
from transformer_lesson.model.gpt import GPTWeights


class Endless(BaseException):
    """Ends a loop that does not end by itself; a learner's `except Exception` lets it through."""


class Layer:
    """A function of tensors that describes itself and records its arguments.

    Args:
        function: of one tensor or more.
        words: what it does, for the report.
    """

    def __init__(self, function: Callable, words: str):
        self.function, self.words, self.given = function, words, []

    def __call__(self, *tensors: Tensor) -> Tensor:
        """Return the function's result."""
        self.given.append([tensor.detach().clone() for tensor in tensors])
        return self.function(*tensors)

    def __repr__(self) -> str:
        return self.words


class Table:
    """A tiny language model: the tokens so far select a row of its table.

    Args:
        table: logits, shape (row, vocab_size).
        normalized: return log-probabilities instead of logits.
    """

    def __init__(self, table: Tensor, normalized: bool = False):
        self.table, self.normalized = table, normalized

    def __call__(self, ids: list) -> Tensor:
        """Return a row, shape (vocab_size,)."""
        if not isinstance(ids, list) or not ids or not all(type(i) is int for i in ids):
            raise TypeError(f"it takes the list of all ids so far, such as [1, 4], but got {ids!r}")
        row = self.table[sum(ids) % len(self.table)]
        return row.log_softmax(dim=-1) if self.normalized else row.clone()

    def __repr__(self) -> str:
        rows = [[round(number, 1) for number in row] for row in self.table.tolist()]
        table = rows if self.table.numel() <= 20 else f"a {tuple(self.table.shape)} table"
        function = "log_softmax of row" if self.normalized else "row"
        return f"{function} sum(ids) % {len(rows)} of {table}"


def widen(draw: Draw, leading: str) -> None:
    """Name the leading axes, and give a token of a small draw 4 numbers.

    Of 1 or 2 numbers a norm makes almost the same, whatever they are.
    """
    draw.shape(leading)
    if draw.small:
        draw.sizes["d_model"] = 4


def norm(draw: Draw) -> Layer:
    """Return a layer norm with random gamma and beta."""
    gamma, beta = draw.positive("d_model"), draw.normal("d_model")

    def normalize(x: Tensor) -> Tensor:
        """Return each token normalized by its own mean and deviation."""
        centered = x - x.mean(-1, keepdim=True)
        deviation = (centered.square().mean(-1, keepdim=True) + 1e-5).sqrt()
        return centered / deviation * gamma.to(x.dtype) + beta.to(x.dtype)

    numbers = f"gamma {_digits(gamma)}, beta {_digits(beta)}" if draw.small else "gamma and beta"
    return Layer(normalize, f"a layer norm with {numbers}")


def feed_forward(draw: Draw) -> Layer:
    """Return relu(x @ W_1) @ W_2."""
    W_1, W_2 = _linear(draw), _linear(draw)
    network = "a feed-forward network"
    return Layer(lambda x: (x @ W_1.to(x.dtype)).relu() @ W_2.to(x.dtype), network)


def attention(draw: Draw, takes: int | None = None) -> Layer:
    """Return single-head attention.

    Args:
        draw: gives the numbers.
        takes: 1 or 2 tensors of three axes: queries, and the source of keys and values. `None`
            accepts up to three tensors with any axes; then a diagnosis can say what one too many
            does, as long as some draw refuses it.
    """
    W_Q, W_V = _linear(draw), _linear(draw)

    def attend(query: Tensor, key: Tensor | None = None, value: Tensor | None = None) -> Tensor:
        """Return each query's weighted mean of the values, which default to the keys."""
        key = query if key is None else key
        scores = query @ W_Q.to(query.dtype) @ key.mT  # (..., query, key)
        shares = (scores - scores.amax(-1, keepdim=True)).exp()
        weights = shares / shares.sum(-1, keepdim=True)
        return weights @ (key if value is None else value) @ W_V.to(query.dtype)

    def strict(*tensors: Tensor) -> Tensor:
        """Return the same, but accept only `takes` tensors of three axes."""
        if len(tensors) != takes:
            raise TypeError(f"This attention takes {takes} and was given {len(tensors)}.")
        if tensors[0].ndim != 3:
            raise ValueError(f"It takes (batch, n, d_model), not {tuple(tensors[0].shape)}.")
        return attend(*tensors)

    return Layer(strict if takes else attend, "an attention of one head")


def callbacks_get_the_right_tensors(reference: Callable, names: str) -> Callable:
    """Return the rule that each function argument is called with the right tensors.

    Args:
        reference: the package's own function.
        names: the functions' names in the order in which they are called, separated by spaces.
    """

    @breaks("a function not called, or not with what it should get")
    def rule(answer: Callable, inputs: tuple, result: Tensor) -> str | None:
        """Say which function is never called, or called with something other than ours."""
        named = dict(zip(inspect.signature(reference).parameters, inputs, strict=True))
        layers = {name: named[name] for name in names.split()}
        for layer in layers.values():
            layer.given.clear()
        answer(*inputs)
        mine = {name: list(layer.given) for name, layer in layers.items()}
        reference(*inputs)
        for name, layer in layers.items():
            if not mine[name]:
                return f"Your function never calls `{name}`. What is it for?"
            if not any(same(layer.given[-1], tensor) for tensor in mine[name]):
                return (
                    f"You call `{name}`, but not with what it should get.\n"
                    "Which step of the formula comes right before it?"
                )
        return None

    rule.looks_inside = True  # cannot be decided from recorded results
    return rule


def gradients_are_kept(reference: Callable, *names: str) -> Callable:
    """Return the rule that arguments receive the formula's gradients.

    Args:
        reference: the formula.
        names: of the arguments; by default the first.
    """
    known = list(inspect.signature(reference).parameters)

    def gradient(function: Callable, inputs: tuple, name: str) -> Tensor | None:
        """Return an argument's gradient; `None` if it gets none."""
        arguments = [value.clone() if isinstance(value, Tensor) else value for value in inputs]
        leaf = arguments[known.index(name)].requires_grad_()
        return gradient_to(leaf, function(*arguments))

    @breaks("a gradient that is cut off or wrong")
    def rule(answer: Callable, inputs: tuple, result: Tensor) -> str | None:
        """Report a wrong gradient of a right result."""
        if not same(result, reference(*inputs)):
            return None
        for name in names or known[:1]:
            mine = gradient(answer, inputs, name)
            if mine is not None and mine.isnan().any():
                return (
                    f"The numbers are right, but the gradient of {name} has a NaN, which spoils "
                    "every weight.\nWhere do you divide by 0, or multiply with infinity, and cover "
                    "it up afterwards?"
                )
            right = gradient(reference, inputs, name)
            nothing = mine is None and not right.any()  # as good as zeros
            if not nothing and not same(mine, right):
                return (
                    f"The numbers are right, but {name} does not get the gradient that it should.\n"
                    "Something cuts its path: `detach`, `.data`, `.item()`, `no_grad`, or a tensor "
                    "made from scratch."
                )
        return None

    rule.of_gradients = "right results"
    return rule


@breaks("another result at each call")
def is_deterministic(answer: Callable, inputs: tuple, result: Any) -> str | None:
    """Rule: the same arguments give the same result."""
    if same(answer(*inputs), result):
        return None
    return (
        "Called twice with the same arguments, your function gives two results.\n"
        "What in it is random: a dropout, a weight made on the spot, an id?"
    )


def weights(draw: Draw) -> Weights:
    """Return the weights of a small encoder-decoder with one to three blocks a side."""
    n_heads, d_head = draw.one_of((2, 3, 1, 2, 3, 2)), draw.one_of((2, 4, 4, 2, 2, 4))
    draw.sizes["d_model"] = n_heads * d_head
    n_blocks = draw.one_of((2, 3, 2, 1, 2, 3))
    return Weights(
        draw.normal(f"{SOURCE_WORDS} d_model"),
        draw.normal(f"{TARGET_WORDS} d_model"),
        tuple(_block(draw, 1) for _ in range(n_blocks)),
        tuple(_block(draw, 2) for _ in range(n_blocks)),
        draw.normal(f"d_model {TARGET_WORDS}"),
        n_heads,
        pad_id=draw.one_of((0, 3, 0, 1, 0, 2)),
    )


SOURCE_WORDS, TARGET_WORDS = 17, 19


def gpt_weights(draw: Draw) -> GPTWeights:
    """Return the weights of a small decoder-only model with one to three blocks."""
    n_heads, d_head = draw.one_of((2, 3, 1, 2, 3, 2)), draw.one_of((2, 4, 4, 2, 2, 4))
    draw.sizes["d_model"] = n_heads * d_head
    return GPTWeights(
        draw.normal(f"{SOURCE_WORDS} d_model"),
        tuple(_block(draw, 1) for _ in range(draw.one_of((2, 3, 2, 1, 2, 3)))),
        (draw.positive("d_model"), draw.normal("d_model")),
        draw.normal(f"d_model {SOURCE_WORDS}"),
        n_heads,
    )


def ids(draw: Draw, axis: str, words: int, pad_id: int, padded: bool) -> Tensor:
    """Return a batch of ids; if `padded` and there is room, the first sentence ends in two pads.

    Args:
        draw: gives the numbers.
        axis: name of the token axis.
        words: number of ids.
        pad_id: occurs nowhere else.
        padded: whether there is padding.
    """
    numbers = draw.integers(f"batch {axis}", 0, words)
    numbers[numbers == pad_id] = words - 1
    if padded and numbers.size(1) > 2:
        numbers[0, -2:] = pad_id
    return numbers


def _block(draw: Draw, attentions: int) -> BlockWeights:
    d_model, d_ff = draw.size("d_model"), draw.size("d_ff")
    matrices = [tuple(_linear(draw) for _ in range(4)) for _ in range(attentions)]
    W_1 = draw.normal("d_model d_ff") / d_model**0.5
    W_2 = draw.normal("d_ff d_model") / d_ff**0.5
    norms = [(draw.positive("d_model"), draw.normal("d_model")) for _ in range(attentions + 1)]
    network = (W_1, draw.normal("d_ff"), W_2, draw.normal("d_model"))
    return BlockWeights(matrices[0], matrices[1] if attentions > 1 else (), network, tuple(norms))


def _linear(draw: Draw) -> Tensor:
    numbers = draw.normal("d_model d_model")
    return numbers if draw.small else numbers / draw.size("d_model") ** 0.5


def _digits(numbers: Tensor) -> str:
    if numbers.ndim == 0:
        return f"{numbers.item():.1f}"
    return f"[{', '.join(map(_digits, numbers))}]"
