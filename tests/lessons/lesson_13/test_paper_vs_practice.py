"""The stored training runs, in the page: nothing is shown before it is asked."""

import re
from statistics import fmean

from transformer_lesson.explorables import PaperVsPractice
from transformer_lesson.lessons.lesson_13 import since_2017
from transformer_lesson.lessons.lesson_13.paper_vs_practice import LEARNED, POINTS, in_rows
from transformer_lesson.lessons.lesson_13.since_2017 import GRID_EVERY, Setting, stored_grid

FIRST = Setting("post", 0, "xavier")


def words(setting: Setting) -> str:
    warmup = f"warm-up {setting.warmup_steps}" if setting.warmup_steps else "no warm-up"
    weights = {"xavier": "Xavier"}.get(setting.initialization, setting.initialization)
    return f"{setting.norm_position}-norm, {warmup}, {weights} weights"


def result(setting: Setting, predicted: int | None = None) -> str:
    last = [run[-1] for run in stored_grid()[setting]]
    said = "" if predicted is None else f", you said {predicted}"
    return (
        f"{words(setting)}: {sum(loss < LEARNED for loss in last)} of 3 seeds learn{said}; "
        f"loss at the end {', '.join(f'{loss:.2f}' for loss in last)}, mean {fmean(last):.2f}"
    )


def losses(setting: Setting, point: int) -> str:
    runs = stored_grid()[setting]
    return ", ".join(f"seed {seed} {run[point - 1]:.3f}" for seed, run in enumerate(runs))


def test_every_stored_loss_is_told_once_it_was_asked_for(show):
    page, right = show(PaperVsPractice()), 0
    page.set(predictions={str(setting): 2 for setting in stored_grid()})
    for setting in stored_grid():
        page.set(**setting._asdict())
        shown, expected = page.all(), result(setting, 2)
        right += ": 2 of 3" in expected
        told = [one for one in shown["told"] if one.startswith("step ")]
        steps = range(1, POINTS + 1)
        assert told == [f"step {i * GRID_EVERY}: {losses(setting, i)}" for i in steps]
        assert expected in shown["told"]
        assert shown["title"].lower() == expected.partition(" learn,")[0].lower() + " learn"
        said = expected[0].upper() + expected[1:] + ". At step 200:"
        assert shown["said"].startswith(said)
        assert {"0", "50", "100", "150", "200"} <= {*shown["written"]}  # along the axis
    assert page.said.endswith(f"12 of 12 settings measured, {right} of 12 predictions right.")


def test_nothing_is_told_of_a_setting_before_a_prediction(show):
    page = show(PaperVsPractice())
    for setting in (setting for setting in stored_grid() if setting != FIRST):
        page.set(**setting._asdict(), ranked=True)
        shown = page.all()
        assert f"{words(setting)}: not measured yet" in shown["told"]
        assert shown["title"].lower() == f"{words(setting)}: what do you expect?".lower()
        drawn = " ".join([*shown["told"], *shown["written"], shown["said"]])
        last = [f"{run[-1]:.2f}" for run in stored_grid()[setting]]
        assert not any(re.search(rf"\b{loss}", drawn) for loss in last if loss not in result(FIRST))
        asked = [one for one in shown["told"] if one.endswith("will learn")]
        assert asked == [f"{n} of 3 will learn" for n in range(4)]


def test_an_answer_shows_what_was_measured_marked_in_words_and_ranked_when_asked(show):
    page, setting = show(PaperVsPractice()), Setting("post", 20, "small")
    page.click(f"{words(setting)}: not measured yet")
    assert page.get("warmup_steps", "initialization") == [20, "small"]
    page.named("3 of 3 will learn").focus()
    page.press("Enter")
    assert page.get("predictions") == {str(FIRST): None, str(setting): 3}
    assert result(setting, 3) in page.told() and "✗ 1 of 3 learn" in page.written()
    assert page.said.endswith("2 of 12 settings measured, 0 of 1 predictions right.")
    page.set(predictions={str(FIRST): None, str(setting): 1})
    assert "✓ 1 of 3 learn" in page.written()
    assert page.said.endswith("2 of 12 settings measured, 1 of 1 predictions right.")
    three = (FIRST, Setting("pre", 20, "small"), Setting("post", 0, "small"))
    means = {one: fmean(run[-1] for run in stored_grid()[one]) for one in three}
    page.set(predictions={str(one): 3 for one in means})
    assert not any("mean" in text for text in page.written())
    page.set(ranked=True)
    written = [text for text in page.written() if "mean" in text]
    ranks = enumerate(sorted(means.values()), start=1)
    assert sorted(written) == [f"{i}. mean {mean:.2f}" for i, mean in ranks]
    best = min(means, key=means.get)
    assert page.said.endswith(f"Lowest of them: {words(best)}, mean {means[best]:.2f}.")


def test_a_replay_tells_as_many_steps_as_it_has_shown_and_a_run_that_diverged_says_so(show):
    setting = Setting("pre", 100, "small")
    page = show(PaperVsPractice(*setting, point=3))
    steps = [one for one in page.told() if one.startswith("step ")]
    assert steps == [f"step {i * GRID_EVERY}: {losses(setting, i)}" for i in (1, 2, 3)]
    assert f"At step 15: {losses(setting, 3)}." in page.said
    curves = in_rows()
    shorter = [run[: 5 * (i + 1)] for i, run in enumerate(curves[str(FIRST)])]
    own = FIRST._asdict() | {"predictions": {str(FIRST): None}, "point": POINTS}
    page.set(curves={**curves, str(FIRST): shorter}, **own)
    assert "seed 0 diverged, seed 1 diverged, seed 2 diverged" in page.said
    assert "step 50: seed 0 diverged, seed 1 3.222, seed 2 3.276" in page.told()


def test_missing_runs_say_how_they_are_made(show, monkeypatch, tmp_path):
    since_2017.stored_grid.cache_clear()
    monkeypatch.setattr(since_2017, "HERE", tmp_path)
    try:
        assert "lesson_13.measure_paper_vs_practice` makes it again" in show(PaperVsPractice()).said
    finally:
        since_2017.stored_grid.cache_clear()
