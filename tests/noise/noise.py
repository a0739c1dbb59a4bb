"""Relative noise on every hook point and matrix product, as other processors' last digits.

    TRANSFORMER_LESSON_NOISE=1e-6 pytest

Another processor sums a matrix product in another order, so that its last digits differ. What
hangs on them (which of two equal weights is named as the largest) fails here, on any machine.
The noise is a function of a number and its place on the last axis: equal products stay equal,
which resuming and caching promise, and equal neighbors in a row do not, which a tie would be.
The backward pass multiplies by what the forward pass had, so it needs no noise of its own.
"""

import functools
import importlib.util
import os
import sys

PRODUCTS = {  # where they are looked up, by the function that is called
    "torch": "addmm baddbmm bmm dot einsum inner matmul mm mv tensordot vdot",
    "torch.Tensor": "__matmul__ addmm baddbmm bmm dot inner matmul mm mv vdot",
    "torch.nn.functional": "bilinear linear scaled_dot_product_attention",
}


def switched_on() -> bool:
    """Return whether a size of the noise is set."""
    return bool(os.environ.get("TRANSFORMER_LESSON_NOISE"))


class AfterTorch:
    """A finder of modules that calls `install` once torch is imported, by whomever."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            install(float(os.environ["TRANSFORMER_LESSON_NOISE"]))

        spec.loader.exec_module = exec_module
        return spec


def install(size: float) -> None:
    """Put noise of this relative size on the products and hook points of this process."""
    import torch

    def factor(y):
        """1 + noise, of y's shape. A float64 has finer last digits, and gets finer noise.

        A whole number was summed without rounding: it is the same on every processor.
        """
        step = size * min(1.0, torch.finfo(y.dtype).eps / torch.finfo(torch.float32).eps)
        place = torch.arange(y.size(-1), device=y.device, dtype=y.dtype) if y.dim() else 0
        phase = 1e4 * y.data + 12.9898 * place
        noise = phase.sin_().nan_to_num_(0.0).mul_(step)
        return noise.masked_fill_(y.data.frac() == 0, 0.0).add_(1.0)

    def is_noisy(y):  # 16-bit numbers would round it away
        return isinstance(y, torch.Tensor) and y.dtype in (torch.float32, torch.float64)

    def noisy(product):
        @functools.wraps(product)
        def with_noise(*args, **kwargs):
            y = product(*args, **kwargs)
            # inside torch.func's transforms and torch.compile a tensor has no memory
            elsewhere = torch._C._are_functorch_transforms_active() or torch.compiler.is_compiling()
            if is_noisy(y) and not elsewhere and _is_new(y, args):
                y.data.mul_(factor(y))  # through `data`: autograd's graph stays as it is
            return y

        return with_noise

    for place, names in PRODUCTS.items():
        where = functools.reduce(getattr, place.split(".")[1:], torch)
        for name in names.split():
            setattr(where, name, noisy(getattr(where, name)))

    def at_hook_point(module, y):
        if type(module).__name__ == "HookPoint" and is_noisy(y):
            return y + (y * (factor(y) - 1)).detach()
        return y

    torch.nn.Identity.forward = at_hook_point  # no hook: who looks for hooks finds none


def _is_new(y, args) -> bool:
    """Return whether y has memory of its own, and is not an input seen from another side."""
    return all(
        arg.untyped_storage().data_ptr() != y.untyped_storage().data_ptr()
        for arg in args
        if hasattr(arg, "untyped_storage")
    )
