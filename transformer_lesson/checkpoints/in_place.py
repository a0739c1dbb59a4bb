"""A model gets weights that are in memory already, and no second copy of them is made.

Usually a model is made with random weights, and then the right ones are copied over them: for a
moment both are there, and twice the memory is taken.
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


class NothingDrawn(TorchFunctionMode):
    """Inside the block, modules get memory for their parameters, but no random numbers.

    Numbers that will be replaced take time, and drawing them would change what this or another
    thread draws next.
    """

    def __torch_function__(self, function, types, args=(), kwargs=None):
        """Return what the function does; of one that draws, memory as it is."""
        kwargs = kwargs or {}
        if function is torch.randn:
            return torch.empty(*args, **kwargs)
        if function in DRAWING:
            return kwargs.get("tensor", *args[:1])
        return function(*args, **kwargs)


@contextmanager
def parameters_without_numbers() -> Iterator[None]:
    """Give modules that are made inside the block parameters with shapes, but no numbers yet.

    Buffers, such as tables of sines, are made as always. No random numbers are drawn. What other
    threads make meanwhile is as always, too.
    """
    this_thread = threading.get_ident()

    def emptied(module: nn.Module, name: str, parameter: nn.Parameter) -> nn.Parameter | None:
        if parameter.is_meta or threading.get_ident() != this_thread:
            return None
        return nn.Parameter(parameter.to("meta"))

    hook = register_module_parameter_registration_hook(emptied)
    try:
        with NothingDrawn():
            yield
    finally:
        hook.remove()


def take_over(
    model: nn.Module, weights: Mapping[str, Tensor], dtype: torch.dtype = torch.float32
) -> None:
    """Make these tensors the model's parameters.

    A tensor that is only a part of what lies in memory, or of a file, is copied.

    Args:
        model: its parameters are replaced; what is tied stays tied.
        weights: a tensor for each name of `model.named_parameters()`.
        dtype: of the parameters.
    """
    for name, parameter in model.named_parameters():
        weight = weights[name].detach().to(dtype)
        if weight.untyped_storage().nbytes() > weight.nbytes or not weight.is_contiguous():
            weight = weight.clone(memory_format=torch.contiguous_format)
        torch.utils.swap_tensors(parameter, nn.Parameter(weight))
