"""Turn the course's pages into the web site's: a Sphinx extension.

Lessons come to life with what `make notebooks` stored in `docs/stills`; pictures get their text
alternatives; links to the package lead to its source on the site, others to the repository, once it
has an address.
"""

import ast
import hashlib
import json
import posixpath
import re
import shutil
from functools import cache
from importlib.metadata import distribution
from pathlib import Path

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.transforms.post_transforms import SphinxPostTransform

from tools.address import stored_address
from tools.site_policy import write_policies
from tools.site_stills import scripts, still_as_html, write_models
from transformer_lesson import explorables
from transformer_lesson.command.hosted import without_cell
from transformer_lesson.course import DEEPER, LESSONS
from transformer_lesson.explorables.bundle import LESSONS as LESSON_FILES
from transformer_lesson.explorables.bundle import WEB
from transformer_lesson.explorables.folds import folds
from transformer_lesson.explorables.html import place, shown

ROOT = Path(__file__).resolve().parent.parent
STILLS = ROOT / "docs" / "stills"
ALIVE = {"index": ("ModelFlow",), "try": ("TranslationPlayground", "ModelFlow")}
"""The explorables of pages other than lessons."""
VERBS = ("Show", "Hide")  # what folds say, shut and open
INTERNAL = re.compile(r"lesson_\d\d/(exercises|solutions|measure_\w+)\.py")
"""Scripts, and what would give exercises away."""
CELL_LINK = re.compile(
    r"\[(\d\d · ([^\]]+))\]\(([^)#]*?/((?:deeper/)?\w+\.ipynb))#cell-id=([\w-]+)\)"
)


def keep_pictures_apart(app) -> None:
    """Have MyST-NB unpack the lessons' pictures in its work folder, not next to the site."""
    folder = Path(app.doctreedir).parent / "site-pictures"
    app.env.mystnb_config = app.env.mystnb_config.copy(output_folder=str(folder))


def read_page(app, docname: str, source: list[str]) -> None:
    """Complete a page before it is parsed."""
    if docname in ("index", "notebooks/index"):
        folder = "" if docname.startswith("notebooks/") else "notebooks/"
        page = source[0].replace("{lessons}", lesson_table(folder))
        source[0] = page.replace("{start}", start(stored_address()))
    elif docname in ("docs/sources", "docs/claims"):
        source[0] = CELL_LINK.sub(to_heading, source[0])
    elif docname.startswith("api/") and "{modules}" in source[0]:
        source[0] = source[0].replace("{modules}", module_list(docname.removeprefix("api/")))
    elif Path(app.env.doc2path(docname)).suffix == ".ipynb":
        notebook = json.loads(without_cell(source[0].encode()))
        stills = STILLS / Path(docname).name
        for path in sorted(stills.glob("*.json")):
            app.env.note_dependency(path)
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                enliven(cell, stills / f"{cell['id']}.json")
        fold_cells(notebook["cells"])
        source[0] = json.dumps(notebook)
    for kind in ALIVE.get(docname, ()):
        source[0] = source[0].replace(f"{{{kind}}}", place(first_state(kind)))


def to_heading(link: re.Match) -> str:
    """Turn a link to a cell, in JupyterLab's form, into one to the heading that it names."""
    label, title, path, file, cell = link.groups()
    headings = [text for text in lesson_headings(file)[cell] if without_number(text) == title]
    return f"[{label}]({path}#{slug(headings[0])})"


@cache
def lesson_headings(file: str) -> dict[str, list[str]]:
    """Return the headings of each cell of a lesson, by the cell's id."""
    cells = json.loads((ROOT / "notebooks" / file).read_text(encoding="utf-8"))["cells"]
    return {
        cell["id"]: re.findall(r"^#{1,3} (.+)$", "".join(cell["source"]), re.MULTILINE)
        for cell in cells
        if cell["cell_type"] == "markdown"
    }


def without_number(heading: str) -> str:
    """Return a heading without its section's number: "3 · Hands of clocks", "Hands of clocks"."""
    return re.sub(r"^\d+ · ", "", heading)


def slug(heading: str) -> str:
    """Return a heading's anchor, as MyST (and GitHub) build it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@cache
def first_state(kind: str) -> dict:
    """Return an explorable's untouched state as a page gets it."""
    explorable = getattr(explorables, kind)()
    return shown(explorable)[0]


def lesson_table(folder: str) -> str:
    """Return the lessons with their questions and minutes, and what may follow, as two tables.

    Args:
        folder: where the lessons are for the page with the tables: "", or "notebooks/".
    """
    rows = ["| lesson | what it answers | minutes |", "|---|---|---|"]
    for number, (title, file, question, minutes) in LESSONS.items():
        rows.append(f"| [{number} · {title}]({folder}{file}) | {question} | {minutes} |")
    rows += ["", "| deeper, one idea each | what it answers | minutes |", "|---|---|---|"]
    for notebook in DEEPER.values():
        link = f"[{notebook.lesson} · {notebook.title}]({folder}{notebook.file})"
        rows.append(f"| {link} | {notebook.question} | {notebook.minutes} |")
    return "\n".join(rows)


def start(address: str | None) -> str:
    """Return what a reader types to open the lessons."""
    if address is None:
        return "make lab"
    return f"git clone --depth 1 {address}\nmake -C {address.rpartition('/')[2]} lab"


