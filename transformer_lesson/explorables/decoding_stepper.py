"""Step through decoding: the model's probabilities, the strategy's choice, the cache."""

import torch
import traitlets
from torch import nn

from transformer_lesson.explorables.in_page import (
    PageExplorable,
    ReadsTranslator,
    Text,
    own_weights,
)
from transformer_lesson.text.tokenizers import Tokenizer

TEXT = "When two big mice do not like teachers, our mouse carries a red apple."


class DecodingStepper(ReadsTranslator, PageExplorable):
    """Watch a model choose token after token, by any strategy.

    Args:
        model: an encoder-decoder or decoder-only model; by default the trained translator that
            comes with the package.
        tokenizer: the model's.
        text: the source, or the prompt to continue.
        max_new_tokens: most tokens to write.
        strategy: "greedy", "sample" or "beam".
        temperature, top_k, top_p, seed: of sampling; a `top_k` of 0 and a `top_p` of 1 are off.
            The page has its own random numbers: the same seed gives a different text in `generate`.
        width: of the beam.
        step: from 1, clipped to the last.

    Raises:
        ValueError: a model without its tokenizer, one that is too large for a page or whose last
            part was replaced, or `max_new_tokens` under 1.
    """

    text = Text(TEXT).tag(sync=True)
    strategy = traitlets.Enum(["greedy", "sample", "beam"], "sample").tag(sync=True)
    temperature = traitlets.Float(0.7, min=0.1, max=5.0).tag(sync=True)
    top_k = traitlets.Int(8, min=0).tag(sync=True)
    top_p = traitlets.Float(0.9, min=0.05, max=1.0).tag(sync=True)
    seed = traitlets.Int(0, min=0, max=20).tag(sync=True)
    width = traitlets.Int(3, min=1, max=5).tag(sync=True)
    step = traitlets.Int(11, min=1).tag(sync=True)
    max_new_tokens = traitlets.Int(20).tag(sync=True, fact=True)
    end = traitlets.Unicode().tag(sync=True, fact=True)

    def __init__(
        self,
        model: nn.Module | None = None,
        tokenizer: Tokenizer | None = None,
        text: str = TEXT,
        max_new_tokens: int = 20,
        **values,
    ):
        if max_new_tokens < 1:
            raise ValueError(f"max_new_tokens is {max_new_tokens}, but it must be at least 1.")
        if weights := own_weights(model, tokenizer):
            values |= {"weights": weights, "source_words": [], "end": _end_of(model)}
        super().__init__(text=text, max_new_tokens=max_new_tokens, **values)


def _end_of(model: nn.Module) -> str:
    """Return what a model does to its logits at the end, "" for nothing.

    Lesson 14 puts a softmax there; a page, which only gets weights, has to be told.
    """
    logits = torch.tensor([[[1.0, 2.0, 4.0]]])
    result = model.logits(logits)
    for name, expected in {"": logits, "softmax": logits.softmax(dim=-1)}.items():
        if torch.equal(result, expected):
            return name
    raise ValueError(
        f"the model's last part is a {type(model.logits).__name__}, which a page cannot repeat: "
        "pass a model as the package builds it."
    )
