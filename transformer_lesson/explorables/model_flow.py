"""The whole forward pass: the next word at one look, and a tour of how it comes about."""

import traitlets

from transformer_lesson.explorables.in_page import FollowsText, PageExplorable


class ModelFlow(FollowsText, PageExplorable):
    """Follow words through a model, from the text that it reads to the word that comes next.

    Args:
        model: any of the package's models; by default the trained translator that comes with it.
        tokenizer: the model's.
        text: what the model reads, or continues; at most 16 tokens.
        written: how many tokens the model has written before the pass shown, at most 12.
        stop: of the tour: 0 the whole, which Play and Step compute part by part, 1 words in,
            2 positions, 3 the encoder looks, 4 the decoder looks back, 5 it looks at the source,
            6 inside a block, 7 the next word.
        block, head, row: what is opened at stops 3 to 6, from 0, clipped to the last; by default
            the last block, the head that looks most clearly at another word, and the newest word
            (at stop 4 the one before), or the one that looks most clearly.
        column: the cell of that row whose numbers the formula has; by default the largest.
        stage: of that attention: 0 query, key and value, 1 scores, 2 scaled and masked, 3 shares.
        temperature, top_k, top_p: of sampling at stop 7; a `top_k` of 0 and a `top_p` of 1 are off.
        log: whether the bars at stop 7 are on a log scale.
        seed: of the draw at stop 7; at 0 nothing is drawn.
        chosen: ids that the model writes first, in place of its likeliest tokens.
        lines: `mine.lines()`, to show at each stop your own lines that compute it.

    Raises:
        ValueError: a model without its tokenizer, or one that is too large for a page.
    """

    written = traitlets.Int(2, min=0).tag(sync=True)
    stop = traitlets.Int(0, min=0).tag(sync=True)
    block = traitlets.Int(None, min=0, allow_none=True).tag(sync=True)
    head = traitlets.Int(None, min=0, allow_none=True).tag(sync=True)
    row = traitlets.Int(None, min=0, allow_none=True).tag(sync=True)
    column = traitlets.Int(None, min=0, allow_none=True).tag(sync=True)
    stage = traitlets.Int(3, min=0, max=3).tag(sync=True)
    temperature = traitlets.Float(1.0, min=0.1, max=2).tag(sync=True)
    top_k = traitlets.Int(0, min=0).tag(sync=True)
    top_p = traitlets.Float(1.0, min=0.0, max=1.0).tag(sync=True)
    log = traitlets.Bool(False).tag(sync=True)
    seed = traitlets.Int(0, min=0).tag(sync=True)
    chosen = traitlets.List(traitlets.Int(min=0)).tag(sync=True)
    lines = traitlets.List().tag(sync=True, fact=True)
