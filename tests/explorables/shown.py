"""An explorable in Chromium, on the page that it writes, as tests set, move and read it."""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from tools.browser import PATIENCE, new_context

HOST = "document.querySelector('div.explorable > div')"
MODEL = "document.querySelector('div.explorable').model"
WINDOW = {"width": 1100, "height": 900}
RESTED = f"""async () => {{
    const frame = () => new Promise(requestAnimationFrame), end = Date.now() + {1000 * PATIENCE};
    await frame();
    do {{
        if (window.broken) throw new Error(window.broken);
        await frame();
    }} while ({HOST}.shadowRoot.querySelector("[aria-busy]") && Date.now() < end);
    return {HOST}.shadowRoot;
}}"""
"""Waits until the picture shows what was last set, clicked or pressed, or fails as the page did."""
BROKEN = """for (const kind of ["error", "unhandledrejection"]) addEventListener(kind,
    event => { window.broken = String(event.reason ?? event.message); });"""
READ = {
    "title": 'root.querySelector("h3").innerText',
    "said": 'root.querySelector(".said").innerText',
    "told": """[...root.querySelectorAll("svg [tabindex]")]
        .map(node => node.getAttribute("aria-label"))""",
    "written": '[...root.querySelectorAll("svg text")].map(node => node.textContent)',
}
ALL = f"{{ {', '.join(f'{name}: {script}' for name, script in READ.items())} }}"
SET = f"for (const [name, value] of Object.entries(values)) {MODEL}.set(name, value);"
STATES = f"""async states => {{
    const all = [];
    for (const values of states) {{ {SET} const root = await ({RESTED})(); all.push({ALL}); }}
    return all;
}}"""
NUMBER = re.compile(r"[-−]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


class Shown:
    """A page of playwright's Chromium that shows one explorable after the other."""

    def __init__(self, browser):
        self.context = new_context(browser, offline=True)
        self.page = self.context.new_page()
        self.page.add_init_script(BROKEN)
        self.problems = []
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("dialog", lambda d: (self.problems.append(d.message), d.dismiss()))
        self.page.on("console", self._note)
        self.page.on("request", self._note_request)

    def open(self, explorable, folder: Path, viewport=WINDOW) -> "Shown":
        """Show an explorable, by a file in `folder`, in place of what was there before."""
        path = folder / "explorable.html"
        explorable.save_html(path)
        self.page.mouse.move(0, 0)
        self.page.set_viewport_size(viewport)
        self.page.emulate_media(reduced_motion="reduce", color_scheme="light")
        self.page.goto(path.as_uri())
        self.read("null")
        return self

    def _note(self, message) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(message.text)

    def _note_request(self, request) -> None:
        if not request.url.startswith(("file:", "data:", "blob:")):
            self.problems.append(request.url)

    def read(self, script: str, argument=None):
        """Return what a script finds in `root`, once the picture is at rest."""
        read = f"async argument => {{ const root = await ({RESTED})(); return {script}; }}"
        return self.page.evaluate(read, argument)

    def set(self, **values) -> None:
        """Set values as the kernel does, and wait for the picture."""
        self.page.evaluate(f"async values => {{ {SET} await ({RESTED})(); }}", values)

    def states(self, states: list[dict]) -> list[dict]:
        """Set one state after the other, and return what `all` reads in each."""
        return self.page.evaluate(STATES, states)

    def get(self, *names: str):
        """Return a value, or several, as the page has them, once the picture shows them."""
        values = self.read(f"argument.map(name => {MODEL}.get(name))", names)
        return values if names[1:] else values[0]

    title = property(lambda self: self.read(READ["title"]))
    said = property(lambda self: self.read(READ["said"]))

    def told(self) -> list[str]:
        """Return what each place of the picture tells the pointer and a screen reader."""
        return self.read(READ["told"])

    def written(self) -> list[str]:
        """Return all words and numbers that stand in the picture."""
        return self.read(READ["written"])

    def all(self) -> dict:
        """Return title, sentence, what is told and what is written, read at once."""
        return self.read(ALL)

    def lit(self, what: str = "tagName") -> list[str]:
        """Return the kinds, or "ariaLabel", of all marks that light up with what is pointed at."""
        lit = '[...root.querySelectorAll("svg [data-lit]")].map(node => node[argument])'
        return self.read(lit, what)

    def named(self, name, role: str = "button", **options):
        return self.page.get_by_role(role, name=name, **options)

    def click(self, *names) -> None:
        """Click the buttons with these names, each once the picture is at rest."""
        for name in names:
            self.named(name).click()
            self.read("null")

    def press(self, *keys: str) -> str:
        """Press keys, and return what the place with the focus tells."""
        for key in keys:
            self.page.keyboard.press(key)
        return self.read('root.activeElement?.getAttribute("aria-label")')

    def width(self) -> int:
        """Return how wide the page is, with what its window does not show."""
        return self.read("document.documentElement.scrollWidth")

    def close(self) -> None:
        self.context.close()


def same_numbers(shown: str, expected: str) -> bool:
    """Whether two texts agree: word for word, and in numbers up to one of their last digit."""
    if NUMBER.sub("#", shown) != NUMBER.sub("#", expected):
        return False
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(expected), strict=True)
    return all(_close(*pair) for pair in pairs)


def _close(shown: str, expected: str) -> bool:
    if "." not in shown:
        return shown == expected
    ours, theirs = (float(text.replace("−", "-")) for text in (shown, expected))
    return abs(ours - theirs) <= 1.01 * 10.0 ** -len(shown.partition(".")[2])


def assert_agree(shown: list[str], wanted: list[str]) -> None:
    """All texts of two lists are the same numbers, in the same words."""
    assert len(shown) == len(wanted)
    pairs = zip(shown, wanted, strict=True)
    assert [pair for pair in pairs if not same_numbers(*pair)] == []


def assert_tells(shown: list[str], pattern: str, values: Iterable[float]) -> None:
    """The numbers that a pattern's group finds in the texts are these, in their order."""
    found = [match[1] for match in (re.search(pattern, text) for text in shown) if match]
    digits = (len(text.partition(".")[2]) for text in found)
    assert_agree(found, [f"{value:.{n}f}" for value, n in zip(values, digits, strict=True)])


def lines(words: str, rows: Iterable[Iterable]) -> list[str]:
    """Return a text for each row, with its values in the places of the braces."""
    return [words.format(*row) for row in rows]


def assert_refused(message: str, make, *given, **named) -> None:
    with pytest.raises(ValueError, match=message):
        make(*given, **named)
