"""Lesson 17: what makes a control, and how often a rule of thumb is wrong.

What `own` makes of a learner's material is not checked, nor is a learner's claim: they have no
right answer.
"""

from collections.abc import Callable, Sequence
from itertools import combinations_with_replacement, permutations, product
from statistics import fmean

from transformer_lesson.exercises.engine.choosing import choose
from transformer_lesson.exercises.engine.specification import Draw, exercise

BELIEVED = "fall", "bell", "deep"  # the keys of `controls.BELIEVED`


def _claim_inputs(draw: Draw) -> tuple:
    """One of three claims."""
    return (draw.one_of(BELIEVED),)


def _judged(answer, believed):
    """Return what a learner's control is: one, or what is wrong with it."""
    from transformer_lesson.lessons.lesson_17 import controls  # loads all of the capstone

    return controls.judged(believed, answer(believed))


@exercise(
    reference="transformer_lesson.lessons.lesson_17.controls:control",
    make_inputs=_claim_inputs,
    trial=_judged,
    draws=len(BELIEVED),
    returns={"verdict": ""},
    passes="Each of the three is a control.",
    hints=(
        "Write down what the change brings, all of it. Strike out what is believed to help. What "
        "is left is the control's.",
        "`wsd` stays high, then falls: leave out the fall. GELU is smooth, and its curve is a "
        "special one: take another smooth one. A third block makes the model deeper and larger: "
        "make two blocks as large.",
        "`constant`; `swish`; and for the third a wider `d_ff`. A block has 49,984 parameters, and "
        "each unit of `d_ff` costs 129 a block.",
    ),
)
def control(believed):
    """Return the settings of a control for a claim."""
    fall = choose(
        {"schedule": "constant"},
        falls_too={"schedule": "linear"},
        the_fall_itself={"schedule": "wsd"},
        falls_all_along={"schedule": "cosine"},
        never_high={"schedule": "noam"},
        dropout_as_well={"schedule": "constant", "dropout": 0.1},
    )
    bell = choose(
        {"activation": "swish"},
        nearly_the_same={"activation": "gelu_tanh"},
        the_bell_itself={"activation": "gelu"},
        as_sharp={"activation": "relu"},
        gate_as_well={"activation": "swiglu"},
    )
    deep = choose(
        {"d_ff": 450},
        deeper_too={"n_layers": 4},
        the_depth_itself={"n_layers": 3},
        nothing_deeper={},
        too_small={"d_ff": 384},
        heads_as_well={"d_ff": 450, "n_heads": 8},
    )
    return {"fall": fall, "bell": bell, "deep": deep}[believed]


class Rule:
    """A rule that sees a difference in differences, or doesn't."""

    def __init__(self, says: str, sees: Callable[[list[float]], bool]):
        self.says, self.sees = says, sees

    def __call__(self, differences: Sequence[float]) -> bool:
        """Return whether it sees a difference."""
        if not hasattr(differences, "__len__"):
            raise TypeError(f"a rule takes a list of numbers, but got {differences!r}")
        return bool(self.sees([float(difference) for difference in differences]))

    def __repr__(self) -> str:
        return f"a rule: {self.says}"


RULES = (
    Rule("more than half are below 0", lambda x: sum(d < 0 for d in x) > len(x) / 2),
    Rule("all are below 0", lambda x: max(x) < 0),
    Rule("the mean is below -0.123", lambda x: fmean(x) < -0.123),
    Rule("the first one is below 0, and so is the sum", lambda x: x[0] < 0 and sum(x) < -1e-9),
    Rule("the largest is above 0.55", lambda x: max(x) > 0.55),
    Rule("the mean is above 0.234 or below -0.234", lambda x: abs(fmean(x)) > 0.234),
)


def _rule_inputs(draw: Draw) -> tuple:
    """From two to seven pairs, each time under another rule; one for which the order counts."""
    draw.sizes["pair"] = 3 if draw.small else draw.one_of((5, 3, 7, 6, 4, 2))
    differences = draw.normal("pair")
    if draw.number == 3:  # the sum is below 0, whatever their order
        differences = differences * (1 if differences.sum() < 0 else -1)
    return differences.tolist(), draw.one_of(RULES)


@exercise(
    reference="transformer_lesson.capstone.claim:false_alarms",
    make_inputs=_rule_inputs,
    draws=len(RULES),
    returns={"share": ""},
    hints=(
        "If the change did nothing, which of a pair's two losses is called the change's is an "
        "accident. What would the other choice do to that pair's difference?",
        "Each of n differences could as well have the other sign, so there are 2ⁿ lists that are "
        "as likely as yours. `itertools.product((1, -1), repeat=n)` goes through all signs.",
        "For each `signs`, ask `rule([one * sign for one, sign in zip(differences, signs)])`. "
        "Return how many say True, divided by how many you asked.",
    ),
)
def false_alarms(differences, rule):
    """Return the share of all arrangements of signs in which a rule sees a difference."""
    n = len(differences)
    signs = choose(
        [*product((1, -1), repeat=n)],
        all_or_none=[(1,) * n, (-1,) * n],
        one_at_a_time=[tuple(-1 if i == j else 1 for i in range(n)) for j in range(n)],
        as_it_is_left_out=[*product((1, -1), repeat=n)][1:],
        by_number=[*combinations_with_replacement((1, -1), n)],
        zeros=[*product((1, 0), repeat=n)],
    )
    flipped = choose(
        [[d * sign for d, sign in zip(differences, row, strict=True)] for row in signs],
        signs_alone=signs,
        orders=[*permutations(differences)],
    )
    seen = [rule(sample) for sample in flipped]
    return choose(
        sum(seen) / choose(len(seen), 2**n),
        count=sum(seen),
        divided_by_n=sum(seen) / n,
        silent=1 - sum(seen) / len(seen),
        this_one=float(rule(differences)),
    )
