"""`transformer-lesson progress`: one page of what was built, here and on another machine."""

import json
import re

import pytest

from transformer_lesson.command import progress
from transformer_lesson.course import EDITIONS, MINE
from transformer_lesson.exercises.engine.collection import FOLDER, load_collected
from transformer_lesson.exercises.engine.inventory import asked
from transformer_lesson.exercises.engine.progress import FILE, FORMAT, PLACE, parse_progress

MASK = "def causal_mask(length):\n    return torch.ones(1, 1, length, length).tril().bool()"
OTHER_MASK = "def causal_mask(length):\n    return 'written on the other machine'"
CROSS = "def cross_attention(x, memory):\n    return math.pi, x"
HEAD = '"""Lesson 07, mine & yours."""\n\nimport {}\n'


@pytest.fixture(autouse=True)
def no_place(monkeypatch):
    monkeypatch.setenv(PLACE, "")  # `main` sets it, and this puts it back


def built(home, sections: dict[str, str], imports: str, passed: list[str], predicted: dict):
    mine = home / MINE
    (mine / FOLDER).mkdir(parents=True)
    (mine / EDITIONS).mkdir()
    code = "\n\n".join(f"# %% {name}\n{text}\n" for name, text in sections.items())
    (mine / FOLDER / "lesson_07.py").write_text(f"{HEAD.format(imports)}\n\n{code}")
    state = {"format": FORMAT, "passed": dict.fromkeys(passed, True), "predicted": predicted}
    (mine / FILE).write_text(json.dumps(state))
    return mine


def page(mine) -> str:
    return (mine / progress.PAGE).read_text(encoding="utf-8")


def test_the_page_has_code_models_claim_and_gain_and_nothing_of_them_is_run(tmp_path, monkeypatch):
    mine = built(tmp_path, {"causal_mask": MASK}, "torch", ["causal_mask"], {})
    monkeypatch.chdir(mine)
    (mine / progress.CLAIM).write_text("<script>'a claim'</script>")
    (mine / progress.MODELS / "poems").mkdir(parents=True)
    (mine / progress.MODELS / "poems/README.md").write_text("# poems <b>")
    assert progress.main([]) is None
    shown = page(mine)
    assert "mine &amp; yours" in shown and ".tril().bool()" in shown
    assert "# poems &lt;b&gt;" in shown and "<script>" not in shown and "iframe sandbox" in shown
    assert "What I know now" not in shown and not re.search(r"(?:src|href)=\"http", shown)
    predicted = {
        f"{when}.{item.id}": {"chose": item.options[0].text, "right": True}
        for when in ("before", "after")
        for item in asked(when)
    }
    state = json.loads((mine / FILE).read_text())
    (mine / FILE).write_text(json.dumps(state | {"predicted": predicted}))
    assert progress.main([]) is None and "What I know now" in page(mine)


def test_another_machines_work_is_added_and_nothing_here_is_replaced(tmp_path, monkeypatch, capsys):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    answered = {"chose": "mine", "right": True}
    mine = built(
        tmp_path / "a", {"causal_mask": MASK}, "torch", ["causal_mask"], {"03.a": answered}
    )
    sections = {"causal_mask": OTHER_MASK, "cross_attention": CROSS}
    answers = {"03.a": {"chose": "theirs", "right": False}, "03.b": answered}
    theirs = built(tmp_path / "b", sections, "math", ["cross_attention"], answers)
    (theirs / FOLDER / "lesson_04.py").write_text("def broken(:")
    (theirs / FOLDER / progress.TRANSLATOR).write_bytes(b"weights")
    monkeypatch.chdir(tmp_path / "a")
    assert progress.main(["--merge", str(tmp_path / "b")]) is None
    assert "functions: cross_attention" in capsys.readouterr().out
    state = parse_progress(mine / FILE)
    assert state["passed"].keys() == {"causal_mask", "cross_attention"}
    assert state["predicted"] == {"03.a": answered, "03.b": answered}
    functions, broken = load_collected(mine / FOLDER)
    assert functions["causal_mask"](2).sum() == 3 and functions["cross_attention"](1, 2)[1] == 1
    assert broken == {} and (mine / FOLDER / progress.TRANSLATOR).read_bytes() == b"weights"
    before = {path: path.read_bytes() for path in (mine / FOLDER).iterdir()}
    assert progress.main(["--merge", str(theirs)]) is None  # once more adds nothing
    assert before == {path: path.read_bytes() for path in (mine / FOLDER).iterdir()}


def test_wrong_input_gets_one_sentence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "There is no" in progress.main([])
    mine = built(tmp_path, {"causal_mask": MASK}, "torch", [], {})
    assert "There is no folder nowhere" in progress.main(["--merge", "nowhere"])
    (tmp_path / "empty").mkdir()
    assert "nothing that a learner built" in progress.main(["--merge", "empty"])
    (tmp_path / "empty" / FILE).write_text("{}")
    assert "format" in progress.main(["--merge", "empty"])
    assert not (mine / progress.PAGE).exists()
