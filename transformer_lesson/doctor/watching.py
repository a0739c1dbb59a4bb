"""Watches PyTorch's functions while a model runs: softmaxes, products and factors."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch._C._functorch import is_batchedtensor
from torch.overrides import TorchFunctionMode

PRODUCTS = ("matmul", "bmm", "__matmul__", "baddbmm", "einsum")
FACTORS = (
    "mul",
    "div",
    "truediv",
    "true_divide",
    "__mul__",
    "__truediv__",
    "__rmul__",
    "mul_",
    "div_",
)


class Softmax(NamedTuple):
    """A softmax of at least three axes: its input, its axis, and how many products came before."""

    scores: Tensor
    axis: int | None
    products: int


class Attention(NamedTuple):
    """A call of scaled_dot_product_attention."""

    Q: Tensor
    K: Tensor
    scale: float
    mask: Tensor | None

    def scores(self) -> Tensor | None:
        """Return its scores, with the mask."""
        if self.Q.dim() != 4:
            return None
        K = self.K.repeat_interleave(self.Q.shape[1] // self.K.shape[1], 1)
        scores = self.Q @ K.mT * self.scale
        if self.mask is None:
            return scores
        hidden = self.mask.dtype == torch.bool
        return scores.masked_fill(~self.mask, -1e9) if hidden else scores + self.mask


class LossReads(TorchFunctionMode):
    """Notes what is handed to a cross-entropy or to the logarithm of a softmax."""

    NAMES = ("cross_entropy", "log_softmax", "logsumexp")

    def __init__(self):
        super().__init__()
        self.read: list[Tensor] = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        """Call the function, and note what it reads."""
        kwargs = kwargs or {}
        if getattr(function, "__name__", "") in self.NAMES:
            self.read.append(args[0] if args else kwargs["input"])
        return function(*args, **kwargs)


class Lookups(TorchFunctionMode):
    """Shows a function what code without modules looks up, as in `table[ids]`.

    Args:
        change: gets table, ids and rows; returns other rows, or `None` to leave them.
    """

    def __init__(self, change: Callable[[Tensor, Tensor, Tensor], Tensor | None]):
        super().__init__()
        self.change = change

    def __torch_function__(self, function, types, args=(), kwargs=None):
        """Call the function; of a lookup, return what `change` makes of it."""
        result = function(*args, **(kwargs or {}))
        if function is Tensor.__getitem__ and torch.is_tensor(args[1]):
            table, ids = args
            if table.dim() == 2 and table.is_floating_point() and ids.dtype == torch.int64:
                changed = self.change(table, ids, result)
                return result if changed is None else changed
        return result


class Watch(TorchFunctionMode):
    """Notes softmaxes, attentions, products (with the length of the summed axis) and factors."""

    def __init__(self):
        super().__init__()
        self.softmaxes: list[Softmax] = []
        self.attentions: list[Attention] = []
        self.products: list[tuple[Tensor, int]] = []
        self.factors: list[float] = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        """Call the function, and note what it is."""
        kwargs = kwargs or {}
        result = function(*args, **kwargs)
        name = getattr(function, "__name__", "")
        if name in PRODUCTS and torch.is_tensor(result) and result.dim() >= 3:
            self._product(result, args, kwargs)
        elif name in FACTORS and len(args) == 2:
            self._factor(name, args)
        elif name == "softmax" and torch.is_tensor(result) and result.dim() >= 3:
            axis = kwargs.get("dim", args[1] if len(args) > 1 else None)
            scores = args[0] if args else kwargs["input"]
            self.softmaxes.append(Softmax(scores, axis, len(self.products)))
        elif name == "scaled_dot_product_attention":
            scale = kwargs.get("scale")
            scale = args[0].shape[-1] ** -0.5 if scale is None else scale
            mask = kwargs.get("attn_mask", args[3] if len(args) > 3 else None)
            self.attentions.append(Attention(args[0], args[1], scale, mask))
        return result

    def _product(self, result: Tensor, args: tuple, kwargs: dict) -> None:
        factors = [
            one for one in (*args, *kwargs.values()) if torch.is_tensor(one) and one.dim() > 1
        ]
        if len(factors) >= 2:
            self.products.append((result, factors[-2].shape[-1]))
        if "alpha" in kwargs:
            self.factors.append(float(kwargs["alpha"]))

    def _factor(self, name: str, args: tuple) -> None:
        numbers = [one for one in args if isinstance(one, (int, float))]
        tensors = [one for one in args if torch.is_tensor(one) and not is_batchedtensor(one)]
        numbers += [float(one) for one in tensors if one.dim() == 0]
        if numbers and numbers[0]:
            self.factors.append(float(numbers[0]) if "mul" in name else 1 / float(numbers[0]))
