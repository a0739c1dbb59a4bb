"""A lesson saved as a page: its explorables live there, without a kernel and without a network."""

from importlib.metadata import entry_points

import nbformat
from lxml.html import document_fromstring
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook, new_output

from tools.browser import new_context
from transformer_lesson.explorables.export import STATE, WIDGET, LessonExporter

HIDDEN = {"source_hidden": True, "outputs_hidden": True}
CELLS = [
    "from transformer_lesson.explorables import AttentionExplorer, MaskExplorer\n"
    "AttentionExplorer('the dog sees the cat .', query=2)",
    "mask = MaskExplorer('</script><img>\\none')\nmask.sentence = 1\nmask",
    "1 + 1",
]


def test_explorables_live_in_an_exported_page(chromium, tmp_path):
    notebook = new_notebook(cells=[new_code_cell(source) for source in CELLS])
    NotebookClient(notebook, kernel_name="python3").execute()
    before = nbformat.writes(notebook)
    page, _ = LessonExporter().from_notebook_node(notebook)
    assert nbformat.writes(notebook) == before
    path = tmp_path / "lesson.html"
    path.write_text(page, encoding="utf-8")
    context = new_context(chromium, offline=True)
    opened, problems = context.new_page(), []
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("dialog", lambda dialog: (problems.append(dialog.message), dialog.dismiss()))
    opened.goto(path.as_uri(), wait_until="domcontentloaded")
    opened.locator("section:not([aria-busy])").nth(1).wait_for()
    titles = opened.locator("section h3").all_inner_texts()
    assert titles[0].startswith("From “") and titles[1].startswith("Sentence 1 may use")
    opened.get_by_role("button", name="encoder").click()
    opened.get_by_text("From “sees”, this head looks mostly at").wait_for()
    assert [problem for problem in problems if "require" not in problem] == []
    context.close()


def test_nbconvert_knows_the_exporter_and_keeps_pages_without_explorables_and_old_widgets():
    (found,) = entry_points(group="nbconvert.exporters", name="lesson")
    assert found.load() is LessonExporter
    explorable = {"state": {"_anywidget_id": "transformer_lesson.explorables.old.NoLongerThere"}}
    data = {WIDGET: {"model_id": "one"}, "text/plain": "NoLongerThere()"}
    notebook = new_notebook(cells=[new_code_cell(outputs=[new_output("display_data", data)])])
    notebook.metadata.widgets = {STATE: {"state": {"one": explorable}}}
    page, _ = LessonExporter().from_notebook_node(notebook)
    assert 'class="explorable"' not in page
    notebook = new_notebook(cells=[new_code_cell("1 + 1", id="one")])
    page, _ = LessonExporter().from_notebook_node(notebook)
    assert "explorable" not in page


def test_pictures_get_their_text_and_a_card_its_options_that_open_one_by_one():
    facts = {"image/png": {"alt": 'a "b"', "width": 7}}
    picture = new_output("display_data", {"image/png": "AAAA\n", "text/plain": "p"}, metadata=facts)
    card = {WIDGET: {"model_id": "one"}, "text/markdown": "<details>an option</details>"}
    notebook = new_notebook(
        cells=[new_code_cell(outputs=[picture, new_output("display_data", card)])]
    )
    saved = {
        "state": {"_anywidget_id": "transformer_lesson.exercises.engine.predictions.Prediction"}
    }
    notebook.metadata.widgets = {STATE: {"state": {"one": saved}}}
    page, _ = LessonExporter().from_notebook_node(notebook)
    (picture,) = document_fromstring(page).xpath("//img")
    assert (picture.get("alt"), picture.get("src")) == ('a "b"', "data:image/png;base64,AAAA")
    assert "<details>an option</details>" in page


def test_what_jupyterlab_hides_is_folded_under_a_name_that_answers_nothing(chromium):
    code, whole = HIDDEN | {"outputs_hidden": False}, HIDDEN
    sources = {"answer = 6 * 7": whole, "g('</summary><b>')": code, "h(": whole, "1 + 1": None}
    cells = [
        new_code_cell(
            source,
            outputs=[new_output("stream", text=f"printed by {source}")],
            metadata={"jupyter": hidden or {}},
        )
        for source, hidden in sources.items()
    ]
    exported, _ = LessonExporter().from_notebook_node(new_notebook(cells=cells))
    context = new_context(chromium, offline=True)
    page = context.new_page()
    page.set_content(exported, wait_until="domcontentloaded")
    seen = page.locator("body").inner_text()
    assert [source for source in sources if f"printed by {source}" in seen] == list(sources)[1::2]
    folds = page.locator("details")
    assert folds.all_inner_texts() == ["the outcome: answer", "the code: g", "the outcome"]
    folds.first.locator("summary").click()
    assert "printed by answer = 6 * 7" in folds.first.inner_text()
    folds.nth(1).locator("summary").click()
    assert "printed by" not in folds.nth(1).inner_text() and "g(" in folds.nth(1).inner_text()
    context.close()
