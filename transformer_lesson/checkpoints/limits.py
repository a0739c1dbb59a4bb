"""What a file may claim about itself: no more than its size can hold, in values of the right kind.

A file that means harm can carry any sizes, with a sum that fits. They are looked at here before
anything of these sizes is made.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from torch import Tensor

from transformer_lesson.config import ModelConfig

LARGEST_TABLE = 2**28  # numbers; sines and cosines are computed, so no file limits them
FEWEST_PER_LAYER = 4  # tensors; every layer has more
MALFORMED = (
    AttributeError,
    IndexError,
    KeyError,
    MemoryError,
    OverflowError,
    RecursionError,
    RuntimeError,
    TypeError,
    ZeroDivisionError,
)
"""What Python and PyTorch raise for values of a wrong kind or size."""


@contextmanager
def telling(what: str) -> Iterator[None]:
    """Turn what a wrong kind of value raises inside the block into one `ValueError`.

    Args:
        what: where the value stands, such as "config.json".
    """
    try:
        yield
    except MALFORMED as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        reason = reason if len(reason) <= 200 else f"{reason[:199]}…"
        raise ValueError(
            f"{what} holds a value of a wrong kind or size ({reason}): get the file again."
        ) from error


def require_room(configs: tuple[ModelConfig, ...], tensors: Mapping[str, Tensor]) -> None:
    """Refuse sizes that these tensors cannot have, so that a model is no larger than its file.

    Raises:
        ValueError: a size is too large.
    """
    numbers = sum(map(_stored_numbers, tensors.values()))
    for c in configs:
        blocks = c.n_layers * c.d_model
        sizes = {"vocab_size": c.vocab_size * c.d_model, "d_model": blocks * c.d_model}
        sizes |= {"d_ff": blocks * c.d_ff, "n_token_types": c.n_token_types * c.d_model}
        if c.positions == "learned":
            sizes["max_len"] = c.max_len * c.d_model
        for name, size in sizes.items():
            if size > numbers:
                raise ValueError(_too_large(name, getattr(c, name), f"{numbers:,} numbers"))
        if c.n_layers > len(tensors) // FEWEST_PER_LAYER:
            raise ValueError(_too_large("n_layers", c.n_layers, f"{len(tensors):,} tensors"))
        if c.positions.startswith("sinusoidal") and c.max_len * c.d_model > LARGEST_TABLE:
            raise ValueError(_too_large("max_len", c.max_len, f"{LARGEST_TABLE:,} sines"))


def _too_large(name: str, value: int, room: str) -> str:
    return f"{name} is {value}, but there are only {room}: get the file again."


def _stored_numbers(tensor: Tensor) -> int:
    """Return how many numbers lie in memory: a shape may repeat one of them without end."""
    return min(tensor.numel(), tensor.untyped_storage().nbytes() // tensor.element_size())
