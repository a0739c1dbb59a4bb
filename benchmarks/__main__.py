"""Run every benchmark, each in its own process: `python -m benchmarks`.

It ends with the tables that are older than the code they measure: those of other processors, and
those run by hand. `python -m benchmarks.stale` lists them without measuring.
"""

import argparse
import subprocess
import sys
import time

from benchmarks import stale
from benchmarks.results import BY_HAND, RESULTS, SECTIONS


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(SECTIONS)}; all by default")
    wanted = parser.parse_args().names
    if unknown := set(wanted) - set(SECTIONS):
        parser.error(
            f"there is no benchmark {sorted(unknown)[0]!r}; there are {', '.join(SECTIONS)}"
        )
    scripts = {name: heading for name, heading in SECTIONS.items() if name not in BY_HAND}
    scripts = {name: SECTIONS[name] for name in wanted} or scripts
    for number, (script, heading) in enumerate(scripts.items(), start=1):
        print(f"\n[{number}/{len(scripts)}] {heading} ({script})", flush=True)
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", f"benchmarks.{script}"], check=True)
        print(f"took {time.perf_counter() - start:.0f} s")
    print(f"\nThe results are in {RESULTS.name}.")
    stale.main()


if __name__ == "__main__":
    main()
