"""Meanings put into English: "a" or "an", the -s of the third person, "does not"."""

from transformer_lesson.text.grammar.lexicon import BE, Pronoun
from transformer_lesson.text.grammar.meaning import Clause, NounPhrase, Sentence, Word


def noun_phrase(phrase: NounPhrase | Pronoun, case: str, part: str) -> list[Word]:
    """Determiner, adjective, noun: "an old dog". Only pronouns show the case: "he", "him"."""
    if isinstance(phrase, Pronoun):
        text = phrase.english if case == "nominative" else phrase.english_accusative
        return [Word(text, (f"{part}.noun",))]
    noun = phrase.noun.english_plural if phrase.plural else phrase.noun.english
    words = [Word(noun, (f"{part}.noun",))]
    if phrase.adjective:
        words.insert(0, Word(phrase.adjective.english, (f"{part}.adjective",)))
    determiner = phrase.determiner
    text = determiner.english_plural if phrase.plural else determiner.english
    if text == "a" and words[0].text[0] in "aeiou":
        text = "an"
    return [Word(text, (f"{part}.determiner",)), *words] if text else words


def verb_phrase(meaning: Clause, part: str) -> list[Word]:
    """The verb: "sees", "does not see", "is not".

    "does" belongs to the same part of the meaning as "see": German says both in one word, "sieht".
    """
    verb, plural = meaning.verb, meaning.subject.plural
    finite = Word(verb.english if plural else verb.english_s, (f"{part}.verb",))
    if not meaning.negated:
        return [finite]
    negation = Word("not", (f"{part}.not",))
    if verb == BE:
        return [finite, negation]
    do = Word("do" if plural else "does", finite.parts)
    return [do, negation, Word(verb.english, finite.parts)]


def clause(meaning: Clause, part: str) -> list[Word]:
    """The parts in the order that never changes: "the woman does not buy a car"."""
    words = noun_phrase(meaning.subject, "nominative", f"{part}.subject")
    words += verb_phrase(meaning, part)
    if meaning.object:
        words += noun_phrase(meaning.object, "accusative", f"{part}.object")
    if meaning.adjective:
        words.append(Word(meaning.adjective.english, (f"{part}.adjective",)))
    return words


def sentence(meaning: Sentence) -> list[Word]:
    """The clauses joined: "today the dog sleeps .", "if the dog sleeps , the cat dances ."."""
    main, joint = clause(meaning.main, "main"), meaning.joint
    if meaning.adverb:
        main.insert(0, Word(meaning.adverb, ("adverb",)))
    if joint:
        comma = [Word(",", ("comma",))]
        other = [Word(joint.english, ("joint",)), *clause(meaning.other, "other")]
        if joint.fronted:
            main = other + comma + main
        else:
            main += comma + other if joint.english == "but" else other
    return [*main, Word(".", ("end",))]
