"""A card of questions in a page without JupyterLab: what a hand, a keyboard and a reader get."""

import pytest

from tests.browser.accessibility import AXE
from transformer_lesson.exercises import inventory, predict
from transformer_lesson.exercises.engine.question_card import UNKNOWN, Card
from transformer_lesson.explorables.bundle import bundle

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("folder")]
NAMES = ("verb", "tells", "questions", "answers", "note", "end")
FRONT_END = f"{bundle('host')}\n{Card._esm.replace('export default', 'globalThis.card =')}"
SHOW = """state => {
    window.model = new Values(state);
    window.card.render({model: window.model, el: document.body});
}"""
PAPERS = {"light": "#ffffff; color: #1a1a1a", "dark": "#111111; color: #e0e0e0"}
FAULTS = """async () => (await axe.run(".lesson-card")).violations.map(one => one.id)"""


@pytest.fixture
def show(page):
    """Yield a function that shows a card in a page with nothing else."""

    def show_card(card: Card, theme: str = "light"):
        page.set_content(f"<html lang=en><title>card</title><style>{card._css}</style>"
                         f"<body style='background: {PAPERS[theme]}'>")  # fmt: skip
        page.add_script_tag(content=f"{FRONT_END}\nglobalThis.Values = Values;", type="module")
        page.wait_for_function("() => window.card && window.Values")
        page.evaluate(SHOW, {name: getattr(card, name) for name in NAMES})
        return page.locator(".lesson-card")

    yield show_card
    assert page.problems == [] and page.errors == []


def answers(page) -> list[int]:
    return page.evaluate("() => window.model.get('answers')")


@pytest.mark.parametrize("theme", PAPERS)
def test_a_wrong_prediction_by_keyboard_is_told_at_once_in_words_signs_and_colors(
    show, page, theme
):
    prediction = predict("03.two_nouns")
    (options,) = prediction.options
    right = [option.right for option in options].index(True)
    chosen = (right + 1) % len(options)
    card = show(prediction, theme)
    radios, commit = card.get_by_role("radio"), card.get_by_role("button", name="Commit")
    assert all(label.bounding_box()["height"] >= 40 for label in card.locator("label").all())
    assert card.locator("label code").count() > 0
    commit.click()
    assert "Choose an answer first." in card.inner_text() and answers(page) == []
    calm = commit.evaluate("it => getComputedStyle(it).backgroundColor")
    radios.nth(chosen - 1).focus()
    page.keyboard.press("ArrowDown")
    assert radios.nth(chosen).is_checked() and "Choose" not in card.inner_text()
    assert commit.evaluate("it => getComputedStyle(it).backgroundColor") != calm
    page.keyboard.press("Tab")  # the group is one stop
    assert commit.evaluate("it => it === document.activeElement")
    page.evaluate(AXE)
    assert page.evaluate(FAULTS) == []
    page.keyboard.press("Enter")
    assert answers(page) == [chosen]
    told = card.get_by_role("status").first
    assert told.evaluate("it => it === document.activeElement")
    words = told.inner_text()
    for option in (options[chosen], options[right]):
        assert option.explanation.replace("`", "") in words
    labels = card.locator("label").all_inner_texts()
    assert ["✗" in text and "your choice" in text for text in labels].index(True) == chosen
    assert ["✓" in text for text in labels].index(True) == right
    assert radios.first.is_disabled() and not commit.is_visible()
    assert page.evaluate(FAULTS) == []


def test_an_inventory_goes_on_by_itself_and_waits_for_the_kernel_only_at_its_end(show, page):
    view = inventory("before")
    card = show(view)
    for number in range(1, 11):
        assert f"Question {number} of 10." in card.inner_text()
        assert card.locator("label:is(.right, .wrong)").count() == 0
        if number % 2:
            card.locator("label").nth(1).click()
            card.get_by_role("button", name="Next").click()
        else:
            card.get_by_role("button", name="I don't know").click()
        assert card.evaluate("it => it.contains(document.activeElement)")
    assert answers(page) == [1, UNKNOWN] * 5
    assert card.inner_text().strip() == "Counting your answers …"
    view.answers = answers(page)
    page.evaluate("end => window.model.set('end', end)", view.end)
    assert "of 10 right." in card.inner_text() and not card.get_by_role("button").all()


def test_what_was_decided_is_shown_again(show):
    prediction = predict("03.two_nouns")
    prediction.answers = [0]
    card = show(prediction)
    assert "your choice" in card.locator("label").first.inner_text()
    assert card.locator(".told p").count() in (1, 2)
