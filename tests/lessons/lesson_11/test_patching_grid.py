"""The patching grid in the page: every share is that of the package's `patching_grid`."""

from itertools import cycle

import pytest
import torch

from tests.explorables.shown import Shown, assert_agree, assert_refused
from tests.parity import randomized, small_config
from transformer_lesson.checkpoints.translator import trained_translator
from transformer_lesson.explorables import PatchingGrid
from transformer_lesson.explorables.in_page import english_words
from transformer_lesson.generation import generate
from transformer_lesson.interpretability.interventions import (
    head_sites,
    patching_grid,
    stream_sites,
)
from transformer_lesson.lessons.lesson_11.induction import AttentionOnlyDecoder, held_out_batch
from transformer_lesson.lessons.lesson_11.patching_grid import OTHERS, SOURCE
from transformer_lesson.model.transformers import DecoderOnlyTransformer
from transformer_lesson.ranking import first_largest, from_largest

PAIRS = [  # sentences, and after which written word the answer comes
    (SOURCE, "the old child sees the small cat .", 0),
    (SOURCE, "the old dog sees the small house .", 4),
    ("the child opens the window .", "the child opens the door .", 4),
]


def decoder():
    model = outspoken(DecoderOnlyTransformer(small_config(tie_embeddings=False)))
    ids = torch.arange(7)[None]
    return model, ids, (ids + 3) % model.config.vocab_size


def induction():
    ids = held_out_batch(6, 1).inputs[0][:, :12]
    return outspoken(AttentionOnlyDecoder()), ids, (ids + 5) % 48


def outspoken(model):
    """An untrained model whose logits are far enough apart for a token to matter."""
    randomized(model).eval()
    with torch.no_grad():
        model.projection.weight.mul_(4)
    return model


def traced(model, clean, corrupted, answer: int, heads: bool, tail=()) -> dict:
    with torch.no_grad():
        runs = [model(ids, *tail)[0, answer].log_softmax(-1) for ids in (clean, corrupted)]
    best = int(first_largest(runs[0]))
    stack = "encoder" if tail else "decoder"
    sites = head_sites(model, stack) if heads else stream_sites(model, stack)
    grid = None
    if abs(runs[0][best] - runs[1][best]) > 0.05:
        measure = lambda logits: logits[:, answer].log_softmax(-1)[:, best]  # noqa: E731
        grid = patching_grid(model, (clean, *tail), (corrupted, *tail), sites, measure)
        if not tail:
            assert grid[:, answer + 1 :].abs().sum() < 1e-4  # what comes later is not drawn
            grid = grid[:, : answer + 1]
    return {"runs": runs, "best": best, "sites": sites, "grid": grid}


def check(page: Shown, seen: dict, tokens: list[str], read: str, name) -> None:
    """Compare all that one state shows, apart from the tokens, with what the package computes."""
    shown, best, grid = page.all(), seen["best"], seen["grid"]
    labels = [site.label for site in seen["sites"]]
    clean, corrupted = (run.exp() for run in seen["runs"])
    told = [words for words in shown["told"] if not words.startswith("token ")]
    wanted = [
        f"{label}, token {i} “{tokens[i]}”: {share:.2f} comes back".replace("-0.00", "0.00")
        for label, row in zip(labels, [] if grid is None else grid.tolist(), strict=False)
        for i, share in enumerate(row)
    ]
    likely = from_largest(torch.maximum(clean, corrupted), 4)
    for i in [best, *(i for i in likely if i != best)][:4]:
        wanted.append(f"“{name(i)}”, clean run: {clean[i]:.3f}")
        wanted.append(f"“{name(i)}”, corrupted run: {corrupted[i]:.3f}")
    shares = [words for words in told if "patched run" not in words]
    assert len(told) - len(shares) == 4 * (grid is not None)
    assert_agree(shares, wanted)
    assert f"The probability of “{name(best)}” after “{read}” goes from" in shown["said"]
    assert grid is not None or "too little to trace: replace another token" in shown["said"]


def replaced(ids, others, position: int):
    corrupted = ids.clone()
    corrupted[0, position] = others[0, position]
    return corrupted


