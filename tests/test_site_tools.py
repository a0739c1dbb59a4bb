"""What makes the web site's pages, without building it: docstrings, stills, links, coverage."""

import json
import re
from types import SimpleNamespace

import pytest
import yaml

from tests.stored_lessons import PATHS as LESSONS
from tests.stored_lessons import ROOT, cells, each_notebook, read
from tools import site, site_pages
from tools.address import install_cell
from tools.execute_notebooks import STILL, store_stills, take_stills
from tools.site_docstrings import as_restructured
from tools.site_pages import fold_cells, read_page
from transformer_lesson import explorables
from transformer_lesson.checkpoints.translator import TRANSLATOR
from transformer_lesson.figures.attention_view.drawings import MIME

DOCSTRINGS = {
    "Return answer(*inputs).": "Return answer(\\*inputs).",
    "Raise `save`'s `ValueError`s.": "Raise ``save``\\ 's ``ValueError``\\ s.",
    "W_Q and a trailing name_ and |x|": "W_Q and a trailing name\\_ and \\|x\\|",
    "Doubles.\n\n    f(**values)\n\nArgs:\n    n: a *number*.": "Doubles.\n\n.. code-block:: python"
    "\n\n    f(**values)\n\nArgs:\n    n: a \\*number\\*.",
    "Adds.\nSource: a paper,\n    section 3.\nRaises:\n    ValueError: never.": "Adds.\n"
    "\n**Source:** a paper,\nsection 3.\n\nRaises:\n    ValueError: never.",
}


@pytest.mark.parametrize("docstring", DOCSTRINGS)
def test_letters_stay_letters_examples_become_code_and_sources_paragraphs(docstring):
    assert "\n".join(as_restructured(docstring.split("\n"))) == DOCSTRINGS[docstring]


# Stills

STORED = sorted(ROOT.glob("docs/stills/*/*.json"))
VIEWS = ("head view:", "model view:")


