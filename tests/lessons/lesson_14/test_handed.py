"""The clinic in the doctor's hands: no word on the healthy program, a cause for a sick one."""

import pytest
import torch

from transformer_lesson.doctor import examine
from transformer_lesson.exercises.program import started
from transformer_lesson.lessons.lesson_14.handed import handed
from transformer_lesson.lessons.lesson_14.sick_runs import HEALTHY, source

FOUND = {
    HEALTHY: [],
    "mask added": ["sees_future"],
    "weights left out": ["optimizer_misses"],
    "padding divided by": ["evaluation_counts_padding"],
    "counted from the left": ["generate_reads_padding"],
    "sixteen texts": [],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FOUND)
def test_the_doctor_names_what_it_can_see(name, unchecked):
    assert examine(**handed(started(source(name)))).codes == FOUND[name]


def test_the_program_is_as_before_and_writes_what_is_likeliest():
    names = started(source())
    before, adam = dict(names), torch.optim.Adam
    given = handed(names)
    ids = given["batch"][:2, -8:-3]
    written = given["generate"](ids, 2)
    assert given["evaluate"]([given["batch"]]) == pytest.approx(
        given["loss"](given["batch"]).item(), abs=1e-4
    )
    assert torch.equal(written[:, :5], ids) and written.shape == (2, 7)
    assert torch.equal(written[:, 5], given["model"](ids)[:, -1].argmax(-1))
    assert names == before and torch.optim.Adam is adam
