"""The forward pass assembled from the learner's functions, with ours for missing ones.

Our functions call each other by global name. So each is copied with globals that have the learner's
functions: our `multi_head_attention` then calls your `split_heads`.
"""

import contextlib
import inspect
import io
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import FunctionType, ModuleType

from transformer_lesson.exercises.engine.checks import one_thread, why_not_yours
from transformer_lesson.exercises.engine.collection import (
    LESSON_OF,
    collection_folder,
    load_collected,
)
from transformer_lesson.exercises.engine.time_limit import (
    ANSWER_SECONDS,
    TookTooLong,
    run_for_at_most,
)
from transformer_lesson.files import printable
from transformer_lesson.mine.fallback import Tell, with_fallback
from transformer_lesson.model import (
    attention,
    blocks,
    embedding,
    feed_forward,
    forward,
    llama,
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
    llama,
)
PARTS = (
    *("sinusoidal_encoding", "attention_scores", "causal_mask", "padding_mask"),
    *("scaled_dot_product_attention", "split_heads", "merge_heads", "multi_head_attention"),
    *("feed_forward", "layer_norm", "residual_branch", "encoder_block"),
    *("encoder_forward", "cross_attention", "decoder_forward"),
)
"""The functions of the forward pass that a learner writes, in lesson order."""
GIVEN = ("embed", "decoder_block")
"""Functions of the forward pass that a learner is given; `translation` may try others."""
LLAMA_PARTS = (
    *("attention_scores", "causal_mask", "scaled_dot_product_attention", "split_heads"),
    *("merge_heads", "llama_block", "apply_rotary"),
)
"""The same for a Llama such as SmolLM2."""
LLAMA_GIVEN = ("rms_norm", "swiglu", "repeat_kv")
"""Functions of a Llama's forward pass that a learner is given; `parts` may run others."""
WHOLE = ("encoder_forward", "decoder_forward", "llama_block")
"""Functions that call all others, and so show failures of their interplay."""

OURS = {
    name: function
    for home in HOMES
    for name, function in vars(home).items()
    if inspect.isfunction(function) and function.__module__ == home.__name__
}
VERDICTS: dict[tuple, str | None] = {}
"""Why collected functions cannot be used, by name and the contents of all files."""
RETURNED = {"scaled_dot_product_attention": 2}
"""How many tensors a part returns, if not one."""


@dataclass(frozen=True)
class Parts:
    """The functions of a forward pass, and whose they are.

    Args:
        functions: by name; the learner's, and ours that call them.
        yours: the names of the learner's own.
        reasons: why ours replaces a function of the learner's that does not pass or has failed
            since; grows while a model runs.
        names: of all parts that a learner may write.
    """

    functions: Mapping[str, Callable]
    yours: tuple[str, ...]
    reasons: Mapping[str, str]
    names: tuple[str, ...] = PARTS

    def __repr__(self) -> str:
        whose = "a Llama's forward pass" if self.names == LLAMA_PARTS else "the forward pass"
        lines = [f"{self.count()} functions of {whose} are yours"]
        for name in self.names:
            whose = "yours" if name in self.yours_now() else "ours"
            reason = f": {self.reasons[name]}" if name in self.reasons else ""
            lines.append(f"  {name:30} {whose}{reason}")
        return "\n".join(lines)

    def yours_now(self) -> tuple[str, ...]:
        """Return the names of the learner's own that have not failed since."""
        return tuple(name for name in self.yours if name not in self.reasons)

    def count(self) -> str:
        """Return how many are the learner's, as in "3 of 15"."""
        return f"{len(self.yours_now())} of {len(self.names)}"


def parts(names: tuple[str, ...] = PARTS, **given: Callable) -> Parts:
    """Return the current parts: the collected functions that pass, and ours for the rest.

    If one fails while a model runs, a warning says so and ours replaces it.

    Args:
        names: of the model's functions; `LLAMA_PARTS` for a Llama.
        given: functions of `GIVEN` or `LLAMA_GIVEN` to run instead of the package's, by name.

    Raises:
        ValueError: a name that is in neither of them.
    """
    check_names(given, GIVEN + LLAMA_GIVEN)
    yours, reasons = usable(names)
    current = put_together(yours | given, reasons, partial(warn, reasons), names)
    return replace(current, yours=tuple(yours))


