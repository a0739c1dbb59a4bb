"""The whole forward pass on one screen, from a typed text to the next token."""

import traitlets

from transformer_lesson.explorables.in_page import FollowsText, PageExplorable


class ModelFlow(FollowsText, PageExplorable):
    """Follow words through a model: who looks at whom, every number, and what it was made of.

    Without a model it takes the trained translator that comes with the package.

    Args:
        model: any of the package's models.
        tokenizer: of its vocabulary.
        text: what the model reads, or goes on from; at most 16 tokens.
        written: how many tokens it has written before the pass that is shown, at most 12.
        step: the quantity that is opened, from 0, in the order of computation.
        head, row, number: what is looked at in it, from 0; past the last one it is the last.

    Raises:
        ValueError: a model without its tokenizer, or one that is too large for a page.
    """

    written = traitlets.Int(2, min=0).tag(sync=True)
    step = traitlets.Int(57, min=0).tag(sync=True)
    head = traitlets.Int(5, min=0).tag(sync=True)
    row = traitlets.Int(2, min=0).tag(sync=True)
    number = traitlets.Int(2, min=0).tag(sync=True)
