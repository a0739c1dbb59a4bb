"""One word's residual stream, from its row in the embedding table to the last block."""

import traitlets

from transformer_lesson.explorables.in_page import FollowsText, PageExplorable


class StreamExplorer(FollowsText, PageExplorable):
    """Follow one word's vector through a model: what each sub-layer adds, and what it becomes.

    For a written word it also shows what the model would say if it ended there (the "logit lens").

    Args:
        model: any of the package's models; by default the trained translator that comes with it.
        tokenizer: the model's.
        text: what the model reads, or continues; at most 16 tokens.
        side: follow a word that is "read" or "written".
        written: how many tokens the model has written before the pass shown, at most 12.
        row: the followed word, from 0.
        point: the sub-layer it has reached, from 0, the embedding.
        number: the marked one of its d_model numbers, from 0.

    Raises:
        ValueError: a model without its tokenizer, or one that is too large for a page.
    """

    side = traitlets.Enum(["read", "written"], "read").tag(sync=True)
    written = traitlets.Int(5, min=0).tag(sync=True)
    row = traitlets.Int(3, min=0).tag(sync=True)
    point = traitlets.Int(0, min=0).tag(sync=True)
    number = traitlets.Int(0, min=0).tag(sync=True)
