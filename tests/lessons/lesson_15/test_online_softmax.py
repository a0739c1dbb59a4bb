"""A softmax in blocks, in the page: every number against the package's and PyTorch's."""

import pytest
import torch

from tests.explorables.shown import assert_agree, assert_refused
from transformer_lesson.explorables import OnlineSoftmax
from transformer_lesson.model.attention_in_blocks import online_softmax

ROWS = ([1, 3, 4, 2, 0, 6, 5, 3], [-10, 9, 10, -3, 0, 10, 10, 2], [7, 3, 4, 2, 0, 6, 5, 3])


def kept(scores, carried, block: int, step: int) -> list[tuple[float, ...]]:
    """Largest, sum and weighted sum before the first block and after each, by the package."""
    s, v = (torch.tensor(one, dtype=torch.float64) for one in (scores, carried))
    state = torch.tensor([-torch.inf], dtype=torch.float64), *torch.zeros(2, 1).double()
    state, all_states = (*state[:2], state[2][:, None]), []
    for start in range(0, block * step, block):
        all_states.append(state)
        state = online_softmax(
            *state, s[None, start : start + block], v[start : start + block, None]
        )
    return [tuple(one.item() for one in state) for state in [*all_states, state]]


@pytest.mark.parametrize("block", [1, 2, 3, 8])
def test_after_each_block_all_that_is_kept_is_the_packages_and_right(show, block):
    explorable = OnlineSoftmax(block=block)
    page, carried = show(explorable), torch.tensor(explorable.carried).double()
    cases = [(row, step) for row in ROWS for step in range(1, -(-len(row) // block) + 1)]
    shown = page.states([{"scores": row, "step": step} for row, step in cases])
    for (row, step), one in zip(cases, shown, strict=True):
        end, s = min(block * step, len(row)), torch.tensor(row).double()
        m, total, output = kept(row, explorable.carried, block, step)[-1]
        right = (s[:end].softmax(0) @ carried[:end]).item()
        assert output / total == pytest.approx(right)
        counts = (s[:end] - m).exp().tolist()
        wanted = [f"key {i + 1} counts {weight:.3f}" for i, weight in enumerate(counts)]
        assert_agree([text for text in one["told"] if " counts " in text], wanted)
        largest, sums, weighted, out, at_once = (
            text.split(" ")[-1] for text in one["told"] if text.startswith(HEADS)
        )
        assert float(largest.replace("−", "-")) == m
        assert_agree(
            [sums, weighted, out, at_once], [f"{total:.3f}", *map(TWO, (output, right, right))]
        )


HEADS = ("largest score m", "sum ℓ", "weighted sum o", "o / ℓ", "softmax of")
TWO = "{:.2f}".format


def test_without_shrinking_another_number_comes_out(show):
    explorable = OnlineSoftmax(step=4, shrinks=False)
    page = show(explorable)
    s, v = torch.tensor(ROWS[0]).double(), torch.tensor(explorable.carried).double()
    weights = torch.cat([(s[i : i + 2] - s[: i + 2].max()).exp() for i in range(0, 8, 2)])
    wrong, right = (weights @ v / weights.sum()).item(), (s.softmax(0) @ v).item()
    assert_agree(
        [page.title], [f"Without shrinking {wrong:.2f} comes out, and it should be {right:.2f}"]
    )
    page.set(shrinks=True)
    assert page.title == "Block 4 has no larger score: nothing shrinks"


def test_a_keys_score_is_chosen_and_changed_and_wrong_ones_are_refused(show):
    page = show(OnlineSoftmax())
    page.click("key 6: score 6, carries 10, not read yet")
    page.page.get_by_label("Score of key 6").fill("-3")
    assert page.get("scores") == [1, 3, 4, 2, 0, -3, 5, 3] and page.get("key") == 5
    assert_refused("There are 3 scores and 2 carried", OnlineSoftmax, [1, 2, 3], [1, 2])
    assert_refused("A score is nan: give scores", OnlineSoftmax, [1, float("nan")], [1, 2])
    assert_refused("A key carries inf: give finite", OnlineSoftmax, [1, 2], [1, float("inf")])