def put_together(
    yours: Mapping[str, Callable],
    reasons: Mapping[str, str],
    tell: Tell,
    names: tuple[str, ...] = PARTS,
) -> Parts:
    """Return parts in which ours replace the learner's if those fail."""
    safe = {
        name: with_fallback(name, function, OURS[name], tell, RETURNED.get(name, 1))
        for name, function in yours.items()
    }
    functions = assembled(safe)
    _use_later_lessons_functions(yours, safe)
    for name in WHOLE:
        functions[name] = with_fallback(name, functions[name], OURS[name], tell, 1)
    return Parts(functions, tuple(yours), reasons, names)


def _use_later_lessons_functions(
    yours: Mapping[str, Callable], safe: Mapping[str, Callable]
) -> None:
    """Let functions call the learner's own from later lessons, where they had to borrow ours.

    The files are reloaded each time, so changes to their globals last only as long as these parts.
    """
    for name, function in yours.items():
        names = getattr(inspect.unwrap(function), "__globals__", {})  # a `partial` has none
        for other, replacement in safe.items():
            later = LESSON_OF.get(other, "") > LESSON_OF.get(name, "")
            if later and names.get(other) is OURS[other]:
                names[other] = replacement


def warn(reasons: dict[str, str], name: str, why: str) -> None:
    """Store why ours replaces a function, and warn."""
    reasons[name] = why
    warnings.warn(f"Ours stands in for {name}: {why}.", stacklevel=3)


def usable(names: Iterable[str]) -> tuple[dict[str, Callable], dict[str, str]]:
    """Return which of these functions are collected and pass, and why others cannot be used.

    The files may have been edited by hand, so each check is limited to 10 seconds. Nothing is
    checked twice while the files are unchanged.
    """
    folder = collection_folder()
    written, broken = load_collected(folder) if folder else ({}, {})
    files = tuple(path.read_bytes() for path in sorted(folder.glob("*.py"))) if written else ()
    yours, reasons = {}, {}
    for name in names:
        if name in written and (name, files) not in VERDICTS:
            VERDICTS[name, files] = _why_not(name, written[name])
        if name in broken:
            reasons[name] = printable(f"yours does not run ({broken[name]})")
        elif why := VERDICTS.get((name, files)):
            reasons[name] = printable(f"yours no longer passes ({why.splitlines()[0]})")
        elif name in written:
            yours[name] = written[name]
    return yours, reasons


def _why_not(name: str, function: Callable) -> str | None:
    with one_thread(), contextlib.redirect_stdout(io.StringIO()):
        try:
            return run_for_at_most(ANSWER_SECONDS, partial(why_not_yours, name, function))
        except TookTooLong:
            return f"it does not end within {ANSWER_SECONDS:.0f} seconds"


def assembled(yours: Mapping[str, Callable]) -> dict[str, Callable]:
    """Return all functions of the forward pass by name: these, and copies of ours that call them.

    Raises:
        ValueError: a name that is in none of `GIVEN`, `PARTS`, `LLAMA_GIVEN` and `LLAMA_PARTS`.
    """
    check_names(yours, GIVEN + PARTS + LLAMA_GIVEN + LLAMA_PARTS)
    ours = {name: _copy(function) for name, function in OURS.items()}
    for function in ours.values():
        namespace = function.__globals__
        namespace.update(
            {name: value for name, value in (ours | yours).items() if name in namespace}
        )
    return ours | dict(yours)


def check_names(functions: Mapping[str, Callable], names: tuple[str, ...] = GIVEN + PARTS) -> None:
    """Raise a `ValueError` if a function is not one of these parts."""
    if unknown := functions.keys() - set(names):
        raise ValueError(f"{sorted(unknown)} are not in the forward pass: use names from {names}.")


def _copy(function: Callable) -> FunctionType:
    """Return a copy of a function with its own globals."""
    plain = inspect.unwrap(function)
    copy = FunctionType(plain.__code__, dict(plain.__globals__), plain.__name__, plain.__defaults__)
    copy.__kwdefaults__, copy.__doc__ = plain.__kwdefaults__, plain.__doc__
    return copy
