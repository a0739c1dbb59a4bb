"""An explorable in Chromium, on the page that it writes, as tests set, move and read it."""

import re
from pathlib import Path

from tests.browser.lab import new_context
from tests.patience import PATIENCE

HOST = "document.querySelector('div.explorable > div')"
SCREEN = {"width": 1280, "height": 720}
RESTED = f"""async () => {{
    const frame = () => new Promise(requestAnimationFrame), end = Date.now() + {1000 * PATIENCE};
    await frame();
    do await frame(); while ({HOST}.shadowRoot.querySelector("[aria-busy]") && Date.now() < end);
    return {HOST}.shadowRoot;
}}"""
"""Waits until the picture shows what was last set, clicked or pressed."""
READ = {
    "title": 'root.querySelector("h3").innerText',
    "said": 'root.querySelector("[role=status]").innerText',
    "told": """[...root.querySelectorAll("svg [tabindex]")]
        .map(node => node.getAttribute("aria-label"))""",
    "written": '[...root.querySelectorAll("svg text")].map(node => node.textContent)',
}
ALL = f"{{ {', '.join(f'{name}: {script}' for name, script in READ.items())} }}"
SET = """for (const [name, value] of Object.entries(values)) {
    document.querySelector('div.explorable').model.set(name, value); }"""
STATES = f"""async states => {{
    const all = [];
    for (const values of states) {{ {SET} const root = await ({RESTED})(); all.push({ALL}); }}
    return all;
}}"""
NUMBER = re.compile(r"[-−]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


class Shown:
    """A page that shows one explorable after the other.

    Args:
        browser: playwright's Chromium.
    """

    def __init__(self, browser):
        self.context = new_context(browser, offline=True)
        self.page = self.context.new_page()
        self.problems = []
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("dialog", lambda d: (self.problems.append(d.message), d.dismiss()))
        self.page.on("console", self._note)
        self.page.on("request", self._note_request)

    def open(self, explorable, folder: Path, viewport=SCREEN, reduced_motion="reduce") -> "Shown":
        """Show an explorable in the place of what was there before.

        Args:
            explorable: what to show.
            folder: for the page's file.
            viewport: the size of the window.
            reduced_motion: "no-preference" draws a quarter of a second of motion a state.
        """
        path = folder / "explorable.html"
        explorable.save_html(path)
        self.page.mouse.move(0, 0)
        self.page.set_viewport_size(viewport)
        self.page.emulate_media(reduced_motion=reduced_motion, color_scheme="light")
        self.page.goto(path.as_uri())
        self._rest()
        return self

    def _note(self, message) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(message.text)

    def _note_request(self, request) -> None:
        if not request.url.startswith(("file:", "data:", "blob:")):
            self.problems.append(request.url)

    def _rest(self) -> None:
        self._read("null")

    def _read(self, script: str, argument=None):
        """Return what a script finds in `root`, once the picture is at rest."""
        read = f"async argument => {{ const root = await ({RESTED})(); return {script}; }}"
        return self.page.evaluate(read, argument)

    def set(self, **values) -> None:
        """Set values as the kernel does, and wait for the picture."""
        self.page.evaluate(f"async values => {{ {SET} await ({RESTED})(); }}", values)

    def states(self, states: list[dict]) -> list[dict]:
        """Set one state after the other, and return what `all` reads in each."""
        return self.page.evaluate(STATES, states)

    def get(self, name: str):
        """Return a value as the page has it, once the picture shows it."""
        return self._read("document.querySelector('div.explorable').model.get(argument)", name)

    @property
    def title(self) -> str:
        return self._read(READ["title"])

    @property
    def said(self) -> str:
        return self._read(READ["said"])

    def told(self) -> list[str]:
        """Return what each place of the picture tells the pointer and a screen reader."""
        return self._read(READ["told"])

    def written(self) -> list[str]:
        """Return all words and numbers that stand in the picture."""
        return self._read(READ["written"])

    def all(self) -> dict:
        """Return title, sentence, what is told and what is written, read at once."""
        return self._read(ALL)

    def press(self, *keys: str) -> str:
        """Press keys, and return what the place with the focus tells."""
        for key in keys:
            self.page.keyboard.press(key)
        return self._read('root.activeElement?.getAttribute("aria-label")')

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
