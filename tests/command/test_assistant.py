"""An assistant is told the rules, and gets from the tools what `check` says."""

import asyncio
import os
import sys

import pytest

from tests.exercises.test_help import solution_lines
from transformer_lesson.command import __main__ as command
from transformer_lesson.command import assistant
from transformer_lesson.command.my_lessons import FOR_ASSISTANTS, RULES, bring_up_to_date
from transformer_lesson.exercises import check
from transformer_lesson.exercises.engine.catalog import EXERCISES

WRONG = "import torch\n\n\ndef causal_mask(n):\n    return torch.ones(1, 1, n, n).triu().bool()\n"


def test_a_learners_folder_has_the_rules_and_nothing_written_there_is_lost(tmp_path):
    course = tmp_path / "course"
    (course / "notebooks").mkdir(parents=True)
    (course / "notebooks/glossary.md").write_text("")
    assert not [*bring_up_to_date(course, tmp_path)]
    copies = [tmp_path / "my_lessons" / name for name in RULES]
    rules = FOR_ASSISTANTS.read_text("utf-8")
    assert [copy.read_text("utf-8") for copy in copies] == [rules] * 2
    copies[0].write_text("my own")
    assert not [*bring_up_to_date(course, tmp_path)] and copies[0].read_text() == "my own"
    for name in RULES:
        (tmp_path / "my_lessons/.editions" / name).write_text("older")
    (sentence,) = bring_up_to_date(course, tmp_path)
    assert "AGENTS.md has the newest edition; yours" in sentence
    assert [copy.read_text("utf-8") for copy in copies] == [rules] * 2


@pytest.mark.slow
def test_the_rules_name_commands_and_tools_that_exist_and_no_solution():
    rules = FOR_ASSISTANTS.read_text("utf-8")
    for name in ("check", "assistant"):
        assert f"transformer-lesson {name}" in rules and name in command.COMMANDS
    assert "`check`, `hint`, `heading`" in rules
    close = "".join(rules.split())
    assert not any(line in close for name in EXERCISES for line in solution_lines(name))


def test_the_functions_behind_the_tools_say_what_check_says(tmp_path, unchecked):
    (tmp_path / "a.py").write_text(WRONG)
    names = {}
    exec(WRONG, names)
    given = assistant.check(str(tmp_path / "a.py"), "causal_mask")
    assert given["cause"] == check("causal_mask", names["causal_mask"]).mistake
    assert "Smallest failing example" in given["example"]
    assert given["heading"] == "1 · No looking ahead"
    for file, name in (("b.py", "causal_mask"), ("a.py", "causal_mas"), ("a.py", "split_heads")):
        assert assistant.check(str(tmp_path / file), name)["status"] == "not checked"
    assert assistant.hint("causal_mask", 2).startswith("Hint 2 of 3: ")
    assert "the first is 1" in assistant.hint("causal_mask", 0)
    assert "Did you mean" in assistant.hint("causal_mas") and "Did" in assistant.heading("split")


def test_without_its_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.setitem(sys.modules, "mcp.server", None)
    assert "pip install mcp" in command.main(["assistant"])


@pytest.mark.slow
def test_an_assistant_calls_the_tools(tmp_path):
    mcp = pytest.importorskip("mcp", reason="the extra `assistant` is not installed")

    (tmp_path / "a.py").write_text(f"print('to standard output')\n{WRONG}")

    async def talk():
        python = mcp.StdioServerParameters(
            command=sys.executable,
            args=["-m", "transformer_lesson.command", "assistant"],
            env={**os.environ},
        )
        answers = []
        for server in (assistant.make_server(), python):
            async with mcp.Client(server) as client:
                tools = {tool.name for tool in (await client.list_tools()).tools}
                asked = {"file": str(tmp_path / "a.py"), "exercise": "causal_mask"}
                checked = await client.call_tool("check", asked)
                hint = await client.call_tool("hint", {"exercise": "causal_mask", "number": 2})
                answers.append((tools, checked.structured_content, hint.structured_content))
        return answers

    here, started = asyncio.run(talk())
    assert here == started
    assert here[0] == {"check", "hint", "heading"}
    assert here[1] == assistant.check(str(tmp_path / "a.py"), "causal_mask")
    assert here[2] == {"result": assistant.hint("causal_mask", 2)}
