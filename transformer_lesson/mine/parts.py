"""The forward pass put together from the learner's functions; ours stand in, by name.

Our functions call each other by their names. So a copy of each is made that looks these names up
where the learner's functions are: our `multi_head_attention` then calls your `split_heads`.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FunctionType, ModuleType

from transformer_lesson.exercises.catalog import find
from transformer_lesson.exercises.checks import first_failure, one_thread
from transformer_lesson.exercises.collection import collection_folder, load_collected
from transformer_lesson.files import printable
from transformer_lesson.model import (
    attention,
    blocks,
    embedding,
    feed_forward,
    forward,
    masks,
    norm,
    positions,
)

HOMES: tuple[ModuleType, ...] = (
    embedding,
    positions,
    masks,
    attention,
    norm,
    feed_forward,
    blocks,
    forward,
)
PARTS = (
    *("embed", "sinusoidal_encoding", "attention_scores", "causal_mask", "padding_mask"),
    *("scaled_dot_product_attention", "split_heads", "merge_heads", "multi_head_attention"),
    *("cross_attention", "feed_forward", "layer_norm", "residual_branch", "encoder_block"),
    *("decoder_block", "encoder_forward", "decoder_forward"),
)
"""All functions of the forward pass that a learner writes, in the order of the lessons."""


@dataclass(frozen=True)
class Parts:
    """The functions of a forward pass, and whose they are.

    Args:
        functions: by name; those that the learner wrote, and ours that call them.
        yours: the names of the learner's own.
        reasons: why one of ours stands in, where the learner has written one that does not pass.
    """

    functions: Mapping[str, Callable]
    yours: tuple[str, ...]
    reasons: Mapping[str, str]

    def __repr__(self) -> str:
        lines = [f"{len(self.yours)} of {len(PARTS)} functions of the forward pass are yours"]
        for name in PARTS:
            whose = "yours" if name in self.yours else "ours"
            reason = f": {self.reasons[name]}" if name in self.reasons else ""
            lines.append(f"  {name:30} {whose}{reason}")
        return "\n".join(lines)


def parts() -> Parts:
    """Return the parts as they are now: what was collected and passes, and ours for the rest."""
    folder = collection_folder()
    written, broken = load_collected(folder) if folder else ({}, {})
    reasons = {name: f"yours does not run ({error})" for name, error in broken.items()}
    yours = {}
    with one_thread():
        for name in PARTS:
            if name not in written:
                continue
            failure = first_failure(find(name), written[name])
            if failure is None:
                yours[name] = written[name]
            else:
                reasons[name] = f"yours does not pass any more ({failure.splitlines()[0]})"
    reasons = {name: printable(reasons[name]) for name in PARTS if name in reasons}
    return Parts(assembled(yours), tuple(yours), reasons)


def assembled(yours: Mapping[str, Callable]) -> dict[str, Callable]:
    """Return all functions of the forward pass by name: these, and copies of ours that call them.

    Raises:
        ValueError: a name that is none of `PARTS`.
    """
    unknown = yours.keys() - set(PARTS)
    if unknown:
        raise ValueError(f"{sorted(unknown)} are no parts of the forward pass: use {PARTS}.")
    ours = {
        name: _copy(function)
        for home in HOMES
        for name, function in vars(home).items()
        if inspect.isfunction(function) and function.__module__ == home.__name__
    }
    for function in ours.values():
        own = function.__globals__
        own.update({name: value for name, value in (ours | yours).items() if name in own})
    return ours | dict(yours)


def _copy(function: Callable) -> FunctionType:
    """Return a function that does the same and has global names of its own."""
    plain = inspect.unwrap(function)
    copy = FunctionType(plain.__code__, dict(plain.__globals__), plain.__name__, plain.__defaults__)
    copy.__kwdefaults__, copy.__doc__ = plain.__kwdefaults__, plain.__doc__
    return copy
