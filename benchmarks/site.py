"""How heavy each lesson of the web site is, and how soon it can be read.

Goal: no lesson over 5 MB with everything that it can show, and readable within 2 s in headless
Chromium on two cores: text painted and all formulas typeset.
"""

import statistics
import time

from playwright.sync_api import Browser

from benchmarks.results import Row, write
from tools.browser import chromium_program, headless
from tools.site import SITE, WORK, build
from tools.site_weight import page_files

ROUNDS = 5
SET = "() => MathJax.startup.promise.then(() => document.querySelectorAll('.math').length)"
PAINTED = "() => performance.getEntriesByName('first-contentful-paint')[0].startTime"


def seconds(browser: Browser, address: str) -> tuple[float, float]:
    """Open a page with nothing cached; return the times until text and formulas are shown."""
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    start = time.perf_counter()
    page.goto(address, wait_until="domcontentloaded")
    page.wait_for_function("() => window.MathJax?.startup?.promise !== undefined")
    page.evaluate(SET)
    formulas = time.perf_counter() - start
    painted = page.evaluate(PAINTED) / 1000
    page.close()
    return painted, formulas


def main() -> None:
    if build(SITE, WORK) != 0:
        raise SystemExit("The site was not built: look at the warnings above.")
    rows = []
    with headless(chromium_program()) as browser:
        for path in sorted((SITE / "notebooks").glob("[0-9]*.html")):
            weight = sum(file.stat().st_size for file in page_files(path)) / 1e6
            times = [seconds(browser, path.as_uri()) for _ in range(ROUNDS)]
            painted, formulas = map(statistics.median, zip(*times, strict=True))
            measured = f"{weight:.1f} MB; text {painted:.2f} s, formulas {formulas:.2f} s"
            reached = weight < 5 and max(painted, formulas) < 2
            rows.append(Row(path.stem, "–", "–", "5 MB, 2 s", measured, reached))
    write("site", rows, f"Medians of {ROUNDS} openings from the disk, each in a new page.")


if __name__ == "__main__":
    main()
