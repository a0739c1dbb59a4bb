"""Open the lessons in JupyterLab, with any flags of `jupyter lab`.

A learner's work goes into `my_lessons/`, which a newer course leaves alone. JupyterLab does the
rest, so this module is short.
"""

import os
import sys

from jupyterlab.labapp import main as jupyterlab

from transformer_lesson.command.my_lessons import main as bring_up_to_date
from transformer_lesson.course import MINE, learners_folder

ONLY_TOLD = {"-h", "--help", "--help-all", "--version"}


def main(flags: list[str]) -> int | str | None:
    """Bring the copies up to date and open JupyterLab; return any problem, in a sentence."""
    problem = None if ONLY_TOLD & {*flags} else bring_up_to_date([])
    if problem:
        return problem
    # The kernel "python3" is the one of this environment, even where the user has another.
    os.environ.setdefault("JUPYTER_PREFER_ENV_PATH", "1")
    start = f"--LabApp.default_url=/lab/tree/{MINE}/00_start_here.ipynb"
    as_root = (
        hasattr(os, "geteuid") and os.geteuid() == 0
    )  # in a container, JupyterLab asks for a flag
    sys.argv[0] = "jupyter-lab"
    where = f"--ServerApp.root_dir={learners_folder()}"
    return jupyterlab([where, start, *["--allow-root"] * as_root, *flags])
