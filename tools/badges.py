"""Write below each lesson's title where it opens with one click: Colab, Binder, Codespaces.

The address is the one in pyproject.toml, `[project.urls]`. After a change there, and for a new
lesson, run `.venv/bin/python -m tools.badges`; tests/test_machines.py compares.
"""

import tomllib
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parent.parent
START = "Open in [Colab]("
TEMPLATE = (
    START + "https://colab.research.google.com/github/{repository}/blob/main/notebooks/{name}) · "
    "[Binder](https://mybinder.org/v2/gh/{repository}/main?urlpath=lab%2Ftree%2Fnotebooks%2F{name})"
    " · [Codespaces](https://codespaces.new/{repository}?quickstart=1). On Colab, run this in a "
    "new first cell: `%pip install git+https://github.com/{repository}`"
)


def repository() -> str:
    """Return owner and name of the repository on GitHub."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project["urls"]["Repository"].removeprefix("https://github.com/")


def badges(name: str) -> str:
    """Return the line for the lesson in the file `name`."""
    return TEMPLATE.format(repository=repository(), name=name)


def with_badges(title_cell: str, name: str) -> str:
    """Return a lesson's first cell with its line, new or in place of the old one."""
    title, *rest = title_cell.split("\n\n")
    rest = [paragraph for paragraph in rest if not paragraph.startswith(START)]
    return "\n\n".join([title, badges(name), *rest])


def main() -> None:
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        first = notebook.cells[0]
        if first.source != (new := with_badges(first.source, path.name)):
            first.source = new
            nbformat.write(notebook, path)
            print(path.name)


if __name__ == "__main__":
    main()
