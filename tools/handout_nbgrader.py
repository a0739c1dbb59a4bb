"""Write lessons as nbgrader's source: `make handout FORMAT=nbgrader`, or of one lesson.

handouts/nbgrader/ is a course directory of nbgrader (its documentation: "Creating and grading
assignments", metadata of version 3): source/lesson_03/03_attention.ipynb, and a configuration.
A stub is a solution cell. Behind the lesson's own check follows a locked cell, worth a point, which
raises unless our check passes.
"""

import re
import sys
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from tools import handout
from tools.lesson_files import lesson_files, of_number
from transformer_lesson.files import write_atomically

COURSE = handout.HANDOUTS / "nbgrader"
CONFIGURATION = """c = get_config()  # nbgrader defines it
c.CourseDirectory.course_id = "transformer_lesson"
c.ExecutePreprocessor.timeout = 600  # seconds of one cell: some train a model
"""
TODO = re.compile(r"^( *)raise NotImplementedError.*$", re.MULTILINE)
REGION = r"\1### BEGIN SOLUTION\n\g<0>\n\1### END SOLUTION"  # nbgrader puts a stub of its own there
TEST = """from transformer_lesson.exercises import check

assert check("{0}", {0}).status == "passed", "{0} has not passed: what does its check say?"
"""


def nbgrader_copy(lesson: NotebookNode) -> NotebookNode:
    """Return a lesson's student copy with solution cells and test cells."""
    copy = handout.student_copy(lesson)
    cells = []
    for cell in copy.cells:
        cells.append(cell)
        if handout.is_stub(cell):
            name = re.match(r"def (\w+)\(", cell.source).group(1)
            cell.source = TODO.sub(REGION, cell.source)
            cell.metadata.nbgrader = _about(name, solution=True)
        elif checked := handout.CHECK.match(cell.source):
            test = new_code_cell(TEST.format(checked[1]), id=f"test-{checked[1]}"[:64])
            test.metadata.nbgrader = _about(f"test_{checked[1]}", grade=True, locked=True, points=1)
            test.metadata.tags = ["raises-exception"]  # Run All goes on after it
            cells.append(test)
    copy.cells = cells
    return copy


def _about(grade_id: str, **fields: bool | int) -> dict:
    common = {"schema_version": 3, "grade": False, "solution": False, "locked": False}
    return {**common, "task": False, "grade_id": grade_id, **fields}


def folder_of(path: Path) -> str:
    """Return the folder of a notebook's assignment."""
    return path.stem if path.parent.name == "deeper" else f"lesson_{path.name[:2]}"


def main(lesson: str = "") -> None:
    for path in of_number(lesson, lesson_files()):
        copy = nbgrader_copy(nbformat.read(path, as_version=4))
        if any("nbgrader" in cell.metadata for cell in copy.cells):
            place = COURSE / "source" / folder_of(path) / path.name
            place.parent.mkdir(parents=True, exist_ok=True)
            nbformat.write(copy, place)
            print(place)
    if not (COURSE / "nbgrader_config.py").exists():
        write_atomically(COURSE / "nbgrader_config.py", CONFIGURATION.encode())


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
