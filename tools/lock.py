"""Choose exact versions for the ranges in pyproject.toml: `make lock`.

requirements.txt has all that the lessons, the tests and the web site need, requirements-lab.txt the
part that a learner needs, both for every system and every Python that the course supports.
Versions stay as they are while the ranges allow them; `make lock UPGRADE=--upgrade` asks for newer.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEAD = """\
# Made by `make lock` from pyproject.toml: {what}.
# Install with: python -m pip install -r {name}
"""
EXTRAS = ("lessons", "lab", "site", "dev")
OF_CUDA = re.compile(r"(cuda-|nvidia-|triton=).*\n", re.MULTILINE)
"""Packages for GPUs: the builds of PyTorch that need them name their versions."""


def lock(name: str, what: str, *options: str) -> None:
    """Write the file `name`; its versions are kept where possible."""
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]
    command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal"]
    command += ["--python-version", "3.11", "--no-annotate", "--no-header", "--output-file", name]
    command += [*options, "pyproject.toml", "-"]
    subprocess.run(command, cwd=ROOT, input="\n".join(build["requires"]), text=True, check=True)
    file = ROOT / name
    pins = OF_CUDA.sub("", file.read_text(encoding="utf-8"))
    file.write_text(HEAD.format(what=what, name=name) + pins, encoding="utf-8")


if __name__ == "__main__":
    everything = "exact versions of all that lessons, tests and web site need"
    extras = [f"--extra={name}" for name in EXTRAS]
    lock("requirements.txt", everything, *extras, *sys.argv[1:])
    part = "the versions of requirements.txt, as far as the lessons need them"
    lock(
        "requirements-lab.txt",
        part,
        "--extra=lessons",
        "--extra=lab",
        "--constraint=requirements.txt",
    )
