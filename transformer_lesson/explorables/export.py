"""Save a lesson as a page with live explorables: `jupyter nbconvert --to lesson FILE.ipynb`.

In JupyterLab's menu: File, Save and Export Notebook As. nbconvert's own HTML loads the widgets'
programs from another server, shows nothing when offline, and reveals what JupyterLab hides,
including the answers to predictions.
"""

import html
from copy import deepcopy

from nbconvert import HTMLExporter
from nbformat import NotebookNode

from transformer_lesson.explorables.folds import folds
from transformer_lesson.explorables.html import (
    front_ends,
    is_explorable,
    place,
    values_in_page,
    weights_script,
)

WIDGET = "application/vnd.jupyter.widget-view+json"
STATE = "application/vnd.jupyter.widget-state+json"
FOLDED = """
{%- extends "index.html.j2" -%}
{%- block html_head -%}
{{ super() }}
<style>
.jp-RenderedHTMLCommon.jp-OutputArea-output pre { font-family: var(--jp-code-font-family); }
</style>
{%- endblock html_head -%}
{%- macro open(fold) -%}
<details><summary style="padding: 4px; cursor: pointer;
    margin-left: calc(var(--jp-cell-prompt-width) + 6px); color: var(--jp-content-font-color2)">
    {{- fold.name | e }}</summary>
{%- endmacro -%}
{%- block codecell -%}
{%- set fold = cell.metadata.fold_in_page if cell.metadata.fold_in_page.whole -%}
{% if fold %}{{ open(fold) }}{% endif %}{{ super() }}{% if fold %}</details>{% endif %}
{%- endblock codecell -%}
{%- block input_group -%}
{%- set fold = cell.metadata.fold_in_page if not cell.metadata.fold_in_page.whole -%}
{% if fold %}{{ open(fold) }}{% endif %}{{ super() }}{% if fold %}</details>{% endif %}
{%- endblock input_group -%}
"""


def saved_widgets(notebook: NotebookNode) -> dict[str, dict]:
    """Return the widgets whose state a notebook holds, by id."""
    return notebook.metadata.get("widgets", {}).get(STATE, {}).get("state", {})


def described(output: NotebookNode) -> str:
    """Return a picture with its text alternative, which nbconvert omits."""
    facts = output.metadata.get("image/png", {})
    alt = facts.get("alt") or output.data.get("text/plain", "")
    sizes = "".join(f' {name}="{facts[name]}"' for name in ("width", "height") if name in facts)
    png = output.data["image/png"].replace("\n", "")
    return f'<img alt="{html.escape(alt)}"{sizes} src="data:image/png;base64,{png}">'


class LessonExporter(HTMLExporter):
    """nbconvert's page of a notebook, with live explorables and with hidden cells in folds."""

    export_from_notebook = "Lesson with living pictures"
    raw_template = FOLDED

    def from_notebook_node(self, nb, resources=None, **options):
        """Return the page and nbconvert's resources; the notebook is not changed."""
        nb, explorables, weights = deepcopy(nb), [], {}
        state = saved_widgets(nb)
        for cell, fold in zip(nb.cells, folds(nb.cells), strict=True):
            cell.metadata["fold_in_page"] = fold and fold._asdict()
        for output in (output for cell in nb.cells for output in cell.get("outputs", [])):
            saved = state.get(output.get("data", {}).get(WIDGET, {}).get("model_id"))
            if saved and is_explorable(saved):
                explorable, named = values_in_page(saved, state)
                output.data = NotebookNode({"text/html": place(explorable)})
                explorables.append(explorable)
                weights |= named
            elif saved and "text/markdown" in output.data:  # a card: its options open one by one
                del output.data[WIDGET]
            elif "image/png" in output.get("data", {}):
                output.data = NotebookNode({"text/html": described(output)})
        page, resources = super().from_notebook_node(nb, resources, **options)
        if explorables:
            module = front_ends(explorable["kind"] for explorable in explorables)
            scripts = f"<script>{weights_script(weights)}</script>\n"
            scripts += f'<script type="module">{module}</script>\n'
            page = page.replace("</body>", f"{scripts}</body>", 1)
        return page, resources
