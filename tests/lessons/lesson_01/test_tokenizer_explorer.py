"""The same text in three tokenizers, and the merges of its byte pairs, in the page."""

import json
import re

import pytest

from tests.explorables.shown import MODEL
from tests.explorables.stills import as_stored
from transformer_lesson.explorables import TokenizerExplorer
from transformer_lesson.lessons.lesson_01.tokenizer_explorer import LARGEST, MAX_CHARACTERS, trained
from transformer_lesson.text import menus
from transformer_lesson.text.tokenizers import BytePairTokenizer, tokenizer_from_json

TOLD = re.compile(r"(words|characters|byte pairs): “(.*)”, (unknown, )?id (\d+)(, just joined)?")
SAID = r"Step (\d+) of (\d+): “.*” and “.*” become “(.*)”, merge (\d+) of 1740, id (\d+)\."
TEXTS = ["Restart the zyzzyva", "  Neustart:\t注意力 😀 שלום\u200b!", "Don't <eos> the the the"]


def with_merges(n: int) -> BytePairTokenizer:
    parts = json.loads(trained()["byte pairs"])
    return tokenizer_from_json(json.dumps({**parts, "learned": parts["learned"][:n]}))


def tokens_told(shown: dict, name: str) -> tuple[list[int], list[str]]:
    found = [one for one in map(TOLD.fullmatch, shown["told"]) if one and one[1] == name]
    return [int(one[4]) for one in found], [one[2] for one in found]


def test_ids_counts_and_the_way_back_are_those_of_the_package(show):
    page = show(TokenizerExplorer())
    texts = [pair.source for pair in menus.pairs()]
    kinds = {name: tokenizer_from_json(trained()[name]) for name in ("words", "characters")}
    for text, size in zip(TEXTS, (300, 1000, LARGEST), strict=True):
        page.set(text=text, bpe_size=size)
        kinds["byte pairs"], shown = BytePairTokenizer.train(texts, size), page.all()
        counts = []
        for name, tokenizer in kinds.items():
            ids = tokenizer.encode(text)
            assert tokens_told(shown, name)[0] == ids
            counts.append(f"{len(ids)} as {name}")
            numbers = f"{name}: {len(ids)} tokens", f"{name}: vocabulary {tokenizer.vocab_size}"
            assert {*numbers} <= {*shown["told"]}
            way = "the same" if tokenizer.decode(ids) == text else "another"
            unknown = ids.count(tokenizer.unk_id)
            assert f"{name}: {unknown} unknown, decoded as {way} text" in shown["said"]
        assert shown["title"] == f"Tokens: {', '.join(counts)}"
        assert tokens_told(shown, "byte pairs")[1] == kinds["byte pairs"].tokens(text)


def test_each_step_is_the_package_with_one_merge_more(show):
    page = show(TokenizerExplorer("", LARGEST))
    for text in TEXTS:
        page.set(text=text, step=0)
        n, before = int(re.search(r"(\d+) merges follow", page.said)[1]), 0
        assert tokens_told(page.all(), "byte pairs")[0] == with_merges(0).encode(text)
        states = page.states([{"step": step} for step in range(1, n + 1)])
        for step, shown in enumerate(states, start=1):
            at, of, joined, merge, id_ = re.match(SAID, shown["said"]).groups()
            assert (int(at), int(of)) == (step, n) and before < int(merge)
            before, tokenizer = int(merge), with_merges(int(merge))
            ids = tokenizer.encode(text)
            assert tokens_told(shown, "byte pairs")[0] == ids and int(id_) in ids
            assert tokenizer.token(int(id_)) == joined
            assert any("just joined" in words for words in shown["told"])
            assert with_merges(before - 1).encode(text) != ids
        assert ids == with_merges(LARGEST - 260).encode(text)


def test_unknown_and_broken_texts_are_drawn_and_the_same_characters_light_up(show):
    page = show(TokenizerExplorer("Restart the zyzzyva😀"))
    told, written = page.told(), page.written()
    assert "words: “zyzzyva”, unknown, id 3" in told
    assert "characters: “😀”, unknown, id 3" in told
    assert "? unknown 3" in written and "😀" in written
    assert "decoded, ✗ not the same text: Restart the <unk> <unk>" in written
    page.set(text="the kernel")
    page.named("words: “kernel”", "img").focus()
    kinds = [words.partition(":")[0] for words in page.lit("ariaLabel")]
    assert kinds == ["words", *["characters"] * 6, "byte pairs"]
    page.set(text="x" * MAX_CHARACTERS, bpe_size=260)
    assert "150 as characters, 150 as byte pairs" in page.title
    page.page.evaluate(f"{MODEL}.set('text', 'a\\ud83d')")
    page.set(step=0)
    assert "2 as characters" in page.title
    page.set(text="x" * (MAX_CHARACTERS + 1))
    assert f"{MAX_CHARACTERS + 1} characters" in page.said and "shorten it" in page.said


@pytest.mark.parametrize(
    ("text", "size", "right"),
    [
        ("s t r a w b e r r y", 1000, True),
        ("how many r's are in s-t-r-a-w-b-e-r-r-y?", 1000, True),
        ("S·T·R·A·W·B·E·R·R·Y", 1000, True),  # a separator of two bytes
        ("strawberry", 1000, False),
        ("s-t-r-a-w-berry", 1000, False),
        ("s t r a w b e r r y please", 1000, False),
        ("qjqzqxqvqw", 1000, False),  # ten letters in ten pieces, but another word
        ("how many r's are in strawberry?", 260, False),
    ],
)
def test_the_lessons_task_wants_strawberry_with_each_letter_in_a_piece_of_its_own(
    text, size, right, show
):
    page = show(as_stored("01/7edb2b45"))
    page.set(text=text, bpe_size=size)
    page.set(step=0)  # single bytes, as long as no merge is made
    page.set(step=600)
    assert page.read('"done" in root.querySelector(".task").dataset') is right
