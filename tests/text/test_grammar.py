"""The generated corpus: its German against tables written by hand, its alignment, its splits."""

import re
from collections import Counter
from itertools import islice

import pytest

from transformer_lesson.text import grammar
from transformer_lesson.text.grammar import HELD_OUT, generate, habits, in_both_languages, splits
from transformer_lesson.text.grammar.draw import fitting_adjectives, fitting_nouns
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
# fmt: off
BY_HAND = [
    # genders and cases
    (one("an aunt", "eat", "an egg"), "an aunt eats an egg .", "eine Tante isst ein Ei ."),
    # pronouns
    (one("he", "call", "she"), "he calls her .", "er ruft sie an ."),
    (one("they", "wash", "we", NOT), "they do not wash us .", "sie waschen uns nicht ."),
    (one("we", "kiss", "they", adverb="now"), "now we kiss them .", "jetzt küssen wir sie ."),
    # endings of adjectives: weak, mixed, strong plural
    (one("the clever child", "like", "the big cake"),
     "the clever child likes the big cake .", "das kluge Kind mag den großen Kuchen ."),
    (one("my hungry fox", "bite", "our young horse"),
     "my hungry fox bites our young horse .", "mein hungriger Fuchs beißt unser junges Pferd ."),
    (one("three beautiful mice", "find", "many small cakes"),
     "three beautiful mice find many small cakes .",
     "drei schöne Mäuse finden viele kleine Kuchen ."),
    # plurals of nouns and verbs
    (one("two men", "carry", "the suitcases"),
     "two men carry the suitcases .", "zwei Männer tragen die Koffer ."),
    (one("children", "read", "stories"), "children read stories .", "Kinder lesen Geschichten ."),
    (one("the mouse", "is", "small"), "the mouse is small .", "die Maus ist klein ."),
    (one("the mice", "is", "tired", NOT), "the mice are not tired .",
     "die Mäuse sind nicht müde ."),
    # verb second
    (one("a table", "wobble", adverb="unfortunately"),
     "unfortunately a table wobbles .", "leider wackelt ein Tisch ."),
    (one("the door", "is", "dirty", NOT, adverb="often"),
     "often the door is not dirty .", "oft ist die Tür nicht schmutzig ."),
    (two(SLEEPS, "but", ("he", "drink", "coffee", NOT)),
     "the dog sleeps , but he does not drink coffee .",
     "der Hund schläft , aber er trinkt keinen Kaffee ."),
    (two(("the child", "open", "the door"), "and", ("the dog", "see", "the cat"), "unfortunately"),
     "unfortunately the child opens the door and the dog sees the cat .",
     "leider macht das Kind die Tür auf und der Hund sieht die Katze ."),
    (two(("the cats", "dance"), "when", ("we", "read", "a newspaper")),
     "when we read a newspaper , the cats dance .",
     "wenn wir eine Zeitung lesen , tanzen die Katzen ."),
    # verb final
    (two(("the girls", "know", "", NOT), "that", ("a key", "is", "new"), adverb="perhaps"),
     "perhaps the girls do not know that a key is new .",
     "vielleicht wissen die Mädchen nicht , dass ein Schlüssel neu ist ."),
    (two(SLEEPS, "because", ("the birds", "is", "hungry", NOT)),
     "the dog sleeps because the birds are not hungry .",
     "der Hund schläft , weil die Vögel nicht hungrig sind ."),
    (two(("she", "hope"), "that", ("they", "paint", "the kitchen", NOT)),
     "she hopes that they do not paint the kitchen .",
     "sie hofft , dass sie die Küche nicht malen ."),
    # separable verbs
    (one("frogs", "imitate", "the king", adverb="suddenly"),
     "suddenly frogs imitate the king .", "plötzlich machen Frösche den König nach ."),
    (one("the letters", "arrive", "", NOT),
     "the letters do not arrive .", "die Briefe kommen nicht an ."),
    (one("the woman", "invite", "an uncle", NOT),
     "the woman does not invite an uncle .", "die Frau lädt keinen Onkel ein ."),
    (two(("he", "think"), "that", ("the women", "lock", "the house", NOT)),
     "he thinks that the women do not lock the house .",
     "er denkt , dass die Frauen das Haus nicht abschließen ."),
    (two(("we", "tidy", "the rooms"), "if", ("the baby", "wake", "he")),
     "if the baby wakes him , we tidy the rooms .",
     "wenn das Baby ihn aufweckt , räumen wir die Zimmer auf ."),
    # nicht or kein
    (one("the dog", "sleep", "", NOT), "the dog does not sleep .", "der Hund schläft nicht ."),
    (one("kings", "need", "an old table", NOT),
     "kings do not need an old table .", "Könige brauchen keinen alten Tisch ."),
    (one("he", "eat", "big sausages", NOT),
     "he does not eat big sausages .", "er isst keine großen Würste ."),
    (one("the horse", "drink", "water", NOT),
     "the horse does not drink water .", "das Pferd trinkt kein Wasser ."),
    (two(("she", "say"), "that", ("he", "repair", "a bicycle", NOT)),
     "she says that he does not repair a bicycle .", "sie sagt , dass er kein Fahrrad repariert ."),
]
# fmt: on


