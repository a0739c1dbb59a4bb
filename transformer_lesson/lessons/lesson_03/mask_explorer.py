"""The masks of a typed batch, each with its shape, and how they broadcast into one."""

import traitlets

from transformer_lesson.explorables.in_page import PageExplorable, Text

BATCH = "Close all tabs\nYou have unsaved changes.\nUndo"


class MaskExplorer(PageExplorable):
    """Type a batch, one sentence per line; switch its masks on and off.

    Args:
        batch: at most 5 lines of at most 10 tokens.
        sentence: whose combined mask is drawn, from 0, clipped to the last.
        padding, causal: which masks are on.
        side: where short sentences are filled up, "right" or "left".
    """

    batch = Text(BATCH).tag(sync=True)
    sentence = traitlets.Int(0, min=0).tag(sync=True)
    padding = traitlets.Bool(True).tag(sync=True)
    causal = traitlets.Bool(True).tag(sync=True)
    side = traitlets.Enum(["right", "left"], "right").tag(sync=True)

    def __init__(self, batch: str = BATCH, **values):
        super().__init__(batch=batch, **values)
