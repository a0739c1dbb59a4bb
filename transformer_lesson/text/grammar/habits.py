"""Other habits of German: one that is wrong, one that is as good, one of telegrams.

`german.sentence` writes proper German. A translator that reads other sentences picks up other
habits, and can be trained out of them again: lesson 16 does both. Each function here takes a
meaning and returns its German, so every sentence comes with its counterpart.
"""

from transformer_lesson.text.grammar import german
from transformer_lesson.text.grammar.lexicon import ADVERBS, Pronoun
from transformer_lesson.text.grammar.meaning import Sentence

KINDS = ("one clause", "adverb", "wenn", "dass, weil", "und, aber")


def kind(meaning: Sentence) -> str:
    """Return which of `KINDS` a sentence is, which decides where its verbs go."""
    if meaning.joint is None:
        return "adverb" if meaning.adverb else "one clause"
    if meaning.joint.fronted:
        return "wenn"
    if meaning.adverb:
        return "adverb"
    return "dass, weil" if meaning.joint.order == "final" else "und, aber"


def english_order(meaning: Sentence) -> str:
    """Each verb after its subject, as in English: "heute der Hund sieht die Katze ." is wrong."""
    return _written(meaning, "second", "second")


def verbs_last(meaning: Sentence) -> str:
    """Each verb at its clause's end, as in telegrams: "heute der Hund die Katze sieht ."."""
    return _written(meaning, "final", "final")


def subject_first(meaning: Sentence) -> str | None:
    """The adverb behind the verb: "der Hund sieht heute die Katze .", as right as with it in front.

    `None` without an adverb, and where the object is a pronoun, which would come before it.
    """
    if not meaning.adverb or isinstance(meaning.main.object, Pronoun):
        return None
    words = german.clause(meaning.main, "main", "second")
    verb = next(i for i, word in enumerate(words) if "main.verb" in word.parts)
    main = [word.text for word in words]
    main.insert(verb + 1, ADVERBS[meaning.adverb])
    return _joined(meaning, main, _other(meaning, meaning.joint and meaning.joint.order))


def _written(meaning: Sentence, main: str, other: str) -> str:
    """Return the sentence with its verbs in these places, whatever German asks for."""
    front = [ADVERBS[meaning.adverb]] if meaning.adverb else []
    words = [word.text for word in german.clause(meaning.main, "main", main)]
    return _joined(meaning, front + words, _other(meaning, other))


def _other(meaning: Sentence, order: str | None) -> list[str]:
    if meaning.other is None:
        return []
    return [word.text for word in german.clause(meaning.other, "other", order)]


def _joined(meaning: Sentence, main: list[str], other: list[str]) -> str:
    joint = meaning.joint
    if joint is None:
        return " ".join([*main, "."])
    comma = [] if joint.german == "und" else [","]
    if joint.fronted:
        return " ".join([joint.german, *other, *comma, *main, "."])
    return " ".join([*main, *comma, joint.german, *other, "."])
