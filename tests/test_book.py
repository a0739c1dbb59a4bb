"""The e-book: lessons in their order, formulas as MathML, answers at the end, nothing missing."""

import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

import pytest
from lxml import etree

from tests.stored_lessons import ROOT, each_notebook, read, source
from tools.book_pages import MOVES, chapter, mathml, prediction
from tools.lesson_files import GLOSSARY, place_of
from transformer_lesson.course import DEEPER, LESSONS

CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
FORMULA = re.compile(r"\$\$(.+?)\$\$|\$([^$\n]+?)\$", re.DOTALL)
FOLDED = re.compile(r"<details[^>]*><summary>.+?</summary>(.+?)</details>", re.DOTALL)


# Chapters, without building the book


def in_notebook(path: Path) -> list[dict]:
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def text_of(one: list[dict]) -> str:
    return "\n".join("".join(cell["source"]) for cell in one if cell["cell_type"] == "markdown")


@each_notebook
def test_answers_come_after_all_questions_and_each_is_a_link_away(path):
    told = chapter(path.stem, in_notebook(path))
    titles = ["".join(cell["source"]) for cell in told]
    split = titles.index("## Answers") if "## Answers" in titles else len(told)
    text, answers = text_of(told[:split]), text_of(told[split:])
    asked = re.findall(rf"^\({path.stem}-question-(\d+)\)=\n\[.*\]\(#(.*)\)$", text, re.MULTILINE)
    numbers = [str(number) for number in range(1, len(asked) + 1)]
    assert asked == [(number, f"{path.stem}-answer-{number}") for number in numbers]
    assert re.findall(rf"^\({path.stem}-answer-(\d+)\)=$", answers, re.MULTILINE) == numbers

    n_predictions = sum(source(cell).startswith("predict(") for cell in in_notebook(path))
    assert "✓" not in text and answers.count("✓") == n_predictions
    assert "<details" not in text + answers
    for cell in in_notebook(path):
        shown = [one.get("data", {}).get("text/markdown", "") for one in cell.get("outputs", [])]
        folds = FOLDED.findall(source(cell)) if cell["cell_type"] == "markdown" else []
        for fold in [one for one in folds if one.strip()]:
            assert fold.strip() in answers and fold.strip() not in text
        if "solution</summary>" in "".join(map("".join, shown)):
            (code,) = re.findall(r"```python\n.*?```", "".join(shown[0]), re.DOTALL)
            assert code in answers and code not in text
    stills = len(list((ROOT / "docs/stills" / path.stem).glob("*.json")))
    assert text.count(MOVES) + answers.count(MOVES) == stills


def test_what_was_asked_says_nothing_of_the_answer():
    option = (
        '<details class="lesson-option"><summary><code>{}</code></summary><b>✗</b> <b>No.</b> {}'
    )
    both = "".join(f"{option}</details>".format(*one) for one in (("a", "Why a.<br>"), ("b", "")))
    asked, answered = prediction(f"<p>Which?</p>{both}")
    options = '<ol class="options"><li><code>a</code></li><li><code>b</code></li></ol>'
    assert asked == f"<p>Which?</p>\n{options}"
    assert "<strong><code>a</code></strong><br/><b>✗</b> <b>No.</b> Why a.<br/></li>" in answered


def test_a_formula_keeps_its_latex_and_a_brace_its_words_below():
    drawn = etree.fromstring(mathml(r"\underbrace{a < b}_{\text{so}} \dots \texttt{<eos>}", True))
    assert drawn.get("alttext") == r"\underbrace{a < b}_{\text{so}} \dots \texttt{<eos>}"
    (brace,) = drawn.findall(".//{*}munder/{*}munder/..")
    assert brace[1].text == "so" and "<eos>" in "".join(drawn.itertext())


# The book


