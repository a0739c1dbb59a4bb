"""A class's gain: Hake's formula, whose answers count, and an interval that holds what it says."""

import csv
import json

import numpy as np
import pytest

from transformer_lesson.exercises.engine.inventory import asked
from transformer_lesson.exercises.engine.progress import FORMAT
from transformer_lesson.grading import class_gain
from transformer_lesson.grading.class_gain import interval, normalized_gain, write_gains


def progress(**right: int | None) -> str:
    """A progress file with so many right answers, or with none given if it is `None`."""
    predicted = {}
    for when, number in right.items():
        for i, item in enumerate(asked(when) if number is not None else ()):
            wrong = next(option for option in item.options if not option.right)
            predicted[f"{when}.{item.id}"] = {"chose": (item.answer if i < number else wrong).text}
    return json.dumps({"format": FORMAT, "passed": {}, "predicted": predicted})


def read(folder):
    with (folder / "gains.csv").open(encoding="utf-8-sig", newline="") as file:
        return {row["topic"]: row for row in csv.DictReader(file)}


def test_a_class_gains_what_hake_says_and_who_missed_one_of_the_two_is_left_out(tmp_path):
    files = {
        "anna/my_progress.json": progress(before=2, after=30),
        "berta/work/my_progress.json": progress(before=4, after=0),
        "carl.json": progress(before=10, after=None),  # has not come to the end
        "dora.json": progress(before=None, after=30),
        "emil/my_progress.json": "{",
        "fritz/.earlier.txt": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    said = write_gains(tmp_path)
    assert "2 of 4 answered both times, gain 0.29" in said  # (0.5 - 0.3) / (1 - 0.3)
    assert "unreadable: emil/my_progress.json" in said
    rows = read(tmp_path)
    assert len(rows) == 11
    row = rows["all ten asked twice"]
    counts = [row[name] for name in ("students", "before", "after", "low")]
    assert counts == ["2", "0.30", "0.50", ""]
    assert rows["tokens"]["gain"] == ""  # both knew it before: nothing could be gained
    assert rows["attention"]["mistake"].startswith("scaled_dot_product_attention: keys_as_values: ")
    assert (tmp_path / "emil/my_progress.json").read_text() == "{"  # nothing of theirs is renamed
    before = (tmp_path / "gains.csv").read_bytes()
    assert write_gains(tmp_path) == said and (tmp_path / "gains.csv").read_bytes() == before
    loss = tmp_path / "a loss"
    loss.mkdir()
    for name in "abcdefgh":
        text = progress(before=8, after=6)  # three of these six are asked twice
        (loss / f"{name}.json").write_text(text, encoding="utf-8")
    (loss / "=1+1.json").write_text("[]")
    assert "gain -2.50 (-2.50 to -2.50); unreadable: '=1+1.json." in write_gains(loss)
    assert read(loss)["all ten asked twice"]["gain"] == "-2.50"


@pytest.mark.slow
def test_the_interval_holds_the_true_gain_about_as_often_as_it_says(monkeypatch):
    monkeypatch.setattr(class_gain, "DRAWS", 500)
    draw, held = np.random.default_rng(1), 0
    for _ in range(200):  # classes of 20, who know 0.3 before and 0.72 after: a gain of 0.6
        able = draw.normal(0, 0.1, 20)
        before, after = (draw.binomial(10, np.clip(p + able, 0, 1)) / 10 for p in (0.3, 0.72))
        low, high = interval(before, after)
        held += low <= 0.6 <= high
    assert normalized_gain(np.array([0.0, 0.5]), np.array([0.5, 1.0])) == pytest.approx(2 / 3)
    assert np.isnan(normalized_gain(np.ones(3), np.ones(3)))
    assert 0.88 <= held / 200 <= 0.98
    assert np.isnan(interval(before[:7], after[:7])).all()
