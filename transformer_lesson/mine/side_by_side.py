"""The trained translator run by the learner's functions, beside the package's own run."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from transformer_lesson.checkpoints.translator import MISSING, trained_translator
from transformer_lesson.exercises.engine.collection import PACKAGE
from transformer_lesson.exercises.engine.time_limit import TookTooLong, run_for_at_most
from transformer_lesson.files import printable
from transformer_lesson.generation import translate
from transformer_lesson.generation.session import NaNLogits
from transformer_lesson.mine.fallback import reaches
from transformer_lesson.mine.parts import (
    GIVEN,
    OURS,
    PARTS,
    Parts,
    check_names,
    put_together,
    usable,
)
from transformer_lesson.mine.transformer import MyTransformer
from transformer_lesson.text.tokenizers import Tokenizer

SAME = 1e-4
"""How much logits may differ between two equivalent computations in float32."""
LONGEST = 60.0  # most seconds of a translation: loops are slow


@dataclass(frozen=True)
class Translation:
    """A sentence, translated by the learner's forward pass and by the package's.

    Args:
        mine, packages: the two translations.
        largest: largest difference between their logits, on the package's translation.
        parts: whose functions ran.
        tried: the names of functions passed as arguments, right or wrong.
    """

    mine: str
    packages: str
    largest: float
    parts: Parts
    tried: tuple[str, ...]

    def __repr__(self) -> str:
        yours = self.parts.yours_now()
        lines = [f"the package's: {self.packages}"]
        if yours or self.tried:
            lines.insert(0, f"your model:    {self.mine or '(nothing)'}")
            difference = (
                f"by less than {SAME}: the same model"
                if self.largest <= SAME
                else f"by up to {self.largest:.2g}: not the same model"
            )
            lines.append(f"The words' scores differ {difference}.")
        lines.append(
            f"In yours, {self.parts.count()} functions are yours: {', '.join(yours)}."
            if yours
            else "None of your functions is ready yet, so ours run."
        )
        if self.tried:
            lines.append(f"Used unchecked: {', '.join(self.tried)}.")
        lines += [f"Ours stands in for {name}: {why}." for name, why in self.parts.reasons.items()]
        return "\n".join(map(printable, lines))


def translation(sentence: str, **tried: Callable) -> Translation:
    """Translate with the trained translator, run by the learner's functions and ours for the rest.

    If one of theirs raises, does not end or returns another type, ours replaces it, and the result
    says so.

    Args:
        sentence: words of the translator's vocabulary, separated by spaces.
        tried: functions to run instead, by name, whether they pass their check or not: they show
            what a mistake does to a translation.

    Raises:
        ValueError: a word that the translator does not know, a function that is not part of the
            forward pass, or the translator's file is missing.
    """
    model, tokenizer = translator()
    check_words(sentence, tokenizer)
    compared, current = run(
        lambda mine: _compared(mine, model, tokenizer, sentence), model, tried, LONGEST
    )
    return Translation(*compared, current, tuple(tried))


def translator() -> tuple[nn.Module, Tokenizer]:
    """Return the shipped translator and its tokenizer, or raise a ValueError."""
    if (shipped := trained_translator()) is None:
        raise ValueError(MISSING)
    return shipped[:2]


def run(
    work: Callable[[MyTransformer], Any],
    model: nn.Module,
    tried: Mapping[str, Callable],
    longest: float,
) -> tuple[Any, Parts]:
    """Return work(the learner's model), and its parts; ours replaces what does not end in time."""
    check_names(tried)
    yours, reasons = usable(PARTS)
    places = list(_where_handed_in(tried, yours))
    running = yours | tried
    while True:
        current = put_together(running, reasons, reasons.__setitem__)
        for names, name in places:
            names[name] = current.functions[name]
        current = Parts(current.functions, tuple(yours), reasons)
        mine = MyTransformer.with_weights_of(model, current)
        try:
            return run_for_at_most(longest, lambda mine=mine: work(mine)), current
        except TookTooLong as late:
            endless = [name for name in running if _is_stuck_in(running[name], late)]
            for name in endless or list(running):
                reasons[name] = f"the translation did not end within {longest:.0f} seconds with it"
                del running[name]


def _is_stuck_in(function: Callable, late: TookTooLong) -> bool:
    return late.__cause__ is not None and reaches(late.__cause__, function)


def _compared(
    mine: MyTransformer, model: nn.Module, tokenizer: Tokenizer, sentence: str
) -> tuple[str, str, float]:
    """Return both translations and the largest difference between their logits."""
    (by_ours,) = translate(model, tokenizer, [sentence])
    try:
        (by_mine,) = translate(mine, tokenizer, [sentence])
    except NaNLogits:
        by_mine = "(nothing, because its logits are NaN)"
    source = torch.tensor([[*tokenizer.encode(sentence), tokenizer.eos_id]])
    target = torch.tensor([[tokenizer.bos_id, *tokenizer.encode(by_ours)]])
    return by_mine, by_ours, _difference(mine(source, target), model(source, target))


def _where_handed_in(
    tried: Mapping[str, Callable], yours: Mapping[str, Callable]
) -> Iterator[tuple[dict, str]]:
    """Yield where the learner's files call a tried function, or one of ours that may call it.

    Each place is a file's namespace and a name in it. `usable` reloads these files each time, so
    changes there last only for this run; the package's own modules are never changed.
    """
    waiting, met = list(yours.values()), []
    while waiting:
        names = inspect.unwrap(waiting.pop()).__globals__
        if names.get("__package__") != PACKAGE or any(names is other for other in met):
            continue
        met.append(names)
        for name in names.keys() & {*GIVEN, *PARTS}:
            waiting.append(names[name])
            if name in tried or names[name] is OURS[name]:
                yield names, name


def _difference(one: Tensor, other: Tensor) -> float:
    if one.shape != other.shape or one.isnan().any():
        return float("inf")
    return (one - other).detach().abs().max().item()


def check_words(sentence: str, tokenizer: Tokenizer) -> None:
    """Raise a ValueError that names a word the translator does not know, if there is one."""
    known = set(tokenizer.vocabulary)
    if unknown := [word for word in sentence.split() if word not in known]:
        raise ValueError(
            f"{printable(unknown[0])!r} is not in the translator's vocabulary: use its "
            "words, in small letters, with a blank before each comma and period."
        )
