"""The same text in three tokenizers, and the merges of its byte pairs, in the page."""

import json
import re

import pytest

from transformer_lesson.explorables import TokenizerExplorer
from transformer_lesson.explorables.tokenizer_explorer import LARGEST, MAX_CHARACTERS, trained
from transformer_lesson.text import menus
from transformer_lesson.text.tokenizers import BytePairTokenizer, tokenizer_from_json

TOLD = re.compile(r"(words|characters|byte pairs): “(.*)”, (unknown, )?id (\d+)(, just joined)?")
SAID = re.compile(
    r"Step (\d+) of (\d+): “(.*)” and “(.*)” become “(.*)”, merge (\d+) of 1740, id (\d+)\."
)
TEXTS = ["Restart the zyzzyva", "  Neustart:\t注意力 😀 שלום\u200b!", "Don't <eos> the the the"]


def with_merges(n: int) -> BytePairTokenizer:
    """The package's byte-pair tokenizer with the first so many merges."""
    parts = json.loads(trained()["byte pairs"])
    return tokenizer_from_json(json.dumps({**parts, "learned": parts["learned"][:n]}))


def ids_told(page, name: str) -> list[int]:
    found = [TOLD.fullmatch(words) for words in page.told()]
    return [int(one[4]) for one in found if one and one[1] == name]


def pieces_told(page, name: str) -> list[str]:
    found = [TOLD.fullmatch(words) for words in page.told()]
    return [one[2] for one in found if one and one[1] == name]


@pytest.mark.browser
def test_ids_counts_and_the_way_back_are_those_of_the_package(show):
    page = show(TokenizerExplorer())
    texts = [pair.source for pair in menus.pairs()]
    kinds = {name: tokenizer_from_json(trained()[name]) for name in ("words", "characters")}
    for text, size in zip(TEXTS, (300, 1000, LARGEST), strict=True):
        page.set(text=text, bpe_size=size)
        kinds["byte pairs"] = BytePairTokenizer.train(texts, size)
        counts = []
        for name, tokenizer in kinds.items():
            ids = tokenizer.encode(text)
            assert ids_told(page, name) == ids
            counts.append(f"{len(ids)} as {name}")
            assert f"{name}: {len(ids)} tokens" in page.told()
            assert f"{name}: vocabulary {tokenizer.vocab_size}" in page.told()
            way = "the same" if tokenizer.decode(ids) == text else "another"
            unknown = ids.count(tokenizer.unk_id)
            assert f"{name}: {unknown} unknown, the way back gives {way} text" in page.said
        assert page.title == f"Tokens of the same text: {', '.join(counts)}"
        assert pieces_told(page, "byte pairs") == kinds["byte pairs"].tokens(text)


@pytest.mark.browser
@pytest.mark.parametrize("text", TEXTS)
def test_each_step_is_the_package_with_one_merge_more(show, text):
    page = show(TokenizerExplorer(text, LARGEST, step=0))
    assert ids_told(page, "byte pairs") == with_merges(0).encode(text)
    n = int(re.search(r"(\d+) merges follow", page.said)[1])
    before = []
    for step in range(1, n + 1):
        page.set(step=step)
        said = SAID.match(page.said)
        assert (int(said[1]), int(said[2])) == (step, n)
        merge, id_ = int(said[6]), int(said[7])
        tokenizer = with_merges(merge)
        assert ids_told(page, "byte pairs") == tokenizer.encode(text) and id_ in tokenizer.encode(
            text
        )
        assert tokenizer.token(id_) == said[5]
        assert with_merges(merge - 1).encode(text) != tokenizer.encode(text)
        before.append(merge)
    assert before == sorted(set(before))
    assert ids_told(page, "byte pairs") == with_merges(LARGEST - 260).encode(text)


@pytest.mark.browser
def test_unknown_is_shown_as_typed_with_a_sign_and_a_word(show):
    page = show(TokenizerExplorer("Restart the zyzzyva😀"))
    assert "words: “zyzzyva”, unknown, id 3" in page.told()
    assert "characters: “😀”, unknown, id 3" in page.told()
    assert "? unknown 3" in page.written() and "😀" in page.written()
    assert "decoded, ✗ not the same text: Restart the <unk> <unk>" in page.written()


@pytest.mark.browser
def test_tokens_of_the_same_characters_light_up_together(show):
    page = show(TokenizerExplorer("the kernel"))
    page.page.get_by_role("img", name="words: “kernel”").focus()
    lit = """() => [...document.querySelector("div.explorable > div").shadowRoot
        .querySelectorAll("[data-lit]")].map(node => node.getAttribute("aria-label"))"""
    kinds = [words.partition(":")[0] for words in page.page.evaluate(lit)]
    assert kinds == ["words", *["characters"] * 6, "byte pairs"]


@pytest.mark.browser
def test_play_makes_one_merge_after_the_other(show):
    page = show(TokenizerExplorer("Restart"))
    page.page.get_by_role("button", name="Play").click()
    page.page.wait_for_function(
        "() => document.querySelector('div.explorable').model.get('step') == 1"
    )
    assert page.said.startswith("Step 1 of") and any("just joined" in one for one in page.told())


@pytest.mark.browser
def test_longest_text_and_half_a_character_are_drawn(show):
    page = show(TokenizerExplorer("x" * MAX_CHARACTERS, 260))
    assert "150 as characters, 150 as byte pairs" in page.title
    page.page.evaluate("document.querySelector('div.explorable').model.set('text', 'a\\ud83d')")
    page.set(step=0)
    assert "2 as characters" in page.title
    page.set(text="x" * (MAX_CHARACTERS + 1))
    assert f"{MAX_CHARACTERS + 1} characters" in page.said and "shorten it" in page.said
