"""Explorables of a run, which have nothing to show before there is one."""

import torch

from transformer_lesson.explorables import LiveCurves, TrainingReplay
from transformer_lesson.explorables.training_replay import Snapshot


def live_curves() -> LiveCurves:
    live = LiveCurves("A model learns")
    for step in range(1, 61):
        live.add("training", step, 1 + 5 / step)
        if step % 20 == 0:
            live.add("validation", step, 0.5 + 5 / step)
            live.add("exact match", step, step / 61)
    return live


def training_replay() -> TrainingReplay:
    english, german = "the cat sees Anna .".split(), "Anna sieht die Katze .".split()
    cells = [(0, 3), (1, 2), (2, 0), (3, 1), (4, 4)]
    true = torch.zeros(5, 5)
    true[tuple(zip(*cells, strict=True))] = 1.0
    torch.manual_seed(0)
    start = torch.rand(2, 4, 5, 5).softmax(-1)
    snapshots = [
        Snapshot(
            1 + 20 * i, 4 / (1 + i), start.lerp(true, i / 8), german, english, cells,
            [*german[:i], "die"], german,
        )
        for i in range(6)
    ]  # fmt: skip
    return TrainingReplay(snapshots)
