"""The one call: foreseen, trained, interrupted, resumed, measured, exported, told to the class."""

import csv
import errno
import json
import math
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest
import torch

from transformer_lesson.capstone import foresee, own
from transformer_lesson.capstone.own import Own, add_line, bootstrap
from transformer_lesson.capstone.plan import (
    LEAST_STEPS,
    Plan,
    digits,
    duration,
    kept_plan,
    stored_misses,
)
from transformer_lesson.checkpoints import from_pretrained
from transformer_lesson.training import TrainingInterrupted

MINUTES = 1e-4  # so few that the least number of steps is done on every machine


def test_a_power_law_goes_on_and_misses_make_the_interval():
    pilots = [(n, 3.0 * n**-0.25) for n in (16, 64)]
    assert foresee(pilots, 1024) == pytest.approx((3 * 1024**-0.25,) * 3)
    expected, low, high = foresee(pilots, 1024, [0.5, 0.9, 1.1, 1.2, 7.0])
    law = 3 * 1024**-0.25
    assert (expected, low) == pytest.approx((1.1 * law, 0.5 * law))
    assert high == pilots[-1][1]  # more steps do no harm
    for kind in ("text", "pairs"):
        misses = stored_misses(kind)
        assert len(misses) >= 5 and 0 < min(misses) < 1 and max(misses) < 5


def test_a_bootstrap_has_the_width_of_the_standard_error():
    values = [i % 7 for i in range(700)]
    middle, low, high = bootstrap(700, lambda drawn: sum(values[i] for i in drawn) / len(drawn))
    assert middle == 3 and low < 3 < high
    assert (high - low) / (2 * 1.96 * 2 / math.sqrt(700)) == pytest.approx(1, abs=0.1)


