"""Choosing at random what a sentence of the generated corpus says.

Words are drawn evenly from those that fit, so that every form is frequent. Where one thing is to be
drawn more often than another, it stands in its list more than once.
"""

from functools import cache
from random import Random

from transformer_lesson.corpora.lexicon import (
    ADJECTIVES,
    ADVERBS,
    BE,
    DETERMINERS,
    JOINTS,
    NOUNS,
    PRONOUNS,
    REPORTS,
    VERBS,
    Adjective,
    Noun,
    Pronoun,
    Verb,
)
from transformer_lesson.corpora.meaning import Clause, NounPhrase, Sentence, can_be_negated

SINGULAR = "the the the a a a a my our this every".split()
PLURAL = ["the", "the", "the", "", "", "", "my", "our", "this", "two", "three", "many", "some"]
UNCOUNTED = ["the", "the", "", "", "my", "our", "this"]
JOINING = ["", "", "that", "that", "because", "because", "if", "when", "and", "but"]

THINGS_DO = [VERBS[word] for word in ("fall", "disappear", "stink", "wobble", "shine")]
SEPARABLE = [verb for verb in VERBS.values() if verb.particle]
PREDICATES = [*VERBS.values(), *SEPARABLE, *THINGS_DO, *[BE] * 6]


@cache
def fitting_nouns(kinds: str) -> tuple[Noun, ...]:
    """The nouns that are of at least one of the kinds."""
    return tuple(noun for noun in NOUNS.values() if set(noun.kinds.split()) & set(kinds.split()))


@cache
def fitting_adjectives(kinds: str) -> tuple[Adjective, ...]:
    """The adjectives that fit at least one of a noun's kinds."""
    words = [word for word in ADJECTIVES.values() if set(word.kinds.split()) & set(kinds.split())]
    return tuple(words + [word for word in words if "person" not in word.kinds])


def random_phrase(rng: Random, kinds: str, is_subject: bool = False) -> NounPhrase | Pronoun:
    """A noun of one of these kinds with what stands before it, or for a person a pronoun."""
    if "person" in kinds and rng.random() < 0.12:
        return rng.choice(list(PRONOUNS.values()))
    noun = rng.choice(fitting_nouns(kinds))
    plural = bool(noun.english_plural) and rng.random() < 0.4
    determiners = PLURAL if plural else SINGULAR if noun.english_plural else UNCOUNTED
    determiner = rng.choice([*determiners, "no"] if is_subject else determiners)
    adjectives = fitting_adjectives(noun.kinds)
    adjective = rng.choice(adjectives) if adjectives and rng.random() < 0.45 else None
    return NounPhrase(DETERMINERS[determiner], adjective, noun, plural)


def random_object(rng: Random, kinds: str, subject: NounPhrase | Pronoun) -> NounPhrase | Pronoun:
    """A phrase about somebody or something else than the subject."""
    phrase = random_phrase(rng, kinds)
    while name(phrase) == name(subject):
        phrase = random_phrase(rng, kinds)
    return phrase


def name(phrase: NounPhrase | Pronoun) -> str:
    """Who or what a phrase is about, in whatever number."""
    return phrase.english if isinstance(phrase, Pronoun) else phrase.noun.english


def random_description(rng: Random, subject: NounPhrase | Pronoun) -> Clause:
    """What somebody or something is like; its own adjective goes: no "the big dog is small"."""
    kinds = "person"
    if isinstance(subject, NounPhrase):
        subject, kinds = subject._replace(adjective=None), subject.noun.kinds
    return Clause(subject, BE, adjective=rng.choice(fitting_adjectives(kinds)))


def random_clause(rng: Random, verbs: list[Verb]) -> Clause:
    """A clause with one of these verbs, three in ten negated where they can be."""
    verb = rng.choice(verbs)
    subject = random_phrase(rng, verb.subjects, is_subject=True)
    if verb == BE:
        clause = random_description(rng, subject)
    elif verb.objects:
        clause = Clause(subject, verb, random_object(rng, verb.objects, subject))
    else:
        clause = Clause(subject, verb)
    return clause._replace(negated=rng.random() < 0.3 and can_be_negated(clause))


def random_sentence(rng: Random) -> Sentence:
    """One clause or two; perhaps an adverb, where nothing else is in front."""
    joint = JOINTS.get(rng.choice(JOINING))
    if joint is None:
        return Sentence(random_clause(rng, PREDICATES), rng.choice(["", *ADVERBS]))
    first = list(REPORTS.values()) if joint.english == "that" else PREDICATES
    main, other = random_clause(rng, first), random_clause(rng, PREDICATES)
    with_adverb = not joint.fronted and rng.random() < 0.4
    return Sentence(main, rng.choice(list(ADVERBS)) if with_adverb else "", joint, other)
