"""Runs of GRPO with one fault each: the lesson's own `reinforce` and its loss, one line changed.

`measure_sick_rewards` trained each of them and stored what the probes find.
"""

import inspect
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from transformer_lesson.caching import copied
from transformer_lesson.lessons.lesson_16 import manners
from transformer_lesson.stored import read_stored
from transformer_lesson.training.preferences import grpo_loss

HERE = Path(__file__).parent
STORED = HERE / "sick_rewards.json"
HEALTHY = "healthy"
RUN = '''def run(spoiled, practice, on_step):
    """Reinforce a spoiled translator; return it, and the mean reward of each step."""
    model = spoiled(share=0.6)
    means = reinforce(model, TOKENIZER, practice, 60, exactly, 3e-4, on_step=on_step)
    return model, means
'''


class Fault(NamedTuple):
    """One fault of the run.

    Args:
        place: the function that it is in.
        suspicion: the text of the suspect's card.
        reason: what the line does, shown after the verdict.
        right, wrong: the program's text, and its replacement.
    """

    place: str
    suspicion: str
    reason: str
    right: str
    wrong: str


class Case(NamedTuple):
    """A patient: the symptom, the suspects, the guilty one, and the probes that give it away."""

    symptom: str
    suspects: list[str]
    guilty: str
    tells: list[str]


class Probe(NamedTuple):
    """A measurement of one number: its cost in minutes, what it asks, and how it is written."""

    cost: int
    asks: str
    unit: str
    digits: int


_READ = tomllib.loads((HERE / "sick_rewards.toml").read_text("utf-8"))
FAULTS = {name: Fault(**fault) for name, fault in _READ["faults"].items()}
CASES = [Case(**case) for case in _READ["cases"]]
PROBES = {name: Probe(**probe) for name, probe in _READ["probes"].items()}


def source(name: str = HEALTHY) -> str:
    """Return the whole program, with this fault."""
    program = "\n\n".join([inspect.getsource(grpo_loss), inspect.getsource(manners.reinforce), RUN])
    if name == HEALTHY:
        return program
    return program.replace(FAULTS[name].right, FAULTS[name].wrong)


def points(text: str, reference: str) -> float:
    """Return a grader's points from 0 to 1: half for right neighbors, half for many words."""
    written, right = text.split(), reference.split()
    a, b = (Counter(zip(words, words[1:], strict=False)) for words in (written, right))
    return 0.5 * (a & b).total() / b.total() + 0.5 * len(written) / manners.ROOM


@copied
def stored() -> dict[str, Any]:
    """Return the stored results of the healthy run and of each fault, by name.

    Each has `losses`, the mean reward of every step; `evaluation`, the share of unseen sentences
    that greedy decoding gets right at the end; `probes`, a number for each probe; `outputs`, ten
    attempts at the end.

    Raises:
        ValueError: the file is missing or damaged.
    """
    return read_stored(STORED, f"{__package__}.measure_sick_rewards")
