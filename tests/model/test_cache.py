"""A model that reads its text in pieces, with a cache, computes what it computes in one go."""

import itertools

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tests.parity import small_config
from transformer_lesson.model.attention import MultiHeadAttention
from transformer_lesson.model.cache import KeyValueCache, LayerCache, append_to_cache
from transformer_lesson.model.transformers import DecoderOnlyTransformer, EncoderDecoderTransformer

POSITIONS = ["sinusoidal", "learned", "rotary"]
PIECES = [(1, 1, 1, 1, 1, 1, 1), (4, 1, 1, 1), (3, 4), (7,), (2, 1, 3, 1)]
PAD = 0


# Padded on the left, as prompts are; the second row on neither side.
class CountElements(TorchDispatchMode):
    """Notes the largest tensor that an operation reads numbers from or writes them to."""

    largest = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if func in (torch.ops.aten.index.Tensor, torch.ops.aten.copy_.default):
            self.largest = max(self.largest, result.numel())
        return result


IDS = torch.tensor([[0, 0, 5, 3, 2, 7, 4], [6, 1, 4, 2, 9, 8, 3], [0, 3, 3, 1, 8, 2, 2]])
SOURCE = torch.tensor([[5, 3, 8, 0, 0], [4, 4, 2, 9, 1], [7, 1, 0, 0, 0]])


def in_pieces(read, ids, sizes):
    return torch.cat([read(piece) for piece in ids.split(list(sizes), dim=1)], dim=1)


@pytest.mark.parametrize("pieces", PIECES, ids=str)
@pytest.mark.parametrize(
    ("positions", "norm_position", "pad_id"),
    list(itertools.product(POSITIONS, ["pre", "post"], [PAD, None])),
)
def test_a_decoder_reads_in_pieces_what_it_reads_in_one_go(
    positions, norm_position, pad_id, pieces
):
    config = small_config(positions=positions, norm_position=norm_position, pad_id=pad_id)
    model = DecoderOnlyTransformer(config).eval()
    cache = KeyValueCache(max_len=9)
    got = in_pieces(lambda ids: model(ids, cache=cache), IDS, pieces)
    real = IDS != PAD if pad_id is not None else torch.ones_like(IDS, dtype=torch.bool)
    torch.testing.assert_close(got[real], model(IDS)[real], rtol=1e-5, atol=1e-5)
    assert cache.length == 7 and torch.equal(cache.ids, IDS)


@pytest.mark.parametrize("pieces", PIECES, ids=str)
@pytest.mark.parametrize("positions", POSITIONS)
def test_a_decoder_with_a_source_reads_in_pieces_too(positions, pieces):
    model = EncoderDecoderTransformer(small_config(positions=positions, pad_id=PAD)).eval()
    memory, cache = model.encode(SOURCE), KeyValueCache(max_len=7)
    got = in_pieces(lambda ids: model.decode(ids, memory, SOURCE, cache=cache), IDS, pieces)
    expected, real = model.decode(IDS, memory, SOURCE), IDS != PAD
    torch.testing.assert_close(got[real], expected[real], rtol=1e-5, atol=1e-5)


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
def test_reordered_rows_go_on_as_if_they_had_read_that_row(rows):
    model = DecoderOnlyTransformer(small_config(pad_id=PAD)).eval()
    cache = KeyValueCache(max_len=7)
    model(IDS[:, :4], cache=cache)
    cache.reorder(torch.tensor(rows))
    expected = model(IDS[rows])[:, 4:]
    torch.testing.assert_close(model(IDS[rows, 4:], cache=cache), expected, rtol=1e-5, atol=1e-5)


def test_memory_is_reserved_once():
    cache = LayerCache(max_len=6)
    K, V = torch.randn(2, 3, 1, 5), torch.randn(2, 3, 1, 5)
    cache.extend(K, V)
    first = cache.keys.data_ptr()
    for cache.start in range(1, 6):
        keys, values = cache.extend(K, V)
    assert cache.keys.data_ptr() == first == keys.data_ptr() and keys.shape == (2, 3, 6, 5)
    assert torch.equal(values, V.expand(2, 3, 6, 5))


