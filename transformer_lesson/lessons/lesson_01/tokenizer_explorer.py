"""One text as words, characters and byte pairs, one below the other."""

import traitlets

from transformer_lesson.caching import copied
from transformer_lesson.explorables.in_page import PageExplorable, Text
from transformer_lesson.text import menus
from transformer_lesson.text.tokenizers import (
    BytePairTokenizer,
    CharacterTokenizer,
    WordTokenizer,
)

SMALLEST, LARGEST = 260, 2000
"""Vocabulary sizes of the byte-pair tokenizer; the smallest has no merge."""
MAX_CHARACTERS = 150
ALL_STEPS = MAX_CHARACTERS * 4  # more joins than any such text has bytes


@copied
def trained() -> dict[str, str]:
    """Return three tokenizers as JSON, trained on JupyterLab's English menus."""
    texts = [pair.source for pair in menus.pairs()]
    return {
        "words": WordTokenizer.train(texts).to_json(),
        "characters": CharacterTokenizer.train(texts).to_json(),
        "byte pairs": BytePairTokenizer.train(texts, LARGEST).to_json(),
    }


class TokenizerExplorer(PageExplorable):
    """Type a text and see its tokens and their ids in three tokenizers.

    Args:
        text: at most `MAX_CHARACTERS` characters are drawn.
        bpe_size: vocabulary size of the byte-pair tokenizer, from 260 to 2,000.
        step: how many of the merges that this text needs have been made, clipped to all.
    """

    text = Text().tag(sync=True)
    bpe_size = traitlets.Int(1000, min=SMALLEST, max=LARGEST).tag(sync=True)
    step = traitlets.Int(ALL_STEPS, min=0).tag(sync=True)
    most = traitlets.Int(MAX_CHARACTERS).tag(sync=True, fact=True)
    sizes = traitlets.List([SMALLEST, LARGEST]).tag(sync=True, fact=True)
    tokenizers = traitlets.Dict().tag(sync=True, fact=True)

    def __init__(
        self, text: str = "Restart the unbelievable kernel…", bpe_size: int = 1000, **values
    ):
        super().__init__(text=text, bpe_size=bpe_size, tokenizers=trained(), **values)
