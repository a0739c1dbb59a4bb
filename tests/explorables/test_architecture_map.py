"""The map of the architecture: it draws what the models do, and every box opens a lesson."""

import json
import re
from importlib import import_module
from itertools import pairwise, product

import pytest
import torch

from tests.parity import small_config
from transformer_lesson.course import LESSONS
from transformer_lesson.exercises.engine.catalog import EXERCISES
from transformer_lesson.explorables import ArchitectureMap
from transformer_lesson.explorables.architecture_map import PARTS, facts
from transformer_lesson.model import transformers

KINDS = {
    "encoder-decoder": transformers.EncoderDecoderTransformer,
    "encoder-only": lambda config: transformers.EncoderOnlyTransformer(config, token_head=True),
    "decoder-only": transformers.DecoderOnlyTransformer,
}
INNER = {"Attention", "Masked attention"}
BLOCKS = {"Encoder block", "Decoder block", "GPT block"}
LAYERS = {"Multi-head attention", "Cross-attention", "Feed-forward"}
ADD, NORM = "Add & norm (add)", "Add & norm (norm)"
DRAWN = """[...root.querySelectorAll("svg rect, svg circle")].map(node => {
    const { x, y, width, height } = node.getBBox();
    return [node.getAttribute("aria-label").split(",")[0], x, y, width, height]; })"""
LINES = '[...root.querySelectorAll("svg path[fill=none]")].map(node => node.getAttribute("d"))'
NAMES = {
    "embedding": "Token embedding",
    "positions": "Positional encoding",
    "self_attention": "Multi-head attention",
    "cross_attention": "Cross-attention",
    "feed_forward": "Feed-forward",
    "projection": "Linear + softmax",
}
SETTLED = "() => new Promise(done => setTimeout(done, 400))"


@pytest.fixture
def progress(folder):
    """Return a function that writes which exercises have passed."""
    path = folder.with_name("my_progress.json")
    head = {"format": "Transformer Lesson, progress, 1", "predicted": {}}
    return lambda *passed: path.write_text(
        json.dumps(head | {"passed": dict.fromkeys(passed, True)})
    )


def parts_in_order(kind: str, norm_position: str) -> list[str]:
    model, called = KINDS[kind](small_config(n_layers=1, norm_position=norm_position)), []
    for place, module in model.named_modules():
        last = re.sub(r"^(source|target)_", "", place.rpartition(".")[2])
        name = NORM if re.match(r"norm_\d", last) else NAMES.get(last)
        if last in ("encoder_norm", "decoder_norm") and not isinstance(module, torch.nn.Identity):
            name = "Add & norm (last norm)"
        if name:
            module.register_forward_pre_hook(lambda *_, name=name: called.append(name))
    ids = torch.tensor([[3, 4, 5]])
    if kind == "encoder-only":
        model.predict_tokens(ids)
    else:
        model(*[ids] * (2 if kind == "encoder-decoder" else 1))
    return called


def test_boxes_and_the_ways_around_them_are_drawn_as_the_models_call_them(show):
    page, masked = show(ArchitectureMap()), {}
    for kind, norm_position in product(KINDS, ("post", "pre")):
        page.set(kind=kind, norm_position=norm_position)
        page.page.evaluate(SETTLED)
        boxes, paths = page.read(DRAWN), page.read(LINES)
        order = sorted(boxes, key=lambda box: (box[1] + box[3] / 2, -box[2]))
        drawn = [name for name, *_ in order if name not in INNER | BLOCKS]
        assert [name for name in drawn if name != ADD] == parts_in_order(kind, norm_position)
        for below, above in pairwise(drawn):  # norm(x + sublayer(x)), or x + sublayer(norm(x))
            assert (above == ADD) == (below in LAYERS)
            assert norm_position == "pre" or (below == ADD) == (above == NORM)
        check_ways_around(boxes, paths, [NORM] if norm_position == "pre" else [])
        names = [words.split(",")[0] for words in page.told()]
        masked[kind] = names.count("Attention"), names.count("Masked attention")
    assert masked == {"encoder-decoder": (2, 1), "encoder-only": (1, 0), "decoder-only": (0, 1)}


