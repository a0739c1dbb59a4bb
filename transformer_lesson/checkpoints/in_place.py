"""A model gets weights that are in memory already, and no second copy of them is made.

Usually a model is made with random weights, and then the right ones are copied over them: for a
moment both are there, and twice the memory is taken.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.overrides import TorchFunctionMode

DRAWING = (Tensor.normal_, Tensor.uniform_, nn.init.normal_, nn.init.kaiming_uniform_)


@contextmanager
def parameters_without_numbers() -> Iterator[None]:
    """Give modules that are made inside the block parameters with shapes, but no numbers yet.

    Buffers, such as tables of sines, are made as always. No random numbers are drawn.
    """

    def emptied(module: nn.Module, name: str, parameter: nn.Parameter) -> nn.Parameter | None:
        return None if parameter.is_meta else nn.Parameter(parameter.to("meta"))

    hook = register_module_parameter_registration_hook(emptied)
    try:
        with _NothingDrawn():
            yield
    finally:
        hook.remove()


class _NothingDrawn(TorchFunctionMode):
    """Draws no numbers for parameters that will have others: it takes memory, and time."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.randn:
            return torch.empty(*args, device="meta")
        kwargs = kwargs or {}
        if function in DRAWING:
            return kwargs.get("tensor", *args[:1])
        return function(*args, **kwargs)


def take_over(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Make these tensors the model's parameters, in float32.

    A tensor that is only a part of what lies in memory, or of a file, is copied.

    Args:
        model: its parameters are replaced; what is tied stays tied.
        weights: a tensor for each name of `model.named_parameters()`.
    """
    for name, parameter in model.named_parameters():
        weight = weights[name].detach().float()
        if weight.untyped_storage().nbytes() > weight.nbytes or not weight.is_contiguous():
            weight = weight.clone(memory_format=torch.contiguous_format)
        torch.utils.swap_tensors(parameter, nn.Parameter(weight))
