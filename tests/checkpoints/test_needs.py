"""Cells that need real weights run where these are, and elsewhere say how to get them."""

import traceback

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from transformer_lesson.checkpoints import needs
from transformer_lesson.checkpoints.weights import PLACE, WEIGHTS, absent

CELL = "%%needs SmolLM2 MiniLM\nnumber = 6 * 7\nnumber\n"


@pytest.fixture
def shell():
    made = InteractiveShell()
    needs.load_ipython_extension(made)
    yield made
    made.history_manager.end_session()


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A function that makes a model's files lie where they are looked for; their size alone."""
    monkeypatch.setenv(PLACE, str(tmp_path))

    def fetched(name):
        for file in WEIGHTS[name].files:
            path = tmp_path / name / file.name
            path.parent.mkdir(exist_ok=True)
            with path.open("wb") as made:
                made.truncate(file.size)

    return fetched


def test_without_weights_a_cell_is_one_sentence(shell, here):
    here("SmolLM2")
    with capture_output() as shown:
        result = shell.run_cell(CELL)
    assert result.success and shown.stdout == absent("MiniLM") + "\n"
    assert "number" not in shell.user_ns


def test_with_weights_it_runs_its_last_line_is_shown_and_an_error_keeps_its_line(shell, here):
    here("SmolLM2"), here("MiniLM")
    with capture_output():
        result = shell.run_cell(CELL)
    assert result.result == 42 and shell.user_ns["number"] == 42
    with capture_output():
        result = shell.run_cell("%%needs SmolLM2\n\n1 / 0\n")
    *_, (_, line) = traceback.walk_tb(result.error_in_exec.__traceback__)
    assert isinstance(result.error_in_exec, ZeroDivisionError) and line == 3


def test_other_cells_are_left_alone_and_an_unknown_model_is_refused(shell, here):
    assert shell.run_cell("%%time\n1").success
    assert needs.only_with_weights(["x = 1\n", "%%needs SmolLM2\n"])[1] == "%%needs SmolLM2\n"
    with pytest.raises(ValueError, match="'GPT-5' is none of the models that come in packages"):
        needs.missing_weights("%%needs GPT-5\n")