@pytest.mark.parametrize("sentence, source, target", BY_HAND, ids=lambda x: "")
def test_sentences_written_by_hand(sentence, source, target):
    assert in_both_languages(sentence)[:2] == (source, target)


NOMINATIVE_ACCUSATIVE_PLURAL = """
der Mann|den Mann|Männer, der Bruder|den Bruder|Brüder, der Lehrer|den Lehrer|Lehrer,
der König|den König|Könige, der Onkel|den Onkel|Onkel, die Frau|die Frau|Frauen,
die Königin|die Königin|Königinnen, die Tante|die Tante|Tanten,
die Schwester|die Schwester|Schwestern, das Kind|das Kind|Kinder,
das Mädchen|das Mädchen|Mädchen, das Baby|das Baby|Babys, der Hund|den Hund|Hunde,
der Vogel|den Vogel|Vögel, der Frosch|den Frosch|Frösche, der Fuchs|den Fuchs|Füchse,
die Katze|die Katze|Katzen, die Maus|die Maus|Mäuse, das Pferd|das Pferd|Pferde,
das Schwein|das Schwein|Schweine, das Kamel|das Kamel|Kamele, der Brief|den Brief|Briefe,
der Koffer|den Koffer|Koffer, der Stuhl|den Stuhl|Stühle, der Hut|den Hut|Hüte,
der Schlüssel|den Schlüssel|Schlüssel, der Ball|den Ball|Bälle, der Tisch|den Tisch|Tische,
die Lampe|die Lampe|Lampen, die Tasche|die Tasche|Taschen, die Flasche|die Flasche|Flaschen,
die Zeitung|die Zeitung|Zeitungen, die Geschichte|die Geschichte|Geschichten,
die Blume|die Blume|Blumen, die Uhr|die Uhr|Uhren, die Tür|die Tür|Türen,
die Küche|die Küche|Küchen, das Buch|das Buch|Bücher, das Auto|das Auto|Autos,
das Haus|das Haus|Häuser, das Fenster|das Fenster|Fenster, das Bild|das Bild|Bilder,
das Fahrrad|das Fahrrad|Fahrräder, das Zimmer|das Zimmer|Zimmer, das Boot|das Boot|Boote,
der Apfel|den Apfel|Äpfel, der Kuchen|den Kuchen|Kuchen, die Wurst|die Wurst|Würste,
die Suppe|die Suppe|Suppen, das Ei|das Ei|Eier, der Tee|den Tee|, der Kaffee|den Kaffee|,
die Milch|die Milch|, das Wasser|das Wasser|
"""


def in_german(text, case):
    return " ".join(word.text for word in grammar.german.noun_phrase(phrase(text), case, "it"))


