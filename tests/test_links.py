"""Every relative link of the pages and the lessons leads to a file, and to a heading of it."""

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.stored_lessons import PATHS, ROOT, cells, each_notebook, source

PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "notebooks/glossary.md", *PATHS]
LINK = re.compile(r"\[((?:[^\[\]]|\\\]|!\[[^\]]*\]\([^)]*\))*)\]\(([^)\s]+)\)")
CODE = re.compile(r"(?:\.\./)+transformer_lesson/")


def prose(path: Path) -> str:
    if path.suffix == ".ipynb":
        text = "\n\n".join(map(source, cells(path, "markdown")))
    else:
        text = path.read_text(encoding="utf-8")
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(path: Path) -> set[str]:
    """The names of a page's headings, as GitHub makes them, and of cells, as JupyterLab does."""
    headings = re.findall(r"^#+ (.+)$", prose(path), re.MULTILINE)
    names = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    ids = [cell["id"] for cell in cells(path)] if path.suffix == ".ipynb" else []
    return names | {f"cell-id={id_}" for id_ in ids}


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


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_heading_named_behind_a_link_to_a_lesson_is_one_of_that_lesson(path):
    for link, name in re.findall(r"\]\(([^)\s]+\.ipynb)\), \*([^*]+)\*", prose(path)):
        headings = re.findall(r"^#+ (.+)$", prose(path.parent / link), re.MULTILINE)
        assert any(name in heading for heading in headings), f"{name} is not in {link}"


@each_notebook
def test_the_code_is_named_by_its_place_and_a_function_leads_to_its_definition(path):
    code = prose(path).rpartition("**The code:**")[2].partition("\n")[0]
    links = LINK.findall(code)
    assert links and len(set(links)) == len(links)
    for text, link in links:
        assert text.strip("`").rstrip("/") == CODE.sub("", link)
    assert "`" not in LINK.sub("", code), "a file that is named is linked"
    for text, link in LINK.findall(prose(path)):
        if CODE.match(link) and (name := re.fullmatch(r"`(\w+)`", text)):
            definition = (path.parent / link).read_text(encoding="utf-8")
            assert re.search(rf"^(?:def|class) {name[1]}\b", definition, re.MULTILINE), link
