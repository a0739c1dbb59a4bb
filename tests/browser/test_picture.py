"""The README's pictures: the flagship, and a learner's minute in lesson 03, kept up to date here.

`make pictures` writes them. Every other run plays the same scenes and compares their words with
those that are stored in the pictures.
"""

import io
import json
import os
import re

import pytest
from PIL import Image, ImageDraw
from PIL.PngImagePlugin import PngInfo

from tests.browser.lab import REPLACE_AND_RUN, REPOSITORY, open_answers, shut_answers
from tests.explorables.shown import Shown
from transformer_lesson.explorables import ModelFlow

pytestmark = [pytest.mark.browser, pytest.mark.everything]

PICTURE = REPOSITORY / "docs/images/lesson-03.gif"
FLAGSHIP = REPOSITORY / "docs/images/model-flow.png"
WRITES = "TRANSFORMER_LESSON_PICTURES"  # set by `make pictures`
WIDTH, HEIGHT, SECONDS = 840, 560, 3.5
HEAD = """def own_noun(R):
    W_Q, W_K = torch.zeros(7, 3), torch.zeros(7, 3)
    W_Q[0, 0], W_K[1, 0] = 50, 1  # an article asks for a noun
    W_Q[5:, 1:] = 50 * {place}
    W_K[5:, 1:] = torch.eye(2)
    return W_Q, W_K"""
TO_THE_TOP = "element => element.scrollIntoView({block: 'start'})"


class Scene:
    """Frames, and the words that each of them shows."""

    def __init__(self, page):
        self.page, self.frames, self.words = page, [], []

    def take(self, top, shown) -> None:
        """Take a frame: `top` is scrolled to its top, `shown` holds its words."""
        top.evaluate(TO_THE_TOP)
        self.page.wait_for_timeout(400)  # the page has scrolled and the picture is decoded
        box = self.page.locator(".jp-NotebookPanel-notebook:visible").bounding_box()
        clip = {"x": box["x"], "y": box["y"], "width": WIDTH, "height": HEIGHT}
        png = self.page.screenshot(clip=clip, animations="disabled", caret="hide")
        self.frames.append(Image.open(io.BytesIO(png)).convert("RGB"))
        self.words.append(" ".join(shown.inner_text().split()))


def play(page) -> Scene:
    """Predict wrongly, answer wrongly, answer rightly, and watch a training."""
    scene = Scene(page)
    shut_answers(page)
    question = page.locator(".lesson-prediction", has_text="Which noun gets more weight")
    scene.take(question, question)
    question.locator("input[type=radio]").first.press("Space")
    question.get_by_role("button", name="Commit").press("Enter")
    question.get_by_text("Right: Both get the same").wait_for()
    scene.take(question, question)
    open_answers(page)

    reports = page.locator(".jp-OutputArea-output", has_text="own_noun")
    stub = page.locator(".jp-CodeCell", has_text="def own_noun").first
    for place, verdict in (("torch.zeros(2, 2)", "failed"), ("R", "passed")):
        page.evaluate(REPLACE_AND_RUN, ["def own_noun", HEAD.format(place=place)])
        report = reports.filter(has_text=verdict).first
        report.wait_for()
        scene.take(stub, report)

    film = page.locator(".explorable section", has_text="where the first").first
    for step in ("10", "300"):
        film.get_by_role("button", name=re.compile(f"^step {step}: ")).press("Enter")
        film.get_by_text(f"Step {step}: the second").wait_for()
        scene.take(film, film)
    return scene


def test_the_readme_shows_what_a_learner_sees(open_lesson):
    page = open_lesson("03_attention.ipynb")
    page.set_viewport_size({"width": WIDTH + 80, "height": HEIGHT + 160})
    page.evaluate("() => window.jupyterapp.commands.execute('application:toggle-left-area')")
    page.locator(".jp-OutputArea-output", has_text="not attempted yet").last.wait_for()
    scene = play(page)
    assert page.outside == [] and page.problems == []
    if WRITES in os.environ:
        write(scene)
    with Image.open(PICTURE) as picture:
        assert (picture.size, picture.n_frames) == ((WIDTH, HEIGHT), len(scene.frames))
        stored = json.loads(picture.info["comment"])
    changed = "the lesson shows something else now: run `make pictures`"
    assert lasting(stored) == lasting(scene.words), changed


def test_the_readme_opens_with_the_flagship(chromium, tmp_path):
    shown = Shown(chromium)
    shown.open(ModelFlow(), tmp_path, {"width": 1180, "height": 700})
    words = [shown.title, shown.said]
    if WRITES in os.environ:
        picture = Image.open(io.BytesIO(shown.page.locator("section").screenshot()))
        kept = PngInfo()
        kept.add_text("words", json.dumps(words))
        picture.convert("RGB").quantize(160).save(FLAGSHIP, pnginfo=kept, optimize=True)
    shown.close()
    with Image.open(FLAGSHIP) as picture:
        stored = json.loads(picture.text["words"])
    assert lasting(stored) == lasting(words), "the picture shows something else: `make pictures`"


def lasting(words: list[str]) -> list[str]:
    """Return the words of a scene without decimals: another processor may round otherwise."""
    return [re.sub(r"\d+\.\d+", "#", text) for text in words]


def write(scene: Scene) -> None:
    """Write the animated picture, each frame with a border and in its own colors."""
    for frame in scene.frames:
        ImageDraw.Draw(frame).rectangle((0, 0, WIDTH - 1, HEIGHT - 1), outline="#bbbbbb")
    frames = [frame.quantize(128, dither=Image.Dither.NONE) for frame in scene.frames]
    frames[0].save(
        PICTURE,
        save_all=True,
        append_images=frames[1:],
        duration=[int(1000 * SECONDS)] * len(frames),
        loop=0,
        comment=json.dumps(scene.words).encode(),
        optimize=False,
    )
