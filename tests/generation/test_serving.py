"""Many requests at once get, token for token, what `generate` writes for each of them alone."""

import random

import pytest
import torch

from tests.generation.writers import PAD, lively
from transformer_lesson.generation import generate
from transformer_lesson.generation.serving import Server
from transformer_lesson.model.transformers import DecoderOnlyTransformer, EncoderOnlyTransformer

REQUESTS = [
    ([4, 7, 5, 9, 12], 11),
    ([3], 17),
    ([8, 8, 6], 2),
    ([5, 3], 9),
    ([9] * 7, 12),
    ([6], 13),
]
LLAMA = dict(
    positions="rotary", norm="rms", activation="swiglu", bias=False, n_heads=6, n_kv_heads=3
)
KINDS = {
    "paper": {},
    "gpt": dict(positions="learned", norm_position="pre", activation="gelu", pad_id=None),
    "llama": LLAMA | {"norm_position": "pre", "tie_embeddings": False},
    "window": dict(positions="rotary", attention_window=4),
    "gemma": LLAMA
    | {"norm_position": "both", "activation": "geglu", "qk_norm": "head"}
    | {"head_size": 6, "attention_window": 4, "layers_without_window": (1,)}
    | {"window_rotary_base": 100.0, "query_scale": 9.0, "score_cap": 5.0, "logit_cap": 9.0},
    "neox": dict(positions="rotary", d_rotary=2, parallel=True, norm_position="pre"),
    "relative": dict(positions="relative", relative_buckets=8, relative_distance=9)
    | {"feed_forward_bias": False, "query_scale": 1.0},
    "olmo and others": LLAMA
    | {"norm_position": "output", "qk_norm": "all", "head_size": 6}
    | {"bias": True, "output_bias": False, "layers_without_positions": (0,), "d_rotary": 4}
    | {"rotary_divisors": (1.0, 3.0), "eos_ids": ()},
}


def alone(model, requests=REQUESTS) -> list[list[int]]:
    return [generate(model, ids, most).ids[0] for ids, most in requests]


def served(model, pages: int, page_size: int, **options) -> Server:
    server = Server(model, pages, page_size, **options)
    for ids, most in REQUESTS:
        server.ask(ids, most)
    return server


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_together_each_gets_what_it_gets_alone_however_few_the_pages(kind):
    model = lively(DecoderOnlyTransformer, **KINDS[kind]).train()
    wanted = alone(model)
    lengths = [len(new) for new in wanted]
    for pages, page_size in (40, 3), (7, 3), (1, 20):
        server = served(model, pages, page_size)
        assert server.run() == wanted and sorted(server.cache.free) == list(range(pages))
        assert server.most_pages <= pages and model.training
        if pages == 40:  # room for all: as many passes as the longest has tokens
            assert server.passes == max(lengths) < sum(lengths) / 3
        if pages == 1:  # one after the other
            assert server.passes == sum(lengths)


def test_requests_come_and_go_while_others_write_and_their_pages_lie_scattered():
    model, draw = lively(DecoderOnlyTransformer, seed=3), random.Random(5)
    server, asked, scattered, waited = Server(model, 9, 2, eos_ids=()), [], 0, 0
    while len(asked) < 25 or server.running or server.waiting:
        if len(asked) < 25 and draw.random() < 0.5:
            ids = [draw.randrange(1, 13) for _ in range(draw.randint(1, 6))]
            asked.append((ids, draw.randint(1, 12)))
            assert server.ask(*asked[-1]) == len(asked) - 1
        server.step()
        tables = [request.table for request in server.running]
        in_use = [page for table in tables for page in table] + server.cache.free
        assert sorted(in_use) == list(range(9))  # each page belongs to one
        scattered += sum(table != list(range(table[0], table[0] + len(table))) for table in tables)
        waited += len(server.waiting) > 0
    wanted = [generate(model, ids, most, eos_id=None).ids[0] for ids, most in asked]
    assert server.run() == wanted and scattered > 20 and waited > 20


def test_who_came_last_gives_its_pages_back_loses_no_word_and_no_place_in_the_queue():
    model = lively(DecoderOnlyTransformer, pad_id=None)
    server, requests, numbers = Server(model, 4, 2, eos_ids=()), ([4, 7], [3, 5], [6, 8]), []
    for ids in requests:
        server.ask(ids, 6)  # each will need four pages
    while server.running or server.waiting:
        server.step()
        numbers.append([request.number for request in server.running])
    assert numbers[:4] == [[0, 1, 2], [0, 1], [0, 1], [0]] and list(server.written) == [0, 1, 2]
    assert server.run() == [generate(model, ids, 6, eos_id=None).ids[0] for ids in requests]


def test_it_ends_at_its_own_eos_and_never_writes_a_pad():
    model = lively(DecoderOnlyTransformer, tie_embeddings=False)
    with torch.no_grad():
        model.projection.weight[PAD] *= 5
        likeliest = model(torch.tensor([[3, 8, 6]])).argmax(-1)
    texts = served(model, 40, 3).run()
    ends = (texts[0][1],)
    assert PAD in likeliest and PAD not in [token for text in texts for token in text]
    assert texts == alone(model)
    for text, short in zip(texts, served(model, 40, 3, eos_ids=ends).run(), strict=True):
        first = next((i + 1 for i, token in enumerate(text) if token in ends), len(text))
        assert short == text[:first]


def test_bad_input_is_told_in_one_sentence_and_nobody_waits_for_it():
    server = Server(lively(DecoderOnlyTransformer), 3, 4)
    for ids, most, said in (
        ([], 3, "sentence 0 has no tokens"),
        ([3, 13], 3, "token id 13 is outside the vocabulary of 13 tokens"),
        ([3], 0, "max_new_tokens is 0"),
        ([3] * 12, 9, "12 tokens to start from and max_new_tokens = 9 are more than .* 20"),
        ([3], 13, "a text of 14 tokens needs 4 pages of 4 tokens, but there are 3: make"),
    ):
        with pytest.raises(ValueError, match=said):
            server.ask(ids, most)
    assert server.run() == [] and not server.waiting
    assert len(server.run()) == 0 and server.ask([3], 12) == 0 and len(server.run()) == 1
    with pytest.raises(ValueError, match="pages is 0, but it must be an int >= 1"):
        Server(server.model, 0)
    with pytest.raises(ValueError, match="EncoderOnlyTransformer cannot be served: use a Dec"):
        Server(EncoderOnlyTransformer(server.model.config), 3)
