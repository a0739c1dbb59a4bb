"""`transformer-lesson`: what it says, of answers and of wrong input, and what it leaves alone."""

import os
import subprocess
import sys
import tomllib
from importlib import import_module

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tests.stored_lessons import read
from transformer_lesson.checkpoints.weights import PLACE
from transformer_lesson.command import __main__ as command
from transformer_lesson.command import check
from transformer_lesson.course import EDITIONS, MINE, learners_folder
from transformer_lesson.exercises.engine.catalog import EXERCISES

MASK = "import torch\n\n\ndef causal_mask(length):\n    return {}\n"
RIGHT = MASK.format("torch.ones(1, 1, length, length).tril().bool()")
WRONG = MASK.format("torch.ones(1, 1, length, length).triu().bool()")
LAZY = """
import sys
sys.argv[1:] = ["--version"]  # not what is asked for here
from transformer_lesson.command.__main__ import main
main(["--help"])
print(*sorted({"torch", "numpy", "jupyterlab", "nbformat", "IPython"} & {*sys.modules}))
"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return tmp_path


def said(capsys, *arguments: str) -> tuple[object, str]:
    """Return the exit status and all that a command says."""
    try:
        status = command.main(list(arguments))
    except SystemExit as end:
        status = end.code
    text = "".join(capsys.readouterr())
    return (1, status) if isinstance(status, str) else (status, text)


def test_the_readme_names_the_wheel_as_it_is():
    version = tomllib.loads(read("pyproject.toml"))["project"]["version"]
    assert f"--from transformer_lesson-{version}-py3-none-any.whl " in read("README.md")
    assert f"install transformer_lesson-{version}-py3-none-any.whl`" in read("docs/starting.md")


def test_a_helper_called_like_another_lessons_exercise_is_no_answer(here):
    check_own = new_code_cell('check("causal_mask", causal_mask)')
    cells = [new_code_cell("def asking(model):\n    return model"), new_code_cell(RIGHT), check_own]
    nbformat.write(new_notebook(cells=cells), here / "a.ipynb")
    assert [report.name for report in check.reports_on(here / "a.ipynb")] == ["causal_mask"]
    assert check.meant_in(["def asking(model):\n    return model"]) == ["asking"]


@pytest.mark.slow
def test_help_names_every_command_and_loads_nothing_heavy():
    run = [sys.executable, "-c", LAZY]
    answer = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    *shown, loaded, _ = answer.split("\n")
    assert loaded == ""
    for name in command.COMMANDS:
        assert any(line.startswith(f"  {name} ") for line in shown)


@pytest.mark.parametrize("name", sorted(set(command.COMMANDS) - {"lab"}))
def test_each_command_has_help_of_its_own(name, capsys):
    status, text = said(capsys, name, "--help")
    assert status == 0 and text.startswith(f"usage: transformer-lesson {name}")


WRONG_INPUT = {
    ("chek",): "There is no command 'chek': did you mean check?",
    ("check",): "give a file, as in transformer-lesson check answers.py",
    ("check", "answer.py"): "There is no file answer.py: did you mean answers.py?",
    ("check", "far/away.py"): "There is no file far/away.py, .py or .ipynb",
    ("check", "text.md"): "neither Python (.py) nor a notebook (.ipynb)",
    ("check", "broken.ipynb"): "is not a notebook of version 4",
    ("check", "other.py"): "defines no function of an exercise",
    ("check", "half.py"): "half.py cannot be read as Python: '(' was never closed, line 2.",
    ("check", "answers.py", "--exercise", "xyz"): "'xyz'. Its cell names it, in `check(...)`",
    ("check", "answers.py", "--exercise", "causal_mas"): "Did you mean causal_mask",
    ("check", "answers.py", "--exercise", "split_heads"): "it defines causal_mask",
    ("check", "answers.py", "--hint", "0"): "There is no hint 0",
    ("grade", "nowhere"): "is not a folder",
}


@pytest.mark.parametrize("arguments", WRONG_INPUT, ids=" ".join)
def test_wrong_input_gets_one_sentence(here, capsys, arguments):
    files = {"answers.py": WRONG, "other.py": "a = 1", "half.py": "\na = (", "text.md": "#"}
    for name, text in files.items():
        (here / name).write_text(text)
    (here / "broken.ipynb").write_text("{}")
    status, text = said(capsys, *arguments)
    assert status == 1 and WRONG_INPUT[arguments] in text and text.strip().count("\n") == 0


def test_a_missing_package_gets_one_sentence(monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(f"No module named {wanted!r}", name=wanted)

    monkeypatch.setattr(command, "import_module", missing)
    wanted = "jupyterlab"
    assert "needs the package 'jupyterlab', which is missing here" in command.main([])
    wanted = "transformer_lesson.command.lab"  # ours: a broken course, not a missing package
    with pytest.raises(ModuleNotFoundError):
        command.main([])


def test_flags_alone_go_to_jupyterlab(monkeypatch):
    lab = import_module("transformer_lesson.command.lab")
    calls = []
    monkeypatch.setattr(lab, "jupyterlab", calls.append)
    monkeypatch.setattr(lab, "bring_up_to_date", lambda arguments: None)
    for arguments in ([], ["--no-browser", "--port=9000"], ["lab", "--port=9000"]):
        assert command.main(arguments) is None
        passed_on = [one for one in calls.pop() if one.startswith(("--no-", "--port"))]
        assert passed_on == [one for one in arguments if one != "lab"]
    monkeypatch.setattr(lab, "bring_up_to_date", lambda arguments: "No room.")
    assert command.main([]) == "No room."


def test_a_wrong_answer_gets_its_cause_an_example_a_hint_and_what_to_read(here, capsys):
    (here / "answers.py").write_text(WRONG)
    status, text = said(capsys, "check", "answers.py", "--exercise", "causal_mask")
    assert status == 1 and text.startswith("causal_mask: failed\n")
    assert "Smallest failing example" in text and "Hint 1 of " in text
    assert "Read again: “1 · No looking ahead” in my_lessons/07_decoder.ipynb" in text
    assert "def causal_mask" not in text and "Our lines" not in text
    assert (
        f"Hint 2 of {len(EXERCISES['causal_mask'].hints)}"
        in said(capsys, "check", "answers.py", "--hint", "2")[1]
    )


def test_a_right_answer_passes_with_what_it_imports_and_nothing_is_stored(here, capsys):
    (here / "parts.py").write_text(RIGHT)
    answer = "from parts import causal_mask as made\n\n\ndef causal_mask(length):\n    {}\n"
    stub = "def split_heads(x, n_heads):\n    raise NotImplementedError"
    (here / "answers.py").write_text(f"{answer.format('return made(length)')}\n\n{stub}\n")
    assert said(capsys, "check", "answers.py") == (
        0,
        f"causal_mask: passed\n{check.EQUAL}\n\n",
    )
    cells = [new_code_cell("%matplotlib inline"), new_code_cell("1 +"), new_code_cell(RIGHT)]
    nbformat.write(new_notebook(cells=cells), here / "answers.ipynb")
    assert said(capsys, "check", "answers.ipynb")[0] == 0
    kept = {path.name for path in here.iterdir()} - {"__pycache__"}
    assert kept == {"answers.py", "parts.py", "answers.ipynb"}


@pytest.mark.parametrize(
    "text, said_of_it",
    [
        (f"{RIGHT}causal_mask = causal_mask(3) / 'a'", "raised TypeError"),
        (RIGHT.replace("return", "return ("), "raised SyntaxError: '(' was never closed (line "),
        (
            f"import no_such_package\n{WRONG.replace('torch.ones', 'no_such_package.ones')}",
            "raised",
        ),
        (MASK.format("1 / 0"), "division by zero"),
    ],
)
def test_a_file_that_raises_is_a_failed_answer(here, capsys, text, said_of_it):
    (here / "answers.py").write_text(text)
    status, shown = said(capsys, "check", "answers.py")
    assert status == 1 and said_of_it in shown and "Traceback" not in shown


def test_copies_are_where_the_command_is_called_and_a_folder_that_refuses_is_said(here, capsys):
    (here / MINE).write_text("a file")
    status, text = said(capsys, "update")
    assert status == 1 and "my_lessons is a file, where" in text and text.count("\n") == 0
    (here / MINE).unlink()
    (here / MINE).mkdir()
    (here / MINE / EDITIONS).write_text("a file")
    status, text = said(capsys, "update")
    assert status == 1 and "my_lessons cannot be written" in text and text.count("\n") == 0
    (here / MINE / EDITIONS).unlink()
    up_to_date = f"Your copies in {here / MINE} are up to date.\n"
    assert said(capsys, "update") == (None, up_to_date)
    for folder in (here, here / MINE, here / MINE / "deeper"):
        os.chdir(folder)
        assert learners_folder() == here


def test_a_folder_of_weights_that_refuses_is_named(here, capsys, monkeypatch):
    (here / "taken").write_text("a file")
    monkeypatch.setenv(PLACE, str(here / "taken"))
    status, text = said(capsys, "weights", "minilm")
    assert status == 1
    assert text.splitlines()[-1].endswith(
        f"{here / 'taken'} must be a folder that you may write to"
    )