def test_the_class_has_a_line_for_each_run(tmp_path):
    table = tmp_path / "class.csv"
    for name, bits in (("a-2-5", "1.1"), ("שלום, עולם", "2"), ("a-2-5", "1.0")):
        add_line(table, [name, bits])
    rows = list(csv.reader(table.open(encoding="utf-8")))
    assert rows[0][:2] == ["name", "kind"]
    assert rows[1:] == [["שלום, עולם", "2"], ["a-2-5", "1.0"]]
    saved_by_a_spreadsheet = table.read_text(encoding="utf-8").replace(",", ";")
    table.write_text(saved_by_a_spreadsheet, encoding="utf-8")
    add_line(table, ["b", "3"])
    assert list(csv.reader(table.open(encoding="utf-8")))[1:] == [["b", "3"]]
    assert (tmp_path / "class.other-1.csv").read_text(encoding="utf-8") == saved_by_a_spreadsheet


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"depth": 0}, "depth is 0, but it must be a whole number from 1 to 8"),
        ({"depth": 2.0}, "depth is 2.0, but it must be a whole number"),
        ({"minutes": -1}, "minutes is -1, but it must be a number of minutes above 0"),
        ({"source": "nothing.txt"}, "no such file or folder"),
    ],
)
def test_a_bad_call_is_refused_before_anything_is_written(arguments, says, tmp_path, unchecked):
    with pytest.raises(ValueError, match=says):
        own(**{"source": "stories"} | arguments, folder=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "שלום.txt"  # a name and a text from right to left
    lines = (f"הילד פותח את החלון, ואז {i * i} ציפורים מסתכלות החוצה." for i in range(400))
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def made(text, tmp_path_factory):
    told = []
    folder = tmp_path_factory.mktemp("made")
    return own(text, 1, MINUTES, folder, told.append), told


@pytest.mark.slow
def test_a_text_becomes_all_that_was_promised(made, text):
    model, told = made
    assert model.plan.steps == LEAST_STEPS and len(model.plan.pilots) == 2
    assert "stands letter for letter" in told[1] and "Expected: " in told[2]
    low, high = model.bits[1:]
    assert low < model.bits[0] < high < model.plan.pilots[0][1] and model.score is None
    assert {one.name for one in model.folder.iterdir()} == {
        *("README.md", "model", "page.html", "plan.json", "run.safetensors")
    }
    library = from_pretrained(model.folder / "model")
    ids = torch.tensor([model.tokenizer.encode("הילד פותח את")])
    torch.testing.assert_close(library(ids), model.model(ids), atol=1e-4, rtol=1e-4)
    card = (model.folder / "README.md").read_text(encoding="utf-8")
    assert f"{digits(model.bits[0])} bits" in card and told[1] in card
    (row,) = csv.DictReader((model.folder.parent / "class.csv").open(encoding="utf-8"))
    assert row["name"] == model.folder.name == f"שלום-1-{MINUTES:g}"
    assert float(row["low"]) <= float(row["reached"]) <= float(row["high"])


@pytest.mark.slow
def test_interrupted_and_called_again_it_comes_to_the_same(made, text, tmp_path, monkeypatch):
    model, _ = made
    folder = tmp_path / model.folder.name
    folder.mkdir()
    shutil.copy(model.folder / "plan.json", folder)  # the speed that was measured is in there
    told = []

    def press(line):
        told.append(line)
        if line.startswith("step 20"):
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(TrainingInterrupted):
        own(text, 1, MINUTES, tmp_path, press)
    assert "Nothing is lost" in told[-1] and not (folder / "README.md").exists()
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(sys.modules[own.__module__], "measure", lambda *_: press("step 20"))
        own(text, 1, MINUTES, tmp_path, told.append)
    assert "Nothing is lost" in told[-1] and not (folder / "README.md").exists()
    again = own(text, 1, MINUTES, tmp_path, told.append)
    assert again.bits == model.bits and again.plan == model.plan
    for name, weight in model.model.state_dict().items():
        assert torch.equal(weight, again.model.state_dict()[name]), name
    text = tmp_path / "other" / text.name  # other material of the same name
    text.parent.mkdir()
    text.write_text("Another text. " * 1000, encoding="utf-8")
    before = {one: one.read_bytes() for one in folder.iterdir() if one.is_file()}
    with pytest.raises(ValueError, match="holds a run on other material of this name"):
        own(text, 1, MINUTES, tmp_path, told.append)
    assert before == {one: one.read_bytes() for one in before}


@pytest.mark.slow
def test_pairs_become_a_translator_that_leaves_as_a_marian(tmp_path, monkeypatch):
    replace, told = os.replace, []

    def locked(old, new):
        if new.name == "class.csv":
            raise PermissionError(errno.EACCES, "Permission denied")
        replace(old, new)

    monkeypatch.setattr(os, "replace", locked)
    rows = (f"I see {i} birds .\tich sehe {i} Vögel ." for i in range(200))
    (tmp_path / "birds.tsv").write_text("\n".join(rows), encoding="utf-8")
    model = own(tmp_path / "birds.tsv", 1, MINUTES, tmp_path / "mine", told.append)
    assert "The model is whole, but not in the table: " in told[-2]
    assert 0 <= model.score[1] <= model.score[0] <= model.score[2] <= 100
    facts = json.loads((model.folder / "model" / "config.json").read_text())
    assert facts["model_type"] == "marian" and model.plan.passes > 4 and model.plan.dropout == 0.1
    assert "BLEU on the held-out pairs" in (model.folder / "README.md").read_text("utf-8")


def test_better_than_expected_is_not_worse_and_small_numbers_are_told():
    plan = Plan("", 1, 1.0, 64, 0.1, 1.0, 0.0, ((3, 2.0), (12, 1.0)), 0.5, 0.4, 0.6)
    outcome = {0.3: "better", 0.4: "yes", 0.6: "yes", 0.61: "worse"}
    for bits, expected in outcome.items():
        made = Own(None, None, plan, 3.0, (bits, bits, bits), None, Path("x"))
        assert made.as_expected == expected
    assert [digits(x) for x in (1.234, 0.1, 0.00123, 0.0)] == ["1.23", "0.10", "0.0012", "0.00"]
    assert (duration(28.0), duration(130.0)) == ("28 seconds", "2.2 minutes")


def test_a_damaged_plan_is_named(tmp_path):
    (tmp_path / "plan.json").write_text('{"pilots": [[1]]}')
    with pytest.raises(ValueError, match=r"plan.json is damaged \(ValueError\): move its folder"):
        kept_plan(tmp_path / "plan.json", lambda: 1 / 0)
