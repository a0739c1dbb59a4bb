"""The generated corpus: its German against tables written by hand, its alignment, its splits."""

import re
from itertools import islice

import pytest

from transformer_lesson.text import grammar
from transformer_lesson.text.grammar import HELD_OUT, generate, habits, in_both_languages, splits
from transformer_lesson.text.grammar.lexicon import ADJECTIVES, BE, JOINTS, NOUNS, REPORTS, VERBS
from transformer_lesson.text.grammar.meaning import Clause, Sentence, phrase
from transformer_lesson.text.tokenizers import words

NOT = True
pytestmark = pytest.mark.slow  # tens of thousands of sentences


def does(subject, verb, about="", negated=False):
    """A clause; `about` is the object, or after "is" the adjective."""
    if verb == "is":
        return Clause(phrase(subject), BE, adjective=ADJECTIVES[about], negated=negated)
    found = (VERBS | REPORTS)[verb]
    return Clause(phrase(subject), found, phrase(about) if about else None, negated=negated)


def one(*clause, adverb=""):
    return Sentence(does(*clause), adverb)


def two(main, joint, other, adverb=""):
    return Sentence(does(*main), adverb, JOINTS[joint], does(*other))


SLEEPS = ("the dog", "sleep")


@pytest.mark.parametrize(
    "sentence, source, target",
    [
        (one("frogs", "imitate", "the king", adverb="suddenly"),
         "suddenly frogs imitate the king .", "plötzlich machen Frösche den König nach ."),
        (one("the door", "is", "dirty", NOT, adverb="often"),
         "often the door is not dirty .", "oft ist die Tür nicht schmutzig ."),
        (two(("the child", "open", "the door"), "and", ("the dog", "see", "the cat"), "now"),
         "now the child opens the door and the dog sees the cat .",
         "jetzt macht das Kind die Tür auf und der Hund sieht die Katze ."),
        (two(("the girls", "know", "", NOT), "that", ("a key", "is", "new"), adverb="perhaps"),
         "perhaps the girls do not know that a key is new .",
         "vielleicht wissen die Mädchen nicht , dass ein Schlüssel neu ist ."),
        (two(("he", "think"), "that", ("the women", "lock", "the house", NOT)),
         "he thinks that the women do not lock the house .",
         "er denkt , dass die Frauen das Haus nicht abschließen ."),
        (two(("we", "tidy", "the rooms"), "if", ("the baby", "wake", "he")),
         "if the baby wakes him , we tidy the rooms .",
         "wenn das Baby ihn aufweckt , räumen wir die Zimmer auf ."),
    ],
)  # fmt: skip
def test_sentences_written_by_hand(sentence, source, target):
    assert in_both_languages(sentence)[:2] == (source, target)


def in_german(text, case):
    return " ".join(word.text for word in grammar.german.noun_phrase(phrase(text), case, "it"))


@pytest.mark.parametrize(
    "determiner, nominative, accusative",
    [
        ("the", "der alte Hut, die alte Uhr, das alte Buch",
         "den alten Hut, die alte Uhr, das alte Buch"),
        ("this", "dieser alte Hut, diese alte Uhr, dieses alte Buch",
         "diesen alten Hut, diese alte Uhr, dieses alte Buch"),
        ("every", "jeder alte Hut, jede alte Uhr, jedes alte Buch",
         "jeden alten Hut, jede alte Uhr, jedes alte Buch"),
        ("a", "ein alter Hut, eine alte Uhr, ein altes Buch",
         "einen alten Hut, eine alte Uhr, ein altes Buch"),
        ("no", "kein alter Hut, keine alte Uhr, kein altes Buch",
         "keinen alten Hut, keine alte Uhr, kein altes Buch"),
        ("my", "mein alter Hut, meine alte Uhr, mein altes Buch",
         "meinen alten Hut, meine alte Uhr, mein altes Buch"),
        ("our", "unser alter Hut, unsere alte Uhr, unser altes Buch",
         "unseren alten Hut, unsere alte Uhr, unser altes Buch"),
        ("", "alter Hut, alte Uhr, altes Buch", "alten Hut, alte Uhr, altes Buch"),
    ],
)  # fmt: skip
def test_endings_in_the_singular(determiner, nominative, accusative):
    for case, expected in (("nominative", nominative), ("accusative", accusative)):
        texts = [f"{determiner} old {noun}".strip() for noun in ("hat", "clock", "book")]
        assert ", ".join(in_german(text, case) for text in texts) == expected


