"""How long an explorable of the page takes from a key or a pointer to what it shows, in Chromium.

Goal: 95 % of moves within 50 ms and of hovers within 16 ms on two cores, and a page, apart from
weights, no heavier than 3.1 MB. Some pictures are computed in pieces: the first one counts, and the
time until all are there is given, too.
"""

import statistics
import tempfile
from pathlib import Path

from tests.browser.lab import chromium_program, headless
from tests.explorables.examples import made
from tests.explorables.shown import HOST, Shown
from transformer_lesson import explorables
from transformer_lesson.explorables import html

ROUNDS = 100
# From an event to the frame in which what it led to is drawn, and to the last one that it led to.
TIMES = f"""async ([selector, rounds, act]) => {{
    const root = {HOST}.shadowRoot, actions = {{
        move: node => node.dispatchEvent(new MouseEvent("click", {{ bubbles: true }})),
        slide: node => {{
            node.value = Number(node.value) < Number(node.max) ? node.max : node.min;
            node.dispatchEvent(new Event("input"));
        }},
        hover: (node, i) => node.dispatchEvent(
            new PointerEvent("pointermove", {{ bubbles: true, screenX: i }})),
    }};
    const frame = () => new Promise(done => requestAnimationFrame(done)), times = [];
    for (let i = 0; i < rounds; i++) {{
        const nodes = [...root.querySelectorAll(selector)];
        if (!nodes.length) break;
        const node = nodes[(7 * i) % nodes.length], start = performance.now();
        actions[act](node, i);
        if (act !== "hover") await frame();
        root.querySelector("svg").getBoundingClientRect(); // the layout is part of it
        const first = performance.now() - start;
        while (i < 10 && root.querySelector("[aria-busy]")) await frame(); // seconds, some
        times.push([first, performance.now() - start]);
    }}
    return times;
}}"""
KINDS = {
    "a button": ("section button[aria-pressed=false], svg [role=button]", "move"),
    "a slider": ("section input[type=range]", "slide"),
    "the pointer": ("svg [tabindex]", "hover"),
}


def main() -> None:
    print(f"{'explorable':28}{'page, KB':>9}" + "".join(f"{kind:>32}" for kind in KINDS))
    with headless(chromium_program()) as browser, tempfile.TemporaryDirectory() as folder:
        for name in explorables.__all__:
            page = Shown(browser, made(name), Path(folder), viewport={"width": 1100, "height": 900})
            row = f"{name:28}{len(html.front_ends([name])) / 1e3:9.0f}"
            for selector, act in KINDS.values():
                times = page.page.evaluate(TIMES, [selector, ROUNDS, act])
                shown = "-" if len(times) < 2 else _summary(times)
                row += f"{shown:>32}"
            print(row, flush=True)
            page.close()


def _summary(times: list[list[float]]) -> str:
    first, last = [one for one, _ in times], [one for _, one in times[:10]]
    text = f"{statistics.median(first):.0f}, 95 % {statistics.quantiles(first, n=20)[-1]:.0f} ms"
    pieces = statistics.median(last) > 20 + statistics.median(first)
    return f"{text} (all {statistics.median(last):.0f})" if pieces else text


if __name__ == "__main__":
    main()
