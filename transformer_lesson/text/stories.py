"""Generated stories of three animals and one thing, whose facts can be checked.

Who has the thing, who is asleep, and whether it has been eaten is all there is to know. A story is
right if nobody acts in their sleep, gives away what they do not have or wakes somebody awake, and
if its end says what became of the thing. `judge` replays any story, sentence by sentence.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from random import Random
from typing import NamedTuple

NAMES = ("Fox", "Owl", "Goat", "Bear", "Mouse", "Frog", "Pig", "Hen")
FOOD, LOUD = ("cake", "pie", "cheese"), ("drum", "trumpet")
THINGS = (*FOOD, *LOUD, "kite", "hat")

BEGINNING = re.compile(r"Once there were (\w+), (\w+) and (\w+)\.")
OWNER = re.compile(r"(\w+) had a (\w+)\.")
FORMS = {
    "give": "{who} gave the {thing} to {other}.",
    "take": "While {other} slept, {who} took the {thing}.",
    "want": "{who} wanted the {thing}, but {other} had it.",
    "eat": "{who} ate the {thing}.",
    "play": "{who} played the {thing}, and {other} woke up.",
    "sleep": "{who} fell asleep.",
    "wake": "{who} woke up.",
    "seek": "{who} looked for the {thing}, but it was gone.",
    "keep": "In the end {who} had the {thing}.",
    "lose": "In the end the {thing} was gone.",
}
OFTEN = {"give": 6, "take": 8, "want": 4, "eat": 2, "play": 6, "sleep": 3, "wake": 2, "seek": 4}
ENDS = ("keep", "lose")


class Event(NamedTuple):
    """What a sentence says: a kind of `FORMS`, and the names and thing that fill it."""

    kind: str
    who: str = ""
    thing: str = ""
    other: str = ""


class World:
    """The state of a story: who has the thing (nobody, once eaten) and who is asleep."""

    def __init__(self, names: tuple[str, ...], owner: str, thing: str):
        self.names, self.holder, self.thing = names, owner, thing
        self.asleep: set[str] = set()

    def objection(self, event: Event) -> str:
        """Return what is wrong with an event now; nothing if it may happen."""
        kind, who, thing, other = event
        for name in filter(None, (who, other)):
            if name not in self.names:
                return f"{name} is not in this story"
        if thing and thing != self.thing:
            return f"there is no {thing} in this story"
        if kind in ("seek", "lose") and self.holder:
            return f"{self.holder} has the {thing}"
        holds = {"take": other, "want": other, "seek": "", "lose": ""}.get(kind, who)
        if thing and holds != self.holder:
            return f"{holds} does not have the {thing}"
        if other and who == other:
            return f"{who} and {other} are one"
        return self._of_sleep(kind, who, other) or self._of_things(kind, thing)

    def _of_sleep(self, kind: str, who: str, other: str) -> str:
        if kind in ENDS:
            return ""
        if (who in self.asleep) != (kind == "wake"):
            return f"{who} is {'asleep' if who in self.asleep else 'awake'}"
        if other and (other in self.asleep) != (kind in ("take", "play")):
            return f"{other} is {'asleep' if other in self.asleep else 'awake'}"
        return ""

    def _of_things(self, kind: str, thing: str) -> str:
        if kind == "eat" and thing not in FOOD:
            return f"nobody can eat a {thing}"
        return f"nobody can play a {thing}" if kind == "play" and thing not in LOUD else ""

    def after(self, event: Event) -> None:
        """Apply an event, even an impossible one: the story goes on from what it says."""
        kind, who, _, other = event
        if kind in ("give", "take", "eat"):
            self.holder = {"give": other, "take": who, "eat": ""}[kind]
        if kind == "sleep":
            self.asleep.add(who)
        if kind in ("wake", "play"):
            self.asleep.discard(other or who)


def _events(world: World, kinds: Iterable[str]) -> list[Event]:
    """All events that may happen now."""
    events = []
    for kind in kinds:
        form = FORMS[kind]
        thing = world.thing if "{thing}" in form else ""
        for who in world.names if "{who}" in form else ("",):
            for other in world.names if "{other}" in form else ("",):
                event = Event(kind, who, thing, other)
                if not world.objection(event):
                    events.append(event)
    return events


def _sentence(event: Event) -> str:
    return FORMS[event.kind].format(**event._asdict())


def _story(rng: Random) -> str:
    names, thing = tuple(rng.sample(NAMES, 3)), rng.choice(THINGS)
    world = World(names, rng.choice(names), thing)
    sentences = ["Once there were {}, {} and {}.".format(*names), f"{world.holder} had a {thing}."]
    last_kind = ""
    for _ in range(rng.randint(3, 6)):
        events = [event for event in _events(world, OFTEN) if event.kind != last_kind]
        if not events:
            break
        kinds = sorted({event.kind for event in events})
        kind = rng.choices(kinds, [OFTEN[kind] for kind in kinds])[0]
        event = rng.choice([event for event in events if event.kind == kind])
        world.after(event)
        sentences.append(_sentence(event))
        last_kind = "" if kind == "give" else kind  # a thing may go from hand to hand
    sentences.append(_sentence(rng.choice(_events(world, ENDS))))
    return " ".join(sentences)


def _stories(seed: int) -> Iterator[str]:
    rng, seen = Random(seed), set()
    while True:
        story = _story(rng)
        if story not in seen:
            seen.add(story)
            yield story


def generate(n: int, seed: int) -> list[str]:
    """Return `n` different stories; a larger `n` begins with the same ones."""
    return list(islice(_stories(seed), n))


class Judged(NamedTuple):
    """A sentence and what is wrong with it; nothing if it is right."""

    sentence: str
    objection: str


NO_SENTENCE = "no sentence of these stories"


def _read(sentence: str) -> Event | None:
    for kind, form in FORMS.items():
        pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>\\w+)", re.escape(form))
        if match := re.fullmatch(pattern, sentence):
            return Event(kind, **match.groupdict())
    return None


def judge(story: str) -> list[Judged]:
    """Return each sentence of a story with what is wrong with it, given the ones before.

    A story begins with its animals and with who has what, and ends with what became of it.
    """
    pieces = re.findall(r"[^.]+\.?", re.sub(r" (?=[.,])", "", story))
    sentences = [piece.strip() for piece in pieces]
    start, owner = (
        pattern.fullmatch(sentence)
        for pattern, sentence in zip((BEGINNING, OWNER), [*sentences, "", ""], strict=False)
    )
    judged = []
    if not start or not owner:
        return [Judged(sentence, NO_SENTENCE) for sentence in sentences or [""]]
    names, (who, thing) = start.groups(), owner.groups()
    judged.append(Judged(sentences[0], "" if len({*names}) == 3 else "one animal twice"))
    stranger = "" if who in names else f"{who} is not in this story"
    judged.append(Judged(sentences[1], stranger if thing in THINGS else NO_SENTENCE))
    world, ended = World(names, who, thing), False
    for sentence in sentences[2:]:
        event = _read(sentence)
        objection = NO_SENTENCE if event is None else world.objection(event)
        judged.append(Judged(sentence, "the story has ended" if ended else objection))
        if event:
            world.after(event)
            ended = ended or event.kind in ENDS
    if not ended:
        judged.append(Judged("", "no end"))
    return judged


def keeps_its_facts(story: str) -> bool:
    """Return whether nothing is wrong with any sentence of a story."""
    return not any(judged.objection for judged in judge(story))
