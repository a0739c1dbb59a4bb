"""How long an explorable takes to react to a key or a pointer, in Chromium.

    python -m benchmarks.explorables          # on a page of its own, as on the web site
    python -m benchmarks.explorables --lab    # in JupyterLab: at rest, and while a cell trains

Goal: 95 % of moves within 50 ms and of hovers within 16 ms on two cores, and a page, apart from
weights, no heavier than 3.1 MB. Some pictures are computed in pieces: the first one counts, and the
time until all are there is reported, too.
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_notebook

from tests.browser.lab import (
    KERNEL_IS_IDLE,
    REPOSITORY,
    chromium_program,
    headless,
    offline_page,
    run_lesson,
    serving,
    shut_down_kernel,
)
from tests.explorables.examples import made
from tests.explorables.shown import Shown
from transformer_lesson import explorables
from transformer_lesson.explorables import html

ROUNDS = 100
# From an event to the frame in which what it led to is drawn, and to the last one that it led to.
TIMES = """async (host, [selector, rounds, act]) => {
    const root = host.shadowRoot, actions = {
        move: node => node.dispatchEvent(new MouseEvent("click", { bubbles: true })),
        key: node => { // an arrow key's step, back where there is none ahead
            const before = node.value;
            node.stepUp();
            if (node.value === before) node.stepDown();
            node.dispatchEvent(new Event("input"));
        },
        slide: node => {
            node.value = Number(node.value) < Number(node.max) ? node.max : node.min;
            node.dispatchEvent(new Event("input"));
        },
        hover: (node, i) => node.dispatchEvent(
            new PointerEvent("pointermove", { bubbles: true, screenX: i })),
    };
    const frame = () => new Promise(done => requestAnimationFrame(done)), times = [];
    for (let i = 0; i < rounds; i++) {
        if (i % 10 === 0) await new Promise(done => setTimeout(done, 400)); // then it glides
        const nodes = [...root.querySelectorAll(selector)];
        if (!nodes.length) break;
        const node = nodes[(7 * i) % nodes.length], start = performance.now();
        actions[act](node, i);
        if (act !== "hover") await frame();
        root.querySelector("svg").getBoundingClientRect(); // the layout is part of it
        const first = performance.now() - start;
        while (i < 10 && root.querySelector("[aria-busy]")) await frame(); // seconds, some
        times.push([first, performance.now() - start]);
    }
    return times;
}"""
KINDS = {
    "a button": ("section button[aria-pressed=false], svg [role=button]", "move"),
    "a slider's next step": ("section input[type=range]", "key"),
    "a slider, end to end": ("section input[type=range]", "slide"),
    "the pointer": ("svg [tabindex]", "hover"),
}
TRAINING = """
from transformer_lesson.checkpoints.translator import trained_translator
from transformer_lesson.text import grammar
from transformer_lesson.text.batches import TranslationBatches
from transformer_lesson.training import TrainConfig, train
model, tokenizer, _ = trained_translator()
batches = TranslationBatches(grammar.generate(2000, 0), tokenizer, 32)
train(model.train(), batches, TrainConfig(steps=100_000))"""
TRAINS = """() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status
    === 'busy'"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lab", action="store_true", help="in JupyterLab")
    in_lab = parser.parse_args().lab
    print(f"{'explorable':28}{'page, KB':>9}" + "".join(f"{kind:>28}" for kind in KINDS))
    with headless(chromium_program()) as browser, tempfile.TemporaryDirectory() as folder:
        for name, host in (hosts_in_lab if in_lab else hosts_on_pages)(browser, Path(folder)):
            row = f"{name:28}{len(html.front_ends([name.split()[0]])) / 1e3:9.0f}"
            for selector, act in KINDS.values():
                times = host.evaluate(TIMES, [selector, ROUNDS, act])
                row += f"{'-' if len(times) < 2 else _summary(times):>28}"
            print(row, flush=True)


def hosts_on_pages(browser, folder: Path) -> Iterator[tuple]:
    """Yield each explorable's name and its element, on its own page."""
    shown, window = Shown(browser), {"width": 1100, "height": 900}
    for name in explorables.__all__:
        shown.open(made(name), folder, window, reduced_motion="no-preference")
        yield name, shown.page.locator("div.explorable > div")
    shown.close()


def hosts_in_lab(browser, folder: Path) -> Iterator[tuple]:
    """Yield the same in one notebook, first while its kernel is idle and then while it trains."""
    sources = [f"import sys\nsys.path.insert(0, {str(REPOSITORY)!r})"]
    sources.append("from tests.explorables.examples import made")
    sources += [f"made({name!r})" for name in explorables.__all__]
    notebook = new_notebook(cells=[new_code_cell(source) for source in sources])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
    with serving(folder) as address, offline_page(browser) as page:
        nbformat.write(notebook, folder / "notebooks/all.ipynb")
        run_lesson(page, address, "all.ipynb")
        hosts = page.locator(".explorable > div")
        hosts.nth(len(explorables.__all__) - 1).wait_for()
        page.wait_for_function(KERNEL_IS_IDLE)
        for name, host in zip(explorables.__all__, hosts.all(), strict=True):
            yield name, host
        kernel = "window.jupyterapp.shell.currentWidget.sessionContext.session.kernel"
        page.evaluate(f"code => {{ {kernel}.requestExecute({{ code }}); }}", TRAINING)
        page.wait_for_function(TRAINS)
        for name, host in zip(explorables.__all__, hosts.all(), strict=True):
            yield f"{name} (trains)", host
        if not page.evaluate(TRAINS):
            sys.exit("The training ended before the measurement did: give it more steps.")
        shut_down_kernel(page)


def _summary(times: list[list[float]]) -> str:
    first, last = [start for start, _ in times], [end for _, end in times[:10]]
    text = f"{statistics.median(first):.0f}, 95 % {statistics.quantiles(first, n=20)[-1]:.0f} ms"
    pieces = statistics.median(last) > 20 + statistics.median(first)
    return f"{text} (all {statistics.median(last):.0f})" if pieces else text


if __name__ == "__main__":
    main()
