"""A learner's work survives an update: answers, notes and outputs, in every lesson."""

import subprocess
from copy import deepcopy

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tools.handout import is_stub, solve
from transformer_lesson.command.editions import BOTH_CHANGED, GONE, carried_over
from transformer_lesson.command.lesson_files import lesson_files
from transformer_lesson.command.my_lessons import EARLIER, bring_up_to_date
from transformer_lesson.course import EDITIONS, MINE

LESSONS = lesson_files()
LESSON = LESSONS[1].name
PRINTED = new_output("stream", text="what the learner saw\n")


BETTER = ["1, better", "my answer"]


def sources(notebook):
    return [cell.source for cell in notebook.cells]


def edition(*cells):
    pairs = [one.split(":") for one in cells]
    return new_notebook(cells=[new_markdown_cell(text, id=name) for name, text in pairs])


@pytest.mark.parametrize(
    "old, mine, new, made",
    [
        ("a:1 b:2", "a:1 b:2", "a:1 b:3", ["1", "3"]),  # the course changed it
        ("a:1 b:2", "a:1 b:9", "a:1 b:2", ["1", "9"]),  # the learner changed it
        ("a:1 b:2", "a:1 b:9", "a:4 b:3", ["4", "3", BOTH_CHANGED, "9"]),  # both did
        ("a:1 b:2", "a:1 n:8 b:2", "a:4 c:5 b:2", ["4", "8", "5", "2"]),  # a note, a new cell
        ("a:1 b:2", "n:8 a:1 b:2", "b:2", ["8", "2"]),  # a note at the beginning, a cell dropped
        ("a:1 b:2", "a:9 m:7 b:2", "b:2", [GONE, "9", "7", "2"]),  # dropped, but changed before
        ("a:1 b:2", "a:1", "a:1 b:2", ["1"]),  # the learner deleted it
        ("a:1 b:2", "a:1 b:2 n:8", "b:2 a:1", ["2", "8", "1"]),  # another order
        ("a:1", "a:1 c:8", "a:1 c:3", ["1", "3", BOTH_CHANGED, "8"]),  # the same id by chance
    ],
)
def test_what_one_side_changed_is_taken_from_that_side(old, mine, new, made):
    old, mine, new = (edition(*cells.split()) for cells in (old, mine, new))
    merged = carried_over(old, mine, new)
    assert sources(merged) == made
    nbformat.validate(merged)
    again = carried_over(new, merged, new)
    assert sources(again) == made  # once more changes nothing


STUB, ANSWER = "def f(x):\n    raise NotImplementedError", "def f(x):\n    return 2 * x"
HELPED = f"def half(x):\n    return x / 2\n\n\n{ANSWER}"


@pytest.mark.parametrize(
    "mine, made",
    [
        (["1", "note", "2", STUB], ["3", "note", "2", STUB]),
        (["1", "2", ANSWER], ["3", "2", ANSWER]),  # known by its first line
        (["1", "2", HELPED], ["3", "2", STUB, HELPED]),  # the learner's comes last and counts
        (["1", "9", ANSWER, "note"], ["3", "2", "9", ANSWER, "note"]),
    ],
)
def test_cells_whose_ids_a_program_dropped_are_known_by_their_text(mine, made):
    old, mine, new = (of_kinds(*cells) for cells in (["1", "2", STUB], mine, ["3", "2", STUB]))
    for cell in mine.cells:
        del cell["id"]
    assert sources(carried_over(old, mine, new)) == made


def of_kinds(*texts):
    """Code where it is code, ids from the beginning on."""
    kinds = [new_code_cell if "def " in text else new_markdown_cell for text in texts]
    pairs = zip(kinds, texts, strict=True)
    return new_notebook(cells=[make(text, id=f"c{i}") for i, (make, text) in enumerate(pairs)])


def test_a_note_that_stands_where_code_stood_is_kept():
    old, mine, helped = map(of_kinds, (STUB, "my note", HELPED))
    assert sources(carried_over(old, mine, of_kinds(STUB))) == ["my note"]
    assert sources(carried_over(old, mine, helped)) == [HELPED, BOTH_CHANGED, "my note"]
    assert sources(carried_over(old, mine, edition("a:1"))) == [GONE, "my note", "1"]


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_worked_lesson_goes_on_in_a_newer_edition(path):
    old = nbformat.read(path, as_version=4)
    mine, new = worked_through(old), rewritten(old)
    merged = carried_over(old, mine, new)
    nbformat.validate(merged)
    made = sources(merged)
    assert len({cell.id for cell in merged.cells}) == len(merged.cells)
    assert {*made} >= {cell.source for cell in new.cells if not is_stub(cell)}
    assert {*made} >= {solve(cell.source) for cell in filter(is_stub, old.cells)}
    notes = [[one for one in all_of if "My note " in one] for all_of in (sources(mine), made)]
    assert notes[0] == notes[1]
    kept = {cell.id: cell.source for cell in new.cells}
    same = {cell.id for cell in mine.cells if cell.source == kept.get(cell.id)}
    ran = [cell for cell in merged.cells if cell.cell_type == "code" and cell.id in same]
    assert all(cell.outputs == [PRINTED] for cell in ran)


def worked_through(lesson):
    """A lesson with every exercise solved, all cells run, and a note behind each tenth cell."""
    mine, cells = deepcopy(lesson), []
    for i, cell in enumerate(mine.cells):
        if cell.cell_type == "code":
            cell.source = solve(cell.source) if is_stub(cell) else cell.source
            cell.outputs, cell.execution_count = [PRINTED], i
        cells += [cell, new_markdown_cell(f"My note {i}")] if i % 10 == 0 else [cell]
    mine.cells = cells
    return mine