@pytest.mark.parametrize("path", STORED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_still_begins_with_what_its_lesson_shows(path):
    (lesson,) = [one for one in LESSONS if one.stem == path.parent.name]
    (cell,) = [cell for cell in cells(lesson) if cell["id"] == path.stem]
    (output,) = [output for output in cell["outputs"] if "image/png" in output.get("data", {})]
    still, alt = json.loads(path.read_text("utf-8")), output["metadata"]["image/png"]["alt"]
    if "values" in still:
        shown = "".join(output["data"]["text/plain"])
        assert shown.startswith(f"{still['kind']}(") and alt
        for name, value in still["values"].items():
            known = re.search(rf"[(, ]{name}=([\d.]+|True|False)[,)]", shown)
            assert known is None or str(value) == known.group(1), "run `make notebooks`"
    else:
        assert still["title"] == alt


@each_notebook
def test_what_can_move_on_the_page_is_stored(path):
    stored = {still.stem for still in STORED if still.parent.name == path.stem}
    for cell in cells(path):
        for output in cell.get("outputs", []):
            shown = "".join(output.get("data", {}).get("text/plain", ""))
            if shown.startswith((*explorables.__all__, *VIEWS)):
                assert cell["id"] in stored, f"{shown}: run `make notebooks`"


def test_a_still_leaves_the_notebook_and_replaces_older_ones(tmp_path):
    from nbformat.v4 import new_code_cell, new_notebook, new_output

    assert STILL == MIME
    output = new_output("display_data", {"text/plain": "a", STILL: {"name": "A"}})
    notebook = new_notebook(cells=[new_code_cell("A()", id="a1", outputs=[output])])
    taken = take_stills(notebook)
    assert taken == {"a1": {"name": "A"}} and set(output.data) == {"text/plain"}
    (tmp_path / "older.json").touch()
    store_stills(taken, {"own": b"weights", "package's": TRANSLATOR.read_bytes()}, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"a1.json", "own.safetensors"}


# Links and pages


def test_the_package_reference_has_every_room_in_reading_order_and_no_exercise():
    rooms = {path.parent.name for path in ROOT.glob("transformer_lesson/*/__init__.py")}
    assert {page.stem for page in ROOT.glob("docs/site/api/*.rst")} == rooms | {"index"}

    listed = re.findall(r"automodule:: (\S+)", site_pages.module_list("model"))
    names = [module.removeprefix("transformer_lesson.model.") for module in listed]
    assert names[:3] == ["config", "masks", "positions"]
    assert set(names) == {path.stem for path in ROOT.glob("transformer_lesson/model/[a-z]*.py")}
    listed = site_pages.module_list("lessons")
    assert "lesson_03.mask_explorer" in listed and "lesson_13.figures" in listed
    assert "exercises" not in listed and "solutions" not in listed and "measure" not in listed


def test_the_front_page_says_how_to_start():
    assert site_pages.start(None) == "make lab"
    started = " ".join(site_pages.start("https://host.org/owner/course").split())
    assert started == "git clone --depth 1 https://host.org/owner/course make -C course lab"


def test_staging_follows_the_repository(tmp_path, monkeypatch):
    lesson, left = f"notebooks/{LESSONS[0].name}", "notebooks/03_attention-Copy1.ipynb"
    for name in (lesson, left, "docs/site/index.md", "CHANGELOG.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    monkeypatch.setattr(site, "ROOT", tmp_path)
    site.stage(tmp_path / "staged")
    staged = tmp_path / "staged"
    assert (staged / "index.md").read_text() == "docs/site/index.md"
    before = (staged / "CHANGELOG.md").stat().st_mtime_ns
    assert (staged / lesson).exists() and not (staged / left).exists()
    (tmp_path / lesson).unlink()
    site.stage(staged)
    assert (staged / "CHANGELOG.md").stat().st_mtime_ns == before
    assert not (staged / lesson).exists()


def test_a_changed_front_end_is_noticed(tmp_path):
    (tmp_path / "web").mkdir()
    seen = set()
    for text in ("one", "another"):
        (tmp_path / "web/draw.js").write_text(text)
        seen.add(site_pages.fingerprint(tmp_path))
    (tmp_path / "web/draw.js").rename(tmp_path / "web/frame.js")
    assert len(seen | {site_pages.fingerprint(tmp_path)}) == 3


def test_the_workflow_publishes_what_make_site_builds():
    workflow = yaml.safe_load((ROOT / ".github/workflows/pages.yml").read_text(encoding="utf-8"))
    steps = workflow["jobs"]["publish"]["steps"]
    assert [step["run"] for step in steps if "run" in step] == ["make site"]
    (upload,) = [step for step in steps if "upload-pages" in step.get("uses", "")]
    assert upload["with"]["path"] == site.SITE.name


def code_cell(source: str, *kinds: str, **folded: bool) -> dict:
    outputs = [{"data": {kind: ""}} for kind in kinds]
    return {"metadata": {"jupyter": folded}, "source": source, "outputs": outputs}


def test_what_jupyterlab_folds_is_folded_on_the_page_under_a_name_of_its_own():
    code, all_of_it = {"source_hidden": True}, {"source_hidden": True, "outputs_hidden": True}
    folds = {
        "the code: imports": code_cell("import math\nfrom a import b", **code),
        "the code: f and G": code_cell("import a\ndef f(): c = 1\nclass G: pass\nd = 2", **code),
        "the code: draw": code_cell("draw(1)", "image/png", **code),
        "the outcome": code_cell("%%needs SmolLM2\nfor n in m:\n    f(n)", "a", **all_of_it),
        "the outcome: g": code_cell("f(x)\na.g(x)", "a", **all_of_it),
        "the picture": code_cell("figure = draw()", "image/png", **all_of_it),
        "the picture, 2": code_cell("figure = draw()", "image/png", **all_of_it),
    }
    cells = [code_cell("open"), *folds.values(), code_cell("open"), code_cell("draw", "image/png")]
    fold_cells(cells)
    prompts = [cell["metadata"].get("mystnb", {}).get("code_prompt_show") for cell in cells]
    assert prompts == [None, *(f"Show {name}" for name in folds), None, None]
    tags = [cell["metadata"].get("tags") for cell in cells]
    assert tags == [None, *[["hide-input"]] * 3, *[["hide-cell"]] * 4, None, None]


def test_the_cell_for_colab_and_kaggle_is_not_on_the_page():
    lesson = json.loads(read("notebooks/03_attention.ipynb"))
    ids = [cell["id"] for cell in lesson["cells"]]
    lesson["cells"].insert(1, install_cell("https://github.com/club/course"))
    env = SimpleNamespace(doc2path=lambda name: f"{name}.ipynb", note_dependency=print)
    source = [json.dumps(lesson)]
    read_page(SimpleNamespace(env=env), "notebooks/03_attention", source)
    assert [cell["id"] for cell in json.loads(source[0])["cells"]] == ids
