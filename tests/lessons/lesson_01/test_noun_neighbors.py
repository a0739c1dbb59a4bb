"""The nearest nouns of the trained table, in the page as the package computes them."""

import pytest
import torch.nn.functional as F

from transformer_lesson.checkpoints.translator import trained_translator
from transformer_lesson.explorables import NounNeighbors
from transformer_lesson.text.grammar.lexicon import NOUNS

MARKS = {
    "kind": lambda noun, plural: noun.kinds.split()[0],
    "gender": lambda noun, plural: noun.article,
    "number": lambda noun, plural: plural,
}


@pytest.mark.parametrize("mark", MARKS)
def test_it_tells_the_nearest_of_all_forms_and_how_many_share_the_mark(show, mark):
    forms = {noun.english: (noun, False) for noun in NOUNS.values()}
    forms |= {noun.english_plural: (noun, True) for noun in NOUNS.values() if noun.english_plural}
    translator, tokenizer, _ = trained_translator()
    table = translator.source_embedding.weight.detach()
    rows = {word: table[tokenizer.vocabulary[word]] for word in forms}
    page = show(NounNeighbors(mark=mark))
    for noun, plural in (("child", False), ("child", True), ("queen", True), ("milk", True)):
        page.set(noun=noun, plural=plural)
        shown = NOUNS[noun].english_plural if plural else noun
        shown = shown or noun  # there is one milk only
        cosines = {word: float(F.cosine_similarity(rows[shown], rows[word], 0)) for word in forms}
        best = sorted(cosines, key=cosines.get, reverse=True)[1:6]
        share = sum(MARKS[mark](*forms[word]) == MARKS[mark](*forms[shown]) for word in best)
        named = ", ".join(f"{word} {cosines[word]:.2f}" for word in best)
        assert page.title.startswith(f"“{shown}”: {share} of its 5 nearest nouns share")
        assert page.said.endswith(f") are {named}.")


def test_a_noun_of_the_list_leads_on(show):
    page = show(NounNeighbors())
    page.named("“window”: cosine").first.click(force=True)
    assert page.title.startswith("“window”:")


def test_nothing_is_colored_before_a_choice(show):
    page = show(NounNeighbors())
    assert page.title == "“child”: what do its 5 nearest nouns share with it?"
    assert not [text for text in page.written() if text[0] in "✓✗"]
