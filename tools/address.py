"""Write the repository's address wherever the course names it: `make address`, at publication.

The address comes from `git remote get-url origin`. Until then the course has none, and nothing in
it links to a repository. pyproject.toml holds it, where the web site reads it.
"""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from textwrap import fill, indent
from urllib.parse import quote

from tools.lesson_files import ROOT, lesson_files, place_of
from transformer_lesson.command.hosted import CELL, count_from, without_cell
from transformer_lesson.course import MINE

HOST, FOLDER = r"(?P<host>[\w-]+(?:\.[\w-]+)*\.[a-z]{2,})", r"(?P<path>\w[\w.-]*(?:/\w[\w.-]*?)+?)"
REMOTES = (  # a name or a password before the @ stays private
    rf"https://(?:[^/@\s]+@)?{HOST}/{FOLDER}",
    rf"ssh://(?:[^/@\s]+@)?{HOST}(?::\d+)?/{FOLDER}",
    rf"[\w.-]+@{HOST}:{FOLDER}",
)
GITHUB = "https://github.com/"
START, END = "<!-- make address: begin -->\n", "<!-- make address: end -->\n"
IN_A_LESSON = "Open in ["
INSTALL = r'''# @title On Colab and Kaggle, run this first
import os
import sys

if "google.colab" in sys.modules or "KAGGLE_KERNEL_RUN_TYPE" in os.environ:
    import re
    import subprocess
    from contextlib import suppress
    from importlib.metadata import PackageNotFoundError, version

    needed = """
{needed}
    """.split()
    for i, requirement in enumerate(needed):
        name = re.match(r"[\w.-]+", requirement)[0]
        with suppress(PackageNotFoundError):
            needed[i] = f"{{name}}=={{version(name)}}"  # what is here stays
    pip = [sys.executable, "-m", "pip", "install", "--quiet"]
    course = "transformer_lesson @ git+{address}"
    ways = needed, ["--no-deps", "{alone}", course]
    if any(subprocess.run([*pip, *packages]).returncode for packages in ways):
        print("Look at pip's last line. On Kaggle, first switch on Internet in the settings.")
    else:
        print("The course is installed: go on with the next cell.")'''
FIRST_CELL = "On Colab and Kaggle, the first cell installs the course."
README = """
<details>
<summary>From the repository, or with nothing installed</summary>

```
uvx --from git+{address} transformer-lesson
```

opens the course, with your copies where you call it. A copy of the repository, for `make lab`:

```
git clone --depth 1 {address}
```

The line below each lesson's title opens it in a browser, with nothing installed: {services}.{more}

</details>

"""


def public_address(remote: str) -> str:
    """Return the public address of the repository that git pushes to.

    Raises:
        ValueError: not an https or ssh address of a git hosting service.
    """
    for form in REMOTES:
        if match := re.fullmatch(rf"{form}(?:\.git)?/?", remote, re.ASCII | re.IGNORECASE):
            return f"https://{match['host'].lower()}/{match['path']}"
    shown = re.sub(r"//.*@", "//", remote)
    raise ValueError(
        f"The remote 'origin' is {shown!r}, and an address that others can open looks like "
        "https://host.org/owner/name or git@host.org:owner/name: run `git remote set-url origin "
        "ADDRESS`."
    )


def stored_address(root: Path = ROOT) -> str | None:
    """Return the address that pyproject.toml holds, or None before publication."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project.get("urls", {}).get("Repository")


def services(address: str, lesson: str) -> list[str]:
    """Return links, in Markdown, that open a lesson in a browser.

    Colab and Kaggle read the repository and save elsewhere; Binder opens the learner's copy.
    """
    binder = f"main?urlpath={quote(f'lab/tree/{MINE}/{lesson}', safe='')}"
    if not address.startswith(GITHUB):
        return [f"[Binder](https://mybinder.org/v2/git/{quote(address, safe='')}/{binder})"]
    name = address.removeprefix(GITHUB)
    file = f"{name}/blob/main/notebooks/{lesson}"
    return [
        f"[Colab](https://colab.research.google.com/github/{file})",
        f"[Kaggle](https://kaggle.com/kernels/welcome?src={GITHUB}{file})",
        f"[Binder](https://mybinder.org/v2/gh/{name}/{binder})",
        f"[Codespaces](https://codespaces.new/{name}?quickstart=1)",
    ]


def install_cell(address: str) -> dict:
    """Return the cell that installs the course on Colab and Kaggle, and elsewhere does nothing.

    Whatever is there already is named to pip as it is: another numpy would need a restart, another
    ipywidgets would stop the explorables. JupyterLab is left out, and what an exact version of a
    package would bring along: bertviz asks for boto3, which none of its views uses.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    *core, _ = project["dependencies"]
    wanted = [*core, *project["optional-dependencies"]["lessons"]]
    (alone,) = [requirement for requirement in wanted if "==" in requirement]
    needed = " ".join(requirement for requirement in wanted if requirement != alone)
    lines = indent(fill(needed, 92, break_on_hyphens=False), " " * 4)
    source = INSTALL.format(needed=lines, alone=alone, address=address)
    return {
        "cell_type": "code",
        "execution_count": 1,
        "id": CELL,
        "metadata": {"cellView": "form", "jupyter": {"source_hidden": True}},
        "outputs": [],
        "source": source.splitlines(keepends=True),
    }