@pytest.mark.parametrize("example", [decoder, induction])
def test_every_share_of_a_model_without_tokenizer(show, example):
    model, ids, others = example()
    last = ids.size(1) - 1
    page = show(PatchingGrid(model, ids, others))
    tokens, traces = [str(i) for i in ids[0].tolist()], 0
    cases = [(last // 2, last), (last, last), (2, last - 2), (1, 3), (3, 1)]
    for heads, (position, answer) in zip(cycle((False, True)), cases, strict=False):
        corrupted = replaced(ids, others, position)
        page.set(corrupted=" ".join(map(str, corrupted[0].tolist())), answer=answer, heads=heads)
        seen = traced(model, ids, corrupted, answer, heads)
        check(page, seen, tokens, tokens[answer], str)
        traces += seen["grid"] is not None
    assert traces == 4


def test_every_share_of_the_translator(show):
    model, tokenizer, _ = trained_translator()
    page = show(PatchingGrid())
    for clean, corrupted, answer in PAIRS:
        ids = [torch.tensor([[*tokenizer.encode(text), 2]]) for text in (clean, corrupted)]
        written = generate(model, ids[0], 30).ids[0]
        target = torch.tensor([[1, *(i for i in written if i != 2)]])
        for heads in (False, True) if answer == 0 else (False,):
            page.set(clean=clean, corrupted=corrupted, answer=answer, heads=heads)
            seen = traced(model, *ids, answer, heads, (target,))
            assert seen["grid"] is not None
            read = tokenizer.token(int(target[0, answer]))
            check(page, seen, [*clean.split(), "<eos>"], read, tokenizer.token)


def test_a_click_or_a_key_replaces_a_token_alone(show):
    page = show(PatchingGrid())
    assert page.get("corrupted") == "the old child sees the small cat ."
    page.click("token 6, “cat”: replace it with “house”")
    assert page.get("corrupted") == "the old dog sees the small house ."
    assert page.press("ArrowLeft") == "token 5, “small”: replace it with “red”"
    page.press("Enter")
    assert page.get("corrupted") == "the old dog sees the red cat ."
    page.set(clean="the child opens the window .", corrupted="the child closes the window .")
    offered = [words for words in page.told() if "replace it with" in words]
    assert offered == ["token 0, “the”: replace it with “a”"]  # the others were for other words
    assert {*OTHERS.split()} <= english_words()


def test_what_cannot_be_traced_is_answered_and_typed_ids_are_read(show):
    page = show(PatchingGrid())
    for state, answer in (
        ({"corrupted": "the old dog sees the cat ."}, "has 9 tokens and the corrupted one 8: "),
        ({"corrupted": SOURCE}, "Both prompts are the same."),
        ({"clean": "dog " * 15}, "room for 14 words and marks, and a sentence has 16: shorten it."),
        ({"clean": "the old dogg sees the small cat"}, "similar words that are: dog, dogs."),
    ):
        page.set(**state)
        assert answer in page.said
    model, ids, others = decoder()
    page = show(PatchingGrid(model, ids, others))
    page.set(clean="1, 2 3\n4", corrupted=" 1 2 9 4 ")
    assert "Replaced: token 2, “3”, by “9”." in page.said
    for text, answer in {
        "1 2 13": "“13” is no id of this model: type whole numbers from 0 to 12",
        "": "A prompt is empty: type ids with spaces between them.",
        "1 " * 8: "There is room for 7 ids, and a prompt has 8: shorten it.",
    }.items():
        page.set(clean=text)
        assert page.said.startswith(answer)


def test_bad_input_says_what_to_change(unchecked):
    model, ids, others = decoder()
    assert_refused("others have shape None", PatchingGrid, model, ids)
    assert_refused("ids and others are prompts of a model of your own", PatchingGrid, ids=ids)
    assert_refused(r"ids have shape \(7,\)", PatchingGrid, model, ids[0], others)
    assert_refused("7 ids and 5 others", PatchingGrid, model, ids, others[:, :5])
    place = "position is 7, but the tokens are 0 to 6"
    assert_refused(place, PatchingGrid, model, ids, others, position=7)
    assert_refused("token id 102", PatchingGrid, model, ids, others + 99)
    assert_refused("in training mode", PatchingGrid, model.train(), ids, others)
