"""A softmax in one pass: scores are read in blocks, and sums shrink when a larger one comes."""

import math

import traitlets

from transformer_lesson.explorables.in_page import PageExplorable

SCORES, CARRIED = (1, 3, 4, 2, 0, 6, 5, 3), (10, 30, 20, 40, 50, 10, 30, 20)
MOST_KEYS = 12
"""More would not fit side by side on a phone."""


class OnlineSoftmax(PageExplorable):
    """Read a query's scores block by block, and see what is kept, what shrinks, what comes out.

    The page computes the same as `model.attention_in_blocks.online_softmax`, for one query whose
    keys have a single number each as value.

    Args:
        scores: of the keys, 2 to 12, each from -10 to 10.
        carried: each key's value, a number.
        block: how many keys are read at once; the last block may be shorter.
        step: how many blocks have been read.
        key: the key whose score the slider changes, from 0.
        shrinks: whether the sums shrink when a larger score comes, as they must.

    Raises:
        ValueError: too few or too many scores, one out of range, or not a carried number for each.

    Source: Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018), algorithm 3.
    """

    scores = traitlets.List(traitlets.CFloat(min=-10, max=10)).tag(sync=True)
    carried = traitlets.List(traitlets.CFloat()).tag(sync=True, fact=True)
    block = traitlets.Enum((1, 2, 3, 4, 8), 2).tag(sync=True)
    step = traitlets.Int(2, min=0, max=MOST_KEYS).tag(sync=True)
    key = traitlets.Int(0, min=0, max=MOST_KEYS - 1).tag(sync=True)
    shrinks = traitlets.Bool(True).tag(sync=True)

    def __init__(self, scores=SCORES, carried=CARRIED, **values):
        if not 2 <= len(scores) <= MOST_KEYS or len(scores) != len(carried):
            raise ValueError(
                f"There are {len(scores)} scores and {len(carried)} carried numbers: give 2 to "
                f"{MOST_KEYS} scores, and a number for each."
            )
        if wrong := [score for score in scores if not -10 <= score <= 10]:
            raise ValueError(f"A score is {wrong[0]}: give scores from -10 to 10.")
        if wrong := [number for number in carried if not math.isfinite(number)]:
            raise ValueError(f"A key carries {wrong[0]}: give finite numbers.")
        super().__init__(scores=list(scores), carried=list(carried), **values)