def with_line(text: str, line: str, before: str) -> str:
    """Return a file's text with `line` in place of an old one with that key; "" only removes."""
    key = r"(?:urls\.Repository =|repository-code:)"
    text = re.sub(rf"^{key}.*\n", "", text, flags=re.MULTILINE)
    if text.count(f"\n{before}") != 1:
        raise ValueError(f"There must be one line that begins with {before!r}: restore the file.")
    return text.replace(f"\n{before}", f"\n{line}{before}")


def in_readme(text: str, address: str | None) -> str:
    """Return the README with the ways to start that need a repository, or without them."""
    head, rest = text.split(START)
    tail = rest.split(END)[1]
    if address is None:
        return f"{head}{START}{END}{tail}"
    names = [link.split("]")[0].removeprefix("[") for link in services(address, "")]
    more = f" {FIRST_CELL}" if "Colab" in names else ""
    block = README.format(address=address, services=", ".join(names), more=more)
    return f"{head}{START}{block}{END}{tail}"


def in_lesson(title_cell: str, name: str, address: str | None) -> str:
    """Return a lesson's first cell with the line that opens it elsewhere, or without it."""
    title, *rest = title_cell.split("\n\n")
    rest = [paragraph for paragraph in rest if not paragraph.startswith(IN_A_LESSON)]
    if address is None:
        return "\n\n".join([title, *rest])
    line = f"Open in {' · '.join(services(address, name))}."
    if "Colab" in line:
        line += f" {FIRST_CELL}"
    return "\n\n".join([title, line, *rest])


def texts(address: str | None, root: Path = ROOT) -> dict[Path, str]:
    """Return the right text of each file that names the repository; `None`: without links."""
    project, citation, readme = (
        root / name for name in ("pyproject.toml", "CITATION.cff", "README.md")
    )
    url = f'urls.Repository = "{address}"\n' if address else ""
    code = f'repository-code: "{address}"\n' if address else ""
    updated = {
        project: with_line(project.read_text("utf-8"), url, "requires-python ="),
        citation: with_line(citation.read_text("utf-8"), code, "license:"),
        readme: in_readme(readme.read_text("utf-8"), address),
    }
    for path in lesson_files(root):
        notebook = json.loads(without_cell(path.read_bytes()))
        first = notebook["cells"][0]
        cell = in_lesson("".join(first["source"]), place_of(path).as_posix(), address)
        first["source"] = cell.splitlines(keepends=True)
        if address and address.startswith(GITHUB):
            count_from(notebook["cells"], 1)
            notebook["cells"].insert(1, install_cell(address))
        updated[path] = json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"
    return updated


def write(address: str | None, root: Path = ROOT) -> list[str]:
    """Write the files that differ, and return their names."""
    changed = {
        path: text
        for path, text in texts(address, root).items()
        if text != path.read_text(encoding="utf-8")
    }
    for path, text in changed.items():
        path.write_text(text, encoding="utf-8")
    return [path.relative_to(root).as_posix() for path in changed]


def main() -> str | None:
    """Write the address; return one sentence if there is none to write."""
    command = ["git", "-C", str(ROOT), "remote", "get-url", "origin"]
    answer = subprocess.run(command, capture_output=True, text=True)
    if answer.returncode:
        return "This folder has no remote 'origin': run `git remote add origin ADDRESS` first."
    try:
        address = public_address(answer.stdout.strip())
    except ValueError as error:
        return str(error)
    for name in write(address):
        print(name)
    print(f"The address is {address}.")
    return None


if __name__ == "__main__":
    sys.exit(main())
