"""Half an hour at the knobs: the explorables of all lessons, moved at random in real JupyterLab.

    python -m benchmarks.soak --moves 2000

Chromium opens one lesson after the other, runs it and moves its controls with the keyboard.
After every move the page must come to rest at what the kernel's explorable draws for the state
that its controls show.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tqdm import tqdm

from benchmarks.explorables import TEXTS
from benchmarks.results import Row, write
from benchmarks.soak_page import ALL_RAN, FIND, IN_KERNEL, SETTLED, WATCH
from tests.browser.lab import (
    REPOSITORY,
    chromium_program,
    headless,
    offline_page,
    run_lesson,
    serving,
    shut_down_kernel,
)

WARM_UP = 25  # moves in each lesson before memory is read
MOST_GROWTH = 50  # MB
PAUSE = 1000  # milliseconds at most between two moves: some follow each other at once
PATIENCE = 20  # seconds until a page that shows something else counts as a lost update
KINDS = {  # a control of each kind, by what takes the focus, and what moves it
    ".jupyter-button:enabled:not(.widget-toggle-buttons .mod-active)": "press",
    "input[type=checkbox]:enabled": "press",
    ".noUi-target:not([disabled]) .noUi-handle": "slide",
    "textarea, input[type=text]": "type",
}
KEYS = ("ArrowLeft", "ArrowRight", "ArrowLeft", "ArrowRight", "Home", "End", "PageUp", "PageDown")

NOTES = """
A move is a random key press or a burst of up to five on a random control of a random explorable, a
text typed into a field (hostile ones too), or a "Play" that is stopped after a while. After each
the page must come to rest within 20 s: every control shows the value that the kernel has, and the
picture and its words are, to the last character, what a fresh call of the explorable's `render()`
gives. Pauses between moves last up to a second. Errors: exceptions and console errors in the page,
error or output messages of the kernel, tracebacks in the server's log, requests to other machines.

Memory is the resident set of the lesson's kernel process (psutil) after `gc.collect()`, read after
a warm-up of 25 moves in each lesson, not counted among the others, and once more at the end: what
is loaded at first use does not count, everything else does, caches included. Each lesson has its
own kernel; a kernel that shrank counts as 0 in the sum.
"""


class Soaked(NamedTuple):
    """What came of one lesson: MB of its kernel before and after, and what went wrong."""

    moves: int
    before: float
    after: float
    lost: list[str]
    errors: list[str]


def lessons() -> list[str]:
    """Return the names of the lessons whose cells name an explorable."""
    from transformer_lesson import explorables

    paths = sorted((REPOSITORY / "notebooks").glob("[0-9][0-9]_*.ipynb"))
    return [
        path.name
        for path in paths
        if any(f"{name}(" in path.read_text(encoding="utf-8") for name in explorables.__all__)
    ]


def move(page, root, chance: random.Random) -> None:
    """Move one control of an explorable, whichever chance chooses."""
    kinds = {kind: root.locator(kind).filter(visible=True) for kind in KINDS}
    kind, found = chance.choice([(kind, some) for kind, some in kinds.items() if some.count()])
    control = found.nth(chance.randrange(found.count()))
    if KINDS[kind] == "type":
        control.fill(chance.choice([*TEXTS, "word " * 500, "</script>{{7*7}}${alert(1)}%s"]))
        control.press("Tab")
        return
    control.focus()
    if KINDS[kind] == "slide":
        for key in chance.choices(KEYS, k=chance.randint(1, 5)):
            page.keyboard.press(key)
        return
    plays = "Play" in control.inner_text()
    page.keyboard.press("Space")
    if plays:
        page.wait_for_timeout(chance.uniform(100, 1500))
        if root.locator(".mod-active", has_text="Play").count():
            page.keyboard.press("Space")


def settle(page, number: int) -> str:
    """Wait until the page shows what the kernel draws; return what it shows instead, if it does."""
    deadline = time.monotonic() + PATIENCE
    while difference := page.evaluate(SETTLED, number):
        if time.monotonic() > deadline:
            return difference
        page.wait_for_timeout(30)
    return ""


def soak(page, address: str, lesson: str, moves: int, chance: random.Random, bar: tqdm) -> Soaked:
    """Run one lesson and move its explorables; the kernel's memory is read before and after."""
    run_lesson(page, address, lesson)
    page.wait_for_function(ALL_RAN, timeout=300_000)
    page.evaluate(WATCH, IN_KERNEL)
    roots, count, lost = page.locator(".explorable"), page.evaluate(FIND), []
    before = 0.0
    for done in range(WARM_UP + moves):
        if done == WARM_UP:
            before = memory(page)
        number = chance.randrange(count)
        move(page, roots.nth(number), chance)
        if difference := settle(page, number):
            lost.append(f"{lesson}: {difference}")
        bar.update(done >= WARM_UP)
        page.wait_for_timeout(chance.uniform(0, PAUSE))
    after, said = memory(page), page.evaluate("() => window.soak.problems")
    shut_down_kernel(page)
    errors = [f"{lesson}: {text}" for text in (*said, *page.problems, *page.outside, *page.errors)]
    return Soaked(moves, before, after, lost, errors)


def memory(page) -> float:
    """Return the kernel's resident set in MB, without what nobody uses any more."""
    (size,) = page.evaluate("() => window.soak.ask('soak_memory()')")
    return size / 1e6


def soak_all(moves: int, seed: int) -> Iterator[Soaked]:
    """Share the moves out among the lessons and yield what came of each."""
    program = chromium_program()
    if program is None:
        sys.exit("There is no Chromium here: install one from your system's packages.")
    chance, names = random.Random(seed), lessons()
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder)) as address,
        headless(program) as browser,
        tqdm(total=moves, unit="move") as bar,
    ):
        for i, lesson in enumerate(names):
            share = moves * (i + 1) // len(names) - moves * i // len(names)
            bar.set_description(lesson)
            with offline_page(browser) as page:
                yield soak(page, address, lesson, share, chance, bar)
        log = (Path(folder) / "log").read_text(encoding="utf-8")
        if "Traceback" in log:
            yield Soaked(0, 0.0, 0.0, [], [f"the server's log:\n{log}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--moves", type=int, default=2000, help="in all lessons together")
    parser.add_argument("--seed", type=int, default=0, help="of the random moves")
    chosen = parser.parse_args()
    begun = time.perf_counter()
    runs = list(soak_all(chosen.moves, chosen.seed))
    minutes = (time.perf_counter() - begun) / 60
    grown = [max(0.0, run.after - run.before) for run in runs]
    lost = [one for run in runs for one in run.lost]
    errors = [one for run in runs for one in run.errors]
    print(*lost, *errors, sep="\n")
    moves, n = f"{sum(run.moves for run in runs):,} moves", sum(run.moves > 0 for run in runs)
    size = f"**{sum(grown):.1f} MB**; most in one {max(grown):.1f} MB"
    write("soak", [
        Row(f"Updates lost in {moves}, {n} lessons, {minutes:.0f} minutes", "–", "–", "none",
            f"**{len(lost)}**", not lost),
        Row("Errors in page, kernel, server", "–", "–", "none", f"**{len(errors)}**", not errors),
        Row("Growth of the kernels' memory, all together", "–", "–",
            f"under {MOST_GROWTH} MB", size, sum(grown) < MOST_GROWTH),
    ], NOTES)  # fmt: skip


if __name__ == "__main__":
    main()
