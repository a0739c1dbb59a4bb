"""How long a check takes that fails: at most 2 s, and half a second in the median.

Every wrong turn of every exercise, some pairs of them, and what no turn explains, each with nothing
remembered from the one before.
"""

import statistics
import time
from itertools import combinations

from transformer_lesson.exercises import check
from transformer_lesson.exercises.engine.catalog import EXERCISES
from transformer_lesson.exercises.engine.choosing import fit_together, turns, variant
from transformer_lesson.exercises.engine.diagnosis import forget

PAIRS = 6  # of an exercise


def answers(name: str) -> dict:
    """Return wrong answers to an exercise, each under a name."""
    marked = EXERCISES[name].marked
    pairs = [pair for pair in combinations(turns(marked), 2) if fit_together(marked, pair)]
    taken = [(turn,) for turn in turns(marked)] + pairs[:: 1 + len(pairs) // PAIRS]
    made = {" and ".join(one): variant(marked, frozenset(one)) for one in taken}
    return made | {"unknown": lambda *inputs: nudged(EXERCISES[name].load_reference()(*inputs))}


def nudged(result):
    """Return a result with other numbers, of the same type and shape."""
    if isinstance(result, tuple | list):
        return type(result)(map(nudged, result))
    return f"{result}?" if isinstance(result, str) else result * 2 + 3


def seconds(name: str, answer) -> float:
    """Return how long one check takes."""
    forget()
    start = time.perf_counter()
    check(name, answer)
    return time.perf_counter() - start


def main() -> None:
    print(f"{'exercise':32}{'checks':>7}{'median, s':>11}{'longest, s':>12}  which")
    every = []
    for name in EXERCISES:
        took = {which: seconds(name, answer) for which, answer in answers(name).items()}
        every += took.values()
        which, middle = max(took, key=took.get), statistics.median(took.values())
        print(f"{name:32}{len(took):>7}{middle:>11.2f}{took[which]:>12.2f}  {which}", flush=True)
    print(f"{'all':32}{len(every):>7}{statistics.median(every):>11.2f}{max(every):>12.2f}")


if __name__ == "__main__":
    main()
