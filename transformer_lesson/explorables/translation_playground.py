"""Type a sentence, see its translation appear, and force another word at any step."""

from collections.abc import Collection
from functools import cache

import traitlets

from transformer_lesson.checkpoints.translator import trained_translator
from transformer_lesson.explorables.in_page import (
    PageExplorable,
    ReadsTranslator,
    Text,
    own_weights,
)
from transformer_lesson.interpretability.alignment import alignment_hits
from transformer_lesson.model.transformers import EncoderDecoderTransformer
from transformer_lesson.ranking import first_largest
from transformer_lesson.text import grammar
from transformer_lesson.text.tokenizers import SPECIAL_TOKENS, WordTokenizer

SENTENCE = "The teacher says that the child opens the window."
LONGEST = 30  # words of a translation: an untrained model may never stop


class TranslationPlayground(ReadsTranslator, PageExplorable):
    """Type an English sentence, see German appear, what it attends to, and what else was likely.

    Args:
        model: a translator with one vocabulary for both languages; by default the trained one that
            comes with the package, whose vocabulary is that of `text.grammar`, showing the head
            that finds the right words most often.
        tokenizer: its `WordTokenizer`.
        sentence: the initial sentence.
        source_words: the words that the model knows in the source language; by default all of
            the tokenizer's.
        layer, head: whose cross-attention is drawn, from 0; `None` is the mean over the heads.
        word: the selected written word, from 0; past the last one, the middle one.
        shown: how many words have been written so far.
        forced: pairs of a step, from 0, and the word to write there whatever the model says.
        simple: whether to leave out the choice of block and head.
        silent: whether the encoder's heads hand over zeros; the whole translation is beside it.
        counted: whether `first` can be chosen; the first word that it changes is marked.
        first: position of the first word in both languages, if `counted`; -1 adds no positions.

    Raises:
        ValueError: a model without its tokenizer, one that translates nothing or is too large for
            a page, or a damaged file of the trained translator.
    """

    sentence = Text(SENTENCE).tag(sync=True)
    layer = traitlets.Int(0, min=0).tag(sync=True)
    head = traitlets.Int(None, allow_none=True, min=0).tag(sync=True)
    word = traitlets.Int(9, min=0).tag(sync=True)
    shown = traitlets.Int(LONGEST, min=1).tag(sync=True)
    forced = traitlets.List(traitlets.Tuple(traitlets.Int(min=0), Text())).tag(sync=True)
    examples = traitlets.List().tag(sync=True, fact=True)
    closing = traitlets.Unicode().tag(sync=True, fact=True)
    simple = traitlets.Bool(False).tag(sync=True, fact=True)
    silent = traitlets.Bool(False).tag(sync=True, fact=True)
    counted = traitlets.Bool(False).tag(sync=True, fact=True)
    first = traitlets.Int(0, min=-1, max=8).tag(sync=True)

    def __init__(
        self,
        model: EncoderDecoderTransformer | None = None,
        tokenizer: WordTokenizer | None = None,
        sentence: str = SENTENCE,
        source_words: Collection[str] | None = None,
        **values,
    ):
        weights = own_weights(model, tokenizer)
        facts = _facts_of_packages() if model is None else _facts_of(model, tokenizer)
        if weights:
            facts = facts | {"weights": weights}
        if source_words is not None:
            facts = facts | {"source_words": sorted(source_words)}
        super().__init__(sentence=sentence, **(facts | values))


def _facts_of(model: EncoderDecoderTransformer, tokenizer: WordTokenizer) -> dict[str, object]:
    """Return what the page needs to know about a learner's translator."""
    if not isinstance(model, EncoderDecoderTransformer):
        raise ValueError(
            f"a {type(model).__name__} does not translate: pass an EncoderDecoderTransformer."
        )
    words = sorted(set(tokenizer.vocabulary) - set(SPECIAL_TOKENS))
    return {"source_words": words, "layer": model.config.n_layers - 1}


@cache
def _facts_of_packages() -> dict[str, object]:
    """Return the same for the package's translator, with the head that aligns words best."""
    facts = {"examples": [[pair.source, name] for name, pair in grammar.examples().items()]}
    if trained_translator():
        model, tokenizer, _ = trained_translator()
        hits = alignment_hits(model, tokenizer, list(grammar.examples().values()))
        layer, head = divmod(int(first_largest(hits.flatten())), model.config.n_heads)
        facts |= {"layer": layer, "head": head}
    return facts | {"closing": "."}
