"""Masks of a typed batch, in the page."""

import re
from itertools import product

import pytest

from transformer_lesson.explorables import MaskExplorer
from transformer_lesson.model.masks import causal_mask, padding_mask
from transformer_lesson.text import pad_batch
from transformer_lesson.text.tokenizers import words

pytestmark = pytest.mark.browser
BATCH = "one two three\none\nfour five"
PAIR = re.compile(r"query (\d+) “(.*)”, key (\d+) “(.*)”: (may attend|hidden)")


def expected(batch: str, sentence: int, padding: bool, causal: bool, side: str) -> dict:
    """What the package's masks say of one sentence."""
    sentences = [words(line) for line in batch.splitlines()]
    ids = pad_batch([[1] * len(tokens) for tokens in sentences], pad_id=0, side=side)
    n = ids.shape[1]
    pads = ["<pad>"] * (n - len(sentences[sentence]))
    row = [*pads, *sentences[sentence]] if side == "left" else [*sentences[sentence], *pads]
    own = padding_mask(ids, 0)[sentence, 0, 0].expand(n, n)  # (query, key)
    earlier = causal_mask(n)[0, 0]
    allowed = (own if padding else own | True) & (earlier if causal else earlier | True)
    return {"row": row, "allowed": allowed, "earlier": earlier if causal else earlier | True}


@pytest.mark.parametrize("side", ["right", "left"])
def test_every_cell_tells_what_the_packages_masks_say(show, side):
    page = show(MaskExplorer(BATCH, side=side))
    names = ("sentence", "padding", "causal")
    states = [
        dict(zip(names, one, strict=True))
        for one in product(range(3), (True, False), (True, False))
    ]
    for state, shown in zip(states, page.states(states), strict=True):
        wanted = expected(BATCH, **state, side=side)
        told = [PAIR.match(words).groups() for words in shown["told"] if PAIR.match(words)]
        cells = [
            (str(q), wanted["row"][q], str(k), wanted["row"][k], "may attend" if seen else "hidden")
            for mask in (wanted["earlier"], wanted["allowed"])
            for q, row in enumerate(mask.tolist())
            for k, seen in enumerate(row)
        ]
        assert told == cells
        count = int(wanted["allowed"].sum())
        title = f"Sentence {state['sentence']} may use {count} of its 9 query-key pairs"
        assert shown["title"] == title
        empty = int((~wanted["allowed"].any(-1)).sum())
        assert (f"Queries without any key: {empty};" in shown["said"]) == (empty > 0)
        assert f"Padding: {wanted['row'].count('<pad>')} of its 3 tokens" in shown["said"]


def test_shapes_are_those_of_the_masks(show):
    page = show(MaskExplorer(BATCH))
    assert "padding mask (3, 1, 1, 3)" in page.written()
    assert "causal mask (1, 1, 3, 3)" in page.written()
    assert "sentence 0, padding & causal: (3, 1, 3, 3)" in page.written()
    page.set(causal=False)
    assert "causal mask: off" in page.written()
    assert "sentence 0, padding: (3, 1, 1, 3)" in page.written()
    page.set(padding=False)
    assert "sentence 0, no mask" in page.written()


def test_a_sentence_is_chosen_by_click_and_by_key(show):
    page = show(MaskExplorer(BATCH))
    page.page.get_by_role("button", name="choose sentence 1").click()
    assert page.get("sentence") == 1
    page.page.get_by_role("button", name="choose sentence 2").focus()
    assert page.press("Enter") == "choose sentence 2"
    assert page.get("sentence") == 2 and page.title.startswith("Sentence 2")


def test_arrows_lead_from_cell_to_cell(show):
    page = show(MaskExplorer("one two three"))
    page.page.get_by_role("img", name="query 1 “two”, key 0 “one”").last.focus()
    assert page.press("ArrowRight").startswith("query 1 “two”, key 1 “two”: may attend")
    assert page.press("ArrowRight") == "query 1 “two”, key 2 “three”: hidden, the key comes later"
    assert page.press("ArrowDown").startswith("query 2 “three”, key 2 “three”: may attend")
    assert page.page.locator(".tip").inner_text() == "query 2 “three”, key 2 “three”: may attend"


def test_a_shorter_batch_keeps_a_sentence(show):
    page = show(MaskExplorer(BATCH, sentence=2))
    page.set(batch="only one")
    assert page.title == "Sentence 0 may use 3 of its 4 query-key pairs"


def test_longest_batch_is_drawn_and_a_longer_one_answered(show):
    full = "\n".join(["a b c d e f g h i j"] * 5)
    page = show(MaskExplorer(full, sentence=4))
    assert page.title == "Sentence 4 may use 55 of its 100 query-key pairs"
    page.set(batch=full + "\na")
    assert "6 of up to 10: shorten it." in page.said and page.title == ""
    page.set(batch=full + " k")
    assert "5 of up to 11: shorten it." in page.said
