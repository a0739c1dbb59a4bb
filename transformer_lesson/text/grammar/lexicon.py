"""The words of the generated corpus: each English word with its German one, and what it goes with.

`kinds` says what a noun is ("person", "food", ...). A verb lists the kinds that can be its subject
and its object, an adjective those that it fits: only a person says things, only food is eaten.
To teach the corpus a new word, add a line here.
"""

from typing import NamedTuple


class Noun(NamedTuple):
    """`article` ("der", "die" or "das") names the German gender; without plural: cannot be counted.

    Masculine nouns that change in the accusative ("der Junge", "den Jungen") are left out.
    """

    english: str
    english_plural: str
    article: str
    german: str
    german_plural: str
    kinds: str


class Pronoun(NamedTuple):
    """Both languages keep an accusative here: "she sees him", "sie sieht ihn"."""

    english: str
    english_accusative: str
    german: str
    german_accusative: str
    plural: bool


class Determiner(NamedTuple):
    """`pattern`: the German word is declined like "der", like "ein", or not at all ("")."""

    english: str
    english_plural: str
    german: str
    pattern: str


class Adjective(NamedTuple):
    """`stem` is what German endings are added to: "müde", but "ein müdes Kind"."""

    english: str
    german: str
    stem: str
    kinds: str


class Verb(NamedTuple):
    """Third person in both languages: "they see, she sees", "sie sehen, sie sieht".

    `particle` is the separable part: "macht ... auf".
    """

    english: str
    english_s: str
    german: str
    german_plural: str
    subjects: str
    objects: str = ""
    particle: str = ""


class Joint(NamedTuple):
    """What begins a second clause. `order`: where its German verb is. `fronted`: comes first."""

    english: str
    german: str
    order: str = "final"
    fronted: bool = False


def _by_english(*words):
    return {word.english: word for word in words}


DETERMINERS = _by_english(
    Determiner("", "", "", ""),
    Determiner("the", "the", "d", "der"),
    Determiner("this", "these", "dies", "der"),
    Determiner("every", "", "jed", "der"),
    Determiner("a", "", "ein", "ein"),
    Determiner("no", "no", "kein", "ein"),
    Determiner("my", "my", "mein", "ein"),
    Determiner("our", "our", "unser", "ein"),
    Determiner("two", "two", "zwei", ""),
    Determiner("three", "three", "drei", ""),
    Determiner("many", "many", "viele", ""),
    Determiner("some", "some", "einige", ""),
)

PRONOUNS = _by_english(
    Pronoun("he", "him", "er", "ihn", False),
    Pronoun("she", "her", "sie", "sie", False),
    Pronoun("we", "us", "wir", "uns", True),
    Pronoun("they", "them", "sie", "sie", True),
)

