"""A Llama out of a GGUF file is the one that went in."""

import numpy as np
import pytest
import torch
from torch import nn

from tests.checkpoints.families import inputs_of
from tests.checkpoints.gguf_files import gguf
from tests.checkpoints.llama_files import (
    llama_file,
    neighbors_from_halves,
    small_llama,
)
from transformer_lesson.checkpoints import compare_layers, from_pretrained, load_checkpoint
from transformer_lesson.checkpoints.llama_cpp import halves_from_neighbors, packed_llama
from transformer_lesson.generation import generate
from transformer_lesson.model.packed import FourBitLinear as PACKED
from transformer_lesson.model.positions import apply_rotary


def saved(tmp_path, metadata: dict, tensors: dict):
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf({k: v for k, v in metadata.items() if v is not None}, tensors))
    return path


@pytest.mark.parametrize("seed", range(8))
@torch.no_grad()
def test_logits_equal_the_librarys(seed, tmp_path):
    theirs = small_llama(seed)
    ours = from_pretrained(saved(tmp_path, *llama_file(theirs)))
    comparison = compare_layers(ours, theirs, inputs_of("llama", theirs, "left"), quiet=True)
    assert comparison.first is None, str(comparison)
    live = from_pretrained(theirs)
    for ours_one, live_one in zip(ours.parameters(), live.parameters(), strict=True):
        assert torch.equal(ours_one, live_one)
    assert (ours.config.bos_id, ours.config.eos_ids, ours.config.pad_id) == (1, (2,), 3)
    assert ours.config.norm_epsilon == theirs.config.rms_norm_eps  # not its nearest in 32 bits


def test_rows_in_halves_turn_as_neighbors_did():
    W, x, positions = torch.randn(2 * 6, 5), torch.randn(7, 5), torch.arange(7)
    neighbors = torch.tensor(neighbors_from_halves(W.numpy(), 2))
    assert torch.equal(halves_from_neighbors(neighbors, 2), W)
    head = (x @ neighbors[:6].T).view(7, 3, 2)  # llama.cpp's: pairs of neighbors
    angle = positions[:, None] * 10000.0 ** (-torch.arange(3) / 3)
    turned = torch.view_as_complex(head) * torch.polar(torch.ones_like(angle), angle)
    ours = apply_rotary(x @ W[:6].T, positions, 10000.0)
    assert torch.allclose(torch.cat([turned.real, turned.imag], dim=1), ours, atol=1e-5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"general.architecture": "gpt2"}, "architecture is 'gpt2', but only 'llama', 'mistral', "),
        ({"llama.block_count": None}, "has no llama.block_count: it is not complete"),
        ({"llama.block_count": 2**31}, "d_model is 24, but there are only 3,192 numbers"),
        ({"llama.embedding_length": "24"}, "of the wrong kind or size .TypeError"),
        ({"llama.attention.head_count": 7}, "value of the wrong kind or size"),
        ({"llama.attention.head_count_kv": np.arange(3, dtype="<u4")}, "of the wrong kind or size"),
        ({"llama.rope.dimension_count": 2}, "partial_rotary_factor is 0.3333333333333333, but"),
        ({"llama.expert_count": 8}, "llama.expert_count is 8, but it is not read here: this model"),
        ({"llama.rope.scaling.type": "yarn"}, "rope_scaling has rope_type 'yarn'"),
        ({"llama.rope.freq_base": "high"}, "rope_theta is 'high', but it must be a number > 0"),
    ],
)
def test_metadata_that_our_model_cannot_represent(changes, message, tmp_path):
    path = saved(tmp_path, *llama_file(small_llama(), **changes))
    with pytest.raises(ValueError, match=message) as caught:
        from_pretrained(path)
    assert str(path) in str(caught.value)


SIZES = {"hidden_size": 64, "num_attention_heads": 2, "num_key_value_heads": 1}
SIZES |= {"intermediate_size": 96, "head_dim": 32, "vocab_size": 40}


@pytest.mark.parametrize(
    ("read", "lost", "added", "message"),
    [
        (from_pretrained, "", "blk.0.ffn_exps.weight", "extra: model.layers.0.ffn_exps.weight"),
        (from_pretrained, "blk.0.ffn_up.weight", "", "missing: model.layers.0.mlp.up_proj.weight"),
        (from_pretrained, "", "model.norm.weight", "'model.norm.weight' is a second 'model.norm"),
        (from_pretrained, "token_embd.weight", "", "has no token_embd.weight: it is not complete"),
        (packed_llama, "", "blk.0.ffn_exps.weight", "more than a Llama's tensors: .*ffn_exps"),
        (packed_llama, "blk.0.ffn_up.weight", "", "no decoder.0.feed_forward.W_up.weight of shape"),
        (packed_llama, "", "decoder_norm.weight", "more than a Llama's tensors"),
    ],
)
def test_missing_and_unknown_tensors_are_named(read, lost, added, message, tmp_path):
    metadata, tensors = llama_file(small_llama(**SIZES))
    tensors.pop(lost, None)
    if added:
        tensors[added] = tensors["output_norm.weight"]
    with pytest.raises(ValueError, match=message):
        read(saved(tmp_path, metadata, tensors))


def test_a_packed_llama_has_no_more_layers_than_its_file(tmp_path):
    path = saved(tmp_path, *llama_file(small_llama(**SIZES), **{"llama.block_count": 2**31}))
    with pytest.raises(ValueError, match="there are only"):
        packed_llama(path)


@pytest.fixture
def in_four_bits(tmp_path):
    metadata, tensors = llama_file(small_llama(**SIZES))
    matrices = [name for name, W in tensors.items() if W.ndim == 2 and name.startswith("blk")]
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf(metadata, tensors, q4_1=matrices))
    return path


@pytest.mark.parametrize("plain", ["0", "1"])
@torch.no_grad()
def test_a_packed_llama_computes_what_the_file_says(plain, in_four_bits, monkeypatch):
    monkeypatch.setenv("TRANSFORMER_LESSON_PLAIN", plain)
    exact, ours = from_pretrained(in_four_bits), packed_llama(in_four_bits)
    kinds = [type(layer) for layer in ours.modules() if isinstance(layer, PACKED | nn.Linear)]
    assert kinds.count(PACKED) == (len(kinds) - 1 if plain == "0" else 0)
    ids = torch.randint(4, 40, (2, 12))
    expected, logits = exact(ids), ours(ids)
    assert logits.dtype == torch.bfloat16
    assert (logits - expected).norm() < 0.03 * expected.norm()
    rows = halves_from_neighbors(torch.arange(64.0)[:, None], 2)[:, 0].long()
    assert rows.tolist() != list(range(64))  # a model with rows in the file's order would differ
    assert len(generate(ours, ids, 5, eos_id=None).ids[0]) == 5


def test_a_file_is_known_by_its_first_bytes_and_not_by_its_name(tmp_path):
    path = saved(tmp_path, *llama_file(small_llama()))
    blob = path.rename(tmp_path / f"sha256-{'0' * 64}")
    assert from_pretrained(blob).config.n_layers == small_llama().config.num_hidden_layers
    with pytest.raises(ValueError, match="is a GGUF file: `from_pretrained` reads these"):
        load_checkpoint(blob)
    nothing = tmp_path / "nothing.gguf"
    nothing.write_bytes(b"GGML")
    with pytest.raises(ValueError, match='it does not begin with "GGUF"'):
        from_pretrained(nothing)
