"""Stored runs of DPO in the page: the loss of a pair and its gradient, against `dpo_loss`."""

import torch

from tests.explorables.shown import agree
from transformer_lesson.explorables import ChosenAndRejected
from transformer_lesson.training.preferences import dpo_loss


def pair_at(steps: list[dict], pair: int, beta: float) -> list[str]:
    """What the loss and its gradient are at each step, by autograd."""
    reference = [torch.tensor([one]) for one in steps[0]["pairs"][pair][:2]]
    told = []
    for k, step in enumerate(steps):
        chosen, rejected = (
            torch.tensor([one], requires_grad=True) for one in step["pairs"][pair][:2]
        )
        loss = dpo_loss(chosen, rejected, *reference, beta)
        loss.backward()
        margin = beta * ((chosen - reference[0]) - (rejected - reference[1])).item()
        told.append(
            f"this pair at step {5 * k}: margin {margin:.3f}, loss {loss.item():.3f}, "
            f"weight {-chosen.grad.item() / beta:.3f}"
        )
        torch.testing.assert_close(chosen.grad, -rejected.grad)
    return told


def test_the_loss_and_the_weight_of_each_pair_are_those_of_autograd(show):
    explorable = ChosenAndRejected()
    page = show(explorable)
    for run, pair, beta in ((0, 0, 0.1), (1, 3, 0.5), (2, 1, 0.02)):
        page.set(run=run, pair=pair, beta=beta, point=4)
        steps = explorable.runs[run]["steps"]
        agree(page.told()[-len(steps) :], pair_at(steps, pair, beta))
        source, *answers = explorable.runs[run]["pairs"][pair]
        written = " ".join(page.written())
        numbers = steps[4]["pairs"][pair]
        assert f"chosen, log P {numbers[0]:.2f} {answers[0]}" in written
        text = numbers[2]
        kinds = {answers[0]: "✓ the chosen one", answers[1]: "✗ the rejected one"}
        assert f"written, {kinds.get(text, '✗ neither of them')} {text}" in written


def test_each_step_tells_what_was_measured_and_can_be_chosen(show):
    explorable = ChosenAndRejected(run=1)
    page = show(explorable)
    for k, step in enumerate(explorable.runs[1]["steps"]):
        third = 1 - sum(step["writes"])
        numbers = [*step["log_p"], step["wins"], *step["writes"], third, step["wenn"]]
        names = ("chosen", "rejected", "pairs won", "writes chosen", "writes rejected")
        names += ("writes a third", "wenn: right")
        both = zip(names, numbers, strict=True)
        words = [f"{name} {float(f'{one:.3f}'):g}" for name, one in both]
        assert page.told()[k] == f"step {5 * k}: " + ", ".join(words)
    page.named(page.told()[3]).click()
    assert page.get("point") == 3 and page.title.startswith("Step 15: 0.82 of pairs won, 0.25 of")


def test_all_pairs_are_won_and_the_chosen_answer_is_hardly_written():
    for run in ChosenAndRejected().runs:
        first, last = run["steps"][0], run["steps"][-1]
        assert first["wins"] < 0.1 and last["wins"] > 0.99 and last["writes"][1] < 0.02
        assert last["writes"][0] < 0.3  # seven answers of ten or more are a third one
        assert first["wenn"] > 0.9 and last["wenn"] < 0.1
        likely = [step["log_p"][0] for step in run["steps"]]
        assert likely[0] < likely[-1] < max(likely)  # rises, then falls
