"""What DPO does to the chosen answer, the rejected one, and a third."""

from pathlib import Path

import traitlets

from transformer_lesson.explorables.in_page import PageExplorable
from transformer_lesson.stored import read_stored

STORED = Path(__file__).with_name("preference.json")


class ChosenAndRejected(PageExplorable):
    """Walk through a stored run of DPO: who wins, what is written, and what one pair weighs.

    `measure_preference` stored three runs. The page computes the loss of one pair and the weight
    of its gradient for any beta, at each step of the run, which was trained with beta 0.1.

    Args:
        run: which of the stored runs, from 0.
        point: the point of the run shown; points are `every` steps apart.
        pair: which of the stored pairs, from 0.
        beta: how much a nat of difference counts.

    Source: Rafailov et al., "Direct Preference Optimization" (2023), equation 7 and section 4. What
        else may become likelier: Razin et al., "Unintentional Unalignment: Likelihood Displacement
        in Direct Preference Optimization" (2024).
    """

    runs = traitlets.List().tag(sync=True, fact=True)
    every = traitlets.Int().tag(sync=True, fact=True)
    missing = traitlets.Unicode().tag(sync=True, fact=True)
    run = traitlets.Int(0, min=0).tag(sync=True)
    point = traitlets.Int(0, min=0).tag(sync=True)
    pair = traitlets.Int(0, min=0).tag(sync=True)
    beta = traitlets.Float(0.1, min=0.02, max=0.5).tag(sync=True)

    def __init__(self, **values):
        try:
            stored = read_stored(STORED, f"{__package__}.measure_preference")
            missing = ""
        except ValueError as error:
            stored, missing = {"runs": [], "every": 0, "beta": 0.1}, str(error)
        runs, every, beta = stored["runs"], stored["every"], stored["beta"]
        last = len(runs[0]["steps"]) - 1 if runs else 0
        values = {"beta": beta, "point": last} | values
        super().__init__(runs=runs, every=every, missing=missing, **values)
