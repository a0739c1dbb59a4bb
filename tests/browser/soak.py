"""Half an hour at the knobs: all lessons' explorables, moved at random on the site and in Lab.

    make site
    python -m tests.browser.soak --moves 2000

Chromium opens one lesson after the other, on the web site and in real JupyterLab (where it runs
the lesson), and moves its explorables with the keyboard. After every move the page must come to
show what a fresh page shows that is given the same values.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from tqdm import tqdm

from benchmarks.results import Row, write
from tests.browser.lab import (
    UNFOLD,
    offline_page,
    open_answers,
    run_lesson,
    serving,
    shut_down_kernel,
)
from tests.browser.soak_page import (
    ALL_RAN,
    ASK,
    FIND,
    IN_KERNEL,
    SET,
    SHOWN,
    VALUES,
    WATCH,
)
from tools.browser import chromium_program, headless, new_context
from tools.site import SITE
from transformer_lesson.course import LESSONS

WARM_UP = 15  # moves in each lesson before memory is read
MOST_GROWTH = 50  # MB
MARGINS = 24  # pixels beside an explorable in a page of its own
PAUSE = 500  # milliseconds at most between two moves: some follow immediately
PATIENCE = 20  # seconds until a page that shows something else counts as a lost update
TEXTS = [
    "the child opens the window .",
    "Every object has an identity, a type and a value.",
    "Close all tabs\nYou have unsaved changes.\nUndo\nRun all cells below",
    "שלום <script> 😀 中文 $x$",
    "word " * 500,
    "</script>{{7*7}}${alert(1)}%s",
    "",
]
KINDS = {  # a control of each kind, by what takes the focus, and what moves it
    ".controls button:enabled": "press",
    "input[type=checkbox]:enabled": "press",
    "input[type=range]:enabled": "slide",
    "svg [tabindex='0']": "walk",
    "textarea, input[type=text]": "type",
}
KEYS = ("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown")

NOTES = """
A move is a random key press or a burst of up to five on a random control of a random explorable, a
walk through its picture with the arrow keys that ends with Enter, a text typed into a field
(hostile ones too), or a "Play" that is stopped after a while. After each the page must come to rest
within 20 s: title, sentence, and every word and number of the picture are, to the last character,
those of a second page that gets the same values (in JupyterLab the kernel's) and has never been
moved. Pauses between moves last up to half a second. Errors: exceptions and console errors in the
page, error or output messages of the kernel, tracebacks in the server's log, requests to other
machines.

Memory is the resident set of the lesson's kernel process (psutil) after `gc.collect()`, read after
a warm-up of 15 moves in each lesson, not counted among the others, and once more at the end. Each
lesson has its own kernel; a kernel that shrank counts as 0 in the sum.
"""


class Place(NamedTuple):
    """A page with explorables, and a function that reads their values."""

    page: object
    roots: object
    values: Callable[[int], dict]
    twin: Callable[[int], tuple]  # the page, and the number there, that is given the same values


class Soaked(NamedTuple):
    """The result for one lesson: MB by which its kernel grew, and what went wrong."""

    moves: int
    grown: float
    lost: list[str]
    errors: list[str]


def move(page, root, chance: random.Random) -> None:
    """Move one control of an explorable, chosen at random."""
    kinds = {kind: root.locator(kind).filter(visible=True) for kind in KINDS}
    kind, controls = chance.choice([pair for pair in kinds.items() if pair[1].count()])
    control = controls.nth(chance.randrange(controls.count()))
    if KINDS[kind] == "type":
        control.fill(chance.choice(TEXTS))
        return
    control.focus()
    if KINDS[kind] in ("slide", "walk"):
        for key in chance.choices(KEYS, k=chance.randint(1, 5)):
            page.keyboard.press(key)
        if KINDS[kind] == "walk":
            page.keyboard.press("Enter")
        return
    page.keyboard.press("Space")
    pause = root.get_by_role("button", name="Pause")
    if pause.count():
        page.wait_for_timeout(chance.uniform(100, 1500))
        if pause.count():  # it ends by itself
            pause.first.press("Space")


def settle(place: Place, number: int) -> str:
    """Wait until the page shows what its twin does; return the difference if it never does."""
    deadline, (twin, twin_number) = time.monotonic() + PATIENCE, place.twin(number)
    while True:
        values = place.values(number)
        twin.evaluate(SET, [twin_number, values])
        expected = twin.locator("div.explorable").nth(twin_number).evaluate(SHOWN)
        shown = place.roots.nth(number).evaluate(SHOWN)
        if shown == expected:
            return ""
        if time.monotonic() > deadline:
            differences = [f"{a!r} for {b!r}" for a, b in zip(shown, expected) if a != b]  # noqa: B905
            return f"{values}: {differences[:3]}"
        place.page.wait_for_timeout(30)


def soak(name: str, place: Place, moves: int, chance: random.Random, bar: tqdm) -> list[str]:
    """Move a page's explorables, and return the updates that were lost."""
    lost, count = [], place.roots.count()
    for _ in range(moves):
        number = chance.randrange(count)
        move(place.page, place.roots.nth(number), chance)
        if difference := settle(place, number):
            lost.append(f"{name}, explorable {number}: {difference}")
        bar.update()
        place.page.wait_for_timeout(chance.uniform(0, PAUSE))
    return lost


def opened(browser, address: str, problems: list[str], width: int = 1280):
    """Return a page from the disk that notes what goes wrong."""
    viewport = {"width": width, "height": 720}
    page = new_context(browser, offline=True, viewport=viewport).new_page()
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda m: problems.append(m.text) if m.type == "error" else None)
    page.goto(address)
    page.evaluate(UNFOLD)
    page.locator("div.explorable section:not([aria-busy])").first.wait_for()
    return page


