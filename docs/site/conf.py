"""How Sphinx makes the web site: `make site` stages the pages and calls it (`tools.site`)."""

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # for tools.site_pages
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REPOSITORY = PROJECT.get("urls", {}).get("Repository")  # none before `make address`

project = "Transformer Lesson"
author = PROJECT["authors"][0]["name"]
copyright = f"{author}, {PROJECT['license']} license"
release = version = PROJECT["version"]
language = "en"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx.ext.mathjax",
    "tools.site_docstrings",
    "tools.site_language",
    "tools.site_pages",
]

# The lessons: as they were committed, with their outputs. Nothing runs.
nb_execution_mode = "off"
nb_merge_streams = True
nb_render_markdown_format = "myst"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

# Mathematics: MathJax from this site's own files, one script without fonts to fetch.
mathjax_path = "mathjax/tex-svg.js"
mathjax3_config = {"options": {"enableMenu": False}}

# The package: what its docstrings say.
add_module_names = False
autodoc_default_options = {
    "members": True,
    "member-order": "bysource",
    "show-inheritance": True,
    "exclude-members": "set",  # matplotlib writes one into each class of a figure
}
autodoc_preserve_defaults = True
viewcode_follow_imported_members = False  # each module stands in the API by itself
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False  # "Returns:" is prose

# What it looks like.
html_theme = "pydata_sphinx_theme"
html_title = project
html_context = {"default_mode": "auto"}
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_copy_source = True
html_sourcelink_suffix = ""  # a lesson's source is a notebook to download
html_theme_options = {
    "icon_links": [{"name": "Repository", "url": REPOSITORY, "icon": "fa-brands fa-git-alt"}]
    if REPOSITORY
    else [],
    "navbar_align": "left",
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "search_bar_text": "Search lessons and code",
}
html_sidebars = {
    "index": [],
    "try": [],
    "notebooks/[0-9]*": [],
    "notebooks/deeper/*": [],
}  # room for pictures
