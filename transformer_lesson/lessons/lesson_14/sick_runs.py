"""The clinic: the boss's program with an evaluation, its single faults, and the cases.

`probes` measures; `symptoms` has the measurements of each fault, and the learner's table.
"""

import difflib
import tomllib
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from transformer_lesson.exercises.engine.checks import one_thread
from transformer_lesson.exercises.engine.misuse import Misuse
from transformer_lesson.exercises.program import program, started

HERE = Path(__file__).parent
HEALTHY = "healthy"
UNLUCKY = "another seed"
UNLUCKY_SEED = 5
EVALUATED = 7  # every seventh text is evaluated after training
BEGINNINGS = ("<bos> das Kind macht", "<bos> die Frau sieht heute", "<bos> die Katze lädt")


class Fault(NamedTuple):
    """One fault of a program.

    Args:
        kind: "model", "data", "optimization", "evaluation", "decoding", or "none".
        function: where it is.
        suspicion: the text of the suspect's card.
        reason: what the line does, shown after the verdict.
        turn: the wrong turn of that function's exercise; "" if text is replaced instead.
        right, wrong: the program's text, and its replacement.
        before: a line to put at the program's start.
    """

    kind: str
    function: str
    suspicion: str
    reason: str
    turn: str = ""
    right: str = ""
    wrong: str = ""
    before: str = ""


class Case(NamedTuple):
    """A patient: the symptom, the suspects, the guilty one, and the sentence that shows it."""

    symptom: str
    suspects: tuple[str, ...]
    guilty: str
    sample: int


_READ = tomllib.loads((HERE / "sick_runs.toml").read_text("utf-8"))
FAULTS = {name: Fault(**fault) for name, fault in _READ["faults"].items()}
CASES = tuple(Case(**case | {"suspects": tuple(case["suspects"])}) for case in _READ["cases"])
PATIENTS = tuple(case.guilty for case in CASES if case.guilty != UNLUCKY)
"""The faults of the cases, in order; one more case has none."""
SUSPECTS = tuple(dict.fromkeys(suspect for case in CASES for suspect in case.suspects))


@cache
def source(name: str = HEALTHY) -> str:
    """Return the whole program, with this fault.

    Raises:
        ValueError: there is no such fault.
    """
    more = (HERE / "sick_program.txt").read_text("utf-8")
    if name == HEALTHY:
        return program() + more
    if name not in FAULTS:
        raise Misuse(f"The clinic has no fault {name!r:.60}; it has {', '.join(FAULTS)}.")
    fault = FAULTS[name]
    if fault.turn:
        return program(((fault.function, fault.turn),)) + more
    changed = (program() + more).replace(fault.right, fault.wrong, 1)
    return changed.replace("\n\n\n", f"\n\n\n{fault.before}\n\n\n", 1) if fault.before else changed


def wrong_lines(name: str) -> tuple[list[str], list[str]]:
    """Return the lines of the program that a fault changed, and the original ones."""
    right, wrong = (text.splitlines() for text in (source(), source(name)))
    lines = [line for line in difflib.ndiff(right, wrong) if line[0] in "+-" and line[2:].strip()]
    lines = [line for line in lines if not line[2:].startswith(("import ", "from "))]
    added, removed = ([line[2:] for line in lines if line[0] == sign] for sign in "+-")
    return added, removed


class Trained(NamedTuple):
    """A program after its run: its namespace, trained weights, losses, output, and its seed."""

    names: dict
    weights: dict[str, Tensor]
    losses: list[float]
    evaluation: float
    sentences: list[str]
    seed: int


@lru_cache(maxsize=4)
def trained(name: str = HEALTHY, seed: int = 0) -> Trained:
    """Run a program of the clinic: train, evaluate and write, like its `run`.

    Args:
        name: of the fault.
        seed: of the first weights and the batches.

    Raises:
        ValueError: there is no such fault.
    """
    names = started(source(name))
    with one_thread(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed or UNLUCKY_SEED * (name == UNLUCKY))
        weights = names["new_weights"]()
        losses = names["learn"](weights, names["TEXTS"])
        evaluation = names["evaluate"](weights, names["TEXTS"][::EVALUATED])
        sentences = [names["write"](weights, beginning) for beginning in BEGINNINGS]
    return Trained(names, weights, losses, evaluation, sentences, seed)
