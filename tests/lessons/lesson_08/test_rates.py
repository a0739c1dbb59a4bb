"""What was measured at several rates is complete, and its figure shows every run."""

from transformer_lesson.lessons.lesson_08 import measure_rates, rates
from transformer_lesson.lessons.lesson_08.rates import Run


def test_every_run_is_stored_once():
    planned = [tuple(run.values()) for run in measure_rates.runs()]
    found = [run[:-1] for run in rates.stored()]
    assert sorted(found) == sorted(planned)


def test_the_best_rate_has_the_lowest_mean():
    runs = [Run(4, 32, 0, rate, seed, loss) for rate, seed, loss in MADE_UP]
    assert rates.best(runs) == (0.003, [2.0, 3.0])
    axes = rates.drawn("A title", {"one": runs, "other": runs[:2]}).axes[0]
    assert [len(line.get_xdata()) for line in axes.lines] == [2, 4, 1, 2]
    one, other = ({*line.get_xdata()} for line in axes.lines[1::2])  # the dots
    assert not one & other and max(one) < 1.1 * 0.003  # side by side, and near their rate


MADE_UP = ((0.001, 0, 3.0), (0.001, 1, 3.5), (0.003, 1, 3.0), (0.003, 0, 2.0))