@pytest.mark.parametrize(
    "determiner, expected",
    [("the", "die alten"), ("these", "diese alten"), ("no", "keine alten"), ("my", "meine alten"),
     ("our", "unsere alten"), ("", "alte"), ("two", "zwei alte"), ("three", "drei alte"),
     ("many", "viele alte"), ("some", "einige alte")],
)  # fmt: skip
@pytest.mark.parametrize("case", ["nominative", "accusative"])
def test_endings_in_the_plural(determiner, expected, case):
    for english, plural in (("hats", "Hüte"), ("clocks", "Uhren"), ("books", "Bücher")):
        assert in_german(f"{determiner} old {english}".strip(), case) == f"{expected} {plural}"


def links(pair):
    """The alignment as words: "not-kein a-kein ..."."""
    source, target = pair.source.split(), pair.target.split()
    return " ".join(f"{source[i]}-{target[j]}" for i, j in pair.alignment)


@pytest.mark.parametrize(
    "sentence, expected",
    [
        (one("the dog", "see", "the cat", NOT, adverb="today"),
         "today-heute the-der dog-Hund does-sieht not-nicht see-sieht the-die cat-Katze .-."),
        (one("he", "buy", "a red car", NOT),
         "he-er does-kauft not-kein buy-kauft a-kein red-rotes car-Auto .-."),
        (one("they", "wash", "we", NOT),
         "they-sie do-waschen not-nicht wash-waschen us-uns .-."),
        (one("we", "tidy", "they", adverb="now"),
         "now-jetzt we-wir tidy-räumen tidy-auf them-sie .-."),
        (one("he", "call", "she"), "he-er calls-ruft calls-an her-sie .-."),
        (one("he", "eat", "eggs", NOT), "he-er does-isst not-keine eat-isst eggs-Eier .-."),
        (one("the child", "open", "the door"),
         "the-das child-Kind opens-macht opens-auf the-die door-Tür .-."),
        (one("she", "close", "the door", NOT),
         "she-sie does-macht does-zu not-nicht close-macht close-zu the-die door-Tür .-."),
        (two(("she", "say"), "that", ("he", "open", "a door")),
         "she-sie says-sagt that-dass he-er opens-aufmacht a-eine door-Tür .-."),
        (two(SLEEPS, "because", ("he", "is", "old", NOT)),
         "the-der dog-Hund sleeps-schläft because-weil he-er is-ist not-nicht old-alt .-."),
        (two(SLEEPS, "but", ("he", "laugh")),
         "the-der dog-Hund sleeps-schläft ,-, but-aber he-er laughs-lacht .-."),
        (two(("he", "laugh"), "if", SLEEPS),
         "if-wenn the-der dog-Hund sleeps-schläft ,-, he-er laughs-lacht .-."),
    ],
)  # fmt: skip
def test_alignments_written_by_hand(sentence, expected):
    assert links(in_both_languages(sentence)) == expected


@pytest.fixture(scope="module")
def corpus():
    return generate(10_000, seed=1)


@pytest.mark.everything
def test_each_english_sentence_has_one_german_one(corpus):
    german_of = {}
    for pair in corpus + generate(40_000, seed=2):
        assert german_of.setdefault(pair.source, pair.target) == pair.target
    assert len(german_of) > 49_000  # short sentences occur under both seeds


def test_a_seed_gives_the_same_different_sentences_of_3_to_16_words_each_time(corpus):
    assert generate(500, seed=1) == corpus[:500]
    assert generate(500, seed=3) != corpus[:500]
    assert len({pair.source for pair in corpus}) == 10_000
    for text in (text for pair in corpus for text in pair[:2]):
        assert 3 <= len(text.split(" ")) <= 16
        assert text.split(" ") == words(text)


