"""Stories of three animals and one thing, and a judge who finds what cannot be."""

import re

import pytest

from transformer_lesson.text.stories import FORMS, NO_SENTENCE, generate, judge, keeps_its_facts

START = "Once there were Fox, Owl and Hen. Owl had a {}."


def objections(events: str, thing: str = "pie") -> list[str]:
    """What the judge says of the sentences that follow the start."""
    start, *rest = judge(f"{START.format(thing)} {events}")[1:]
    assert not start.objection
    return [one.objection for one in rest]


@pytest.mark.slow
def test_what_is_generated_keeps_its_facts_and_tells_all_kinds_of_events():
    found = generate(500, 0)
    assert all(map(keeps_its_facts, found)) and len({*found}) == 500
    assert generate(5, 0) == found[:5] != generate(5, 1)
    for form in FORMS.values():
        pattern = re.sub(r"\{\w+\}", r"\\w+", form.replace(".", r"\."))
        assert any(re.search(pattern, story) for story in found), form
    assert max(len(re.findall(r"\w+|[.,]", story)) for story in found) < 98
    spaced = found[0].replace(".", " .").replace(",", " ,")
    assert keeps_its_facts(spaced) and judge(spaced)[0].sentence.endswith(".")


@pytest.mark.parametrize(
    ("events", "objection"),
    [
        ("Fox ate the pie.", "Fox does not have the pie"),
        ("Owl gave the pie to Pig.", "Pig is not in this story"),
        ("Owl gave the hat to Fox.", "there is no hat in this story"),
        ("Owl gave the pie to Owl.", "Owl and Owl are one"),
        ("Owl played the pie, and Hen woke up.", "Hen is awake"),
        ("Owl wanted the pie, but Owl had it.", "Owl and Owl are one"),
        ("While Owl slept, Fox took the pie.", "Owl is awake"),
        ("Fox woke up.", "Fox is awake"),
        ("Fox looked for the pie, but it was gone.", "Owl has the pie"),
        ("In the end the pie was gone.", "Owl has the pie"),
        ("In the end Hen had the pie.", "Hen does not have the pie"),
        ("Fox danced.", NO_SENTENCE),
    ],
)
def test_each_impossible_thing_is_named(events, objection):
    assert objections(events)[0] == objection


def test_nobody_acts_asleep_or_eats_a_hat_and_a_story_ends_once():
    assert objections("Owl fell asleep. Owl ate the pie.")[1] == "Owl is asleep"
    assert objections("Hen fell asleep. Owl gave the pie to Hen.")[1] == "Hen is asleep"
    assert objections("Owl ate the hat.", "hat")[0] == "nobody can eat a hat"
    heard = "Hen fell asleep. Owl played the hat, and Hen woke up."
    assert objections(heard, "hat")[1] == "nobody can play a hat"
    end = "In the end Owl had the pie."
    assert objections(end) == [""] and objections("Fox fell asleep.") == ["", "no end"]
    assert objections(f"{end} Fox fell asleep.") == ["", "the story has ended"]
    mistaken = "Fox gave the pie to Hen. Hen ate the pie. In the end the pie was gone."
    assert objections(mistaken) == ["Fox does not have the pie", "", ""]
    twice = judge("Once there were Fox, Fox and Hen. Pig had a pie. In the end Pig had the pie.")
    assert [one.objection for one in twice[:2]] == ["one animal twice", "Pig is not in this story"]


@pytest.mark.parametrize("text", ["", "Hello.", "Once there were Fox, Owl and Hen.", "..", "A. B"])
def test_what_is_no_story_is_called_so(text):
    assert not keeps_its_facts(text)
