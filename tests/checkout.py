"""A copy of the tree as somebody who clones it has it: every file under version control."""

import shutil
import subprocess
from pathlib import Path

from tests.stored_lessons import ROOT

KNOWN = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]  # and what is new


def checkout(folder: Path) -> Path:
    """Write the copy to a new folder, and return this."""
    listed = subprocess.run(KNOWN, cwd=ROOT, check=True, capture_output=True, text=True)
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder
