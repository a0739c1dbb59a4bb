"""Giving a model weights that are already in memory, without a second copy.

Usually a model starts with random weights, and the right ones are copied over them: for a moment
both exist, which takes twice the memory.
"""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.overrides import TorchFunctionMode

INITS = (nn.init.normal_, nn.init.uniform_, nn.init.kaiming_uniform_)
DRAWING = (Tensor.normal_, Tensor.uniform_, *INITS)


class SkipsRandomInit(TorchFunctionMode):
    """Inside the block, modules get memory for their parameters, but no random numbers.

    Drawing numbers that will be replaced takes time, and would change what this or another thread
    draws next.
    """

    def __torch_function__(self, function, types, args=(), kwargs=None):
        """Return the function's result, or uninitialized memory if it would draw."""
        kwargs = kwargs or {}
        if function is torch.randn:
            return torch.empty(*args, **kwargs)
        if function in DRAWING:
            return kwargs.get("tensor", *args[:1])
        return function(*args, **kwargs)


@contextmanager
def parameters_on_meta() -> Iterator[None]:
    """Give modules built inside the block parameters with shapes, but no numbers yet.

    Buffers, such as tables of sines, are built as usual. No random numbers are drawn. What other
    threads build meanwhile is not affected.
    """
    this_thread = threading.get_ident()

    def emptied(module: nn.Module, name: str, parameter: nn.Parameter) -> nn.Parameter | None:
        if parameter.is_meta or threading.get_ident() != this_thread:
            return None
        return nn.Parameter(parameter.to("meta"))

    hook = register_module_parameter_registration_hook(emptied)
    try:
        with SkipsRandomInit():
            yield
    finally:
        hook.remove()


def take_over(
    model: nn.Module, weights: Mapping[str, Tensor], dtype: torch.dtype = torch.float32
) -> None:
    """Make these tensors the model's parameters.

    A tensor that is only part of a larger one, or of a file, is copied.

    Args:
        model: its parameters are replaced; tied ones stay tied.
        weights: a tensor for each name of `model.named_parameters()`.
        dtype: of the parameters.
    """
    for name, parameter in model.named_parameters():
        weight = weights[name].detach().to(dtype)
        if weight.untyped_storage().nbytes() > weight.nbytes or not weight.is_contiguous():
            weight = weight.clone(memory_format=torch.contiguous_format)
        torch.utils.swap_tensors(parameter, nn.Parameter(weight))
