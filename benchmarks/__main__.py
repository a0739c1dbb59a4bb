"""Run every benchmark, each in a process of its own: `python -m benchmarks`."""

import subprocess
import sys
import time

from benchmarks.results import RESULTS, SECTIONS


def main() -> None:
    for number, (script, heading) in enumerate(SECTIONS.items(), start=1):
        print(f"\n[{number}/{len(SECTIONS)}] {heading} ({script})", flush=True)
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", f"benchmarks.{script}"], check=True)
        print(f"took {time.perf_counter() - start:.0f} s")
    print(f"\nAll of it stands in {RESULTS.name}.")


if __name__ == "__main__":
    main()
