"""An unknown model: find its rule with two tools and forty runs, then break your own rule.

The rules are in a module of their own, so that you can read this one.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from transformer_lesson.exercises.engine.misuse import Misuse
from transformer_lesson.exercises.engine.reports import Report
from transformer_lesson.exercises.engine.time_limit import (
    ANSWER_SECONDS,
    TookTooLong,
    run_for_at_most,
)
from transformer_lesson.intervals import wilson
from transformer_lesson.lessons.lesson_11.hidden_rules import (
    MAX_LENGTH,
    MODELS,
    N_TOKENS,
    TRAINED_LENGTH,
    trained_model,
)
from transformer_lesson.model.hooks import record

RUNS, ENOUGH = 40, 0.9  # runs of a model; share of sequences on which a rule has to agree
HEADS = ("0.0", "0.1", "1.0", "1.1")
N_TEST_SEQUENCES = 200  # sequences on which a rule is compared with the model

Tokens = Sequence[int] | Int64[Tensor, " n"]
Rule = Callable[[list[int]], Tokens]


@dataclass(frozen=True)
class Run:
    """One run: what the model read, what it guessed after each token, and where its heads looked.

    Args:
        ids: the tokens.
        guesses: after each of them, the likeliest next token.
        weights: by head, such as "1.0", shape (query, key).
        changed: a sentence about the head whose output was replaced; "" for none.
    """

    ids: list[int]
    guesses: list[int]
    weights: Mapping[str, Float[Tensor, "query key"]] = field(repr=False)
    changed: str = ""

    def __repr__(self) -> str:
        rows = {"place": range(len(self.ids)), "token": self.ids, "guess": self.guesses}
        looks = {f"{name} looks at": w.argmax(dim=-1).tolist() for name, w in self.weights.items()}
        table = [f"{name:13}" + "".join(f"{number:3}" for number in row)
                 for name, row in {**rows, **looks}.items()]  # fmt: skip
        return "\n".join(table + [self.changed] * bool(self.changed))


class Unknown:
    """A trained model with a rule that nobody tells you; make one with `unknown(number)`.

    It has two blocks of two heads and nothing else, as the model of lesson 11. Its tokens are 0 to
    11, and it was trained on 24 of them drawn at random. It reads up to 32.
    """

    def __init__(self, number: int):
        self.number, self.runs = number, []

    @property
    def runs_left(self) -> int:
        """How many of the forty runs are left."""
        return RUNS - len(self.runs)

    def __repr__(self) -> str:
        return f"Unknown model {self.number}: {self.runs_left} of {RUNS} runs left."

    def record(self, ids: Tokens) -> Run:
        """Run the model on a sequence; costs one run.

        Args:
            ids: 1 to 32 tokens from 0 to 11.

        Raises:
            ValueError: other ids, or no runs left.
        """
        read = _checked(ids)
        self._check_runs_left()
        return self._add(_read(self.number, read))

    def put_back(self, ids: Tokens, other: Tokens, head: str) -> Run:
        """Run the model on `ids`, but let one head send what it sends for `other`; costs one run.

        Args:
            ids, other: equally many tokens.
            head: "0.0", "0.1", "1.0" or "1.1".

        Raises:
            ValueError: other ids, sequences of two lengths, no such head, or no runs left.
        """
        read, instead = _checked(ids), _checked(other)
        if len(read) != len(instead):
            raise Misuse(
                f"The two sequences have {len(read)} and {len(instead)} tokens: make them equally "
                "long."
            )
        if head not in HEADS:
            raise Misuse(f"There is no head {head!r:.20}: take one of {', '.join(HEADS)}.")
        self._check_runs_left()
        return self._add(_read(self.number, read, instead, head))

    def check(self, rule: Rule, breaks: Tokens | None = None) -> Report:
        """Say how often a rule agrees with the model; costs no run.

        Args:
            rule: from a list of tokens to as many guesses, one after each token.
            breaks: a sequence on which the model does something else than the rule.

        Raises:
            ValueError: `breaks` is no sequence that the model can read.
        """
        broken = None if breaks is None else _checked(breaks)
        if not callable(rule):
            return self._report(
                "failed", f"Pass the function itself, not a call of it: {rule!r:.60}."
            )
        try:
            return run_for_at_most(ANSWER_SECONDS, lambda: self._judged(rule, broken))
        except TookTooLong:
            text = f"Your rule did not come to its end within {ANSWER_SECONDS:.0f} seconds."
            return self._report("failed", f"{text} Which loop does not end?")
        except NotImplementedError:
            return self._report("not attempted", "")
        except _BadRule as bad:
            return self._report("failed", str(bad))

    def _judged(self, rule: Rule, broken: list[int] | None) -> Report:
        as_trained = _agreeing(self.number, rule, *AS_TRAINED)
        lines = [_agreement_sentence("As in training, 24 tokens at random", *as_trained[:2])]
        holds, place = as_trained[0] >= ENOUGH * N_TEST_SEQUENCES, None
        if broken is not None:
            guesses = _read(self.number, broken).guesses
            rule_guesses = _guesses(rule, broken)
            place = next((i for i, guess in enumerate(rule_guesses) if guess != guesses[i]), None)
            lines.append(
                f"On your input they agree at all {len(rule_guesses)} places."
                if place is None
                else f"Your input breaks it: at place {place} the model guesses {guesses[place]}, "
                f"your rule {rule_guesses[place]}."
            )
        if holds and place is not None:  # before, it would tell where to break it
            lines += [
                _agreement_sentence(name, *_agreeing(self.number, rule, *kind)[:2])
                for name, kind in UNLIKE_TRAINED.items()
            ]
        lines.append(_what_next(holds, as_trained[2], broken is not None, place is not None))
        status = "failed" if not holds else "half done" if place is None else "passed"
        return self._report(status, "\n".join(lines))

    def _report(self, status: str, text: str) -> Report:
        return Report(f"unknown {self.number}", status, text)

    def _check_runs_left(self) -> None:
        if not self.runs_left:
            raise Misuse(
                f"All {RUNS} runs are used up: think about those you have, `runs` lists them, and "
                "`check` costs nothing."
            )

    def _add(self, run: Run) -> Run:
        self.runs.append(run)
        return run


@cache
def _made(number: int) -> Unknown:
    return Unknown(number)


def unknown(number: int) -> Unknown:
    """Return an unknown model. The same number is the same model, with the runs already used.

    Args:
        number: from 1 to 30.

    Raises:
        ValueError: there is no model of that number.
    """
    if type(number) is not int or not 1 <= number <= MODELS:
        raise Misuse(
            f"Unknown models have whole numbers from 1 to {MODELS}: {number!r:.40} is none."
        )
    return _made(number)


class _BadRule(Exception):
    """What is wrong with a rule, in a sentence."""


def _checked(ids: Any) -> list[int]:
    """Return ids as a list of whole numbers; refuse what the model cannot read."""
    try:
        read = [operator.index(token) for token in ids]
    except TypeError:
        raise Misuse(
            f"Pass a list of tokens, such as [3, 1, 4, 1, 5]: {ids!r:.60} is none."
        ) from None
    if not 1 <= len(read) <= MAX_LENGTH:
        raise Misuse(f"The model reads 1 to {MAX_LENGTH} tokens, and here are {len(read)}.")
    wrong = [token for token in read if not 0 <= token < N_TOKENS]
    if wrong:
        raise Misuse(f"Tokens go from 0 to {N_TOKENS - 1}, and {wrong[0]} is none of them.")
    return read


@torch.no_grad()
def _read(number: int, ids: list[int], other: list[int] | None = None, head: str = "") -> Run:
    """Run a model, with one head's output from another sequence if one is given."""
    model, replace = trained_model(number), {}
    if other is not None:
        block, index = map(int, head.split("."))
        point = f"decoder.{block}.self_attention.heads"
        with record(model) as elsewhere:
            model(torch.tensor([other]))

        def instead(outputs: Tensor) -> Tensor:  # (batch, head, n, d_head)
            outputs = outputs.clone()
            outputs[:, index] = elsewhere[point][:, index]
            return outputs

        replace = {point: instead}
    with record(model, replace) as run:
        guesses = model(torch.tensor([ids]))[0].argmax(dim=-1).tolist()
    weights = {
        name: run[f"decoder.{name[0]}.self_attention.weights"][0, int(name[2])] for name in HEADS
    }
    changed = f"head {head} sent what it sends for {other}" if head else ""
    return Run(ids, guesses, weights, changed)


