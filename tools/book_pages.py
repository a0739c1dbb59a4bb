"""Turn lessons into chapters of the e-book: a Sphinx extension.

A chapter has what a lesson shows without a kernel. Answers (what became of a prediction, solutions,
what JupyterLab folds until somebody commits) are at its end, each one link away from its question.
Explorables are their pictures, and formulas are MathML.
"""

import json
import re
from copy import deepcopy
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from lxml import etree
from lxml.html import fragments_fromstring
from nbformat.v4 import new_markdown_cell as markdown
from pygments.formatters import HtmlFormatter
from sphinx.builders.epub3 import Epub3Builder

from tools.site_pages import STILLS, RepositoryLinks, describe, keep_pictures_apart

NEEDS_A_KERNEL = re.compile(r"(?:check|inventory|hint)\(|.*\bprogress\(\)", re.DOTALL)
SOLUTION = re.compile(r"<details><summary>.+?: solution</summary>\n\n(.+)\n\n</details>", re.DOTALL)
FOLD = re.compile(r"<details[^>]*><summary>(.+?)</summary>\s*(.*?)\s*</details>", re.DOTALL)
MOVES = "*In JupyterLab and on the course's web site, you can move this picture.*"
PLAINER = {r"\\dots\b": r"\\ldots", r"\\big(?![a-z])": r"\\bigl", r"\\texttt\b": r"\\text"}
"""LaTeX that docutils doesn't know, as LaTeX that it does."""
STYLES = {"all": "a11y-high-contrast-light", "(prefers-color-scheme: dark)": "a11y-dark"}
"""Colors of code, by media query."""


PROPERTIES = {"<math": "mathml", "<svg": "svg"}
"""What the list of a book's files has to say of a page, by what is in the page."""


class Chapter:
    """A chapter's cells: its text, and its answers."""

    def __init__(self, name: str):
        self.name = name
        self.text, self.answers = [], []
        self.n_answers = 0
        self.ends_with_an_answer = False

    def add(self, cell: dict) -> None:
        """Add a cell to the text."""
        self.text.append(cell)
        self.ends_with_an_answer = False

    def answer(self, cell: dict, about: str = "") -> None:
        """Add a cell to the answers: to the last one, if the text has not gone on since.

        Args:
            cell: to be added.
            about: what a new answer is about, where its question says so nowhere else.
        """
        if not self.ends_with_an_answer:
            self.n_answers += 1
            title = f"Answer {self.n_answers}"
            here, there = (
                f"{self.name}-{role}-{self.n_answers}" for role in ("question", "answer")
            )
            link = f"{title}: {about}" if about else title
            self.text.append(markdown(f"({here})=\n[{link}](#{there})"))
            self.answers.append(markdown(f"({there})=\n**{title}** ([back](#{here}))"))
        self.answers.append(cell)
        self.ends_with_an_answer = True

    def cells(self) -> list[dict]:
        """Return all cells in their order."""
        title = [markdown("## Answers")] if self.answers else []
        return [*self.text, *title, *self.answers]


def chapter(name: str, cells: list[dict]) -> list[dict]:
    """Return a lesson's cells as those of a chapter.

    Args:
        name: of the lesson's file, without its ending.
        cells: of the notebook, with their outputs.
    """
    pages = Chapter(name)
    for cell in cells:
        if cell["cell_type"] == "markdown":
            before, *folds = FOLD.split("".join(cell["source"]))
            add_text(pages, before)
            for title, text, after in zip(folds[::3], folds[1::3], folds[2::3], strict=True):
                pages.answer(markdown(f"**{title}**\n\n{text}"), about=title)
                add_text(pages, after)
        elif not NEEDS_A_KERNEL.match("".join(cell["source"])):
            add_code(pages, cell)
    return pages.cells()


def add_text(pages: Chapter, text: str) -> None:
    if text.strip():
        pages.add(markdown(text))


def add_code(pages: Chapter, cell: dict) -> None:
    """Add a cell of code with its outputs, without the code if JupyterLab folds it."""
    data = [output.get("data", {}) for output in cell["outputs"]]
    shown = "".join(text for bundle in data for text in bundle.get("text/markdown", ""))
    if "lesson-option" in shown:
        question, answer = prediction(shown)
        pages.add(markdown(question))
        pages.answer(markdown(answer))
        return
    if solution := SOLUTION.fullmatch(shown.strip()):
        pages.answer(markdown(solution[1]))
        return
    folded = cell["metadata"].get("jupyter", {})
    add = pages.answer if folded.get("outputs_hidden") else pages.add
    if folded.get("source_hidden"):
        if not cell["outputs"]:
            return
        cell["metadata"].setdefault("tags", []).append("remove-input")
    for output in cell["outputs"]:
        data = output.get("data", {})
        if "image/png" in data:
            describe(cell, output)
        for kind in ("text/html", "text/markdown"):
            text = "".join(data.get(kind, ""))
            if text.startswith("<"):
                data[kind] = "".join(map(xhtml, parsed(text)))
    add(cell)
    if (STILLS / pages.name / f"{cell['id']}.json").exists():
        add(markdown(MOVES))


