"""The cell that installs the course where a lesson opens without it: on Colab and on Kaggle.

`make address` writes it into the lessons of a published repository, below the title. A learner's
copy and the web site are made without it. The module is short because several places read it.
"""

import json

CELL = "on-colab-and-kaggle"
"""The id of the cell."""


def without_cell(text: bytes) -> bytes:
    """Return a lesson without the cell, its other cells counted as one run counts them."""
    if f'"id": "{CELL}"'.encode() not in text:
        return text
    try:
        notebook = json.loads(text)
        count_from(notebook["cells"], -1)
        notebook["cells"] = [cell for cell in notebook["cells"] if cell.get("id") != CELL]
    except (ValueError, KeyError, AttributeError, TypeError):  # no notebook, whatever else it is
        return text
    return (json.dumps(notebook, ensure_ascii=False, indent=1) + "\n").encode()


def count_from(cells: list[dict], step: int) -> None:
    """Add a step to the count of each cell and output that has one."""
    for cell in cells:
        for counted in (cell, *cell.get("outputs", ())):
            if counted.get("execution_count") is not None:
                counted["execution_count"] += step
