"""The whole forward pass on one screen, from a typed text to the next token."""

import traitlets

from transformer_lesson.explorables.in_page import FollowsText, PageExplorable


class ModelFlow(FollowsText, PageExplorable):
    """Follow words through a model: who looks at whom, every number, and how it was computed.

    Args:
        model: any of the package's models; by default the trained translator that comes with it.
        tokenizer: the model's.
        text: what the model reads, or continues; at most 16 tokens.
        written: how many tokens the model has written before the pass shown, at most 12.
        step: the opened quantity, from 0, in the order of computation.
        head, row, number: the selection within it, from 0, clipped to the last.

    Raises:
        ValueError: a model without its tokenizer, or one that is too large for a page.
    """

    written = traitlets.Int(2, min=0).tag(sync=True)
    step = traitlets.Int(57, min=0).tag(sync=True)
    head = traitlets.Int(5, min=0).tag(sync=True)
    row = traitlets.Int(2, min=0).tag(sync=True)
    number = traitlets.Int(2, min=0).tag(sync=True)