def test_every_noun_has_its_gender_accusative_and_plural():
    by_hand = [entry.strip() for entry in NOMINATIVE_ACCUSATIVE_PLURAL.split(",")]
    found = []
    for noun in NOUNS.values():
        cases = [in_german(f"the {noun.english}", case) for case in ("nominative", "accusative")]
        plural = in_german(noun.english_plural, "nominative") if noun.english_plural else ""
        found.append("|".join([*cases, plural]))
    assert found == by_hand


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


def test_the_two_articles_of_a_sentence_are_not_mixed_up():
    pair = in_both_languages(two(("the king", "love", "the frog"), "if", ("the frog", "sleep")))
    assert pair.source == "if the frog sleeps , the king loves the frog ."
    assert pair.target == "wenn der Frosch schläft , liebt der König den Frosch ."
    assert pair.alignment == (
        (0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 6), (6, 7), (7, 5), (8, 8), (9, 9), (10, 10),
    )  # fmt: skip


def test_each_example_shows_what_its_name_says():
    assert {name: pair.target for name, pair in grammar.examples().items()} == {
        "accusative masculine": "das Kind sieht den Hund .",
        "adjective endings": "ein alter Frosch küsst die junge Königin .",
        "plural": "die kleinen Mäuse stehlen viele große Kuchen .",
        "verb second": "heute sieht der Hund die Katze .",
        "verb final": "der Lehrer sagt , dass das Kind den Hund sieht .",
        "verb after a clause": "wenn der Hund singt , lacht das Kind .",
        "separable verb": "das Kind macht das Fenster auf .",
        "separable verb joined": "der Lehrer sagt , dass das Kind das Fenster aufmacht .",
        "negation nicht": "der Hund sieht die Katze nicht .",
        "negation kein": "die Frau kauft kein rotes Auto .",
    }


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


def test_about_300_words_a_side_none_of_them_rare(corpus):
    for texts in ([pair.source for pair in corpus], [pair.target for pair in corpus]):
        counts = Counter(word for text in texts for word in text.split())
        assert 250 <= len(counts) <= 350
        assert min(counts.values()) >= 30  # three in a thousand sentences


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


def test_only_persons_speak(corpus):
    persons = {form for noun in fitting_nouns("person") for form in noun[:2]}
    persons |= {"he", "she", "we", "they"}
    speaking = re.compile(r"(\w+) (?:do not |does not )?(?:says?|thinks?|knows?|hopes?) that")
    speakers = Counter(match[1] for pair in corpus for match in speaking.finditer(pair.source))
    assert speakers.total() > 1_000
    assert set(speakers) <= persons


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


def test_training_has_both_words_of_a_held_out_combination_with_others(split):
    fitting = {(a.english, n.english) for n in NOUNS.values() for a in fitting_adjectives(n.kinds)}
    assert HELD_OUT < fitting
    assert 0.08 < len(HELD_OUT) / len(fitting) < 0.13
    seen = Counter(c for pair in split.train for c in combinations_read_off(pair.source))
    assert set(seen) == fitting - HELD_OUT
    adjectives, nouns = Counter(), Counter()
    for (adjective, noun), n in seen.items():
        adjectives[adjective] += n
        nouns[noun] += n
    assert min(adjectives.values()) > 500
    assert min(nouns[noun] for _, noun in HELD_OUT) > 80


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: generate(-1, seed=0), "n must be a number of sentences, got -1"),
        (lambda: splits(-2, 1, seed=0), "n_train must be a number of sentences, got -2"),
        (lambda: splits(1, -3, seed=0), "n_test must be a number of sentences, got -3"),
        (lambda: phrase("the unicorn"), "got 'the unicorn': use words of the lexicon"),
        (lambda: phrase("dog the"), "got 'dog the'"),
        (lambda: phrase(""), "got ''"),
        (lambda: in_both_languages(one("every dog", "sleep", "", NOT)), "leave out negated=True"),
        (lambda: in_both_languages(one("he", "see", "two cats", NOT)), "leave out negated=True"),
        (lambda: in_both_languages(two(("he", "see", "no cat", NOT), "if", SLEEPS)), "leave out"),
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
