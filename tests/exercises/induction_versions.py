"""Other right ways of writing lesson 11's exercises."""

import torch

from transformer_lesson.exercises.mistakes.induction import on_diagonal, score_by_loops, zeroed


def _masked(head_outputs, head):
    keep = torch.arange(head_outputs.size(1)) != head
    return head_outputs * keep[:, None, None]


INDUCTION_RIGHT = {
    "induction_score": [
        score_by_loops,
        lambda weights, period: on_diagonal(weights.double(), period - 1, 1),
        lambda weights, period: (
            weights[..., period:, 1:].diagonal(dim1=-2, dim2=-1).mean(dim=-1).mean(dim=0)
        ),
    ],
    "ablate_head": [
        zeroed(lambda copy, head: copy[:, head]),
        _masked,
        lambda x, head: torch.cat([x[:, :head], 0 * x[:, head : head + 1], x[:, head + 1 :]], 1),
    ],
}