def _random(length: int, tokens: int, seed: int) -> Int64[Tensor, "batch n"]:
    """Return sequences of tokens drawn at random, each from a few of all tokens."""
    generator = torch.Generator().manual_seed(seed)
    few = torch.rand(N_TEST_SEQUENCES, N_TOKENS, generator=generator).argsort(dim=1)[:, :tokens]
    return few.gather(1, torch.randint(tokens, (N_TEST_SEQUENCES, length), generator=generator))


AS_TRAINED = (TRAINED_LENGTH, N_TOKENS, 1)
UNLIKE_TRAINED = {
    f"Longer, {MAX_LENGTH} tokens": (MAX_LENGTH, N_TOKENS, 2),
    "Two tokens only": (TRAINED_LENGTH, 2, 3),
}


def _agreeing(
    number: int, rule: Rule, length: int, tokens: int, seed: int
) -> tuple[int, int, float]:
    """Return on how many sequences a rule agrees everywhere, of how many; its share of places."""
    ids = _random(length, tokens, seed)
    with torch.no_grad():
        guesses = trained_model(number)(ids).argmax(dim=-1)
    rule_guesses = torch.tensor([_guesses(rule, row) for row in ids.tolist()])
    same = rule_guesses == guesses
    return int(same.all(dim=1).sum()), len(ids), same.float().mean().item()


