"""Attention in the trained translator, in the page: every number against the package's model."""

import itertools
import math
import re
from functools import cache

import pytest
import torch

from tests.explorables.shown import assert_agree, assert_tells
from transformer_lesson.checkpoints.translator import trained_translator
from transformer_lesson.explorables import AttentionExplorer
from transformer_lesson.explorables.attention_explorer import SENTENCE
from transformer_lesson.generation import generate
from transformer_lesson.model.hooks import record
from transformer_lesson.ranking import from_largest

POINTS = {
    "encoder": "encoder.{}.self_attention",
    "decoder": "decoder.{}.self_attention",
    "cross": "decoder.{}.cross_attention",
}
STATES = [
    dict(zip(("attention", "layer", "head", "query"), one, strict=True))
    for one in itertools.product(POINTS, (0, 1), (0, 5), (1, 4))
]
KNOBS = [
    {"scaled": True, "temperature": 1.0, "mask": "own"},
    {"scaled": False, "temperature": 1.0, "mask": "own"},
    {"scaled": True, "temperature": 3.0, "mask": "causal"},
    {"scaled": True, "temperature": 0.5, "mask": "none"},
]


def factor_of(knobs: dict) -> float:
    return (1 if knobs["scaled"] else math.sqrt(16)) / knobs["temperature"]


def is_causal(attention: str, knobs: dict) -> bool:
    return knobs["mask"] == "causal" or (knobs["mask"] == "own" and attention == "decoder")


def own_weights(attention: str, knobs: dict) -> dict:
    """What the knobs put in place of the weights of every layer's attention of one kind."""
    latest = {}

    def keep(scores):
        latest["scores"] = scores
        return scores

    def turned(_):
        scores = latest["scores"] * factor_of(knobs)
        if is_causal(attention, knobs):
            before = 0 if attention == "cross" else scores.size(-1) - scores.size(-2)
            later = torch.ones_like(scores, dtype=torch.bool).triu(before + 1)
            scores = scores.masked_fill(later, -torch.inf)
        return scores.softmax(-1)

    points = [POINTS[attention].format(layer) for layer in (0, 1)]
    changes = {"scores": keep, "weights": turned}
    return {f"{point}.{name}": change for point in points for name, change in changes.items()}


@cache
def translated(turned: str | None = None, *knobs) -> dict:
    """All that passes hook points while the sentence is translated, one attention turned."""
    model, tokenizer, _ = trained_translator()
    source = torch.tensor([[*tokenizer.encode(SENTENCE), tokenizer.eos_id]])
    changes = own_weights(turned, dict(zip(KNOBS[0], knobs, strict=True))) if turned else {}
    with torch.no_grad(), record(model, changes) as run:
        written = generate(model, source, 30).ids[0]
        model(source, torch.tensor([[1, *(i for i in written if i not in (0, 2))]]))
    return run


def looked(state: dict, knobs: dict) -> dict:
    turned = () if knobs == KNOBS[0] else (state["attention"], *knobs.values())
    run, point = translated(*turned), POINTS[state["attention"]].format(state["layer"])
    head = {name: run[f"{point}.{name}"][0, state["head"]] for name in NAMES}
    return head | {"scores": head["scores"] * factor_of(knobs)}


NAMES = ("queries", "keys", "values", "scores", "weights", "heads")


def sum_of_values(seen: dict, query: int, visible: list[int]) -> tuple:
    """Weights and weighted values, the largest first, and what is below 0.005 in one."""
    weights = seen["weights"][query]
    order = [j for j in from_largest(weights, len(weights)) if j in visible]
    large, small = ([j for j in order if (weights[j] >= 0.005) == big] for big in (True, False))
    groups = [[j] for j in large] + [small] * bool(small)
    parts = torch.stack([weights[group] @ seen["values"][group] for group in groups])
    return [weights[group].sum() for group in groups], parts


