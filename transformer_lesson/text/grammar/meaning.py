"""What a sentence of the generated corpus means, before it is put into any language.

The same `Sentence` is put into English by `english.sentence` and into German by `german.sentence`.
Every `Word` that comes out names the parts of the meaning that it expresses, "main.subject.noun"
for example. Words of the two languages that name the same part translate each other: this is how
the true alignment is known.
"""

from typing import NamedTuple

from transformer_lesson.text.grammar.lexicon import (
    ADJECTIVES,
    DETERMINERS,
    NOUNS,
    PRONOUNS,
    Adjective,
    Determiner,
    Joint,
    Noun,
    Pronoun,
    Verb,
)


class Word(NamedTuple):
    """One word of a sentence, and the parts of the meaning that it expresses."""

    text: str
    parts: tuple[str, ...]


class NounPhrase(NamedTuple):
    """A noun with determiner and adjective: "the dog", "two old chairs"; `phrase` builds one."""

    determiner: Determiner
    adjective: Adjective | None
    noun: Noun
    plural: bool


class Clause(NamedTuple):
    """Who does what, to whom; `adjective` is what the subject is said to be."""

    subject: NounPhrase | Pronoun
    verb: Verb
    object: NounPhrase | Pronoun | None = None
    adjective: Adjective | None = None
    negated: bool = False


class Sentence(NamedTuple):
    """A main clause, perhaps with an adverb in front, perhaps joined to another clause."""

    main: Clause
    adverb: str = ""
    joint: Joint | None = None
    other: Clause | None = None


_NOUNS = {form: noun for noun in NOUNS.values() for form in noun[:2] if form}
_DETERMINERS = {form: word for word in DETERMINERS.values() for form in word[:2]}
_DETERMINERS |= {"": DETERMINERS[""], "an": DETERMINERS["a"]}


def phrase(text: str) -> NounPhrase | Pronoun:
    """The meaning of English words: `phrase("the old dogs")`, `phrase("milk")`, `phrase("she")`.

    Raises:
        ValueError: the text is not made of a determiner, an adjective and a noun of the lexicon.
    """
    if text in PRONOUNS:
        return PRONOUNS[text]
    *before, last = text.split() or [""]
    adjective = ADJECTIVES[before.pop()] if before and before[-1] in ADJECTIVES else None
    determiner, noun = _DETERMINERS.get(" ".join(before)), _NOUNS.get(last)
    if determiner is None or noun is None:
        raise ValueError(
            f"A phrase is a pronoun, or a noun after a determiner and an adjective if it has them; "
            f"got {text!r}: use words of the lexicon."
        )
    return NounPhrase(determiner, adjective, noun, last == noun.english_plural)


def is_indefinite(phrase: NounPhrase | Pronoun | None) -> bool:
    """Whether German negates it with "kein": it begins with "a", or has no determiner."""
    return isinstance(phrase, NounPhrase) and phrase.determiner.english in ("a", "")


def can_be_negated(clause: Clause) -> bool:
    """Whether "not" has one meaning and one place in both languages.

    "every dog does not sleep" may mean two things, and "nicht jeden Hund" has "nicht" elsewhere:
    such clauses are left out.
    """
    subject, object = (
        phrase.determiner.english if isinstance(phrase, NounPhrase) else ""
        for phrase in (clause.subject, clause.object)
    )
    counted = ("no", "every", "two", "three", "many", "some")
    return subject not in ("no", "every") and object not in counted
