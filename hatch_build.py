"""What a wheel of the course has besides the package: `transformer_lesson/notebooks/`, the lessons.

An editable install reads them where they are, in `notebooks/`. Only those that data/course.toml
lists go into the wheel, and nothing that opening them left beside them. Where they link to a file
of the checkout, which a wheel's learner does not have, its name stays.
"""

import re
import shutil
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TO_THE_CHECKOUT = re.compile(
    r"\[([^\[\]\n]+)\]\((?:\.\./)+(?:transformer_lesson|docs|benchmarks)/[^)]*\)"
)


class Lessons(BuildHookInterface):
    """Adds the notebooks and the glossary to a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the files to add, and name their places in the wheel."""
        self.folder = Path(tempfile.mkdtemp())
        if version == "editable":
            return
        root = Path(self.root)
        course = tomllib.loads((root / "transformer_lesson/data/course.toml").read_text("utf-8"))
        deeper = [f"deeper/{name}.ipynb" for name in course.pop("deeper", {})]
        for name in (*(one["file"] for one in course.values()), *deeper, "glossary.md"):
            text = (root / "notebooks" / name).read_text("utf-8")
            file = self.folder / Path(name).name
            file.write_text(TO_THE_CHECKOUT.sub(r"\1", text), "utf-8", newline="\n")
            build_data["force_include"][str(file)] = f"transformer_lesson/notebooks/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was written for the wheel."""
        shutil.rmtree(self.folder, ignore_errors=True)
