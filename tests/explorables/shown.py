"""An explorable in Chromium, on the page that it writes, as tests set, move and read it."""

import re
from pathlib import Path

from tests.browser.lab import new_context

HOST = "document.querySelector('div.explorable > div')"
DRAWN = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
STILL = f"() => !{HOST}.shadowRoot.querySelector('[aria-busy]')"
TOLD = f"""() => [...{HOST}.shadowRoot.querySelectorAll("svg [tabindex]")]
    .map(node => node.getAttribute("aria-label"))"""
WRITTEN = f"""() => [...{HOST}.shadowRoot.querySelectorAll("svg text")]
    .map(node => node.textContent)"""
ALL = f"""() => ({{
    told: ({TOLD})(),
    written: ({WRITTEN})(),
    title: {HOST}.shadowRoot.querySelector("h3").innerText,
    said: {HOST}.shadowRoot.querySelector("[role=status]").innerText,
}})"""
NUMBER = re.compile(r"[-−]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


class Shown:
    """A page with one explorable.

    Args:
        browser: playwright's Chromium.
        explorable: what to show.
        folder: for the page's file.
        options: of the browser's context, such as the size of the window.
    """

    def __init__(self, browser, explorable, folder: Path, **options):
        path = folder / "explorable.html"
        explorable.save_html(path)
        self.context = new_context(browser, offline=True, **options)
        self.page = self.context.new_page()
        self.problems = []
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("dialog", lambda d: (self.problems.append(d.message), d.dismiss()))
        self.page.on("console", self._note)
        self.page.on("request", self._note_request)
        self.page.goto(path.as_uri())
        self._rest()

    def _note(self, message) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(message.text)

    def _note_request(self, request) -> None:
        if not request.url.startswith(("file:", "data:", "blob:")):
            self.problems.append(request.url)

    def _rest(self) -> None:
        """Wait until the picture shows what was last set, clicked or pressed."""
        self.page.evaluate(DRAWN)
        self.page.wait_for_function(STILL)

    def set(self, **values) -> None:
        """Set values as the kernel does, and wait for the picture."""
        move = "values => { const { model } = document.querySelector('div.explorable');"
        move += "for (const [name, value] of Object.entries(values)) model.set(name, value); }"
        self.page.evaluate(move, values)
        self._rest()

    def get(self, name: str):
        """Return a value as the page has it, once the picture shows it."""
        self._rest()
        read = "name => document.querySelector('div.explorable').model.get(name)"
        return self.page.evaluate(read, name)

    @property
    def title(self) -> str:
        self._rest()
        return self.page.locator("h3").inner_text()

    @property
    def said(self) -> str:
        self._rest()
        return self.page.locator("[role=status]").inner_text()

    def told(self) -> list[str]:
        """Return what each place of the picture tells the pointer and a screen reader."""
        self._rest()
        return self.page.evaluate(TOLD)

    def written(self) -> list[str]:
        """Return all words and numbers that stand in the picture."""
        self._rest()
        return self.page.evaluate(WRITTEN)

    def all(self) -> dict:
        """Return title, sentence, what is told and what is written, read at once."""
        self._rest()
        return self.page.evaluate(ALL)

    def press(self, *keys: str) -> str:
        """Press keys, and return what the place with the focus tells."""
        for key in keys:
            self.page.keyboard.press(key)
        self._rest()
        focus = f"() => {HOST}.shadowRoot.activeElement?.getAttribute('aria-label')"
        return self.page.evaluate(focus)

    def close(self) -> None:
        self.context.close()


def same_numbers(shown: str, expected: str) -> bool:
    """Whether two texts agree: word for word, and in numbers up to one of their last digit."""
    if NUMBER.sub("#", shown) != NUMBER.sub("#", expected):
        return False
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(expected), strict=True)
    return all(_close(ours, theirs) for ours, theirs in pairs)


def _close(shown: str, expected: str) -> bool:
    if "." not in shown:
        return shown == expected
    last_digit = 10.0 ** -len(shown.partition(".")[2])
    return abs(_number(shown) - _number(expected)) <= 1.01 * last_digit


def _number(text: str) -> float:
    return float(text.replace("−", "-"))