def check_told(told: list[str], seen: dict, query: int, causal: bool) -> None:
    weights, scores = seen["weights"][query], seen["scores"][query]
    visible = [j for j in range(len(weights)) if not causal or j <= query]
    assert_tells(told, r"” gets ([\d.]+)$", weights[visible])
    assert sum("nothing: masked" in one for one in told) == len(weights) - len(visible)
    assert_tells(told, r"^score of .*: (\S+)$", scores[visible])
    assert_tells(told, r"^weight of .*: (\S+)$", weights[visible])
    q, k = seen["queries"][query], seen["keys"][from_largest(weights, 1)[0]]
    for pattern, numbers in ((r": (\S+) ×", q), (r"× (\S+) =", k), (r"= (\S+)$", q * k)):
        assert_tells(told, f"^number .*{pattern}", numbers)
    assert_tells(told, r"^value of .*: length (\S+)$", seen["values"][visible].norm(dim=-1))
    shares, parts = sum_of_values(seen, query, visible)
    assert_tells(told, r"^([\d.]+)(?: in all)? × ", shares)
    assert_tells(told, r"^[\d.]+(?: in all)? × .*: length (\S+)$", parts.norm(dim=-1))
    assert_tells(told, r"^result: length (\S+)$", [seen["heads"][query].norm()])


@pytest.mark.parametrize("knobs", KNOBS, ids=lambda knobs: "-".join(map(str, knobs.values())))
def test_every_number_is_that_of_the_packages_model(show, knobs):
    page, states = show(AttentionExplorer()), STATES if knobs == KNOBS[0] else STATES[::5]
    for state, shown in zip(states, page.states([one | knobs for one in states]), strict=True):
        seen = looked(state, knobs)
        check_told(shown["told"], seen, state["query"], is_causal(state["attention"], knobs))


def test_a_key_under_the_pointer_or_the_focus_shows_its_product(show):
    page = show(AttentionExplorer())
    product = [text for text in page.written() if " · " in text and "“" in text]
    assert product[0].startswith("“Fenster” · “opens” = ")
    child, shown = page.named("“child” gets", "img"), page.page.get_by_text
    child.hover()
    shown("“Fenster” · “child” = ").wait_for()
    assert len(page.lit()) >= 4  # box, ribbon, score, weight and value
    page.page.mouse.move(2, 2)
    shown("“Fenster” · “opens” = ").wait_for()
    child.focus()
    shown("“Fenster” · “child” = ").wait_for()
    assert page.get("query") == 5  # pointing chooses nothing
    page.click("query 2, “Kind”")  # where the pointer rests, without fighting with the keys
    page.press("ArrowDown")
    assert page.press("Enter") == "query 3, “macht”"
    assert page.get("query") == 3 and page.title.startswith("From “macht”")
    assert page.page.locator(".tip").inner_text() == "query 3, “macht”"


def test_values_are_added_one_by_one(show):
    state, knobs = STATES[2], KNOBS[0]  # an encoder's head that looks at many
    page = show(AttentionExplorer(**state, added=0))
    _, steps = sum_of_values(looked(state, knobs), state["query"], [*range(7)])
    assert len(steps) > 3
    for n, shown in enumerate(page.states([{"added": n} for n in range(len(steps))])):
        assert_agree(shown["told"][-1:], [f"so far: length {steps[:n].sum(0).norm():.2f}"])
        assert sum(bool(re.search("×.* value", one)) for one in shown["told"]) == n
    page.click(f"step 1 of {len(steps)}: ")
    assert page.get("added") == 1


def test_knobs_say_what_they_change_and_spelling_is_mended_or_similar_words_are_offered(show):
    page = show(AttentionExplorer())
    assert "The model writes “das Kind macht das Fenster auf .”." in page.said
    page.set(mask="causal")
    assert re.search("With these knobs the model writes “.*” instead of “das Kind", page.said)
    said = show(AttentionExplorer("The chilt opens the window")).said
    assert "Read “The” as “the”. A “.” was added" in said
    assert "“chilt” is not in the vocabulary; similar words that are: child" in said
    assert "the model reads <unk>: it can only guess." in said
