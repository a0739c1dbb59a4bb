"""Masks of a typed batch, in the page."""

import re
from itertools import product

import pytest
import torch

from transformer_lesson.explorables import MaskExplorer
from transformer_lesson.model.masks import causal_mask, padding_mask
from transformer_lesson.text import pad_batch
from transformer_lesson.text.tokenizers import words

BATCH = "one two three\none\nfour five"
PAIR = re.compile(r"query (\d+) “(.*)”, key (\d+) “(.*)”: (may attend|hidden)")


def expected(batch: str, sentence: int, padding: bool, causal: bool, side: str) -> tuple:
    """What the package's masks say of one sentence: its row, what is not later, what is allowed."""
    sentences = [words(line) for line in batch.splitlines()]
    ids = pad_batch([[1] * len(tokens) for tokens in sentences], pad_id=0, side=side)
    n, own = ids.shape[1], sentences[sentence]
    pads = ["<pad>"] * (n - len(own))
    seen = padding_mask(ids, 0)[sentence, 0, 0].expand(n, n)  # (query, key)
    earlier = causal_mask(n)[0, 0] if causal else torch.ones(n, n, dtype=torch.bool)
    allowed = seen & earlier if padding else earlier
    return [*pads, *own] if side == "left" else [*own, *pads], earlier, allowed


@pytest.mark.parametrize("side", ["right", "left"])
def test_every_cell_tells_what_the_packages_masks_say(show, side):
    page, both = show(MaskExplorer(BATCH, side=side)), (True, False)
    states = [
        {"sentence": one, "padding": padding, "causal": causal}
        for one, padding, causal in product(range(3), both, both)
    ]
    for state, shown in zip(states, page.states(states), strict=True):
        row, earlier, allowed = expected(BATCH, **state, side=side)
        told = [found.groups() for found in map(PAIR.match, shown["told"]) if found]
        assert told == [
            (str(q), row[q], str(k), row[k], "may attend" if mask[q, k] else "hidden")
            for mask, q, k in product((earlier, allowed), range(3), range(3))
        ]
        count, empty = int(allowed.sum()), int((~allowed.any(-1)).sum())
        title = f"Sentence {state['sentence']} may use {count} of its 9 query-key pairs"
        assert shown["title"] == title
        assert (f"Queries without any key: {empty};" in shown["said"]) == (empty > 0)
        assert f"Padding: {row.count('<pad>')} of its 3 tokens" in shown["said"]


def test_shapes_are_those_of_the_masks_and_the_longest_batch_is_drawn_a_longer_one_answered(show):
    page = show(MaskExplorer(BATCH))
    masks = {"padding mask (3, 1, 1, 3)", "causal mask (1, 1, 3, 3)"}
    assert masks | {"sentence 0, padding & causal: (3, 1, 3, 3)"} <= {*page.written()}
    page.set(causal=False)
    assert {"causal mask: off", "sentence 0, padding: (3, 1, 1, 3)"} <= {*page.written()}
    page.set(padding=False)
    assert "sentence 0, no mask" in page.written()
    full = "\n".join(["a b c d e f g h i j"] * 5)
    page = show(MaskExplorer(full, sentence=4))
    assert page.title == "Sentence 4 may use 55 of its 100 query-key pairs"
    for more, size in (("\na", "6 of up to 10"), (" k", "5 of up to 11")):
        page.set(batch=full + more)
        assert f"{size}: shorten it." in page.said


def test_a_sentence_is_chosen_and_arrows_lead_from_cell_to_cell(show):
    page = show(MaskExplorer(BATCH))
    page.click("choose sentence 1")
    assert page.get("sentence") == 1
    page.named("choose sentence 2").focus()
    assert page.press("Enter") == "choose sentence 2"
    assert page.get("sentence") == 2 and page.title.startswith("Sentence 2")
    page.set(batch="only one")  # keeps a sentence
    assert page.title == "Sentence 0 may use 3 of its 4 query-key pairs"
    page.set(batch="one two three")
    page.named("query 1 “two”, key 0 “one”", "img").last.focus()
    assert page.press("ArrowRight").startswith("query 1 “two”, key 1 “two”: may attend")
    assert page.press("ArrowRight") == "query 1 “two”, key 2 “three”: hidden, the key comes later"
    assert page.press("ArrowDown").startswith("query 2 “three”, key 2 “three”: may attend")
    assert page.page.locator(".tip").inner_text() == "query 2 “three”, key 2 “three”: may attend"