def module_list(room: str) -> str:
    """Return a section for each module of a room, in the order of its docstring."""
    folder = ROOT / "transformer_lesson" / room
    introduction = ast.get_docstring(ast.parse((folder / "__init__.py").read_text("utf-8"))) or ""
    names = [
        ".".join(path.relative_to(folder).with_suffix("").parts)
        for path in sorted(folder.rglob("*.py"))
        if not path.name.startswith("__") and not INTERNAL.search(str(path.relative_to(folder)))
    ]
    place = {name: introduction.find(f"`{name}`") % len(introduction + " ") for name in names}
    sections = []
    for name in sorted(names, key=place.get):
        title = f"``{name}``"
        module = f".. automodule:: transformer_lesson.{room}.{name}"
        sections.append(f"{title}\n{'-' * len(title)}\n\n{module}\n")
    return "\n".join(sections)


def enliven(cell: dict, stored: Path) -> None:
    """Replace a cell's picture by what works without a kernel, or give it its text alternative."""
    outputs = []
    for output in cell["outputs"]:
        data = output.get("data", {})
        if "image/png" not in data:
            outputs.append(output)
        elif stored.exists():
            still = json.loads(stored.read_text(encoding="utf-8"))
            outputs.append(display(still_as_html(still)))
        else:
            describe(cell, output)
            outputs.append(output)
    cell["outputs"] = outputs


def describe(cell: dict, output: dict) -> None:
    """Give a cell's picture its text alternative, where MyST-NB looks for it."""
    alt = output["metadata"]["image/png"]["alt"]
    cell["metadata"].setdefault("mystnb", {})["image"] = {"alt": alt}


def fold_cells(cells: list[dict]) -> None:
    """Fold on the page what JupyterLab folds, under its name."""
    for cell, fold in zip(cells, folds(cells), strict=True):
        if fold:
            tag = "hide-cell" if fold.whole else "hide-input"
            cell["metadata"].setdefault("tags", []).append(tag)
            words = {f"code_prompt_{verb.lower()}": f"{verb} {fold.name}" for verb in VERBS}
            cell["metadata"].setdefault("mystnb", {}).update(words)


def display(html: str) -> dict:
    return {"output_type": "display_data", "data": {"text/html": html}, "metadata": {}}


def add_front_ends(app, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Bring the explorables of a lesson's page to life, once for all of them."""
    folder = STILLS / Path(pagename).name
    if pagename.startswith("notebooks/"):
        stills = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")]
        context["body"] += scripts(stills, "../" * pagename.count("/"))
    elif pagename in ALIVE:
        context["body"] += scripts(list(map(first_state, ALIVE[pagename])), "")


class RepositoryLinks(SphinxPostTransform):
    """Point links to files that are not pages to their source on the site or in the repository."""

    default_priority = 8  # before MyST complains about them, at 9

    def run(self, **kwargs) -> None:
        """Replace the links of one page."""
        for node in list(self.document.findall(pending_xref)):
            path = self.file(node["reftarget"]) if node["reftype"] == "myst" else None
            if path is None:
                continue
            if address := self.address(path):
                node.replace_self(nodes.reference("", "", *node.children, refuri=address))
            else:
                node.replace_self(node.children)

    def file(self, target: str) -> str | None:
        """Return which file a relative link means, or None if the repository has no such file."""
        here = posixpath.dirname(self.env.docname)
        path = posixpath.normpath(posixpath.join(here, target))
        return None if path.startswith("..") or not (ROOT / path).exists() else path

    def address(self, path: str) -> str | None:
        """Return where a file can be read: on the site, in the repository, or nowhere."""
        here = posixpath.dirname(self.env.docname) or "."
        module = path.removesuffix(".py").replace("/", ".")
        if module in getattr(self.env, "_viewcode_modules", {}):
            return posixpath.relpath(f"_modules/{module.replace('.', '/')}.html", here)
        is_folder = (ROOT / path).is_dir()
        room = f"api/{module.partition('.')[2].partition('.')[0]}"
        if is_folder and room in self.env.found_docs:
            return posixpath.relpath(f"{room}.html", here)
        kind = "tree" if is_folder else "blob"
        repository = stored_address()
        return repository and f"{repository}/{kind}/main/{path}"


def copy_files(app, exception: Exception | None) -> None:
    """Write what pages fetch besides Sphinx's own files: MathJax, the weights of models."""
    if exception is None:
        static = Path(app.outdir, "_static")
        script = "sphinx-mathjax-offline/static/mathjax/tex-svg.js"
        (static / "mathjax").mkdir(exist_ok=True)
        source = distribution("sphinx-mathjax-offline").locate_file(script)
        shutil.copyfile(source, static / "mathjax" / "tex-svg.js")
        write_models(STILLS, static / "models")
        (static / "webpack-macros.html").unlink(missing_ok=True)  # a template that the theme leaves


def fingerprint(*folders: Path) -> str:
    """Return a hash that changes with any file of these folders."""
    digest = hashlib.sha256()
    for path in sorted(path for folder in folders for path in folder.rglob("*") if path.is_file()):
        digest.update(f"{path.name}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def setup(app) -> dict[str, bool]:
    """Connect to Sphinx, and have it rebuild all pages when the explorables change."""
    app.add_config_value("fingerprint", fingerprint(STILLS, WEB, LESSON_FILES), "env")
    app.connect("builder-inited", keep_pictures_apart, priority=900)  # after MyST-NB
    app.connect("source-read", read_page)
    app.connect("html-page-context", add_front_ends)
    app.add_post_transform(RepositoryLinks)
    app.connect("build-finished", copy_files)
    app.connect("build-finished", write_policies)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
