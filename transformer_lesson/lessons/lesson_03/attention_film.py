"""Where two words look while a model learns, step by step."""

from collections.abc import Sequence
from typing import NamedTuple

import traitlets
from jaxtyping import Float
from torch import Tensor

from transformer_lesson.explorables.in_page import PageExplorable
from transformer_lesson.files import printable

MOST_WORDS = 10


class Frame(NamedTuple):
    """A model after so many steps of its training.

    Args:
        step: steps made, from 0.
        loss: on the batch of the next step, in nats.
        right: share of right answers, from 0 to 1.
        weights: where each word of the sentence looks.
    """

    step: int
    loss: float
    right: float
    weights: Float[Tensor, "query key"]


class AttentionFilm(PageExplorable):
    """Scrub through a training run and watch where two words of one sentence look.

    Args:
        words: the sentence, at most 10 words.
        asking: places in it of the two words that look.
        frames: in the order of their steps.
        number: the frame shown, from 0, clipped to the last.

    Raises:
        ValueError: too many words, a place outside the sentence, or weights that do not fit it.
    """

    words = traitlets.List().tag(sync=True, fact=True)
    asking = traitlets.List().tag(sync=True, fact=True)
    frames = traitlets.List().tag(sync=True, fact=True)
    number = traitlets.Int(0, min=0).tag(sync=True)

    def __init__(
        self,
        words: Sequence[str] = (),
        asking: Sequence[int] = (),
        frames: Sequence[Frame] = (),
        **values,
    ):
        n = len(words)
        if n > MOST_WORDS:
            raise ValueError(f"the sentence has {n} words: the picture has room for {MOST_WORDS}.")
        if any(not 0 <= place < n for place in asking) or (frames and len(asking) != 2):
            raise ValueError(f"asking is {list(asking)}: give two places from 0 to {n - 1}.")
        for frame in frames:
            if tuple(frame.weights.shape) != (n, n):
                raise ValueError(
                    f"weights of shape {tuple(frame.weights.shape)} do not fit {n} words: their "
                    "shape is (query, key)."
                )
        sent = [
            {
                "step": frame.step,
                "loss": round(float(frame.loss), 4),
                "right": round(float(frame.right), 4),
                "weights": [
                    [round(weight, 4) for weight in frame.weights[place].tolist()]
                    for place in asking
                ],
            }
            for frame in frames
        ]
        super().__init__(
            words=[printable(word, 30) for word in words],
            asking=[int(place) for place in asking],
            frames=sent,
            **values,
        )
