"""One prompt, eight answers, their rewards: what GRPO makes of them, token by token."""

from pathlib import Path

import traitlets

from transformer_lesson.explorables.in_page import PageExplorable
from transformer_lesson.stored import read_stored

STAGES = ("draw", "reward", "compare", "push")

STORED = Path(__file__).with_name("group.json")


class GroupExplorer(PageExplorable):
    """Flip rewards, and see which tokens a step makes likelier.

    The answers were drawn from lesson 16's translator that half learned English word order. The
    page computes advantages and one step on the loss of `grpo_loss`. It moves the logits
    themselves, independently for each prefix of an answer; in the model all of them share weights.

    Args:
        prompt: which of the stored sentences, from 0.
        drawn: how many of the eight answers are drawn at the first stage.
        stage: 1 draws, 2 rewards, 3 compares with the group, 4 takes the step.
        flipped: answers with a flipped reward, numbered over all sentences, 8 for each.
        divided: divide advantages by the group's standard deviation, as GRPO does.
        rate: length of the step on the logits.
        answer, token: which token of which answer is selected, from 0.

    Source: Shao et al., "DeepSeekMath" (2024), section 4.1.2; without the division Liu et al.,
        "Understanding R1-Zero-Like Training: A Critical Perspective" (2025).
    """

    groups = traitlets.List().tag(sync=True, fact=True)
    missing = traitlets.Unicode().tag(sync=True, fact=True)
    prompt = traitlets.Int(0, min=0).tag(sync=True)
    stage = traitlets.Int(1, min=1, max=len(STAGES)).tag(sync=True)
    drawn = traitlets.Int(8, min=1, max=8).tag(sync=True)
    flipped = traitlets.List(traitlets.Int(min=0)).tag(sync=True)
    divided = traitlets.Bool(True).tag(sync=True)
    rate = traitlets.Float(10.0, min=0, max=40).tag(sync=True)
    answer = traitlets.Int(0, min=0).tag(sync=True)
    token = traitlets.Int(1, min=0).tag(sync=True)

    def __init__(self, **values):
        try:
            stored = read_stored(STORED, f"{__package__}.measure_group")
            groups, missing = stored["groups"], ""
        except ValueError as error:
            groups, missing = [], str(error)
        super().__init__(groups=groups, missing=missing, **values)
