"""Watches PyTorch's functions while a model runs: lookups, softmaxes, products and factors."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch._C._functorch import is_batchedtensor
from torch.overrides import TorchFunctionMode

from transformer_lesson.doctor.tensors import tensors_in

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
    """A softmax of at least three axes: its input, its axis, and how many products came before.

    Somebody's own is known by its exponentials: its input may have lost its maximum by then.
    """

    scores: Tensor
    axis: int | None
    products: int
    own: bool = False


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
    """Shows a function what is looked up: `table[ids]`, `embedding(ids, table)` and the like.

    Args:
        see: gets table, ids and rows; returns other rows, or `None` to leave them.
    """

    NAMES = ("embedding", "__getitem__", "index_select")

    def __init__(self, see: Callable[[Tensor, Tensor, Tensor], Tensor | None]):
        super().__init__()
        self.see = see

    def __torch_function__(self, function, types, args=(), kwargs=None):
        """Call the function; of a lookup, return what `see` makes of it."""
        kwargs = kwargs or {}
        result = function(*args, **kwargs)
        if getattr(function, "__name__", "") in self.NAMES and torch.is_tensor(result):
            tensors = list(tensors_in((args, kwargs)))
            tables = [tensor for tensor in tensors if tensor.is_floating_point()]
            ids = [tensor for tensor in tensors if tensor.dtype in (torch.int64, torch.int32)]
            if len(tables) == len(ids) == 1:
                other = self.see(tables[0], ids[0], result)
                return result if other is None else other
        return result


class Watch(TorchFunctionMode):
    """Notes softmaxes, attentions, products (with the length of the summed axis) and factors.

    Each factor comes with the length of the last axis of what it multiplies.
    """

    def __init__(self):
        super().__init__()
        self.softmaxes: list[Softmax] = []
        self.attentions: list[Attention] = []
        self.products: list[tuple[Tensor, int]] = []
        self.factors: list[tuple[float, int]] = []

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
        elif name == "exp" and torch.is_tensor(result) and result.dim() >= 3:
            self.softmaxes.append(Softmax(args[0], None, len(self.products), own=True))
        elif name == "scaled_dot_product_attention":
            scale = kwargs.get("scale")
            scale = args[0].shape[-1] ** -0.5 if scale is None else scale
            mask = kwargs.get("attn_mask", args[3] if len(args) > 3 else None)
            self.attentions.append(Attention(args[0], args[1], scale, mask))
        return result

    def _product(self, result: Tensor, args: tuple, kwargs: dict) -> None:
        factors = [
            value
            for value in (*args, *kwargs.values())
            if torch.is_tensor(value) and value.dim() > 1
        ]
        if len(factors) >= 2:
            self.products.append((result, factors[-2].shape[-1]))
        if "alpha" in kwargs:
            self.factors.append((float(kwargs["alpha"]), 0))

    def _factor(self, name: str, args: tuple) -> None:
        numbers = [value for value in args if isinstance(value, (int, float))]
        tensors = [
            value for value in args if torch.is_tensor(value) and not is_batchedtensor(value)
        ]
        numbers += [float(tensor) for tensor in tensors if tensor.dim() == 0]
        if numbers and numbers[0]:
            value = float(numbers[0]) if "mul" in name else 1 / float(numbers[0])
            length = next((tensor.shape[-1] for tensor in tensors if tensor.dim()), 0)
            self.factors.append((value, length))
