"""How long a failing check takes: at most 2 s, and half a second in the median.

Every wrong turn of every exercise, some pairs of them, and an answer that no turn explains, each
with nothing remembered from the one before.
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
    """Return wrong answers to an exercise by name."""
    marked = EXERCISES[name].marked
    pairs = [pair for pair in combinations(turns(marked), 2) if fit_together(marked, pair)]
    choices = [(turn,) for turn in turns(marked)] + pairs[:: 1 + len(pairs) // PAIRS]
    wrong = {" and ".join(choice): variant(marked, frozenset(choice)) for choice in choices}
    return wrong | {"unknown": lambda *inputs: nudged(EXERCISES[name].load_reference()(*inputs))}


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
    all_times = []
    for name in EXERCISES:
        times = {which: seconds(name, answer) for which, answer in answers(name).items()}
        all_times += times.values()
        which, median = max(times, key=times.get), statistics.median(times.values())
        print(f"{name:32}{len(times):>7}{median:>11.2f}{times[which]:>12.2f}  {which}", flush=True)
    median = statistics.median(all_times)
    print(f"{'all':32}{len(all_times):>7}{median:>11.2f}{max(all_times):>12.2f}")


if __name__ == "__main__":
    main()
