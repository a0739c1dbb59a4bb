"""How long an explorable takes to react to a key or a pointer, in Chromium.

    python -m benchmarks.explorables

Each kind is measured once, as the first lesson that shows it has stored it, on a page of its own.
Goal: 95 % of moves within 50 ms and of hovers within 16 ms on two cores, and a page, apart from
weights, no heavier than 3.1 MB. Some pictures are computed in pieces: the first one counts, and the
time until all are there is reported, too.
"""

import json
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tools.browser import chromium_program, headless, new_context
from tools.execute_notebooks import STILLS
from tools.explorable_pictures import READY
from tools.site_stills import models_of, stored_weights
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


def main() -> None:
    print(f"{'explorable':28}{'page, KB':>9}" + "".join(f"{kind:>28}" for kind in KINDS))
    with headless(chromium_program()) as browser, tempfile.TemporaryDirectory() as folder:
        page = new_context(browser, viewport={"width": 1100, "height": 900}).new_page()
        path = Path(folder, "page.html")
        for shown, weights in shown_in_lessons():
            path.write_text(html.whole_page([shown], weights), encoding="utf-8")
            page.goto(path.as_uri())
            page.wait_for_function(READY)
            host = page.locator("div.explorable > div")
            row = f"{shown['kind']:28}{len(html.front_ends([shown['kind']])) / 1e3:9.0f}"
            for selector, act in KINDS.values():
                times = host.evaluate(TIMES, [selector, ROUNDS, act])
                row += f"{'-' if len(times) < 2 else _summary(times):>28}"
            print(row, flush=True)


def shown_in_lessons() -> Iterator[tuple[dict, dict[str, bytes]]]:
    """Yield what a page needs of each kind of explorable, and the weights that it refers to."""
    weights, seen = stored_weights(STILLS), set()
    for path in sorted(STILLS.glob("*/*.json")):
        still = json.loads(path.read_text(encoding="utf-8"))
        if "values" in still and still["kind"] not in seen:
            seen.add(still["kind"])
            yield still, {key: weights[key] for key in models_of(still)}


def _summary(times: list[list[float]]) -> str:
    first, last = [start for start, _ in times], [end for _, end in times[:10]]
    text = f"{statistics.median(first):.0f}, 95 % {statistics.quantiles(first, n=20)[-1]:.0f} ms"
    pieces = statistics.median(last) > 20 + statistics.median(first)
    return f"{text} (all {statistics.median(last):.0f})" if pieces else text


if __name__ == "__main__":
    main()
