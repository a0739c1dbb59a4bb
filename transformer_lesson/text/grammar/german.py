"""Meanings put into German: endings, "nicht" or "kein", and the place of the verb.

Endings need one table. It shows how gender and case are marked, and a plural of any gender: d-er
Mann, dies-er Mann, ein alt-er Mann. They are marked once: a determiner that has the ending leaves
the adjective a weak one, "-e" or "-en".
"""

from transformer_lesson.text.grammar.lexicon import ADVERBS, DETERMINERS, Determiner, Pronoun
from transformer_lesson.text.grammar.meaning import (
    Clause,
    NounPhrase,
    Sentence,
    Word,
    is_indefinite,
)

STRONG_ENDINGS = {
    "der": {"nominative": "er", "accusative": "en"},
    "die": {"nominative": "e", "accusative": "e"},
    "das": {"nominative": "es", "accusative": "es"},
    "plural": {"nominative": "e", "accusative": "e"},
}
THE = {"er": "der", "en": "den", "e": "die", "es": "das"}


def determiner_ending(determiner: Determiner, gender: str, case: str) -> str:
    """The ending that a determiner takes, "" for none: "ein Hund", "ein Kind", "zwei Hunde".

    `gender` is "der", "die", "das" or "plural".
    """
    ending = STRONG_ENDINGS[gender][case]
    bare = determiner.pattern == "ein" and (ending == "es" or ending == "er")
    return "" if bare or not determiner.pattern else ending


def adjective_ending(determiner: Determiner, gender: str, case: str) -> str:
    """Strong where the determiner shows no ending ("ein alter Hund"), otherwise weak."""
    if not determiner_ending(determiner, gender, case):
        return STRONG_ENDINGS[gender][case]
    changed = gender == "plural" or (gender == "der" and case == "accusative")
    return "en" if changed else "e"


def noun_phrase(phrase: NounPhrase | Pronoun, case: str, part: str) -> list[Word]:
    """Determiner, adjective, noun: "ein alter Hund", "den alten Hund", "alte Hunde", "ihn"."""
    if isinstance(phrase, Pronoun):
        text = phrase.german if case == "nominative" else phrase.german_accusative
        return [Word(text, (f"{part}.noun",))]
    determiner, adjective, noun, plural = phrase
    gender = "plural" if plural else noun.article
    words = []
    if determiner.german:
        ending = determiner_ending(determiner, gender, case)
        text = THE[ending] if determiner.english == "the" else determiner.german + ending
        words.append(Word(text, (f"{part}.determiner",)))
    if adjective:
        text = adjective.stem + adjective_ending(determiner, gender, case)
        words.append(Word(text, (f"{part}.adjective",)))
    text = noun.german_plural if plural else noun.german
    return [*words, Word(text, (f"{part}.noun",))]


def object_phrase(meaning: Clause, part: str) -> list[Word]:
    """The object, "kein" and "nicht": "keinen Hund", but "den Hund nicht".

    "kein" expresses two parts of the meaning, "not" and "a".
    """
    negation = (f"{part}.not",) if meaning.negated else ()
    if meaning.negated and is_indefinite(meaning.object):
        kein = meaning.object._replace(determiner=DETERMINERS["no"])
        first, *rest = noun_phrase(kein, "accusative", f"{part}.object")
        return [Word(first.text, first.parts + negation), *rest]
    words = noun_phrase(meaning.object, "accusative", f"{part}.object") if meaning.object else []
    return [*words, Word("nicht", negation)] if meaning.negated else words


def clause(meaning: Clause, part: str, order: str) -> list[Word]:
    """A clause with its verb where `order` puts it.

    - "second": subject, verb, rest: "der Hund macht die Tür auf"
    - "inverted": verb, subject, rest, after whatever comes first: "heute macht der Hund ..."
    - "final": subject, rest, verb: "dass der Hund die Tür aufmacht"
    """
    verb, verb_part = meaning.verb, (f"{part}.verb",)
    subject = noun_phrase(meaning.subject, "nominative", f"{part}.subject")
    rest = object_phrase(meaning, part)
    if meaning.adjective:
        rest.append(Word(meaning.adjective.german, (f"{part}.adjective",)))
    finite = verb.german_plural if meaning.subject.plural else verb.german
    if order == "final":
        return [*subject, *rest, Word(verb.particle + finite, verb_part)]
    if verb.particle:
        rest.append(Word(verb.particle, verb_part))
    verb_word = Word(finite, verb_part)
    return [verb_word, *subject, *rest] if order == "inverted" else [*subject, verb_word, *rest]


def sentence(meaning: Sentence) -> list[Word]:
    """The clauses joined: an adverb or a "wenn" clause in front inverts the main clause."""
    adverb, joint = meaning.adverb, meaning.joint
    fronted = joint is not None and joint.fronted
    main = clause(meaning.main, "main", "inverted" if adverb or fronted else "second")
    if adverb:
        main.insert(0, Word(ADVERBS[adverb], ("adverb",)))
    if joint:
        comma = [] if joint.german == "und" else [Word(",", ("comma",))]
        other = [Word(joint.german, ("joint",)), *clause(meaning.other, "other", joint.order)]
        main = other + comma + main if fronted else main + comma + other
    return [*main, Word(".", ("end",))]
