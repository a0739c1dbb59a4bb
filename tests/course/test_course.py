"""A learner's course: no lesson breaks for somebody who writes what the stubs say."""

import re
import shutil

import nbformat
import pytest
from nbclient import NotebookClient

from tests.course.play import Lesson, answers, course, every_second
from tools.execute_notebooks import CELL_TIMEOUT
from tools.handout import is_stub
from tools.lesson_files import lesson_files
from transformer_lesson import mine
from transformer_lesson.exercises.engine.catalog import LESSON_OF
from transformer_lesson.exercises.engine.collection import FOLDER
from transformer_lesson.exercises.engine.progress import PLACE
from transformer_lesson.mine import PARTS
from transformer_lesson.mine.side_by_side import SAME

pytestmark = pytest.mark.slow
SENTENCE, GERMAN = "the child opens the window .", "das Kind macht das Fenster auf ."
NAMES = [name for name, lesson in LESSON_OF.items() if lesson <= "10"]


@pytest.fixture
def copies(tmp_path, monkeypatch):
    """A learner's folder: the lessons, and nothing written yet."""
    for lesson in lesson_files():
        shutil.copy(lesson, tmp_path)
    monkeypatch.setenv(PLACE, str(tmp_path / "my_progress.json"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_exercise_was_written_by_its_stub():
    written = answers()
    assert sorted(written) == sorted(NAMES)
    for path in [one for one in lesson_files() if one.name < "11"]:
        lesson = Lesson(path)
        for i, name in lesson.exercises():
            assert _heading(lesson.cells[i].source) in written[name], name


def _heading(stub: str) -> str:
    return stub[: stub.index('"""')].strip() if '"""' in stub else stub[: stub.index(":\n") + 1]


def test_a_learner_who_passes_all_ends_with_a_transformer_of_their_own(copies):
    """Up to the lesson that puts it together; the next learner goes on to the end."""
    assert_passes({name: one for name, one in answers().items() if LESSON_OF[name] <= "07"}, copies)
    assert mine.parts().yours == PARTS


@pytest.mark.everything
def test_what_a_learner_trains_in_lesson_08_translates_in_lesson_09(copies):
    assert_passes(answers(), copies)
    text = _run_whole(copies / "08_training.ipynb", answers())
    assert "15 of 15 functions of the forward pass are yours" in text
    shares = [float(share) for share in re.findall(r"([\d.]+)% of 300 right", text)]
    assert len(shares) == 2 and min(shares) >= 98  # of 300: 99 % is known to within one
    assert "This translator is your own." in _run_whole(copies / "09_inference.ipynb", answers())


def _run_whole(path, chosen: dict[str, str]) -> str:
    """Run a copy with its trainings, as a kernel does, and return all that it prints."""
    notebook = nbformat.read(path, as_version=4)
    for cell in filter(is_stub, notebook.cells):
        cell.source = chosen[re.match(r"def (\w+)\(", cell.source)[1]]
    resources = {"metadata": {"path": str(path.parent)}}
    NotebookClient(notebook, timeout=CELL_TIMEOUT, resources=resources).execute()
    outputs = [out for cell in notebook.cells for out in cell.get("outputs", ())]
    return "".join(out.get("text", "") for out in outputs)


@pytest.mark.everything
def test_a_learner_whose_files_were_edited_and_damaged(copies):
    files = copies / FOLDER
    files.mkdir()
    name = "scaled_dot_product_attention"
    stub = f"def {name}(Q, K, V, mask=None):\n    raise NotImplementedError\n"
    wrong = "def layer_norm(x, gamma, beta, epsilon):\n    return x + later\n"
    (files / "lesson_03.py").write_text(f"LIMIT = 7\n# %% {name}\n{stub}\n# %% notes\nA = 1\n")
    (files / "lesson_04.py").write_text("# %% split_heads\ndef split_heads(x, n_heads:\n")
    (files / "lesson_05.py").write_text(f"# %% layer_norm\n{wrong}\n# %% notes\nlater = 1\n")
    damaged = {one: answers()[one] for one in (name, "layer_norm")}
    assert_passes(every_second() | damaged, copies)
    text = (files / "lesson_03.py").read_text()
    assert "LIMIT = 7\n" in text and "# %% notes\nA = 1\n" in text
    assert (files / "lesson_04.damaged-1.py").exists()


def assert_passes(chosen: dict[str, str], folder) -> None:
    """Play a course in which every answer passes, is kept and runs in the learner's translator."""
    reports = course(folder, chosen)
    for name, (status, message) in reports.items():
        assert status == "passed", f"{name}: {message}"
        assert message.splitlines()[-1].startswith(f"Your version is kept in `{FOLDER}/lesson_")
    assert mine.parts().yours == tuple(name for name in PARTS if name in reports)
    result = mine.translation(SENTENCE)
    assert (result.mine, result.packages) == (GERMAN, GERMAN) and result.largest <= SAME
    assert not result.parts.reasons
