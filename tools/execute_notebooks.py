"""Run the lessons and store their outputs: `make notebooks`, or `make notebooks LESSON=03`.

Each notebook runs from top to bottom in a fresh kernel, in its own folder. Nothing is stored that
changes from run to run, so executing twice gives the same file. What the web site needs to bring
attention views and explorables to life is stored separately, in `docs/stills`.
"""

import json
import os
import re
import shutil
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from tools.explorable_pictures import take_explorables
from tools.lesson_files import ROOT, lesson_files, of_number, write_notebook
from tools.small_pictures import store_small
from transformer_lesson.checkpoints.translator import TRANSLATOR
from transformer_lesson.exercises.engine.progress import FILE, PLACE

STILLS = ROOT / "docs" / "stills"
STILL = "application/vnd.transformer-lesson.still+json"
WIDGET = "application/vnd.jupyter.widget-view+json"
READABLE_WITHOUT_A_KERNEL = {"image/png", "text/markdown"}
SLOW = 3  # seconds; what takes longer is tagged `slow`, and the tests run it once, not twice
CELL_TIMEOUT = 2000  # seconds, as nbval has: for a loop without an end
COLORS = re.compile(r"\x1b\[[0-9;]*m")
SETTINGS = {  # of kernels, unless the user has set something else
    "OMP_NUM_THREADS": "1",  # as in the tests
    "TORCH_CPP_LOG_LEVEL": "ERROR",  # the views' extension imports torch before lesson 15 says so
}


def clean(notebook: nbformat.NotebookNode) -> None:
    """Leave only what a reader needs and what the next run reproduces."""
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python", "file_extension": ".py"},
        }
    )
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # time stamps
        outputs = cell.get("outputs", [])
        for output in outputs:
            data = output.get("data", {})
            if READABLE_WITHOUT_A_KERNEL & data.keys():
                data.pop(WIDGET, None)  # its model lives in the kernel that has just ended
        # a mere widget, such as a progress bar, would be an error message without a kernel
        outputs[:] = [output for output in outputs if WIDGET not in output.get("data", {})]


def take_stills(notebook: nbformat.NotebookNode) -> dict[str, dict]:
    """Take out what the web site needs, by the id of its cell."""
    stills = {}
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            still = output.get("data", {}).pop(STILL, None)
            if still is not None:
                if cell.id in stills:
                    raise LessonFailed(f"Cell {cell.id} shows two stills: give each its own cell.")
                stills[cell.id] = still
    return stills


def store_stills(stills: dict[str, dict], weights: dict[str, bytes], folder: Path) -> None:
    """Write each still and each model to its own file; the folder holds nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    for cell_id, still in stills.items():
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(still, indent=1, ensure_ascii=False)
        (folder / f"{cell_id}.json").write_text(f"{text}\n", encoding="utf-8")
    for key, data in weights.items():
        if data != TRANSLATOR.read_bytes():  # which the package already has
            (folder / f"{key}.safetensors").write_bytes(data)


def slow_cells(notebook: nbformat.NotebookNode) -> list[int]:
    """Return the numbers of the cells that took long and are not tagged so."""
    numbers = []
    for number, cell in enumerate(notebook.cells, start=1):
        times = cell.metadata.get("execution")
        if times and "slow" not in cell.metadata.get("tags", ()):
            start, end = times["iopub.status.busy"], times["shell.execute_reply"]
            duration = datetime.fromisoformat(end) - datetime.fromisoformat(start)
            numbers += [number] * (duration.total_seconds() > SLOW)
    return numbers


class LessonFailed(Exception):
    """A cell that raised, ran too long or lost its kernel."""


def execute(path: Path, learner: Path, stills: Path = STILLS) -> list[int]:
    """Run a notebook and store it; return which cells should be tagged `slow`.

    Args:
        path: the notebook.
        learner: the folder with the progress that its kernel sees; may be empty.
        stills: where to store what the web site needs.

    Raises:
        LessonFailed: a cell raised, ran too long or lost its kernel; the file is as it was.
    """
    notebook = nbformat.read(path, as_version=4)
    reached = []
    client = NotebookClient(
        notebook,
        kernel_name="python3",
        timeout=CELL_TIMEOUT,
        extra_arguments=[
            "--log-level=ERROR",  # no line about TCP per lesson
            "--InteractiveShellApp.extra_extensions=transformer_lesson.figures.attention_view.drawings",
            "--InteractiveShellApp.reraise_ipython_extension_failures=True",
        ],
        resources={"metadata": {"path": str(path.parent)}},
        coalesce_streams=True,
        on_cell_execute=lambda cell, cell_index: reached.append(cell_index + 1),
    )
    try:
        client.execute(env={**SETTINGS, **os.environ, PLACE: str(learner / FILE)})
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        # the error's own text holds the cell's source and the traceback
        raise LessonFailed(f"Cell {reached[-1]} of {path.name}: {error}") from error
    slow = slow_cells(notebook)
    explorables, weights = take_explorables(notebook)
    by_cell = take_stills(notebook) | explorables
    clean(notebook)
    store_small(notebook)
    store_stills(by_cell, weights, stills / path.stem)
    write_notebook(path, notebook)
    return slow


def main(lesson: str = "") -> int:
    for path in of_number(lesson, lesson_files()):
        print(f"{path.name} ...", end=" ", flush=True)
        start = time.perf_counter()
        try:
            with tempfile.TemporaryDirectory() as nobody:
                slow = execute(path, Path(nobody))
        except LessonFailed as failure:
            print(f"failed; the file is as it was.\n\n{COLORS.sub('', str(failure))}")
            return 1
        print(f"{time.perf_counter() - start:.1f} s", flush=True)
        if slow:
            print(f"  over {SLOW} s: tag cells {', '.join(map(str, slow))} `slow`", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
