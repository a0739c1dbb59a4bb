"""A model that reads its text in pieces, with a cache, computes what it computes in one go."""

from itertools import product

import pytest
import torch

from tests.parity import assert_equal, randomized, small_config
from transformer_lesson.model.cache import KeyValueCache, LayerCache
from transformer_lesson.model.transformers import DecoderOnlyTransformer, EncoderDecoderTransformer

POSITIONS = ["sinusoidal", "learned", "rotary"]
PIECES = [(1, 1, 1, 1, 1, 1, 1), (4, 1, 1, 1), (3, 4), (7,), (2, 1, 3, 1)]
PAD = 0
VARIANTS = [
    {"positions": positions, "norm_position": norm_position, "pad_id": pad_id}
    for positions, norm_position, pad_id in product(POSITIONS, ["pre", "post"], [PAD, None])
]
LLAMA = {"norm": "rms", "positions": "rotary", "activation": "swiglu", "bias": False}
VARIANTS += [
    LLAMA | {"n_heads": 6, "n_kv_heads": shared, "attention_window": window, "pad_id": pad_id}
    for shared, window, pad_id in (
        (1, None, PAD),
        (2, 1, None),
        (6, 3, PAD),
        (2, 7, PAD),
        (1, 20, None),
    )
]


# Padded on the left, as prompts are; the second row on neither side.
IDS = torch.tensor([[0, 0, 5, 3, 2, 7, 4], [6, 1, 4, 2, 9, 8, 3], [0, 3, 3, 1, 8, 2, 2]])
SOURCE = torch.tensor([[5, 3, 8, 0, 0], [4, 4, 2, 9, 1], [7, 1, 0, 0, 0]])


def decoder(n: int = 0, max_len: int = 7, **changes):
    """A model, and its cache after the first n tokens."""
    model = randomized(DecoderOnlyTransformer(small_config(**changes))).eval()
    cache = KeyValueCache(max_len)
    if n:
        model(IDS[:, :n], cache=cache)
    return model, cache


def in_pieces(read, ids, sizes):
    return torch.cat([read(piece) for piece in ids.split(list(sizes), dim=1)], dim=1)


@pytest.mark.slow
@pytest.mark.parametrize("pieces", PIECES, ids=str)
@pytest.mark.parametrize("changes", VARIANTS, ids=str)
@torch.no_grad()
def test_decoders_read_in_pieces_what_they_read_in_one_go(changes, pieces):
    real = IDS != PAD if changes["pad_id"] == PAD else torch.ones_like(IDS, dtype=torch.bool)
    model, cache = decoder(**changes)
    got = in_pieces(lambda ids: model(ids, cache=cache), IDS, pieces)
    assert_equal(got[real], model(IDS)[real])
    assert cache.length == 7 and torch.equal(cache.ids, IDS)
    model = randomized(EncoderDecoderTransformer(small_config(**changes))).eval()
    memory, cache = model.encode(SOURCE), KeyValueCache(max_len=7)
    got = in_pieces(lambda ids: model.decode(ids, memory, SOURCE, cache=cache), IDS, pieces)
    assert_equal(got[real], model.decode(IDS, memory, SOURCE)[real])


def test_the_source_is_projected_only_once():
    model = EncoderDecoderTransformer(small_config(pad_id=PAD)).eval()
    memory, cache = model.encode(SOURCE), KeyValueCache(max_len=7)
    calls = []
    for block in model.decoder:
        block.cross_attention.W_K.register_forward_hook(lambda *_: calls.append("W_K"))
    for i in range(4):
        model.decode(IDS[:, i : i + 1], memory, SOURCE, cache=cache)
    assert len(calls) == len(model.decoder)


@pytest.mark.parametrize("rows", [[2, 0, 1], [1, 1, 1], [0, 0, 1, 1, 2, 2], [2]])
@torch.no_grad()
def test_reordered_rows_go_on_as_if_they_had_read_that_row(rows):
    model, cache = decoder(4, pad_id=PAD)
    layer = next(iter(cache.layers.values()))
    before = layer.keys.data_ptr()
    layer.keys[:, :, 4:] = torch.nan  # nobody has written there
    cache.reorder(torch.tensor(rows))
    assert (layer.keys.data_ptr() == before) == (len(rows) == 3)
    assert_equal(model(IDS[rows, 4:], cache=cache), model(IDS[rows])[:, 4:])


def test_a_cache_holds_all_so_far_and_reserves_its_memory_once():
    plain, reserved, places = 2 * [torch.empty(2, 3, 0, 5)], LayerCache(max_len=8), set()
    for n in (3, 1, 2):
        K, V = torch.randn(2, 3, n, 5), torch.randn(2, 3, n, 5)
        plain = [torch.cat([old, new], dim=2) for old, new in zip(plain, (K, V), strict=True)]
        held = reserved.extend(K, V)
        for ours, theirs in zip(held, plain, strict=True):
            assert torch.equal(ours, theirs)
        places |= {tensor.data_ptr() for tensor in (reserved.keys, held[0])}
        reserved.start += n
    assert len(places) == 1
    for max_len in (0, -1):
        with pytest.raises(ValueError, match=f"max_len is {max_len}"):
            KeyValueCache(max_len)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (torch.full((3, 1), 99), "token id 99 is outside the vocabulary"),
        (IDS[:, :5], "room for 7 tokens and holds 3; 5 more do not fit"),
        (IDS[:2, :1], "holds 3 rows, but 2 came"),
    ],
)
def test_what_is_refused_leaves_the_cache_as_it_was(ids, message):
    model, cache = decoder(3)
    with pytest.raises(ValueError, match=message):
        model(ids, cache=cache)
    assert cache.length == 3
    torch.testing.assert_close(model(IDS[:, 3:], cache=cache), model(IDS)[:, 3:])


@pytest.mark.parametrize("block", [0, 1])
@pytest.mark.parametrize("n", [0, 3])
def test_an_interrupt_in_a_forward_pass_leaves_the_cache_as_it_was(block, n):
    """Some layers have taken the new tokens in, others have not."""
    model, cache = decoder(n)

    def interrupt(*_):
        raise KeyboardInterrupt

    handle = model.decoder[block].feed_forward.register_forward_pre_hook(interrupt)
    with pytest.raises(KeyboardInterrupt):
        model(IDS[:, n : n + 2], cache=cache)
    handle.remove()
    assert cache.length == n
    torch.testing.assert_close(model(IDS[:, n:], cache=cache), model(IDS)[:, n:])