NOUNS = _by_english(
    Noun("man", "men", "der", "Mann", "Männer", "person"),
    Noun("brother", "brothers", "der", "Bruder", "Brüder", "person"),
    Noun("teacher", "teachers", "der", "Lehrer", "Lehrer", "person"),
    Noun("king", "kings", "der", "König", "Könige", "person"),
    Noun("uncle", "uncles", "der", "Onkel", "Onkel", "person"),
    Noun("woman", "women", "die", "Frau", "Frauen", "person"),
    Noun("queen", "queens", "die", "Königin", "Königinnen", "person"),
    Noun("aunt", "aunts", "die", "Tante", "Tanten", "person"),
    Noun("sister", "sisters", "die", "Schwester", "Schwestern", "person"),
    Noun("child", "children", "das", "Kind", "Kinder", "person"),
    Noun("girl", "girls", "das", "Mädchen", "Mädchen", "person"),
    Noun("baby", "babies", "das", "Baby", "Babys", "person"),
    Noun("dog", "dogs", "der", "Hund", "Hunde", "animal"),
    Noun("bird", "birds", "der", "Vogel", "Vögel", "animal"),
    Noun("frog", "frogs", "der", "Frosch", "Frösche", "animal"),
    Noun("fox", "foxes", "der", "Fuchs", "Füchse", "animal"),
    Noun("cat", "cats", "die", "Katze", "Katzen", "animal"),
    Noun("mouse", "mice", "die", "Maus", "Mäuse", "animal"),
    Noun("horse", "horses", "das", "Pferd", "Pferde", "animal"),
    Noun("pig", "pigs", "das", "Schwein", "Schweine", "animal"),
    Noun("camel", "camels", "das", "Kamel", "Kamele", "animal"),
    Noun("letter", "letters", "der", "Brief", "Briefe", "thing portable text written"),
    Noun("suitcase", "suitcases", "der", "Koffer", "Koffer", "thing portable lid lock"),
    Noun("chair", "chairs", "der", "Stuhl", "Stühle", "thing portable wobbly machine"),
    Noun("hat", "hats", "der", "Hut", "Hüte", "thing portable washable"),
    Noun("key", "keys", "der", "Schlüssel", "Schlüssel", "thing portable"),
    Noun("ball", "balls", "der", "Ball", "Bälle", "thing portable washable"),
    Noun("table", "tables", "der", "Tisch", "Tische", "thing goods wobbly machine"),
    Noun("lamp", "lamps", "die", "Lampe", "Lampen", "thing portable wobbly machine"),
    Noun("bag", "bags", "die", "Tasche", "Taschen", "thing portable lid washable"),
    Noun("bottle", "bottles", "die", "Flasche", "Flaschen", "thing portable lid washable"),
    Noun("newspaper", "newspapers", "die", "Zeitung", "Zeitungen", "thing portable text"),
    Noun("story", "stories", "die", "Geschichte", "Geschichten", "text story written"),
    Noun("flower", "flowers", "die", "Blume", "Blumen", "thing portable"),
    Noun("clock", "clocks", "die", "Uhr", "Uhren", "thing portable machine"),
    Noun("door", "doors", "die", "Tür", "Türen", "thing lid lock machine wobbly"),
    Noun("kitchen", "kitchens", "die", "Küche", "Küchen", "thing room"),
    Noun("book", "books", "das", "Buch", "Bücher", "thing portable text written lid"),
    Noun("car", "cars", "das", "Auto", "Autos", "thing goods machine washable lock"),
    Noun("house", "houses", "das", "Haus", "Häuser", "thing goods room lock"),
    Noun("window", "windows", "das", "Fenster", "Fenster", "thing lid machine"),
    Noun("picture", "pictures", "das", "Bild", "Bilder", "thing portable"),
    Noun("bicycle", "bicycles", "das", "Fahrrad", "Fahrräder", "thing goods machine wobbly"),
    Noun("room", "rooms", "das", "Zimmer", "Zimmer", "thing room lock"),
    Noun("boat", "boats", "das", "Boot", "Boote", "thing goods machine wobbly"),
    Noun("apple", "apples", "der", "Apfel", "Äpfel", "food"),
    Noun("cake", "cakes", "der", "Kuchen", "Kuchen", "food"),
    Noun("sausage", "sausages", "die", "Wurst", "Würste", "food"),
    Noun("soup", "soups", "die", "Suppe", "Suppen", "food"),
    Noun("egg", "eggs", "das", "Ei", "Eier", "food"),
    Noun("tea", "", "der", "Tee", "", "drink"),
    Noun("coffee", "", "der", "Kaffee", "", "drink"),
    Noun("milk", "", "die", "Milch", "", "drink"),
    Noun("water", "", "das", "Wasser", "", "drink"),
)

ADJECTIVES = _by_english(
    Adjective("big", "groß", "groß", "person animal thing food"),
    Adjective("small", "klein", "klein", "person animal thing food"),
    Adjective("old", "alt", "alt", "person animal thing food story"),
    Adjective("young", "jung", "jung", "person animal"),
    Adjective("good", "gut", "gut", "person animal thing food story"),
    Adjective("new", "neu", "neu", "person thing story"),
    Adjective("clever", "klug", "klug", "person animal story"),
    Adjective("tired", "müde", "müd", "person animal"),
    Adjective("hungry", "hungrig", "hungrig", "person animal"),
    Adjective("red", "rot", "rot", "animal thing food"),
    Adjective("heavy", "schwer", "schwer", "animal thing"),
    Adjective("beautiful", "schön", "schön", "person animal thing story"),
    Adjective("dirty", "schmutzig", "schmutzig", "person animal thing"),
)

_ADVERBS = """today heute, tomorrow morgen, now jetzt, soon bald, often oft, sometimes manchmal,
perhaps vielleicht, unfortunately leider, suddenly plötzlich, finally endlich"""
ADVERBS = dict(pair.split() for pair in _ADVERBS.split(","))

BE = Verb("are", "is", "ist", "sind", "person animal thing food story")