@pytest.fixture(scope="module")
def book(tmp_path_factory) -> Path:
    """The book, built anew; a warning of Sphinx fails it."""
    folder = tmp_path_factory.mktemp("book")
    command = [sys.executable, "-m", "tools.book", folder / "lessons.epub", folder / "build"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return folder / "lessons.epub"


@pytest.fixture(scope="module")
def pages(book) -> dict[str, etree._Element]:
    """The pages and lists of the book by their names, each read as strictly as XML is."""
    with zipfile.ZipFile(book) as packed:
        assert packed.infolist()[0].filename == "mimetype"
        names = [name for name in packed.namelist() if name.endswith((".xhtml", ".opf", ".ncx"))]
        return {name: etree.fromstring(packed.read(name)) for name in names}


@pytest.mark.slow
def test_every_lesson_is_a_chapter_in_the_sites_order_with_its_sections(pages):
    of_lessons = [f"notebooks/{one.file}" for one in LESSONS.values()]
    deeper = [f"notebooks/{one.file}" for one in DEEPER.values()]
    last = ["notebooks/deeper/index", *deeper, f"notebooks/{GLOSSARY}"]
    wanted = [f"{name.rpartition('.')[0] or name}.xhtml" for name in [*of_lessons, *last]]
    listed = [link.get("href") for link in pages["nav.xhtml"].iterfind(".//{*}nav//{*}a")]
    assert [link for link in listed if "#" not in link] == ["index.xhtml", *wanted]
    for name in of_lessons:
        titles = re.findall(r"^## (.+)$", CODE.sub("", text_of(in_notebook(ROOT / name))), re.M)
        sections = [link for link in listed if link.startswith(f"{name.removesuffix('.ipynb')}.x")]
        assert len(sections) == 2 + len(titles), name  # the chapter itself, and its answers

    content = pages["content.opf"]
    places = {one.get("id"): one.get("href") for one in content.iterfind(".//{*}item")}
    assert content.xpath("string(//*[@properties = 'cover-image']/@href)").endswith(
        "model-flow.png"
    )
    spine = [places[one.get("idref")] for one in content.iterfind(".//{*}itemref")]
    assert [name for name in spine if name in wanted] == wanted


@pytest.mark.slow
def test_every_picture_and_link_is_there_and_nothing_is_fetched(book, pages):
    with zipfile.ZipFile(book) as packed:
        names = set(packed.namelist())
    ids = {name: set(page.xpath("//@id")) for name, page in pages.items()}
    for name, page in pages.items():
        folder = PurePosixPath(name).parent
        for target in page.xpath("//@src | //@href[not(contains(., ':'))]"):
            place, _, fragment = unquote(target).partition("#")
            if not target.startswith("data:"):
                path = Path("/", folder, place).resolve() if place else Path("/", name)
                assert str(path)[1:] in names, f"{name}: {target}"
                assert not fragment or fragment in ids[str(path)[1:]], f"{name}: {target}"
        pictures = page.findall(".//{*}img")
        assert all(picture.get("alt") for picture in pictures), name
        assert not page.xpath("//*[local-name() = 'script' or @onclick]")


@pytest.mark.slow
def test_every_formula_is_mathml_and_declared(pages):
    files = [place_of(path) for path in (ROOT / "notebooks").rglob("[0-9][0-9]_*.ipynb")]
    for file in files:
        text = CODE.sub("", text_of(in_notebook(ROOT / "notebooks" / file)))
        written = [block or inline for block, inline in FORMULA.findall(text)]
        name = f"notebooks/{file.with_suffix('.xhtml').as_posix()}"
        drawn = [one.get("alttext") for one in pages[name].iterfind(".//{*}math")]
        assert Counter(map(str.strip, drawn)) == Counter(map(str.strip, written)), name
        (item,) = pages["content.opf"].xpath(f"//*[@href = '{name}']")
        assert ("mathml" in item.get("properties", "")) == bool(written)


@pytest.mark.everything
def test_epubcheck_has_nothing_to_say(book):
    program = shutil.which("epubcheck")
    if program is None:
        pytest.skip("epubcheck is not installed: apt-get install epubcheck")
    run = subprocess.run([program, "--failonwarnings", book], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_release_attaches_the_book():
    workflow = read(".github/workflows/release.yml")
    assert "- run: make epub\n" in workflow and "epubcheck" in workflow
