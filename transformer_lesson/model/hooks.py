"""Watch or replace named quantities of a real forward pass.

    with record(model) as run:
        model(ids)
    run["encoder.0.self_attention.weights"]  # (batch, head, query, key)

Each name is a `HookPoint` of the model. While the block is open, PyTorch forward hooks on the
points store what passes through and, where you gave a function, put its result in its place.
"""

import difflib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial

from torch import Tensor, nn


class HookPoint(nn.Identity):
    """An identity that marks a quantity worth seeing.

    Source: the hook points of TransformerLens (Nanda and Bloom, 2022).
    """

    @property
    def watched(self) -> bool:
        """True while any PyTorch hook, forward or backward, is attached to this quantity."""
        forward = self._forward_hooks or self._forward_pre_hooks
        backward = self._backward_hooks or self._backward_pre_hooks
        return bool(forward or backward or nn.modules.module._has_any_global_hook())


class Recording(dict[str, Tensor]):
    """What a forward pass computed: name to tensor, in the order of computation."""

    def __missing__(self, name: str):
        near = difflib.get_close_matches(name, self, n=3) or list(self)[:3]
        hint = (
            f"near it: {', '.join(near)}"
            if near
            else (
                "call the model inside `with record(...)`, and of a model that runs your own "
                "functions take `as_the_packages()`"
            )
        )
        raise KeyError(f"nothing recorded under {name!r}; {hint}.")


Recorder = Callable[[nn.Module], AbstractContextManager[Recording] | None]
RECORDERS: list[Recorder] = []
"""What records models that are not ours; `None` means a model that it does not know."""


def hook_point_names(model: nn.Module) -> list[str]:
    """Return the names of everything that can be recorded or replaced in a model."""
    return [name for name, module in model.named_modules() if isinstance(module, HookPoint)]


@contextmanager
def record(
    model: nn.Module, replace: Mapping[str, Callable[[Tensor], Tensor]] | None = None
) -> Iterator[Recording]:
    """Store every named quantity of the forward passes inside the `with` block.

    A second forward pass overwrites the first. Stored tensors are detached. Attention weights
    are those before dropout, so each row sums to 1 (or to 0 where every key is masked).

    Args:
        model: any of the package's models or blocks; or one of the library transformers, of a
            family that `from_pretrained` knows (import `transformer_lesson.checkpoints` first).
            That one gives the embedding, the stream after each block, attention weights, what
            heads and hidden units hand on, and logits, as the library computes them: rows of
            padding are not 0, and in training weights are those after dropout.
        replace: name to function; the function gets the tensor at that point and returns the
            one to go on with, of the same shape (ablation: `torch.zeros_like`; patching:
            `lambda x: stored`).

    Yields:
        The `Recording`: name to tensor.

    Raises:
        ValueError: a model without hook points, an unknown name in `replace`, a replacement of
            another shape, or any replacement in a model of the library.

    Source: activation patching as in TransformerLens; Vig et al., "Causal Mediation Analysis
        for Interpreting Neural NLP" (2020).
    """
    replace = dict(replace or {})
    points = {
        name: module for name, module in model.named_modules() if isinstance(module, HookPoint)
    }
    if not points:
        with _recorder_of(model, replace) as run:
            yield run
        return
    for name in replace:
        if name not in points:
            near = difflib.get_close_matches(name, points, n=3) or list(points)[:3]
            raise ValueError(f"replace: no point named {name!r}; near it: {', '.join(near)}.")
    run = Recording()
    handles = [
        point.register_forward_hook(partial(_pass_through, run, name, replace.get(name)))
        for name, point in points.items()
    ]
    try:
        yield run
    finally:
        for handle in handles:
            handle.remove()


def _recorder_of(model: nn.Module, replace: Mapping) -> AbstractContextManager[Recording]:
    """Return what records a model without hook points, or say how to bring it over."""
    name = type(model).__name__
    recorders = (recorder(model) for recorder in RECORDERS)
    recorder = next((candidate for candidate in recorders if candidate is not None), None)
    if recorder is None:
        raise ValueError(
            f"a {name} has no hook points, so nothing of it can be recorded: use one of the "
            "package's models (`from_pretrained` makes one of a library's), or PyTorch's "
            "register_forward_hook."
        )
    if replace:
        raise ValueError(
            f"replace: a {name} is the library's, in which nothing can be replaced: make it one of "
            "the package's models by `from_pretrained`."
        )
    return recorder


def _pass_through(
    run: Recording, name: str, function: Callable | None, _tap, _inputs, value: Tensor
):
    if function is not None:
        new = function(value)
        if not isinstance(new, Tensor) or new.shape != value.shape:
            got = tuple(new.shape) if isinstance(new, Tensor) else type(new).__name__
            raise ValueError(
                f"{name}: the replacement is {got}, but it must be {tuple(value.shape)}."
            )
        value = new
    run[name] = value.detach()
    return value
