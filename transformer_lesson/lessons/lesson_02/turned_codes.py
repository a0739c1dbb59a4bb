"""What two words find by position alone, once their codes are turned ahead by k words."""

import traitlets

from transformer_lesson.explorables.in_page import PageExplorable

FARTHEST = 7


class TurnedCodes(PageExplorable):
    """Turn the codes of every “the” by k words and see where the dot product is largest.

    Args:
        k: how many words ahead, from -7 to 7.
    """

    k = traitlets.Int(0, min=-FARTHEST, max=FARTHEST).tag(sync=True)
    sentences = traitlets.List(
        ["the child opens the window .", "the small child opens the old window ."]
    ).tag(sync=True, fact=True)
    d_model = traitlets.Int(128).tag(sync=True, fact=True)
    farthest = traitlets.Int(FARTHEST).tag(sync=True, fact=True)
