"""A compute budget on the map of a scaling law: how large a model, how much text?"""

import traitlets

from transformer_lesson.explorables.in_page import PageExplorable
from transformer_lesson.lessons.lesson_15.scaling_law import stored
from transformer_lesson.training.scaling import PUBLISHED, REFITTED, ScalingLaw, fit_scaling_law

EXPONENTS = [step / 20 for step in range(4, 21)]
LAWS = ("lesson 15’s", "as printed in 2022", "fitted again in 2024")
MODELS = [
    ["GPT-3", 175e9, 300e9],
    ["Gopher", 280e9, 300e9],
    ["Chinchilla", 70e9, 1.4e12],
    ["Llama 3 70B", 69.5e9, 15e12],
    ["SmolLM2-135M", 0.134e9, 2e12],
    ["Qwen3-0.6B", 0.6e9, 36e12],
]
"""Weights and tokens: Hoffmann and others (2022), table 1; Meta (2024); Allal and others (2025);
Qwen Team (2025)."""


class BudgetExplorer(PageExplorable):
    """Spend 6 N D operations on a large model or on much text, and see the loss a law predicts.

    Args:
        own: the law of lesson 15; by default fitted to the stored runs.
        law: its index in `LAWS`.
        spend: the budget, a step of 40 on a logarithmic scale: from 10^9.5 to 10^11.5 operations
            on the first law's map, from 10^20 to 10^26 on that of the others.
        size: of the model, a step of 60: from 10^3 to 10^6 weights, or from 10^8 to 10^13.

    Raises:
        ValueError: the stored runs are missing or damaged.

    Source: Hoffmann and others, "Training Compute-Optimal Large Language Models" (2022), eq. 2
        to 4; the refit: Besiroglu and others (2024), table 1.
    """

    laws = traitlets.List().tag(sync=True, fact=True)
    law = traitlets.Enum((0, 1, 2), 2).tag(sync=True)
    spend = traitlets.Int(25, min=0, max=40).tag(sync=True)
    size = traitlets.Int(42, min=0, max=60).tag(sync=True)

    def __init__(self, own: ScalingLaw | None = None, **values):
        runs = stored()
        columns = ([getattr(run, name) for run in runs.grid] for name in ("size", "tokens", "loss"))
        own = own or ScalingLaw(*fit_scaling_law(*columns, EXPONENTS))
        means = {}
        for run in [*runs.grid, *runs.held_out]:
            means.setdefault((run.size, run.tokens), []).append(run.loss)
        known = {(run.size, run.tokens) for run in runs.grid}
        points = [
            ["fitted" if cell in known else "not fitted", *cell, sum(losses) / len(losses)]
            for cell, losses in means.items()
        ]
        laws = [
            {"name": name, **law._asdict(), "points": [points, MODELS, MODELS][i]}
            for i, (name, law) in enumerate(zip(LAWS, (own, PUBLISHED, REFITTED), strict=True))
        ]
        super().__init__(laws=laws, **values)
