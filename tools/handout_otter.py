"""Write lessons as Otter's assignments: `make handout FORMAT=otter`, or of one lesson.

handouts/otter/lesson_03/03_attention.ipynb is a master notebook of Otter-Grader (its documentation:
"Otter Assign Format"): `otter assign` makes the students' copy and the autograder of it. A stub and
its solution are a question, whose one test, worth a point, raises unless our check passes. The
students' copy asks for no Otter: the tests are in its metadata, and only a grader runs them.
"""

import re
import sys

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_raw_cell

from tools import handout
from tools.handout_nbgrader import folder_of
from tools.lesson_files import lesson_files, of_number

COURSE = handout.HANDOUTS / "otter"
CONFIGURATION = """# ASSIGNMENT CONFIG
init_cell: false
export_cell: false
tests:
    ok_format: false
"""
BEGIN = "# BEGIN QUESTION\nname: {0}\npoints: 1\ncheck_cell: false"
STUB = """# BEGIN SOLUTION NO PROMPT
{1}
# END SOLUTION
r''' # BEGIN PROMPT
{2}
''' # END PROMPT"""  # Otter leaves what is between the last two lines to the student
TEST = """def test_{0}(env):
    from transformer_lesson.exercises import check

    report = check("{0}", env["{0}"])
    assert report.status == "passed", "{0} has not passed: what does its check say?"
"""
END_SOLUTION, BEGIN_TESTS, END_TESTS, END = (
    f"# {marker}" for marker in ("END SOLUTION", "BEGIN TESTS", "END TESTS", "END QUESTION")
)


def otter_copy(lesson: NotebookNode) -> NotebookNode:
    """Return a lesson's student copy with its questions, their solutions and their tests."""
    copy = handout.student_copy(lesson)
    cells = [new_raw_cell(CONFIGURATION, id="assignment")]
    for cell in copy.cells:
        cells += _question(cell) if handout.is_stub(cell) else [cell]
    copy.cells = cells
    return copy


def _question(stub: NotebookNode) -> list[NotebookNode]:
    name = re.match(r"def (\w+)\(", stub.source)[1]
    stub.source = STUB.format(name, handout.solve(stub.source), stub.source)
    test = new_code_cell(TEST.format(name), id=f"test-{name}"[:64])

    def mark(text: str) -> NotebookNode:
        words = re.sub(r"\W+", "-", text.split("\n")[0].strip("# ").lower())
        return new_raw_cell(text.format(name), id=f"{words}-{name}"[:64])

    before = [mark(BEGIN), mark("# BEGIN SOLUTION")]
    return [*before, stub, mark(END_SOLUTION), mark(BEGIN_TESTS), test, mark(END_TESTS), mark(END)]


def main(lesson: str = "") -> None:
    for path in of_number(lesson, lesson_files()):
        notebook = nbformat.read(path, as_version=4)
        if any(map(handout.is_stub, notebook.cells)):
            place = COURSE / folder_of(path) / path.name
            place.parent.mkdir(parents=True, exist_ok=True)
            nbformat.write(otter_copy(notebook), place)
            print(place)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
