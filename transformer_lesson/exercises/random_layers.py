"""Norms and sub-layers of random numbers, for exercises whose arguments are functions.

Short: lessons 05 to 07 share these and nothing else. They are written in plain steps, because
torch's own softmax and layer norm wake all threads even for ten numbers, and a diagnosis calls
them a thousand times.
"""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from transformer_lesson.exercises.compare import same
from transformer_lesson.exercises.specification import Draw
from transformer_lesson.model.norm import layer_norm


class Layer:
    """A function of tensors that can say what it is, and whether it was ever called.

    Args:
        function: of one tensor or more.
        words: what it does, for the report.
    """

    def __init__(self, function: Callable, words: str):
        self.function, self.words, self.called = function, words, False

    def __call__(self, *tensors: Tensor) -> Tensor:
        """Return the function's result."""
        self.called = True
        return self.function(*tensors)

    def __repr__(self) -> str:
        return self.words


def norm(draw: Draw) -> Layer:
    """Return a layer norm with a gamma and a beta of its own."""
    gamma, beta = draw.positive("d_model"), draw.normal("d_model")

    def normalize(x: Tensor) -> Tensor:
        return layer_norm(x, gamma.to(x.dtype), beta.to(x.dtype))

    numbers = f"gamma {_digits(gamma)}, beta {_digits(beta)}" if draw.small else "gamma and beta"
    return Layer(normalize, f"a layer norm with {numbers}")


def feed_forward(draw: Draw) -> Layer:
    """Return relu(x @ W_1) @ W_2."""
    W_1, W_2 = _linear(draw), _linear(draw)
    words = f"relu(x @ {_digits(W_1)}) @ {_digits(W_2)}" if draw.small else "a feed-forward network"
    return Layer(lambda x: (x @ W_1.to(x.dtype)).relu() @ W_2.to(x.dtype), words)


def attention(draw: Draw, takes: int | None = None) -> Layer:
    """Return an attention of one head.

    Args:
        draw: gives the numbers.
        takes: one tensor, or two: queries, and what keys and values come from. With `None` it
            takes any number up to three. Then what comes of one too many or too few can be told,
            as long as some draw refuses it.
    """
    W_Q, W_V = _linear(draw), _linear(draw)

    def attend(query: Tensor, key: Tensor | None = None, value: Tensor | None = None) -> Tensor:
        key = query if key is None else key
        scores = query @ W_Q.to(query.dtype) @ key.mT  # (..., query, key)
        shares = (scores - scores.amax(-1, keepdim=True)).exp()
        weights = shares / shares.sum(-1, keepdim=True)
        return weights @ (key if value is None else value) @ W_V.to(query.dtype)

    exact = {1: lambda x: attend(x), 2: lambda x, memory: attend(x, memory)}
    return Layer(exact.get(takes, attend), "an attention of one head")


def every_function_is_called(names: str) -> Callable:
    """Return the rule that no function among the arguments may be left out.

    Args:
        names: the arguments' names, separated by blanks.
    """

    def rule(answer: Callable, inputs: tuple, result: Tensor) -> str | None:
        idle = [
            name
            for name, layer in zip(names.split(), inputs, strict=True)
            if isinstance(layer, Layer) and not layer.called
        ]
        return f"Your function never calls `{idle[0]}`. What is it for?" if idle else None

    return rule


def the_same_again(answer: Callable, inputs: tuple, result: Any) -> str | None:
    """The rule that the same arguments give the same result."""
    if same(answer(*inputs), result):
        return None
    return (
        "Called twice with the same arguments, your function gives two results.\n"
        "What in it is random: a dropout, a weight made on the spot, an id?"
    )


def _linear(draw: Draw) -> Tensor:
    numbers = draw.normal("d_model d_model")
    return numbers if draw.small else numbers / draw.size("d_model") ** 0.5


def _digits(numbers: Tensor) -> str:
    if numbers.ndim == 0:
        return f"{numbers.item():.1f}"
    return f"[{', '.join(map(_digits, numbers))}]"