def test_every_word_is_aligned_but_commas_each_noun_with_its_own_and_not_is_said_once(corpus):
    german_of = {noun.english: noun.german for noun in NOUNS.values()}
    german_of |= {noun.english_plural: noun.german_plural for noun in NOUNS.values()}
    for pair in corpus:
        source, target = pair.source.split(), pair.target.split()
        assert {i for i, _ in pair.alignment} == set(range(len(source)))
        alone = set(range(len(target))) - {j for _, j in pair.alignment}
        assert all(target[j] == "," and target[j + 1] in ("dass", "weil") for j in alone)
        for i, word in enumerate(source):
            if word in german_of:
                assert [target[j] for k, j in pair.alignment if k == i] == [german_of[word]]
        negated = [word for word in target if word in ("nicht", "kein", "keine", "keinen")]
        assert len(negated) == sum(word in ("not", "no") for word in source)


ADJECTIVE = "|".join(ADJECTIVES)
SINGULAR_OF = {form: noun.english for noun in NOUNS.values() for form in noun[:2] if form}
NOUN = "|".join(SINGULAR_OF)


def combinations_read_off(source):
    """The adjectives said of nouns, found in the text without the grammar's help."""
    before = re.findall(rf"\b({ADJECTIVE}) ({NOUN})\b", source)
    after = re.findall(rf"\b({NOUN}) (?:is|are) (?:not )?({ADJECTIVE})\b", source)
    found = before + [(adjective, noun) for noun, adjective in after]
    return {(adjective, SINGULAR_OF[noun]) for adjective, noun in found}


@pytest.fixture(scope="module")
def split():
    return splits(19_200, 500, seed=0)


def test_splits_share_no_sentence_and_held_out_combinations_are_in_their_own_only(split):
    assert [len(part) for part in split] == [19_200, 500, 500]
    assert len({pair.source for part in split for pair in part}) == 20_200
    assert [len(part) for part in splits(0, 3, seed=0)] == [0, 3, 3]
    assert [len(part) for part in splits(3, 0, seed=0)] == [3, 0, 0]
    for part in (split.train, split.unseen):
        assert not any(combinations_read_off(pair.source) & HELD_OUT for pair in part)
    assert all(combinations_read_off(pair.source) & HELD_OUT for pair in split.combinations)
    tested = {c for pair in split.combinations for c in combinations_read_off(pair.source)}
    assert len(tested & HELD_OUT) > 0.9 * len(HELD_OUT)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: generate(-1, seed=0), "n must be a number of sentences, got -1"),
        (lambda: splits(-2, 1, seed=0), "n_train must be a number of sentences, got -2"),
        (lambda: splits(1, -3, seed=0), "n_test must be a number of sentences, got -3"),
        (lambda: phrase("the unicorn"), "got 'the unicorn': use words of the lexicon"),
        (lambda: phrase("dog the"), "got 'dog the'"),
        (lambda: in_both_languages(one("every dog", "sleep", "", NOT)), "leave out negated=True"),
        (lambda: in_both_languages(one("he", "see", "two cats", NOT)), "leave out negated=True"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_habits_put_the_same_words_in_other_places():
    sees, laughs = ("the dog", "see", "the cat"), ("the child", "laugh")
    says = two(sees, "because", laughs, adverb="today")
    assert habits.english_order(says) == "heute der Hund sieht die Katze , weil das Kind lacht ."
    assert habits.verbs_last(says) == "heute der Hund die Katze sieht , weil das Kind lacht ."
    assert habits.subject_first(says) == "der Hund sieht heute die Katze , weil das Kind lacht ."
    condition = two(sees, "if", laughs)
    assert habits.english_order(condition) == "wenn das Kind lacht , der Hund sieht die Katze ."
    assert habits.subject_first(condition) is None
    assert [habits.kind(one) for one in (says, condition)] == ["adverb", "wenn"]
    for meaning, pair in islice(grammar.draw.meanings(3), 500):
        behind = habits.subject_first(meaning)
        assert behind is None or sorted(behind.split()) == sorted(pair.target.split())
        assert (habits.kind(meaning) == "wenn") == pair.target.startswith("wenn ")
