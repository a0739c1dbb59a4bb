"""How much `import transformer_lesson` adds to `import torch`: at most 0.3 s, as promised.

Both are timed in fresh processes, in turns, so that a busy machine slows both alike.
"""

import statistics
import subprocess
import sys

ROUNDS = 9
TIMED = "import time; start = time.perf_counter(); import {}; print(time.perf_counter() - start)"


def seconds(modules: str) -> float:
    """Return how long a fresh Python takes to import modules."""
    run = [sys.executable, "-c", TIMED.format(modules)]
    return float(subprocess.run(run, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    both = "torch; from transformer_lesson import *"  # every name, as each is imported when used
    rounds = [(seconds("torch"), seconds(both)) for _ in range(ROUNDS)]
    added = [with_ours - torch_alone for torch_alone, with_ours in rounds]
    print(f"{'import':32} {'median':>7}   {'from':>6} to {'most':>6}")
    for name, values in (
        ("torch", [torch_alone for torch_alone, _ in rounds]),
        ("torch, transformer_lesson", [with_ours for _, with_ours in rounds]),
        ("added by transformer_lesson", added),
    ):
        low, high = min(values), max(values)
        print(f"{name:32} {statistics.median(values):5.2f} s   {low:4.2f} s to {high:4.2f} s")


if __name__ == "__main__":
    main()
