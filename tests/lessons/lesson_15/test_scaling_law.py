"""The runs that a law is fitted to, as small as they come."""

import pytest
import torch

from transformer_lesson.lessons.lesson_15 import scaling_law as experiment
from transformer_lesson.lessons.lesson_15.scaling_law import (
    batches,
    build,
    misfit_at,
    resampled,
    run,
    stored,
)
from transformer_lesson.model.parameters import count_product_weights
from transformer_lesson.training.scaling import ScalingLaw, fit_scaling_law


@pytest.mark.slow
def test_a_run_reads_what_it_says_and_learns_from_it():
    short, longer = (run(8, tokens) for tokens in (256, 12_800))
    assert (longer.d_model, longer.tokens, longer.seed) == (8, 12_800, 0)
    assert longer.size == 2 * 12 * 8**2 + 8 * experiment.texts().tokenizer.vocab_size
    assert longer.loss < short.loss - 0.3


def test_no_window_is_read_twice_and_another_seed_reads_in_another_order():
    text = torch.arange(64 * 9 + 1)
    read = [batch.inputs[0] for batch in batches(text, 64 * 8, seed=0)]
    firsts = torch.cat(read)[:, 0].tolist()
    assert len(read) == 4 and len(set(firsts)) == 8 and all(one % 64 == 0 for one in firsts)
    other = torch.cat([batch.inputs[0] for batch in batches(text, 64 * 8, seed=1)])
    assert other[:, 0].tolist() != firsts
    with pytest.raises(ValueError, match="fewer than 1,000"):
        next(batches(text, 1_000, seed=0))


def test_what_is_stored_is_the_whole_grid_of_models_that_this_code_builds():
    runs = stored()
    cells = {(d, n) for d in experiment.WIDTHS for n in experiment.TOKENS}
    assert {one[:1] + one[2:3] for one in runs.grid} == cells
    assert len(runs.grid) == 3 * len(cells) and len(runs.held_out) == 3 * len(experiment.HELD_OUT)
    for one in runs.grid:  # another Python's manual may have another character
        assert one.size == pytest.approx(count_product_weights(build(one.d_model)), rel=0.01)
    assert max(one.size for one in runs.grid) * 2 < min(one.size for one in runs.held_out)


def test_a_sample_has_runs_twice_and_leaves_some_out():
    grid = stored().grid
    sample = resampled(grid, 3)
    assert len(sample) == len(grid) and set(sample) < set(grid)
    assert sample == resampled(grid, 3) != resampled(grid, 4)


def test_the_misfit_is_that_of_the_fitted_law_and_no_pair_of_exponents_has_a_smaller_one():
    columns = [[getattr(one, name) for one in stored().grid] for name in ("size", "tokens", "loss")]
    exponents = [0.2, 0.3, 0.5]
    law = ScalingLaw(*fit_scaling_law(*columns, exponents))
    misses = [law.loss(size, tokens) - loss for size, tokens, loss in zip(*columns, strict=True)]
    tensors = [torch.tensor(one, dtype=torch.float64) for one in columns]
    misfits = [misfit_at(alpha, beta, *tensors) for alpha in exponents for beta in exponents]
    assert min(misfits) == pytest.approx(misfit_at(law.alpha, law.beta, *tensors), rel=1e-9)
    assert min(misfits) == pytest.approx((sum(one**2 for one in misses) / len(misses)) ** 0.5)


def test_runs_on_a_law_are_missed_by_nothing():
    N, D = (
        10 ** torch.linspace(3, 6, 9, dtype=torch.float64)[order]
        for order in (range(9), [4, 0, 8, 2, 6, 1, 5, 7, 3])
    )
    assert misfit_at(0.4, 0.3, N, D, 1.5 + 40 / N**0.4 + 90 / D**0.3) < 1e-9
    with pytest.raises(ValueError, match="no weights or no tokens"):
        misfit_at(0.4, 0.3, 0 * N, D, D)
