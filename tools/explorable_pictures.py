"""Explorables that a notebook shows, taken from its stored widget state.

For each: the values that the web site brings to life, and a picture for pages that show no widgets,
drawn by Chromium from the same front end.
"""

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat

from tools.browser import chromium_program, headless, new_context
from transformer_lesson.explorables import html
from transformer_lesson.explorables.export import WIDGET, saved_widgets

SCALE = 1.5  # pixels a CSS pixel: as legible as 2, with two thirds of the bytes
READY = """() => document.querySelector("div.explorable > div")?.shadowRoot
    .querySelector("section:not([aria-busy])")"""


@contextmanager
def camera() -> Iterator:
    """Yield a function that draws one explorable: its PNG and its sentence."""
    program = chromium_program()
    if program is None:
        raise FileNotFoundError("Explorables are drawn by Chromium, and there is none: install it.")
    with headless(program) as browser, TemporaryDirectory() as folder:
        context = new_context(
            browser, viewport={"width": 900, "height": 900}, device_scale_factor=SCALE
        )
        page = context.new_page()
        page.emulate_media(media="print", reduced_motion="reduce")
        errors = []
        page.on("pageerror", lambda error: errors.append(error.stack))

        def draw(shown: dict, weights: dict[str, bytes]) -> tuple[bytes, str]:
            path = Path(folder, "page.html")
            path.write_text(html.whole_page([shown], weights), encoding="utf-8")
            page.goto(path.as_uri())
            while not page.evaluate(READY):
                page.wait_for_timeout(50)
                if errors:
                    raise RuntimeError(f"{shown['kind']} fails in the page: {errors[0]}")
            alternative = page.locator(".said").inner_text()
            return page.locator("section").screenshot(), alternative

        yield draw
        context.close()


def give_picture(output: nbformat.NotebookNode, png: bytes, alternative: str) -> None:
    """Give an output a picture and its text alternative."""
    output.data["image/png"] = base64.b64encode(png).decode()
    output.metadata["image/png"] = {"alt": alternative}


def take_explorables(notebook: nbformat.NotebookNode) -> tuple[dict[str, dict], dict[str, bytes]]:
    """Give each explorable's output its picture; return what it shows, by cell, and its weights."""
    state = saved_widgets(notebook)
    all_values, all_weights = {}, {}
    explorables = [
        (cell, output, state[output.data[WIDGET]["model_id"]])
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if output.get("data", {}).get(WIDGET, {}).get("model_id") in state
    ]
    explorables = [entry for entry in explorables if html.is_explorable(entry[2])]
    if not explorables:
        return all_values, all_weights
    with camera() as draw:
        for cell, output, saved in explorables:
            all_values[cell.id], weights = html.values_in_page(saved, state)
            give_picture(output, *draw(all_values[cell.id], weights))
            all_weights |= weights
    return all_values, all_weights
