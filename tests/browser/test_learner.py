"""A learner's session in the browser: following the map, guessing wrong, answering wrong."""

import pytest
from playwright import sync_api as playwright

from tests.browser.lab import REPLACE_AND_RUN, offline_page, run_lesson, shut_down_kernel

pytestmark = pytest.mark.browser


@pytest.mark.everything
def test_the_map_opens_a_lesson(open_lesson):
    page = open_lesson("00_start_here.ipynb")
    page.get_by_role("button", name="Feed-forward, lesson 05").first.press("Space")
    page.get_by_role("link", name="Open lesson 05").press("Enter")
    page.locator(".lm-TabBar-tabLabel", has_text="05_add_norm_feed_forward.ipynb").wait_for()
    assert page.outside == [] and page.problems == []


@pytest.fixture(scope="class")
def lesson_03(lab, chromium):
    """Yield lesson 03, run in a page that ends with the class: JupyterLab restores what is open."""
    with offline_page(chromium) as page:
        run_lesson(page, lab, "03_attention.ipynb")
        yield page
        shut_down_kernel(page)


class TestLesson03:
    """What a learner does in one page of lesson 03."""

    def test_run_all_stays_where_the_learner_is_and_pictures_have_their_text(self, lesson_03):
        assert lesson_03.evaluate(PLACE) == [0, 0]
        pictures = lesson_03.locator(".jp-RenderedImage img")
        alts = [picture.get_attribute("alt") for picture in pictures.all()]
        assert len(alts) > 1 and all(len(alt) > 20 for alt in alts)

    def test_a_wrong_prediction_is_explained_while_a_cell_runs(self, lesson_03, course):
        question = lesson_03.locator(".lesson-prediction", has_text="Which noun gets more weight")
        below = lesson_03.locator(".jp-Cell", has=question).locator("xpath=following-sibling::*")
        answer = below.nth(0).locator(".jp-OutputArea-output")
        why = below.nth(1).locator("details.lesson-answer p")  # as shut as the answer
        playwright.expect(answer.first).to_be_attached()  # it has run
        playwright.expect(answer.first).to_be_hidden()
        playwright.expect(why.first).to_be_hidden()
        lesson_03.evaluate(BUSY, WAITS)
        question.get_by_role("radio").last.press("ArrowDown")  # from the last to the first
        assert question.get_by_role("radio").first.is_checked()
        here = lesson_03.evaluate(PLACE)[1]
        assert question.evaluate("it => it.closest('.jp-Cell').matches('.jp-mod-active')")
        lesson_03.keyboard.press("Enter")
        question.get_by_text("Right: Both get the same").wait_for()
        assert lesson_03.evaluate(PLACE)[1] == here
        (course / "notebooks" / "go").touch()
        playwright.expect(answer.first).to_be_visible()
        playwright.expect(why.first).to_be_visible()

    def test_an_answer_opens_without_a_prediction(self, lesson_03):
        asked = lesson_03.locator(
            ".jp-Cell:has(.lesson-prediction):not(:has(.lesson-decided))"
        ).first
        answer = asked.locator("xpath=following-sibling::*[1]")
        playwright.expect(answer.locator(".jp-OutputArea-output").first).to_be_hidden()
        answer.locator(".jp-InputPlaceholder .jp-Placeholder-content").click()
        playwright.expect(answer.locator(".jp-OutputArea-output").first).to_be_visible()

    def test_a_wrong_and_a_right_answer_get_their_report(self, lesson_03):
        page = lesson_03
        reports = page.locator(".jp-OutputArea-output", has_text="scaled_dot_product_attention")
        reports.filter(has_text="not attempted yet").first.wait_for()
        page.evaluate(REPLACE_AND_RUN, ["def scaled_dot_product", ATTENTION.format(scale="1")])
        reports.filter(has_text="failed").first.wait_for()
        assert reports.filter(has_text="This comes from").count() == 1  # the mistake has a name
        right = ATTENTION.format(scale="Q.size(-1) ** 0.5")
        page.evaluate(REPLACE_AND_RUN, ["def scaled_dot_product", right])
        reports.filter(has_text="passed").first.wait_for()
        assert page.outside == [] and page.problems == []

    def test_an_explorable_answers_while_a_cell_runs(self, lesson_03, course):
        page = lesson_03
        box = page.locator(".explorable", has=page.get_by_label("Query plane"))
        page.evaluate(REPLACE_AND_RUN, ["def own_noun", SHARED])
        page.get_by_text("the kernel has True").wait_for()
        page.evaluate(BUSY, WAITS)
        box.get_by_role("checkbox", name="divide by √d_k").press("Space")
        box.get_by_text("d_k is 2: a score is q · k.").first.wait_for()
        assert page.get_by_text("the kernel has True").count() == 1
        (course / "notebooks" / "go").touch()
        page.get_by_text("the kernel has False").wait_for()
        assert page.outside == [] and page.problems == []


ATTENTION = """def scaled_dot_product_attention(Q, K, V, mask=None):
    scores = Q @ K.transpose(-2, -1) / ({scale})
    hidden = torch.zeros_like(scores, dtype=torch.bool) if mask is None else ~mask
    weights = scores.masked_fill(hidden, -1e9).softmax(dim=-1).masked_fill(hidden, 0.0)
    return weights @ V, weights"""
SHARED = """import ipywidgets
from ipywidgets.widgets.widget import _instances
plane = next(it for it in _instances.values() if isinstance(it, QueryPlane))
heard = ipywidgets.Label()
ipywidgets.dlink((plane, "root"), (heard, "value"), lambda it: f"the kernel has {it}")
heard"""
WAITS = """import pathlib, time
while not pathlib.Path("go").exists():
    time.sleep(0.1)
pathlib.Path("go").unlink()"""
PLACE = """() => {
    const {content} = window.jupyterapp.shell.currentWidget;
    return [content.outerNode.scrollTop, content.activeCellIndex];
}"""
BUSY = """code => {
    const {kernel} = window.jupyterapp.shell.currentWidget.sessionContext.session;
    kernel.requestExecute({code});
}"""


@pytest.mark.everything
def test_a_saved_lesson_shows_its_explorables_when_it_is_opened_again(open_lesson):
    page = open_lesson("05_add_norm_feed_forward.ipynb")
    page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
    page.evaluate("() => window.jupyterapp.commands.execute('kernelmenu:shutdown')")
    page.reload(wait_until="domcontentloaded")
    page.locator(".explorable :is(img, section)").first.wait_for()
    assert page.locator("text=Error displaying widget").count() == 0
    assert page.problems == []