def on_site(browser, lesson: str, moves: int, chance: random.Random, bar: tqdm) -> Soaked:
    """Move the explorables of a lesson's page of the site."""
    problems: list[str] = []
    address = (SITE / "notebooks" / f"{lesson}.html").as_uri()
    page, twin = opened(browser, address, problems), opened(browser, address, problems)
    roots = page.locator("div.explorable")
    values = lambda number: page.evaluate(VALUES, number)  # noqa: E731
    place = Place(page, roots, values, lambda number: (twin, number))
    lost = soak(f"{lesson}.html", place, moves, chance, bar)
    page.context.close()
    twin.context.close()
    return Soaked(moves, 0.0, lost, [f"{lesson}.html: {text}" for text in problems])


def in_lab(browser, address: str, lesson: str, moves: int, chance, bar: tqdm) -> Soaked:
    """Run a lesson in JupyterLab and move its explorables; its kernel's memory is read."""
    with offline_page(browser) as page, tempfile.TemporaryDirectory() as folder:
        run_lesson(page, address, f"{lesson}.ipynb")
        open_answers(page)
        page.wait_for_function(ALL_RAN, timeout=600_000)
        page.evaluate(WATCH, IN_KERNEL)
        ids, problems, twins = page.evaluate(FIND), [], []
        roots = page.locator(".explorable")
        for i, model_id in enumerate(ids):
            path = Path(folder, f"{i}.html")
            page.evaluate(ASK, f"soak_saved({model_id!r}, {str(path)!r})")
            width = roots.nth(i).locator("section").evaluate("it => it.offsetWidth") + MARGINS
            twins.append(opened(browser, path.as_uri(), problems, width))
        values = lambda number: page.evaluate(ASK, f"soak_values({ids[number]!r})")  # noqa: E731
        place = Place(page, roots, values, lambda n: (twins[n], 0))
        lost = soak(lesson, place, WARM_UP, chance, bar)
        before = memory(page)
        lost += soak(lesson, place, moves, chance, bar)
        grown = memory(page) - before
        problems += [*page.evaluate("() => window.soak.problems"), *page.problems, *page.outside]
        shut_down_kernel(page)
        for twin in twins:
            twin.context.close()
    return Soaked(moves, max(0.0, grown), lost, [f"{lesson}: {text}" for text in problems])


def memory(page) -> float:
    """Return the kernel's resident set in MB after garbage collection."""
    (size,) = page.evaluate(ASK, "soak_memory()")
    return size / 1e6


def soak_all(moves: int, seed: int) -> Iterator[Soaked]:
    """Divide the moves among site and Lab and the lessons, and yield each result."""
    program = chromium_program()
    if program is None:
        sys.exit("There is no Chromium here: install one from your system's packages.")
    if not (SITE / "index.html").exists():
        sys.exit("The web site is not there: build it with `make site`.")
    pages = {Path(file).stem for _, file, _, _ in LESSONS.values()}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        address = stack.enter_context(serving(folder))
        browser = stack.enter_context(headless(program))
        names = sorted(name for name in pages if has_explorables(name))
        chance, share = random.Random(seed), moves // (2 * len(names))
        bar = stack.enter_context(tqdm(total=(2 * share + WARM_UP) * len(names), unit="move"))
        for name in names:
            bar.set_description(name)
            yield on_site(browser, name, share, chance, bar)
            yield in_lab(browser, address, name, share, chance, bar)
        log = (folder / "log").read_text(encoding="utf-8")
        if "Traceback" in log:
            yield Soaked(0, 0.0, [], [f"the server's log:\n{log}"])


def has_explorables(lesson: str) -> bool:
    page = SITE / "notebooks" / f"{lesson}.html"
    return 'class="explorable"' in page.read_text(encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--moves", type=int, default=2000, help="on site and in Lab together")
    parser.add_argument("--seed", type=int, default=0, help="of the random moves")
    options = parser.parse_args()
    start = time.perf_counter()
    runs = list(soak_all(options.moves, options.seed))
    minutes = (time.perf_counter() - start) / 60
    grown = [run.grown for run in runs]
    lost = [update for run in runs for update in run.lost]
    errors = [error for run in runs for error in run.errors]
    print(*lost, *errors, sep="\n")
    moves = f"{sum(run.moves for run in runs):,} moves on site and in JupyterLab"
    size = f"**{sum(grown):.1f} MB**; most in one {max(grown):.1f} MB"
    write("soak", [
        Row(f"Updates lost in {moves}, {minutes:.0f} minutes", "–", "–", "none",
            f"**{len(lost)}**", not lost),
        Row("Errors in page, kernel, server", "–", "–", "none", f"**{len(errors)}**", not errors),
        Row("Growth of the kernels' memory, all together", "–", "–",
            f"under {MOST_GROWTH} MB", size, sum(grown) < MOST_GROWTH),
    ], NOTES)  # fmt: skip


if __name__ == "__main__":
    main()