def _guesses(rule: Rule, ids: list[int]) -> list[int]:
    """Return a rule's guesses; say in a sentence what is wrong with them."""
    copy = list(ids)
    try:
        guesses = rule(copy)
    except NotImplementedError:
        raise
    except Exception as error:
        raise _BadRule(
            f"Your rule raised {type(error).__name__} ({error!s:.80}) on {ids}."
        ) from None
    if copy != ids:
        raise _BadRule("Your rule changes the list that it is given: begin with `ids = list(ids)`.")
    try:
        guesses = [operator.index(guess) for guess in guesses]
    except TypeError:
        raise _BadRule(
            f"Return a list of whole numbers, one guess after each token: yours is {guesses!r:.60}."
        ) from None
    if len(guesses) != len(ids):
        raise _BadRule(
            f"Return {len(ids)} guesses for {len(ids)} tokens: yours are {len(guesses)}."
        )
    return guesses


def _agreement_sentence(kind: str, right: int, n: int) -> str:
    low, high = wilson(right, n)
    return (
        f"{kind}: your rule says what the model says on {right} of {n} sequences "
        f"(95 % interval: {low:.0%} to {high:.0%})."
    )


def _what_next(holds: bool, places: float, tried: bool, broken: bool) -> str:
    """Return one sentence on what to do now."""
    if holds and broken:
        return "Cracked: the rule holds where the model was trained, and you know where it ends."
    if holds and tried:
        return "Break it elsewhere: what did training, 24 tokens drawn at random, hardly ever show?"
    if holds:
        return "It holds as in training. Now break it: hand in a sequence, `breaks=[…]`."
    if places > 0.8:
        return (
            f"You are right at {places:.0%} of the places: compare a run with your rule, and ask "
            "what the places where they differ have in common."
        )
    return (
        f"You are right at {places:.0%} of the places: take one run, and for each place find the "
        "earlier token that the guess is a copy of. Do other first tokens change that?"
    )