def rewritten(lesson):
    """An edition in which cells that are no exercise are changed, dropped and added."""
    new, cells = deepcopy(lesson), []
    for i, cell in enumerate(new.cells):
        if not is_stub(cell) and i % 3 == 0:
            cell.source = f"# rewritten {i}\n{cell.source}"
        cells += [cell] if is_stub(cell) or i % 7 else []
        cells += [new_code_cell(f"print({i})")] if i % 5 == 0 else []
    new.cells = cells
    return new


def git(folder, *command):
    who = ("-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    run = subprocess.run(["git", *who, *command], cwd=folder, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.fixture
def course(tmp_path):
    folder = tmp_path / "course"
    (folder / "notebooks").mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    (folder / ".gitignore").write_text("my_lessons/\n")
    (folder / "notebooks/glossary.md").write_text("words")
    commit(folder, "a:1", "b:2")
    return folder


@pytest.fixture
def answered(course):
    """The learner's copy, with an answer in it that the course's next edition does not know."""
    list(bring_up_to_date(course))
    write(course / MINE / LESSON, "a:1", "b:my answer")
    commit(course, "a:1, better", "b:2")
    return course / MINE / LESSON


def write(path, *cells):
    path.parent.mkdir(exist_ok=True)
    nbformat.write(edition(*cells), path)


def commit(folder, *cells):
    write(folder / f"notebooks/{LESSON}", *cells)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=an edition")


def read(path):
    return sources(nbformat.read(path, as_version=4))


def test_a_pull_meets_no_conflict_and_the_work_goes_on(course, tmp_path):
    learner = tmp_path / "learner"
    git(tmp_path, "clone", "--quiet", str(course), str(learner))
    assert list(bring_up_to_date(learner)) == []
    copy = learner / MINE / LESSON
    write(copy, "a:1", "b:my answer", "n:my note")
    assert git(learner, "status", "--porcelain") == ""
    commit(course, "a:1, better", "b:2", "c:3")
    git(learner, "pull", "--quiet")
    said = list(bring_up_to_date(learner))
    kept = f"{MINE}/{EARLIER}/{LESSONS[1].stem}.1.ipynb"
    assert said == [f"{MINE}/{LESSON} has the newest edition and your work; the old copy is {kept}"]
    assert read(copy) == ["1, better", "my answer", "my note", "3"]
    assert read(learner / kept) == ["1", "my answer", "my note"]
    assert (learner / MINE / "glossary.md").read_text() == "words"
    assert git(learner, "status", "--porcelain") == "" and list(bring_up_to_date(learner)) == []


def test_work_that_was_begun_in_the_courses_own_folder_counts_as_the_learners(course):
    (course / "notebooks/my_progress.json").write_text("{}")
    write(course / f"notebooks/{LESSON}", "a:1", "b:my answer")
    list(bring_up_to_date(course))
    assert (course / MINE / "my_progress.json").read_text() == "{}"
    git(course, "checkout", "--quiet", "notebooks")
    commit(course, "a:1, better", "b:2")
    list(bring_up_to_date(course))
    assert read(course / MINE / LESSON) == BETTER


def test_notes_in_the_glossary_are_kept(course):
    theirs, mine = course / "notebooks/glossary.md", course / MINE / "glossary.md"
    list(bring_up_to_date(course))
    mine.write_text("my notes")
    assert not any("glossary" in sentence for sentence in bring_up_to_date(course))
    assert mine.read_text() == "my notes"
    theirs.write_text("a newer edition")
    (told,) = (sentence for sentence in bring_up_to_date(course) if "glossary" in sentence)
    assert f"{MINE}/{EARLIER}/glossary.1.md" in told and mine.read_text() == "a newer edition"
    assert (course / MINE / EARLIER / "glossary.1.md").read_text() == "my notes"


def test_a_copy_without_its_edition_finds_it_in_the_history(course):
    write(course / MINE / LESSON, "a:1", "b:my answer")
    commit(course, "a:1, better", "b:2")
    commit(course, "a:1, best", "b:2")
    list(bring_up_to_date(course))
    assert read(course / MINE / LESSON) == ["1, best", "my answer"]


def test_without_version_control_the_files_are_the_edition(course, tmp_path):
    (course / ".git").rename(tmp_path / "away")
    list(bring_up_to_date(course))
    write(course / MINE / LESSON, "a:1", "b:my answer")
    write(course / f"notebooks/{LESSON}", "a:1, better", "b:2")
    list(bring_up_to_date(course))
    assert read(course / MINE / LESSON) == BETTER


CELL = '{"cells": [{"cell_type": "raw"}], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}'
EMPTY = CELL.replace('"raw"', '"raw", "metadata": {}')
DAMAGES = ["", "[]", '{"cells": 3}', CELL, EMPTY, "[" * 100_000]


@pytest.mark.parametrize("damage", DAMAGES, ids=range(len(DAMAGES)))
def test_a_damaged_edition_is_found_in_the_history_and_a_damaged_copy_stays(
    course, answered, damage
):
    (course / MINE / EDITIONS / LESSON).write_text(damage)
    list(bring_up_to_date(course))
    assert read(answered) == BETTER
    answered.write_text(damage)
    commit(course, "a:1, best")
    (said,) = bring_up_to_date(course)
    assert said.startswith(f"{MINE}/{LESSON} is no longer a notebook, so it stays as it is")
    assert list(bring_up_to_date(course)) == [said]  # each time, until it is renamed
    assert answered.read_text() == damage


def test_an_interrupted_update_goes_on(course, answered):
    before = (course / MINE / EDITIONS / LESSON).read_bytes()
    list(bring_up_to_date(course))
    (course / MINE / EDITIONS / LESSON).write_bytes(before)  # the power failed before this
    list(bring_up_to_date(course))
    assert read(answered) == BETTER
