"""Open the course in JupyterLab: `python -m tools.lab`, with any flags of `jupyter lab`.

A learner's work goes into `my_lessons/`, which a newer course leaves alone.
"""

import sys

from jupyterlab.labapp import main

from tools.lesson_files import ROOT
from tools.my_lessons import MINE
from tools.my_lessons import main as bring_up_to_date

if __name__ == "__main__":
    if problem := bring_up_to_date():
        sys.exit(problem)
    sys.argv[0] = "jupyter-lab"
    start = f"--LabApp.default_url=/lab/tree/{MINE}/00_start_here.ipynb"
    main([f"--ServerApp.root_dir={ROOT}", start, *sys.argv[1:]])
