"""How Sphinx makes the e-book: `make epub` stages the pages and calls it (`tools.book`)."""

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # for tools.book_pages
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

project = epub_title = "Transformer Lesson"
author = epub_contributor = PROJECT["authors"][0]["name"]
copyright = f"{author}, {PROJECT['license']} license"
release = version = PROJECT["version"]
language = "en"

extensions = ["myst_nb", "tools.book_pages"]

# The lessons: as they were committed, with their outputs. Nothing runs.
nb_execution_mode = "off"
nb_merge_streams = True
nb_render_markdown_format = "myst"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"  # of tools.book_pages

epub_basename = "transformer-lesson"
epub_description = PROJECT["description"]
epub_identifier = epub_uid = f"transformer-lesson-{version}"
epub_cover = ("_static/model-flow.png", "")
epub_tocdepth = 2
epub_tocdup = False
epub_tocscope = "includehidden"
epub_show_urls = "no"
epub_use_index = False
epub_css_files = ["book.css"]
html_static_path = ["book.css", "../images/model-flow.png"]