def test_both_caches_hold_the_same():
    plain, reserved = None, LayerCache(max_len=8)
    for n in (3, 1, 2):
        K, V = torch.randn(2, 3, n, 5), torch.randn(2, 3, n, 5)
        plain = append_to_cache(plain, K, V)
        for ours, theirs in zip(reserved.extend(K, V), plain, strict=True):
            assert torch.equal(ours, theirs)
        reserved.start += n


def test_values_have_a_store_of_their_own():
    attention, cache = MultiHeadAttention(12, 3).eval(), LayerCache(max_len=4)
    x = torch.randn(2, 4, 12)
    attention(x, x, x, cache=cache)
    assert not torch.equal(cache.keys, cache.values)


def test_a_refused_id_leaves_the_cache_as_it_was():
    model, cache = DecoderOnlyTransformer(small_config()).eval(), KeyValueCache(max_len=7)
    model(IDS[:, :3], cache=cache)
    with pytest.raises(ValueError, match="token id 99 is outside the vocabulary"):
        model(torch.full((3, 1), 99), cache=cache)
    assert cache.length == 3
    torch.testing.assert_close(model(IDS[:, 3:], cache=cache), model(IDS)[:, 3:])


@pytest.mark.parametrize("block", [0, 1])
@pytest.mark.parametrize("kind", ["first", "later"])
def test_an_interrupt_in_a_forward_pass_leaves_the_cache_as_it_was(block, kind):
    """Some layers have taken the new tokens in, others have not."""
    model, cache = DecoderOnlyTransformer(small_config()).eval(), KeyValueCache(max_len=7)
    n = 3 if kind == "later" else 0
    if n:
        model(IDS[:, :n], cache=cache)

    def interrupt(*_):
        raise KeyboardInterrupt

    handle = model.decoder[block].feed_forward.register_forward_pre_hook(interrupt)
    with pytest.raises(KeyboardInterrupt):
        model(IDS[:, n : n + 2], cache=cache)
    handle.remove()
    assert cache.length == n
    torch.testing.assert_close(model(IDS[:, n:], cache=cache), model(IDS)[:, n:])


@pytest.mark.parametrize("rows", [[2, 0, 1], [0, 0, 1, 1, 2, 2]])
def test_reordering_copies_what_was_read_and_not_what_is_reserved(rows):
    model, cache = DecoderOnlyTransformer(small_config()).eval(), KeyValueCache(max_len=1000)
    model(IDS[:, :4], cache=cache)
    layer = next(iter(cache.layers.values()))
    before = layer.keys.data_ptr()
    layer.keys[:, :, 4:] = torch.nan  # nobody has written there
    with CountElements() as copied:
        cache.reorder(torch.tensor(rows))
    assert (layer.keys.data_ptr() == before) == (len(rows) == 3)
    assert copied.largest <= len(rows) * 4 * 12


def test_a_full_cache_says_so():
    model, cache = DecoderOnlyTransformer(small_config()).eval(), KeyValueCache(max_len=7)
    model(IDS, cache=cache)
    with pytest.raises(ValueError, match="room for 7 tokens and holds 7; 1 more do not fit"):
        model(IDS[:, :1], cache=cache)
    assert cache.length == 7


def test_another_batch_needs_another_cache():
    model, cache = DecoderOnlyTransformer(small_config()).eval(), KeyValueCache(max_len=9)
    model(IDS, cache=cache)
    with pytest.raises(ValueError, match="holds 3 rows, but 2 came"):
        model(IDS[:2, :1], cache=cache)


@pytest.mark.parametrize("max_len", [0, -1])
def test_a_cache_without_room_is_refused(max_len):
    with pytest.raises(ValueError, match=f"max_len is {max_len}"):
        KeyValueCache(max_len)
