"""Both attention views in a real browser, offline: drawn, usable and inert."""

import pytest
import torch

from tests.browser.lab import offline_page
from tests.figures.views import SHOWN
from transformer_lesson.figures.attention_view.view import head_view, model_view

pytestmark = pytest.mark.browser

TARGET = ["Der", "Fuchs"]
SOURCE = ["The", "quick", "fox"]
HEADS, LAYERS = 4, 2


def weights(queries: int, keys: int) -> torch.Tensor:
    return torch.rand(1, HEADS, queries, keys, dtype=torch.float64).softmax(-1)


def encoder_decoder_run() -> dict[str, torch.Tensor]:
    run = {f"encoder.{i}.self_attention.weights": weights(3, 3) for i in range(LAYERS)}
    for i in range(LAYERS):
        run[f"decoder.{i}.self_attention.weights"] = weights(2, 2)
        run[f"decoder.{i}.cross_attention.weights"] = weights(2, 3)
    return run


def opened(page, view):
    """Return the frame of a view on this page, drawn: before, its process may still change."""
    page.set_content(f"<!DOCTYPE html><body>{view.html}</body>")
    frame = page.locator("iframe").element_handle().content_frame()
    frame.locator("svg line").first.wait_for(state="attached")
    return frame


@pytest.fixture(scope="module")
def tab(chromium):
    with offline_page(chromium) as page:
        page.set_viewport_size({"width": 800, "height": 900})
        yield page


@pytest.fixture
def show(tab):
    """Open views on this page; at the end nothing may have gone wrong."""
    tab.mouse.move(0, 0)
    tab.errors.clear()
    yield lambda view: opened(tab, view)
    assert tab.outside == tab.problems == tab.errors == []


def texts(frame, where: str = "svg text") -> list[str]:
    return frame.locator(where).all_text_contents()


def test_a_line_is_as_strong_as_its_weight(show):
    one_head = torch.tensor([[[[0.75, 0.25, 0.0], [0.1, 0.2, 0.7], [0.0, 0.0, 1.0]]]])
    for view in (head_view, model_view):
        lines = show(view([one_head], SOURCE)).locator("svg line").all()
        strengths = [float(line.get_attribute("stroke-opacity")) for line in lines]
        assert strengths == [0.75, 0.25, 0.0, 0.1, 0.2, 0.7, 0.0, 0.0, 1.0]


def test_head_view_starts_with_the_chosen_layer_and_head_and_another_layer_redraws(show):
    frame = show(head_view(encoder_decoder_run(), SOURCE, TARGET, layer=1, heads=[2]))
    assert frame.locator("#layer").input_value() == "1"
    groups = frame.locator(".headAttention").all()
    drawn = [g.locator("line:not([stroke-opacity='0'])").count() > 0 for g in groups]
    assert drawn == [False, False, True, False]
    line = frame.locator(".headAttention").nth(2).locator("line").first
    first = line.get_attribute("stroke-opacity")
    frame.locator("#layer").select_option("0")
    assert line.get_attribute("stroke-opacity") != first


@pytest.mark.parametrize("view", [head_view, model_view])
def test_a_line_is_drawn_per_weight_of_each_part_of_the_menu_and_every_word(show, view):
    frame = show(view(encoder_decoder_run(), SOURCE, TARGET))
    assert texts(frame, "#filter option") == ["encoder", "decoder", "cross"]
    layers = 1 if view is head_view else LAYERS
    for part, left, right in (
        ("encoder", SOURCE, SOURCE),
        ("decoder", TARGET, TARGET),
        ("cross", TARGET, SOURCE),
    ):
        frame.locator("#filter").select_option(part)
        assert frame.locator("svg line").count() == layers * HEADS * len(left) * len(right)
        if view is head_view:
            assert (texts(frame, "#left text"), texts(frame, "#right text")) == (left, right)
            assert frame.locator("#left text").first.is_visible()
        else:
            assert {"Blocks", "Heads", "0", "3"} <= set(texts(frame))


@pytest.mark.parametrize("choose", ["mouse", "keyboard"])
def test_a_word_shows_only_its_own_lines(show, choose):
    frame = show(head_view(encoder_decoder_run(), SOURCE, TARGET))
    word = frame.locator("#left [tabindex]").nth(1)
    word.hover() if choose == "mouse" else word.focus()
    visible = frame.locator("line[visibility=visible]")
    assert visible.count() == HEADS * 3
    assert {line.get_attribute("left-token-index") for line in visible.all()} == {"1"}


def test_a_head_is_switched_off_with_the_keyboard(show):
    frame = show(head_view(encoder_decoder_run(), SOURCE, TARGET))
    frame.locator("#layer").select_option("1")
    buttons = frame.get_by_role("button")
    assert texts(frame, "[role=button] title") == ["head 0", "head 1", "head 2", "head 3"]
    buttons.nth(1).press("Enter")
    assert frame.locator("line[stroke-opacity='0']").count() == 3 * 3
    buttons.nth(1).press(" ")
    assert frame.locator("line[stroke-opacity='0']").count() == 0


@pytest.mark.parametrize("choose", ["mouse", "keyboard"])
def test_a_thumbnail_of_the_model_view_opens_its_words(show, choose):
    frame = show(model_view(encoder_decoder_run(), SOURCE, TARGET))
    button = frame.get_by_role("button", name="block 1, head 2")
    button.click() if choose == "mouse" else button.press("Enter")
    assert texts(frame, "text.detail") == ["Block 1, Head 2"]
    assert texts(frame, ".detail text.token") == SOURCE + SOURCE


@pytest.mark.parametrize("view", [head_view, model_view])
def test_hostile_words_are_shown_as_text_and_do_nothing(show, view):
    size = len(SHOWN)
    frame = show(view([weights(size, size)], list(SHOWN)))
    frame.get_by_role("button").first.click()
    words = "#left text" if view is head_view else ".detail text.token"
    assert texts(frame, words)[:size] == list(SHOWN.values())
    assert frame.locator("img").count() == 0
    assert frame.locator("script").count() == 5


BLOCKED = """
part => new Promise(done => {
  document.addEventListener("securitypolicyviolation", event => done(event.effectiveDirective));
  const element = document.createElement(part);
  if (part === "script") element.textContent = "alert(1)"; else element.src = "https://a.example/";
  document.body.append(element);
})
"""


def test_the_frame_may_not_load_run_or_reach_anything_else(tab):
    frame = opened(tab, head_view([weights(3, 3)], SOURCE))
    reach = "() => { try { return parent.document.title } catch (error) { return error.name } }"
    assert frame.evaluate(reach) == "SecurityError"
    refused = {"img": "img-src", "script": "script-src-elem", "iframe": "frame-src"}
    assert {part: frame.evaluate(BLOCKED, part) for part in refused} == refused
