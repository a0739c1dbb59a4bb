"""Attention in the trained translator over your own sentence: every head, every knob."""

import traitlets

from transformer_lesson.explorables.in_page import PageExplorable, ReadsTranslator, Text

SENTENCE = "the child opens the window ."
MOST_ADDED = 31  # at least the number of words


class AttentionExplorer(ReadsTranslator, PageExplorable):
    """Type a sentence, choose a query, and see which words it attends to and why.

    The knobs act on the chosen kind of attention in every layer, and on what the model then writes.

    Args:
        sentence: English words of the translator's vocabulary.
        attention: "encoder" (words read look at words read), "decoder" (words written look at
            words written) or "cross" (words written look at words read).
        layer, head, query: the selection, from 0, clipped to the last.
        scaled: divide by √d_head.
        temperature: also divides the scores; above 1 it evens out the weights.
        mask: "own" (as in training), "none" or "causal".
        added: how many values have been added so far, from 0, largest weight first, clipped to all.
    """

    sentence = Text(SENTENCE).tag(sync=True)
    attention = traitlets.Enum(["encoder", "decoder", "cross"], "cross").tag(sync=True)
    layer = traitlets.Int(1, min=0).tag(sync=True)
    head = traitlets.Int(5, min=0).tag(sync=True)
    query = traitlets.Int(5, min=0).tag(sync=True)
    scaled = traitlets.Bool(True).tag(sync=True)
    temperature = traitlets.Float(1.0, min=0.1, max=10.0).tag(sync=True)
    mask = traitlets.Enum(["own", "none", "causal"], "own").tag(sync=True)
    added = traitlets.Int(MOST_ADDED, min=0).tag(sync=True)

    def __init__(self, sentence: str = SENTENCE, **values):
        super().__init__(sentence=sentence, **values)
