"""One word's residual stream, from its row in the embedding table to the last block."""

import traitlets

from transformer_lesson.explorables.in_page import FollowsText, PageExplorable


class StreamExplorer(FollowsText, PageExplorable):
    """Play one word's vector through a model: what each sub-layer adds, and what it becomes.

    Of a word that is written it also shows what would be said if the model ended there (the
    "logit lens"). Without a model it takes the trained translator that comes with the package.

    Args:
        model: any of the package's models.
        tokenizer: of its vocabulary.
        text: what the model reads, or goes on from; at most 16 tokens.
        side: whether a word is followed that is "read" or one that is "written".
        written: how many tokens it has written before the pass that is shown, at most 12.
        row: which word is followed, from 0.
        point: up to which sub-layer it has come, from 0, the embedding.
        number: which of its d_model numbers is marked, from 0.

    Raises:
        ValueError: a model without its tokenizer, or one that is too large for a page.
    """

    side = traitlets.Enum(["read", "written"], "read").tag(sync=True)
    written = traitlets.Int(5, min=0).tag(sync=True)
    row = traitlets.Int(3, min=0).tag(sync=True)
    point = traitlets.Int(0, min=0).tag(sync=True)
    number = traitlets.Int(0, min=0).tag(sync=True)
