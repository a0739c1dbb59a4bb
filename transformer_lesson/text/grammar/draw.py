"""Sentences drawn at random: what is said, then how English and German say it."""

from collections.abc import Iterator
from functools import cache
from itertools import islice
from random import Random
from typing import NamedTuple

from transformer_lesson.text.grammar import english, german
from transformer_lesson.text.grammar.lexicon import (
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
from transformer_lesson.text.grammar.meaning import (
    Clause,
    NounPhrase,
    Sentence,
    can_be_negated,
    phrase,
)
from transformer_lesson.text.pairs import Pair

SINGULAR = "the the the a a a a my our this every".split()
PLURAL = ["the", "the", "the", "", "", "", "my", "our", "this", "two", "three", "many", "some"]
UNCOUNTED = ["the", "the", "", "", "my", "our", "this"]
JOINING = ["", "", "that", "that", "because", "because", "if", "when", "and", "but"]
THINGS_DO = [VERBS[word] for word in ("fall", "disappear", "stink", "wobble", "shine")]
SEPARABLE = [verb for verb in VERBS.values() if verb.particle]
PREDICATES = [*VERBS.values(), *SEPARABLE, *THINGS_DO, *[BE] * 6]
MAX_WORDS = 16  # in either language, punctuation included


@cache
def fitting_nouns(kinds: str) -> tuple[Noun, ...]:
    """The nouns of at least one of the kinds."""
    return tuple(noun for noun in NOUNS.values() if set(noun.kinds.split()) & set(kinds.split()))


@cache
def fitting_adjectives(kinds: str) -> tuple[Adjective, ...]:
    """The adjectives that fit at least one of a noun's kinds."""
    words = [word for word in ADJECTIVES.values() if set(word.kinds.split()) & set(kinds.split())]
    return tuple(words + [word for word in words if "person" not in word.kinds])


def random_phrase(rng: Random, kinds: str, is_subject: bool = False) -> NounPhrase | Pronoun:
    """A noun of one of these kinds with determiner and adjective; for a person maybe a pronoun."""
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
    """A phrase about somebody or something other than the subject."""
    phrase = random_phrase(rng, kinds)
    while name(phrase) == name(subject):
        phrase = random_phrase(rng, kinds)
    return phrase


def name(phrase: NounPhrase | Pronoun) -> str:
    """Who or what a phrase is about, singular or plural."""
    return phrase.english if isinstance(phrase, Pronoun) else phrase.noun.english


def random_description(rng: Random, subject: NounPhrase | Pronoun) -> Clause:
    """What somebody or something is like; its own adjective is dropped: no "big dog is small"."""
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
    """One clause or two, perhaps with an adverb if nothing else is in front."""
    joint = JOINTS.get(rng.choice(JOINING))
    if joint is None:
        return Sentence(random_clause(rng, PREDICATES), rng.choice(["", *ADVERBS]))
    first = list(REPORTS.values()) if joint.english == "that" else PREDICATES
    main, other = random_clause(rng, first), random_clause(rng, PREDICATES)
    with_adverb = not joint.fronted and rng.random() < 0.4
    return Sentence(main, rng.choice(list(ADVERBS)) if with_adverb else "", joint, other)


class Splits(NamedTuple):
    """`unseen`: sentences that `train` lacks; `combinations`: even their word pairs are new."""

    train: list[Pair]
    unseen: list[Pair]
    combinations: list[Pair]


def _held_out() -> frozenset[tuple[str, str]]:
    fitting = [
        (adjective.english, noun.english)
        for noun in NOUNS.values()
        for adjective in fitting_adjectives(noun.kinds)
    ]
    return frozenset(Random(0).sample(fitting, len(fitting) // 10))


HELD_OUT = _held_out()  # about one in nine of the (adjective, noun) pairs that fit together


def in_both_languages(sentence: Sentence) -> Pair:
    """A meaning in both languages; words that express the same part of it are aligned.

    Raises:
        ValueError: a clause is negated in a way that the corpus leaves out.
    """
    for clause in (sentence.main, sentence.other):
        if clause and clause.negated and not can_be_negated(clause):
            raise ValueError(
                'A clause with "no" or "every", or with a number of objects, has no "not" here: '
                "leave out negated=True."
            )
    source, target = english.sentence(sentence), german.sentence(sentence)
    where = {}
    for i, word in enumerate(source):
        for part in word.parts:
            where.setdefault(part, []).append(i)
    alignment = {
        (i, j) for j, word in enumerate(target) for part in word.parts for i in where.get(part, ())
    }
    return Pair(
        " ".join(word.text for word in source),
        " ".join(word.text for word in target),
        tuple(sorted(alignment)),
    )


def adjective_noun_pairs(sentence: Sentence) -> set[tuple[str, str]]:
    """Which adjectives are said of which nouns: "the old dog is big" has (old, dog), (big, dog).

    Both are given in the English singular, whatever number and case the sentence has.
    """
    pairs = set()
    for clause in filter(None, (sentence.main, sentence.other)):
        for part in (clause.subject, clause.object):
            if isinstance(part, NounPhrase):
                predicate = clause.adjective if part is clause.subject else None
                adjectives = filter(None, (part.adjective, predicate))
                pairs |= {(adjective.english, part.noun.english) for adjective in adjectives}
    return pairs


def meanings(seed: int) -> Iterator[tuple[Sentence, Pair]]:
    """Endless random sentences, no English sentence twice, none over MAX_WORDS."""
    rng, seen = Random(seed), set()
    while True:
        sentence = random_sentence(rng)
        pair = in_both_languages(sentence)
        n_words = 1 + max(pair.source.count(" "), pair.target.count(" "))
        if n_words <= MAX_WORDS and pair.source not in seen:
            seen.add(pair.source)
            yield sentence, pair


def _checked_count(name: str, n: int) -> None:
    if n < 0:
        raise ValueError(f"{name} must be a number of sentences, got {n}: use 0 or more.")


def generate(n: int, seed: int) -> list[Pair]:
    """`n` different pairs of the whole grammar; a larger `n` begins with the same pairs.

    Each English sentence has one German translation, whatever the seed.

    Raises:
        ValueError: `n` is negative.
    """
    _checked_count("n", n)
    return [pair for _, pair in islice(meanings(seed), n)]


def splits(n_train: int, n_test: int, seed: int) -> Splits:
    """`n_train` pairs for training and twice `n_test` others, to test what a model has understood.

    - `unseen`: sentences that training lacks, of combinations that it may have.
    - `combinations`: each has an adjective and its noun from `HELD_OUT`. Neither `train` nor
      `unseen` has any of these, in any number or case, but `train` has each word with others.

    Raises:
        ValueError: a number is negative.
    """
    _checked_count("n_train", n_train)
    _checked_count("n_test", n_test)
    split = Splits([], [], [])
    sentences = meanings(seed)
    while len(split.unseen) + len(split.combinations) < 2 * n_test or len(split.train) < n_train:
        sentence, pair = next(sentences)
        if adjective_noun_pairs(sentence) & HELD_OUT:
            part, full = split.combinations, n_test
        elif len(split.train) < n_train:
            part, full = split.train, n_train
        else:
            part, full = split.unseen, n_test
        if len(part) < full:
            part.append(pair)
    return split


def examples() -> dict[str, Pair]:
    """One pair for each peculiarity of German that the corpus covers, by its name."""
    the_dog, the_cat, the_child = phrase("the dog"), phrase("the cat"), phrase("the child")
    sees_dog = Clause(the_child, VERBS["see"], the_dog)
    sees_cat = Clause(the_dog, VERBS["see"], the_cat)
    opens = Clause(the_child, VERBS["open"], phrase("the window"))
    buys = Clause(phrase("the woman"), VERBS["buy"], phrase("a red car"))
    sings, laughs = Clause(the_dog, VERBS["sing"]), Clause(the_child, VERBS["laugh"])
    says = Clause(phrase("the teacher"), REPORTS["say"])
    frog = Clause(phrase("an old frog"), VERBS["kiss"], phrase("the young queen"))
    mice = Clause(phrase("the small mice"), VERBS["steal"], phrase("many big cakes"))
    sentences = {
        "accusative masculine": Sentence(sees_dog),
        "adjective endings": Sentence(frog),
        "plural": Sentence(mice),
        "verb second": Sentence(sees_cat, adverb="today"),
        "verb final": Sentence(says, joint=JOINTS["that"], other=sees_dog),
        "verb after a clause": Sentence(laughs, joint=JOINTS["if"], other=sings),
        "separable verb": Sentence(opens),
        "separable verb joined": Sentence(says, joint=JOINTS["that"], other=opens),
        "negation nicht": Sentence(sees_cat._replace(negated=True)),
        "negation kein": Sentence(buys._replace(negated=True)),
    }
    return {name: in_both_languages(sentence) for name, sentence in sentences.items()}
