"""Two prompts that differ, and one vector of the right run patched in: which one matters?"""

import torch
import traitlets
from torch import Tensor, nn

from transformer_lesson.explorables.in_page import (
    PageExplorable,
    ReadsTranslator,
    Text,
    bare_weights,
)

SOURCE = "the old dog sees the small cat ."
OTHERS = "a young child buys a red house ,"  # each replaces the word at its position


class PatchingGrid(ReadsTranslator, PageExplorable):
    """Type two prompts, choose an answer to watch, and see which vectors carry it.

    A click on a token replaces only that token.

    Args:
        model: decoder-only, in evaluation mode, with prompts typed as ids; by default the
            translator that comes with the package, with English sentences as prompts.
        ids: the clean prompt, shape (1, n).
        others: the id that replaces each token, shape (1, n).
        position: the token replaced at first; by default the middle one.
        answer: the token after which the answer comes, clipped to the last, which is the default.
        clean, corrupted: the prompts as texts.
        heads: patch the outputs of heads, not the residual stream.

    Raises:
        ValueError: sizes that do not fit, a model in training mode or that a page cannot run.
    """

    clean = Text(SOURCE).tag(sync=True)
    corrupted = Text().tag(sync=True)
    answer = traitlets.Int(0, min=0).tag(sync=True)
    heads = traitlets.Bool(False).tag(sync=True)
    others = traitlets.List().tag(sync=True, fact=True)

    def __init__(
        self,
        model: nn.Module | None = None,
        ids: Tensor | None = None,
        others: Tensor | None = None,
        position: int | None = None,
        answer: int | None = None,
        **values,
    ):
        words, replacements, place, after = SOURCE.split(), OTHERS.split(), 2, 0
        if model is None and (ids is not None or others is not None):
            raise ValueError(
                "ids and others are prompts of a model of your own: pass it, too; the translator "
                "reads clean='…' and corrupted='…'."
            )
        if model is not None:
            values |= {"weights": bare_weights(model), "source_words": []}
            words, replacements = _prompts(model, ids, others)
            place, after = len(words) // 2, len(words) - 1
        place = place if position is None else position
        if not 0 <= place < len(words):
            raise ValueError(f"position is {place}, but the tokens are 0 to {len(words) - 1}.")
        corrupted = [*words[:place], replacements[place], *words[place + 1 :]]
        texts = {"clean": " ".join(words), "corrupted": " ".join(corrupted)}
        answer = after if answer is None else answer
        offers = list(zip(words, replacements, strict=True))
        super().__init__(answer=answer, others=offers, **(texts | values))


def _prompts(model: nn.Module, ids: Tensor | None, others: Tensor | None) -> list[list[str]]:
    """Return the clean prompt's ids and their replacements, as texts."""
    if hasattr(model, "encoder"):
        raise ValueError(f"an {type(model).__name__} reads two texts: pass a decoder-only model.")
    for name, prompt in (("ids", ids), ("others", others)):
        if prompt is None or prompt.dim() != 2 or prompt.size(0) != 1:
            shape = None if prompt is None else tuple(prompt.shape)
            raise ValueError(f"{name} have shape {shape}, but one sentence is (1, n).")
    if ids.shape != others.shape:
        raise ValueError(
            f"{ids.size(1)} ids and {others.size(1)} others: give as many of one as of the other."
        )
    with torch.no_grad():
        model(torch.cat([ids, others]))  # raises if they are invalid
    return [[str(i) for i in prompt[0].tolist()] for prompt in (ids, others)]
