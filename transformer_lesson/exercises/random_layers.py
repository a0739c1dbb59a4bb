"""Norms and sub-layers of random numbers, for exercises whose arguments are functions.

Short: lessons 05 to 07 share these and nothing else.
"""

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor

from transformer_lesson.exercises.compare import same
from transformer_lesson.exercises.specification import Draw


class Layer:
    """A function of tensors that can say what it is, and whether it was ever called.

    Args:
        function: of one tensor or more.
        words: what it does, for the report.
        takes: how many tensors it accepts at most.
    """

    def __init__(self, function: Callable, words: str, takes: int = 1):
        self.function, self.words, self.takes = function, words, takes
        self.called = False

    def __call__(self, *tensors: Tensor) -> Tensor:
        """Return the function's result."""
        self.called = True
        if len(tensors) > self.takes:
            raise TypeError(f"This function takes {self.takes}, not {len(tensors)}: {self.words}.")
        return self.function(*tensors)

    def __repr__(self) -> str:
        return self.words


def norm(draw: Draw) -> Layer:
    """Return a layer norm with a gamma and a beta of its own."""
    gamma, beta = draw.positive("d_model"), draw.normal("d_model")

    def normalize(x: Tensor) -> Tensor:
        return F.layer_norm(x, gamma.shape, gamma.to(x.dtype), beta.to(x.dtype))

    numbers = f"gamma {_digits(gamma)}, beta {_digits(beta)}" if draw.small else "gamma and beta"
    return Layer(normalize, f"a layer norm with {numbers}")


def feed_forward(draw: Draw) -> Layer:
    """Return relu(x @ W_1) @ W_2."""
    W_1, W_2 = _linear(draw), _linear(draw)
    words = f"relu(x @ {_digits(W_1)}) @ {_digits(W_2)}" if draw.small else "a feed-forward network"
    return Layer(lambda x: (x @ W_1.to(x.dtype)).relu() @ W_2.to(x.dtype), words)


def attention(draw: Draw, takes: int = 1, words: str = "a self-attention") -> Layer:
    """Return an attention of one head; keys are the query's tensor and values the keys', if none.

    What takes one or two tensors by the exercise's text may take three here, except on some
    draw: then an answer that hands over too many fails there, and can still be told by the others.
    """
    W_Q, W_V = _linear(draw), _linear(draw)

    def attend(query: Tensor, key: Tensor | None = None, value: Tensor | None = None) -> Tensor:
        key = query if key is None else key
        scores = query @ W_Q.to(query.dtype) @ key.mT  # (..., query, key)
        return scores.softmax(dim=-1) @ (key if value is None else value) @ W_V.to(query.dtype)

    return Layer(attend, words, takes)


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


def the_same_again(answer: Callable, inputs: tuple, result: Tensor) -> str | None:
    """The rule that the same arguments give the same result."""
    if same(answer(*inputs), result):
        return None
    return (
        "Called twice with the same arguments, your function gives two results.\n"
        "Is there a dropout in it, or a weight made on the spot? The exercise has neither."
    )


def _linear(draw: Draw) -> Tensor:
    numbers = draw.normal("d_model d_model")
    return numbers if draw.small else numbers / draw.size("d_model") ** 0.5


def _digits(numbers: Tensor) -> str:
    if numbers.ndim == 0:
        return f"{numbers.item():.1f}"
    return f"[{', '.join(map(_digits, numbers))}]"
