"""Hostile text in everything that shows text, in real JupyterLab and in the page exported from it.

Nothing may run, ask another machine, or report an error.
"""

import json
import urllib.parse

import nbformat
import pytest
from nbconvert import HTMLExporter
from nbformat.v4 import new_code_cell, new_notebook

from tests.browser.lab import ERRORS
from tests.security.hostile_texts import TEXTS
from tools.browser import new_context
from tools.execute_notebooks import clean

pytestmark = [pytest.mark.browser, pytest.mark.everything]

WIDGET = "application/vnd.jupyter.widget-view+json"
NBCONVERTS_OWN = {"cdnjs.cloudflare.com", "cdn.jsdelivr.net", "unpkg.com"}
STOLEN = """img[onerror], svg[onload], link[href*=evil], img[src*=evil], a[href*=evil],
    a[href^='javascript:'], [onmouseover], [onfocus]"""
CELLS = [
    "import itertools, json, torch\n"
    "from transformer_lesson import DecoderOnlyTransformer, ModelConfig, explorables\n"
    "from transformer_lesson.figures import plots\n"
    "from transformer_lesson.figures.attention_view import head_view, model_view\n"
    "from transformer_lesson.exercises import Report, check\n"
    "from transformer_lesson.lessons.lesson_08.training_replay import Snapshot\n"
    "from transformer_lesson.text.tokenizers import CharacterTokenizer\n"
    f"texts = json.loads({json.dumps(json.dumps(list(TEXTS.values())))})\n"
    "n = len(texts)",
    "for text in texts:\n    display(explorables.TokenizerExplorer(text))",
    "for text in texts:\n    display(explorables.MaskExplorer(text))",
    "for text in texts:\n    display(explorables.AttentionExplorer(text))",
    "for text in texts:\n    display(explorables.DecodingStepper(text=text))",
    "for text in texts:\n    display(explorables.TranslationPlayground(sentence=text))",
    "for text in texts:\n    display(explorables.ModelFlow(text=text))",
    "for text in texts:\n    display(explorables.StreamExplorer(text=text))",
    "model = DecoderOnlyTransformer(ModelConfig(37, 12, 3, 1, 16, 32)).eval()\n"
    "ids = torch.arange(n)[None]\n"
    "explorables.LeakProbe({text: model for text in texts}, ids, texts)",
    "known = CharacterTokenizer.train(['abc'])\n"
    "known.token = lambda id_, every=itertools.cycle(texts): next(every)\n"
    "model = DecoderOnlyTransformer(ModelConfig(known.vocab_size, 12, 3, 1, 16, 32)).eval()\n"
    "explorables.AnswerExplorer(model, known, [1] * n, 3)",
    "for text in texts:\n    display(explorables.PatchingGrid(clean=text, corrupted=text))",
    "weights = torch.full((1, 2, n, n), 1 / n)\n"
    "explorables.TrainingReplay([Snapshot(1, 0.5, weights, texts, texts, [], texts, texts)])",
    "for text in texts:\n"
    "    live = explorables.LiveCurves(text)\n"
    "    live.add(text, 1, 2.0)\n"
    "    display(live)",
    "head_view([weights], texts)",
    "model_view([weights], texts)",
    "for text in texts:\n"
    "    display(plots.curves({text: [1, 2], 'b': [2, 1]}, text, text, text, text))\n"
    "plots.attention_map(weights[0, 0], texts, texts, 'All of them')",
    "for text in texts:\n"
    "    def answer(x, n_heads):\n"
    "        print(text)\n"
    "        raise ValueError(text)\n"
    "    display(Report(text, 'failed', text), check('split_heads', answer))",
    "for text in texts:\n"
    "    try:\n"
    "        print(CharacterTokenizer.train(['abc' + text]).tokens(text)[:20])\n"
    "    except ValueError as error:\n"
    "        print(error)",
]
HANDLERS_HAVE_RUN = """() => new Promise(done => {
    const last = new Image();
    last.onerror = () => setTimeout(done, 500);
    last.src = 'data:image/png,no picture';
})"""
SHOWN = "it.querySelector('img') || it.querySelector('[data-theme]')?.shadowRoot"
N_EXPLORABLES = 9 * len(TEXTS) + 3


def test_a_page_of_hostile_text_is_inert_and_so_is_its_export(open_lesson, course, chromium):
    kernel = {"name": "python3", "display_name": "Python 3"}
    cells = [new_code_cell(source) for source in CELLS]
    notebook = new_notebook(cells=cells, metadata={"kernelspec": kernel})
    path = course / "notebooks" / "hostile.ipynb"
    nbformat.write(notebook, path)
    page = open_hostile(open_lesson)
    assert page.evaluate(ERRORS) == []
    assert page.locator(".jp-OutputArea-output[data-mime-type*=stderr]").all_inner_texts() == []
    drawn = page.locator(".explorable img").count()  # by the kernel; others draw themselves
    assert drawn + page.locator(".explorable section").count() == N_EXPLORABLES
    assert page.locator(f".jp-Notebook :is({STOLEN})").count() == 0
    assert page.locator("iframe[srcdoc]").count() == 2
    page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
    page.wait_for_function("() => !window.jupyterapp.shell.currentWidget.context.model.dirty")
    assert page.outside == [] and page.problems == [] and page.errors == []
    saved = nbformat.read(path, as_version=4)
    for output in (output for cell in saved.cells for output in cell.outputs):
        if WIDGET in output.get("data", {}):
            plain = output.data["text/plain"]
            assert len(plain) < 500 and plain.isprintable(), plain[:600]
    pictures = page_of(saved, course / "saved.html", chromium)
    clean(saved)  # as `make notebooks` stores it: pictures instead of widgets
    assert page_of(saved, course / "clean.html", chromium) >= pictures + drawn


def open_hostile(open_lesson):
    """Run the notebook and wait until everything is there."""
    page = open_lesson("hostile.ipynb")
    page.wait_for_function(
        "() => [...window.jupyterapp.shell.currentWidget.content.model.cells].every("
        "cell => cell.executionCount)"
    )
    page.wait_for_function(
        f"() => [...document.querySelectorAll('.explorable')].filter(it => {SHOWN}).length"
        f" >= {N_EXPLORABLES}"
    )
    return page


def page_of(notebook, html, chromium) -> int:
    """Open the page that nbconvert makes and return how many pictures it has.

    Only the addresses that nbconvert itself names are asked for, which no text has chosen.
    """
    html.write_text(HTMLExporter().from_notebook_node(notebook)[0], encoding="utf-8")
    context = new_context(chromium)
    page, problems, asked = context.new_page(), [], []

    def note(route):
        address = urllib.parse.urlsplit(route.request.url)
        if address.scheme != "file":
            asked.append(address.hostname)
            route.abort()
        else:
            route.continue_()

    context.route("**/*", note)
    page.on("dialog", lambda dialog: (problems.append(dialog.message), dialog.dismiss()))
    page.goto(html.as_uri())  # until its pictures and frames have been loaded, or refused
    page.evaluate(HANDLERS_HAVE_RUN)
    pictures = page.locator("img[src^='data:image/png']").count()
    assert page.locator(f"main :is({STOLEN})").count() == 0
    assert problems == [] and set(asked) <= NBCONVERTS_OWN
    context.close()
    return pictures