REPORTS = _by_english(  # followed by "that"
    Verb("say", "says", "sagt", "sagen", "person"),
    Verb("think", "thinks", "denkt", "denken", "person"),
    Verb("believe", "believes", "glaubt", "glauben", "person"),
    Verb("know", "knows", "weiß", "wissen", "person"),
    Verb("hope", "hopes", "hofft", "hoffen", "person"),
)

_LIVING = "person animal"
VERBS = _by_english(
    Verb("sleep", "sleeps", "schläft", "schlafen", _LIVING),
    Verb("laugh", "laughs", "lacht", "lachen", "person"),
    Verb("dance", "dances", "tanzt", "tanzen", _LIVING),
    Verb("sing", "sings", "singt", "singen", _LIVING),
    Verb("wait", "waits", "wartet", "warten", _LIVING),
    Verb("work", "works", "arbeitet", "arbeiten", "person"),
    Verb("fall", "falls", "fällt", "fallen", "animal portable food"),
    Verb("disappear", "disappears", "verschwindet", "verschwinden", "animal thing food"),
    Verb("stink", "stinks", "stinkt", "stinken", "animal thing food drink"),
    Verb("wobble", "wobbles", "wackelt", "wackeln", "wobbly"),
    Verb("shine", "shines", "glänzt", "glänzen", "thing"),
    Verb("see", "sees", "sieht", "sehen", _LIVING, "person animal thing food"),
    Verb("hear", "hears", "hört", "hören", _LIVING, "person animal story"),
    Verb("find", "finds", "findet", "finden", _LIVING, "animal portable food"),
    Verb("love", "loves", "liebt", "lieben", _LIVING, "person animal story"),
    Verb("like", "likes", "mag", "mögen", _LIVING, "person animal food drink"),
    Verb("need", "needs", "braucht", "brauchen", "person", "portable goods drink"),
    Verb("understand", "understands", "versteht", "verstehen", _LIVING, "person text"),
    Verb("visit", "visits", "besucht", "besuchen", "person", _LIVING),
    Verb("kiss", "kisses", "küsst", "küssen", _LIVING, _LIVING),
    Verb("bite", "bites", "beißt", "beißen", "animal", "person animal food"),
    Verb("eat", "eats", "isst", "essen", "person", "food"),
    Verb("drink", "drinks", "trinkt", "trinken", _LIVING, "drink"),
    Verb("read", "reads", "liest", "lesen", "person", "text"),
    Verb("write", "writes", "schreibt", "schreiben", "person", "written"),
    Verb("buy", "buys", "kauft", "kaufen", "person", "animal portable goods drink"),
    Verb("sell", "sells", "verkauft", "verkaufen", "person", "animal portable goods food"),
    Verb("carry", "carries", "trägt", "tragen", _LIVING, "portable food"),
    Verb("steal", "steals", "stiehlt", "stehlen", _LIVING, "portable food"),
    Verb("lose", "loses", "verliert", "verlieren", "person", "portable"),
    Verb("paint", "paints", "malt", "malen", "person", "person animal thing food"),
    Verb("repair", "repairs", "repariert", "reparieren", "person", "machine"),
    Verb("wash", "washes", "wäscht", "waschen", "person", "person animal washable"),
    Verb("open", "opens", "macht", "machen", "person", "lid", "auf"),
    Verb("close", "closes", "macht", "machen", "person", "lid", "zu"),
    Verb("lock", "locks", "schließt", "schließen", "person", "lock", "ab"),
    Verb("tidy", "tidies", "räumt", "räumen", "person", "room", "auf"),
    Verb("call", "calls", "ruft", "rufen", "person", "person", "an"),
    Verb("invite", "invites", "lädt", "laden", "person", _LIVING, "ein"),
    Verb("fetch", "fetches", "holt", "holen", "person", "person", "ab"),
    Verb("wake", "wakes", "weckt", "wecken", _LIVING, _LIVING, "auf"),
    Verb("imitate", "imitates", "macht", "machen", _LIVING, _LIVING, "nach"),
    Verb("arrive", "arrives", "kommt", "kommen", "person animal portable", "", "an"),
)

JOINTS = _by_english(
    Joint("that", "dass"),
    Joint("because", "weil"),
    Joint("if", "wenn", fronted=True),
    Joint("when", "wenn", fronted=True),
    Joint("and", "und", order="second"),
    Joint("but", "aber", order="second"),
)
