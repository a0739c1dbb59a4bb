"""Every relative link of the pages and the lessons leads to a file, and to a heading of it."""

import json
import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from tools.lesson_files import lesson_files

ROOT = Path(__file__).parent.parent
NOTEBOOKS = lesson_files()
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "notebooks/glossary.md", *NOTEBOOKS]
LINK = re.compile(r"\[((?:[^\[\]]|\\\]|!\[[^\]]*\]\([^)]*\))*)\]\(([^)\s]+)\)")
CELL = r'^   "id": "([^"]+)",$'
CODE = "../transformer_lesson/"


def prose(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells)
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(path: Path) -> set[str]:
    """The names of a page's headings, as GitHub makes them, and of cells, as JupyterLab does."""
    headings = re.findall(r"^#+ (.+)$", prose(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings} | {
        f"cell-id={id_}" for id_ in re.findall(CELL, path.read_text(encoding="utf-8"), re.MULTILINE)
    }


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_link_leads_somewhere(path):
    for text, link in LINK.findall(prose(path)):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = unquote(link).partition("#")
        target = (path.parent / name) if name else path
        assert target.exists(), f"[{text}]({link})"
        assert target.resolve().is_relative_to(ROOT), f"[{text}]({link}) leaves the repository"
        assert not anchor or anchor in anchors(target), f"[{text}]({link})"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_code_is_named_by_its_place(path):
    code = prose(path).rpartition("**The code:**")[2].partition("\n")[0]
    links = LINK.findall(code)
    assert links and len(set(links)) == len(links)
    for text, link in links:
        assert text.strip("`").rstrip("/") == link.removeprefix(CODE)
    bare = LINK.sub("", code)
    assert "`" not in bare, "a file that is named is linked"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_link_with_a_functions_name_leads_to_its_definition(path):
    for text, link in LINK.findall(prose(path)):
        if link.startswith(CODE) and (name := re.fullmatch(r"`(\w+)`", text)):
            source = (path.parent / link).read_text(encoding="utf-8")
            assert re.search(rf"^(?:def|class) {name[1]}\b", source, re.MULTILINE), link


def test_lesson_04_leads_to_the_code_where_it_speaks_of_it():
    text = prose(ROOT / "notebooks/04_multi_head_attention.ipynb")
    where = f"({CODE}model/attention.py)"
    for name in ("scaled_dot_product_attention", "multi_head_attention", "MultiHeadAttention"):
        assert text.index(f"[`{name}`]{where}") <= text.index(name), name
