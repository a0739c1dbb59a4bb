"""Redraw the stored explorables without running the lessons: `make redraw`.

After a change of a front end, or of how pictures are made, it gives what `make notebooks` would,
from what the lessons have stored in `docs/stills`. All other pictures are compressed again.
"""

import json
import sys
from pathlib import Path

import nbformat

from tools.execute_notebooks import STILLS
from tools.explorable_pictures import camera, give_picture
from tools.lesson_files import lesson_files, of_number, write_notebook
from tools.site_stills import models_of, stored_weights
from tools.small_pictures import store_small


def redraw(path: Path, draw, weights: dict[str, bytes]) -> None:
    """Draw a notebook's explorables and store it.

    Args:
        path: of the notebook; its stills are in the folder of its name.
        draw: what `camera` yields.
        weights: of all models, by key.
    """
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        stored = STILLS / path.stem / f"{cell.id}.json"
        still = json.loads(stored.read_text(encoding="utf-8")) if stored.exists() else {}
        if "values" in still:
            (picture,) = [out for out in cell.outputs if "image/png" in out.get("data", {})]
            models = {key: weights[key] for key in models_of(still)}
            give_picture(picture, *draw(still, models))
    store_small(notebook)
    write_notebook(path, notebook)


def main(lesson: str = "") -> None:
    paths, weights = of_number(lesson, lesson_files()), stored_weights(STILLS)
    with camera() as draw:
        for path in paths:
            redraw(path, draw, weights)
            print(f"{path.name}: {path.stat().st_size / 1000:.0f} KB", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
