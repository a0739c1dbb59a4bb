"""A generated English to German corpus: millions of short sentences, and their German is correct.

It covers three genders, nominative and accusative, articles, endings of adjectives, plurals, verb
second ("heute sieht der Hund ..."), verb final (", dass der Hund ... sieht"), separable verbs
("macht ... auf", "aufmacht") and negation ("nicht", "kein"). Words and punctuation marks are
separated by one space. German nouns have their capital letter; the first word of a sentence gets
none of its own, so that each word has one form and the vocabulary stays small.

Every word is aligned, but for the commas that German sets alone, before "dass" and "weil". One
English word may be two German ones ("opens": "macht", "auf"), and two may be one ("does" and "see":
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
