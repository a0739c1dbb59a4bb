"""A boss: a program that trains and writes, with three unknown bugs, or one in your own functions.

A seed decides which functions have bugs and which bugs, so everybody can have a boss of their own.
A bug is a wrong turn of the function's exercise, so the exercise's `check` tells when it is fixed.
"""

import random
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

import torch

from transformer_lesson.exercises.engine.attempt import NotAttempted
from transformer_lesson.exercises.engine.catalog import find
from transformer_lesson.exercises.engine.checks import ENDLESS, one_thread, run_checks
from transformer_lesson.exercises.engine.choosing import variant
from transformer_lesson.exercises.engine.collection import collection_folder, load_collected
from transformer_lesson.exercises.engine.misuse import Misuse
from transformer_lesson.exercises.engine.reports import Report
from transformer_lesson.exercises.engine.time_limit import (
    ANSWER_SECONDS,
    TookTooLong,
    run_for_at_most,
)
from transformer_lesson.exercises.engine.wording import words
from transformer_lesson.exercises.probing import PROBES
from transformer_lesson.exercises.program import FUNCTIONS, program, sources, started

SUITED = {
    "sinusoidal_encoding": "frequency_alone growing base_e sines_alone "
    "cosines_missing last_position width_divides_last",
    "causal_mask": "upper everything itself_alone not_itself one_ahead",
    "padding_mask": "inverted id_1",
    "scaled_dot_product_attention": "inverse keys_as_values zero_for_hidden "
    "hidden_after_softmax over_queries over_all twice mask_added",
    "split_heads": "tokens_turned tokens_in_the_last_axis no_transpose numbers_in_front",
    "merge_heads": "number_by_number no_transpose batch_and_heads_exchanged",
    "feed_forward": "input_cut_off cut_off_from_above activation_at_the_end softmax signs",
    "layer_norm": "over_tokens over_first over_all not_the_root swapped gamma_plus_1 no_gamma",
    "shifted_loss": "shifted_backward two_ahead batch_shifted second_softmax "
    "padding_counted over_positions",
    "rate_at": "in_epochs end_in_epochs ramp_to_the_end rising tenth_of_the_rate over_at_once",
    "write_on": "multiplied likeliest_first one_before even_chances",
}
"""The wrong turns this program can take: with each it still runs, but prints something else.

Bugs that would hide others are left out: a sub-layer that is never called, an unused mask, labels
that need no context.
"""

BUGS, WORTH, LARGEST = 3, 10, 9999  # of a boss; points for each; the largest number of a boss
WRONG = 5  # points that a wrong verdict costs: accusing all functions in turn ends at 0


def planted_bugs(seed: int, count: int = BUGS) -> tuple[tuple[str, str], ...]:
    """Return a boss's faulty functions, each with its wrong turn.

    They depend on the seed alone, so they are the same on every machine.

    Args:
        seed: the boss's number, 0 to 9999.
        count: how many.

    Raises:
        ValueError: there is no boss of that number.
    """
    if type(seed) is not int or not 0 <= seed <= LARGEST:
        raise Misuse(f"A boss has a whole number from 0 to {LARGEST}: {seed!r:.40} is none.")
    chance = random.Random(f"boss {seed}")
    chosen = sorted(chance.sample(FUNCTIONS, count), key=FUNCTIONS.index)
    return tuple((name, chance.choice(SUITED[name].split())) for name in chosen)


def printed(bugs: Iterable[tuple[str, str]] = ()) -> tuple[str, ...]:
    """Return what a program with these bugs prints: the loss every ten steps, and sentences."""
    _, losses, sentences = _run_program(tuple(bugs))
    return *_table(losses), *sentences


def _table(losses: list[float]) -> list[str]:
    """Return a line for every tenth step and for the last one."""
    steps = *range(0, len(losses), 10), len(losses) - 1
    return [f"{step:>10}{losses[step]:>10.2f}" for step in steps]


@lru_cache(maxsize=16)
def _run_program(bugs: tuple[tuple[str, str], ...]) -> tuple[dict, list[float], list[str]]:
    """Run a program with bugs; return its namespace, its losses and the sentences it writes."""
    names = started(program(bugs))
    with one_thread(), torch.random.fork_rng(devices=[]):
        return names, *names["run"]()


def healthy() -> tuple[dict, list[float], list[str]]:
    """Return the bug-free program's namespace, its losses and the sentences it writes."""
    return _run_program(())


class Text(str):
    """Text that a notebook shows without quotes."""

    def __repr__(self) -> str:
        return str(self)