def parsed(html: str) -> list[etree._Element]:
    return fragments_fromstring(html, no_leading_text=True)


def xhtml(element: etree._Element) -> str:
    """Return HTML as XHTML, in which drawings name their language and keep their letters' case."""
    for drawing in element.iter("svg"):
        drawing.set("xmlns", "http://www.w3.org/2000/svg")
        drawing.set("viewBox", drawing.attrib.pop("viewbox"))
    return etree.tostring(element, encoding="unicode")


def prediction(html: str) -> tuple[str, str]:
    """Return a prediction's question with its options, and the options with what each gets said."""
    elements = parsed(html)
    question = [element for element in elements if element.tag != "details"]
    offered, answered = etree.Element("ol"), etree.Element("ol")
    for option in [element for element in elements if element.tag == "details"]:
        option.tag, option[0].tag = "li", "strong"
        text = deepcopy(option[0])
        text.tag, text.tail = "li", None
        offered.append(text)
        option.insert(1, etree.Element("br"))
        answered.append(option)
    for options in (offered, answered):
        options.set("class", "options")
        for option in options:
            option.attrib.pop("class", None)
    return "\n".join(map(xhtml, [*question, offered])), xhtml(answered)


def read_lesson(app, docname: str, source: list[str]) -> None:
    """Make a lesson a chapter before it is parsed."""
    if Path(app.env.doc2path(docname)).suffix == ".ipynb":
        notebook = json.loads(source[0])
        notebook["cells"] = chapter(Path(docname).name, notebook["cells"])
        source[0] = json.dumps(notebook)


def mathml(tex: str, is_block: bool) -> str:
    """Return a formula as MathML, with its LaTeX for readers who show no MathML."""
    plainer = tex
    for wanted, known in PLAINER.items():
        plainer = re.sub(wanted, known, plainer)
    xml = tex2mathml(plainer, as_block=is_block).replace(
        "&ApplyFunction;", "\N{FUNCTION APPLICATION}"
    )
    formula = etree.fromstring(xml)
    formula.set("alttext", tex)
    for named in formula.iterfind(".//{*}msub[{*}munder]"):
        if named[0].tag.endswith("munder"):
            named.tag = named[0].tag  # a brace's label goes below it
    return etree.tostring(formula, encoding="unicode")


def leave_out_style(app, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Leave out MyST-NB's style sheet, which Sphinx writes when the book is packed already."""
    files = context["css_files"]
    context["css_files"] = [sheet for sheet in files if "mystnb" not in str(sheet.filename)]


def write_inline(writer, node: nodes.math) -> None:
    writer.body.append(mathml(node.astext(), False))
    raise nodes.SkipNode


def write_block(writer, node: nodes.math_block) -> None:
    writer.body.append(f'<div class="math">{mathml(node.astext(), True)}</div>\n')
    raise nodes.SkipNode


class BookBuilder(Epub3Builder):
    """Sphinx's builder of EPUBs, with two styles of code, and files listed with what is in them."""

    def build_content(self) -> None:
        """Write the list of the book's files."""
        super().build_content()
        path = Path(self.outdir, "content.opf")
        listed = path.read_text(encoding="utf-8")
        for name in (file for file in self.files if file.endswith(".xhtml")):
            page = Path(self.outdir, name).read_text(encoding="utf-8")
            if held := " ".join(held for mark, held in PROPERTIES.items() if mark in page):
                listed = listed.replace(f'href="{name}"', f'href="{name}" properties="{held}"')
        cover, _ = self.config.epub_cover
        listed = listed.replace(f'href="{cover}"', f'href="{cover}" properties="cover-image"')
        path.write_text(listed, encoding="utf-8")

    def create_pygments_style_file(self) -> None:
        """Write the colors of code, on a light and on a dark page."""
        rules = [
            f"@media {query} {{\n{HtmlFormatter(style=style).get_style_defs('.highlight')}\n}}\n"
            for query, style in STYLES.items()
        ]
        Path(self.outdir, "_static", "pygments.css").write_text("".join(rules), encoding="utf-8")


def setup(app) -> dict[str, bool]:
    """Connect to Sphinx."""
    app.add_html_math_renderer("mathml", (write_inline, None), (write_block, None))
    app.add_builder(BookBuilder, override=True)
    app.connect("builder-inited", keep_pictures_apart, priority=900)  # after MyST-NB
    app.connect("source-read", read_lesson)
    app.connect("html-page-context", leave_out_style)
    app.add_post_transform(RepositoryLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
