"""A generated English to German corpus: millions of short sentences in correct German.

It covers three genders, nominative and accusative, articles, adjective endings, plurals, verb
second ("heute sieht der Hund ..."), verb final (", dass der Hund ... sieht"), separable verbs
("macht ... auf", "aufmacht") and negation ("nicht", "kein"). Words and punctuation marks are
separated by one space. German nouns are capitalized; the first word of a sentence is not, so that
each word has one form and the vocabulary stays small.

Every word is aligned, except the commas that only German has, before "dass" and "weil". One English
word may be two German ones ("opens": "macht", "auf"), and two may be one ("does" and "see":
"sieht"; "not" and "a": "kein").
"""

from transformer_lesson.text.grammar.draw import (
    HELD_OUT,
    Splits,
    adjective_noun_pairs,
    examples,
    generate,
    in_both_languages,
    splits,
)
from transformer_lesson.text.grammar.lexicon import JOINTS, VERBS
from transformer_lesson.text.grammar.meaning import Clause, Sentence, phrase

__all__ = [
    "HELD_OUT",
    "JOINTS",
    "VERBS",
    "Clause",
    "Sentence",
    "Splits",
    "adjective_noun_pairs",
    "examples",
    "generate",
    "in_both_languages",
    "phrase",
    "splits",
]