class Boss:
    """A program with unknown bugs, the probes that find them, and your score.

    A function's code stays closed until you accuse it and are right. Each fixed bug earns ten
    points, each minute of probing costs one, and each wrong verdict costs five.

    Args:
        seed: which boss, 0 to 9999.
        mine: run the program on the functions you collected in the lessons, with one bug in one of
            them and ours in place of missing ones. Your files do not change.

    Raises:
        ValueError: there is no boss of that number.
    """

    def __init__(self, seed: int, mine: bool = False):
        self.seed, self.mine = seed, mine
        self._planted = dict(planted_bugs(seed, 1 if mine else BUGS))
        self._found: set[str] = set()
        self._mended: set[str] = set()
        self._sound: set[str] = set()
        self.minutes = 0
        self.names = started(program() if mine else program(tuple(self._planted.items())))
        self.yours = _yours() if mine else {}
        self.names.update(self.yours)
        for name, turn in self._planted.items() if mine else ():
            self.names[name] = variant(find(name).marked, frozenset([turn]))
        self._run()

    def _run(self) -> None:
        """Run the program as it now is: its losses and the sentences it writes."""
        with one_thread(), torch.random.fork_rng(devices=[]):
            self.losses, self.sentences = self.names["run"]()

    @property
    def points(self) -> int:
        """The current score, never below 0."""
        return max(0, WORTH * len(self._mended) - self.minutes - WRONG * len(self._sound))

    def __repr__(self) -> str:
        """Show the symptoms: losses and sentences beside those of the healthy program."""
        _, losses, sentences = healthy()
        now = "mended" if len(self._mended) == len(self._planted) else "sick"
        rows = [f"{'step':>10}{now:>10}{'healthy':>10}"]
        for sick, right in zip(*map(_table, (self.losses, losses)), strict=True):
            rows.append(sick + right[10:])
        for sick, right in zip(self.sentences, sentences, strict=True):
            rows += ["", f"{now:>7}: {sick}", f"healthy: {right}"]
        return "\n".join([f"Boss {self.seed}: {self._score()}", "", *rows])

    def probe(self, name: str) -> Text:
        """Run a probe, pay its minutes, and return what it finds, sick beside healthy.

        Raises:
            ValueError: there is no such probe.
        """
        if name not in PROBES:
            raise Misuse(f"There is no probe {name!r}. Take one of: {', '.join(PROBES)}.")
        probe, right = PROBES[name], healthy()[0]
        self.minutes += probe.cost
        with one_thread(), torch.random.fork_rng(devices=[]):
            reading = probe.take(self.names, right)
        paid = f"{probe.cost} minute{'s' if probe.cost > 1 else ''}, {self.minutes} in all."
        return Text(f"{probe.asks}\n{reading}\n{paid}")

    def accuse(self, name: str) -> Report:
        """Give your verdict on a function; if it has a bug, its code opens.

        In your own functions, the verdict mends it.

        Raises:
            ValueError: the program has no such function.
        """
        _check_name(name)
        if name not in self._planted:
            self._sound.add(name)
            return self._report(f"`{name}` is sound.")
        self._found.add(name)
        if not self.mine:
            return self._report(f'It is `{name}`. Its code is open now: show("{name}").')
        self._mended.add(name)
        self.names[name] = self.yours.get(name, healthy()[0][name])
        self._run()
        turn = words(name)[self._planted[name]]
        return self._report(f"It is `{name}`: {turn.name}. {turn.why}")

    def show(self, name: str) -> Text:
        """Return the source of a function that was rightly accused.

        Raises:
            ValueError: the program has no such function, or it is closed.
        """
        self._check_open(name)
        return Text(sources(tuple(self._planted.items()))[name])

    def check(self, *functions: Callable) -> Report:
        """Put mended functions into the program, run it again, and say whether they are right.

        Args:
            functions: named as in the program, and rightly accused.

        Raises:
            ValueError: the program has no such function, or it is closed.
        """
        for function in functions:
            self._check_open(getattr(function, "__name__", repr(function)))
        mended = len(self._mended)
        text = "\n".join(map(self._judge, functions))
        if len(self._mended) > mended:
            self._run()
        return self._report(text)

    def _check_open(self, name: Any) -> None:
        _check_name(name)
        if self.mine:
            raise Misuse('These are your own functions: a verdict is all, accuse("layer_norm").')
        if name not in self._found:
            raise Misuse(f'`{name}` is closed until your verdict: accuse("{name}").')

    def _judge(self, function: Callable) -> str:
        name = function.__name__
        if whats_wrong(name, function) is not None:
            return f"`{name}` is not right yet."
        self.names[name] = function
        self._mended.add(name)
        return f"`{name}` is mended. It was {words(name)[self._planted[name]].name}."

    def _report(self, text: str) -> Report:
        done = len(self._mended) == len(self._planted)
        tried = self._found or self._sound
        state = "passed" if done else "failed" if tried else "not attempted"
        return Report(f"boss {self.seed}", state, "\n".join(filter(None, [text, self._score()])))

    def _score(self) -> str:
        count, mended = len(self._planted), len(self._mended)
        text = f"{mended} of {count} bug{'s' * (count > 1)} mended, "
        text += f"{self.points} of {WORTH * count} points"
        if self.minutes or self._sound:
            text += f": {WORTH * mended} for bugs, minus {self.minutes} for minutes of probes"
            lost = WRONG * len(self._sound)
            text += f", minus {lost} for wrong verdicts" * bool(lost)
        return f"{text}."


def whats_wrong(name: str, function: Callable) -> str | None:
    """Return the first failure of one of the program's functions; `None` if it is right.

    Records no progress and collects nothing.
    """
    with one_thread(), torch.random.fork_rng(devices=[]):
        try:
            return run_for_at_most(ANSWER_SECONDS, lambda: run_checks(find(name), function))
        except TookTooLong:
            return ENDLESS
        except NotAttempted:
            return "There is nothing in it yet."


def _check_name(name: Any) -> None:
    if name in FUNCTIONS:
        return
    callers = [caller for caller, source in sources().items() if f"def {name}(" in source]
    if callers:
        raise Misuse(f"`{name}` is a part of `{callers[0]}`: accuse `{callers[0]}`.")
    raise Misuse(f"The program has no exercise {name!r:.60}; it has {', '.join(FUNCTIONS)}.")


def _yours() -> Mapping[str, Callable]:
    """Return the program's functions that you have collected and that pass their checks."""
    folder = collection_folder()
    loaded = load_collected(folder)[0] if folder and folder.is_dir() else {}
    right = {name: loaded[name] for name in FUNCTIONS if name in loaded}
    return {name: function for name, function in right.items() if not whats_wrong(name, function)}