def check_ways_around(boxes: list, paths: list[str], norms: list[str]) -> None:
    """Each way around passes one sub-layer, and in pre-norm its norm."""
    numbers = [list(map(float, re.findall(r"[\d.]+", d))) for d in paths]
    starts = {(d[0], d[-1]): d[1] for d in numbers if len(d) == 16}
    for name, left, top, width, height in boxes:
        if name == ADD:
            middle, end = left + width / 2, top + height / 2
            start = starts.pop((middle, end))
            column = [box for box in boxes if box[1] < middle < box[1] + box[3]]
            passed = [box[0] for box in column if end < box[2] and box[2] + box[4] < start]
            sublayers = [box for box in passed if box not in (*norms, *INNER)]
            assert len(sublayers) == 1 and len(passed) - len(INNER & {*passed}) == 1 + len(norms)
    assert starts == {}


def test_a_box_chooses_its_part_and_its_lesson_is_linked(show, tmp_path):
    page = show(ArchitectureMap("Positional encoding"))
    link = page.page.get_by_role("link", name=re.compile("^Open lesson"))
    page.click("How it is computed")
    for part in PARTS:
        page.set(kind="decoder-only" if part == "GPT block" else "encoder-decoder")
        page.named(re.compile(f"^{re.escape(part)}( \\(norm\\))?,")).first.focus()
        page.press("Enter")
        assert page.get("part") == part
        title, file, *_ = LESSONS[number := PARTS[part].lesson]
        assert link.inner_text() == f"Open lesson {number}: {title}"
        assert link.get_attribute("href") == file
        card, behind = page.page.locator(".card"), PARTS[part]
        for shown in (True, False):
            text = card.inner_text()
            assert behind.what in text and (behind.formula in text) == shown
            page.click("How it is computed")
        assert page.said.startswith(f"{part} (lesson {number}) appears ")
    there, name = tmp_path / "explorable.html", "02_positional_encoding.html"
    for here in ("00_start_here.html", name):  # from a page to a page, and already there
        there = there.rename(tmp_path / here)
        page.page.goto(there.as_uri())
        assert page.read("root.querySelector('a').getAttribute('href')") == name
        assert link.is_visible() == (here != name)


def test_what_the_learner_has_passed_is_marked_in_words(show, progress):
    progress("sinusoidal_encoding", "feed_forward", "attention_scores", "layer_norm")
    page = show(ArchitectureMap("Feed-forward"))
    built = {"Positional encoding", "Feed-forward"}
    for words in page.told():
        part = words.split(",")[0].split(" (")[0]
        if not part.startswith("memory"):
            state = "not built yet" if PARTS[part].exercises else "ready made"
            state = "built" if part in built else state
            assert words.endswith(f", lesson {PARTS[part].lesson}: {state}")
    assert page.written().count("Feed-forward · 05 ✓") == 2
    progress(*EXERCISES)
    page = show(ArchitectureMap("Cross-attention", kind="decoder-only"))
    assert page.said.endswith("is not in this picture. You have built 5 of 5 parts.")


def test_each_part_has_a_lesson_a_place_in_the_code_and_known_exercises(monkeypatch, tmp_path):
    monkeypatch.setenv("TRANSFORMER_LESSON_PROGRESS", str(tmp_path))  # a folder cannot be read
    assert facts()["Feed-forward"]["left"] == ["feed_forward"]
    assert repr(ArchitectureMap()).startswith("ArchitectureMap(kind='encoder-decoder'")
    for lesson, _, _, shapes, code, exercises in PARTS.values():
        assert lesson in LESSONS and set(exercises) <= set(EXERCISES)
        module, _, name = code.rpartition(".")
        assert hasattr(import_module(f"transformer_lesson.{module}"), name)
        assert re.search(r"d_model|d_head", shapes) or "(batch, head, query, key)" in shapes
    lessons = [part.lesson for part in PARTS.values()]
    assert lessons == sorted(lessons)
