"""A grader that can be fooled, and a leash (the KL penalty): where do you stop?"""

from pathlib import Path

import traitlets

from transformer_lesson.explorables.in_page import PageExplorable
from transformer_lesson.stored import read_stored

NOISE = 0.03
"""Shares of right answers that differ by less count as equal: each is measured on 200 answers."""

STORED = Path(__file__).with_name("leash.json")


class Leash(PageExplorable):
    """Choose a leash and when to stop; only then see how many answers were right.

    `measure_leash` stored three runs, each on five leashes. The grader gives points for right
    neighbors and for every word. A leash subtracts points for each nat by which an answer became
    likelier than under the reference model.

    Args:
        run: which of the stored runs, from 0.
        leash: which leash, from 0, the longest, which is none.
        stop: the point at which training stops; points are `every` steps apart.
        committed: for each run, by its number as text, the learner's choice [leash, stop]; the
            run's truth is shown once it is set.

    Source: Ouyang et al., "Training language models to follow instructions with human feedback"
        (2022), equation 2; Gao et al., "Scaling Laws for Reward Model Overoptimization" (2022).
    """

    leashes = traitlets.List().tag(sync=True, fact=True)
    runs = traitlets.List().tag(sync=True, fact=True)
    every = traitlets.Int().tag(sync=True, fact=True)
    noise = traitlets.Float(NOISE).tag(sync=True, fact=True)
    missing = traitlets.Unicode().tag(sync=True, fact=True)
    run = traitlets.Int(0, min=0).tag(sync=True)
    leash = traitlets.Int(0, min=0).tag(sync=True)
    stop = traitlets.Int(0, min=0).tag(sync=True)
    committed = traitlets.Dict().tag(sync=True)

    def __init__(self, **values):
        try:
            facts = read_stored(STORED, f"{__package__}.measure_leash")
        except ValueError as error:
            facts = {"leashes": [], "runs": [], "every": 0, "missing": str(error)}
        if facts["runs"]:
            values = {"stop": len(facts["runs"][0]["points"][0]) - 1, **values}
        super().__init__(**facts, **values)
