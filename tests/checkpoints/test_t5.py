"""T5 and mT5 compute what the library computes, or are refused by name."""

import json
import re

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM

from tests.checkpoints.closeness import CLOSE, apart
from tests.checkpoints.t5 import KINDS, made, write_gguf
from transformer_lesson.checkpoints import (
    compare_layers,
    from_pretrained,
    load_checkpoint,
    save_checkpoint,
    to_transformers,
)
from transformer_lesson.checkpoints.gguf import GGUF, read_head
from transformer_lesson.checkpoints.llama_cpp import packed_llama
from transformer_lesson.checkpoints.transformers_io import check_gguf
from transformer_lesson.generation import generate
from transformer_lesson.model.cache import KeyValueCache
from transformer_lesson.model.hooks import record

N = 70  # tokens of a target: past the last bucket of the smaller table


def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    """Return sources, the second one with padding on its left, and targets."""
    source = torch.randint(3, 97, (2, 40))
    source[1, :7] = 0
    return source, torch.randint(3, 97, (2, N))


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
@torch.no_grad()
def test_logits_with_padding_a_cache_and_hooks_and_texts_are_the_librarys(name, tmp_path):
    theirs, (source, target) = made(name), inputs()
    theirs.save_pretrained(tmp_path)
    mask = (source != 0).long()
    expected = theirs(source, attention_mask=mask, decoder_input_ids=target).logits
    ours = from_pretrained(tmp_path)
    assert apart(ours(source, target), expected) < CLOSE
    assert apart(from_pretrained(theirs)(source, target), expected) < CLOSE
    memory, cache = ours.encode(source), KeyValueCache(N)
    steps = [target[:, :13], *target[:, 13:].split(1, dim=1)]
    steps = [ours.decode(step, memory, source, cache) for step in steps]
    assert apart(torch.cat(steps, dim=1), expected) < CLOSE
    with record(ours) as run:
        assert apart(ours(source, target), expected) < CLOSE
    assert run["decoder.1.self_attention.weights"].shape == (2, 6, N, N)
    compared = compare_layers(ours, theirs, (source, target), quiet=True)
    assert compared.first is None and len(compared.layers) > 14
    options = {"max_new_tokens": 15, "do_sample": False, "bad_words_ids": [[0]]}
    written = theirs.generate(source[:1], eos_token_id=None, **options)
    assert generate(ours, source[:1], 15, eos_id=None).ids[0] == written[0, 1:].tolist()
    to_transformers(ours, tmp_path / "new")
    back = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "new", attn_implementation="eager")
    assert type(back).__name__ == "T5ForConditionalGeneration"
    logits = back.eval()(source, attention_mask=mask, decoder_input_ids=target).logits
    assert apart(logits, expected) < CLOSE
    assert from_pretrained(tmp_path / "new").config == ours.config
    save_checkpoint(tmp_path / "ours.safetensors", ours)
    again = load_checkpoint(tmp_path / "ours.safetensors").model
    assert again.config == ours.config
    assert torch.equal(again(source, target), ours(source, target))


@torch.no_grad()
def test_each_stack_shares_one_table_and_the_comparison_sees_it():
    theirs, (source, target) = made("1.1"), inputs()
    ours = from_pretrained(theirs)
    names = [name for name, _ in ours.named_parameters() if "relative" in name]
    assert names == [
        f"{stack}.0.self_attention.relative.weight" for stack in ("encoder", "decoder")
    ]
    ours.encoder[1].self_attention.relative.weight[3, 2] += 1
    comparison = compare_layers(ours, theirs, (source, target), quiet=True)
    assert comparison.first.ours == "encoder.0.self_attention"


@torch.no_grad()
def test_older_files_hold_more_and_a_head_that_is_missing_is_the_table(tmp_path):
    from safetensors.torch import load_file, save_file

    made("1.1").save_pretrained(tmp_path)
    source, target = inputs()
    expected = from_pretrained(tmp_path)
    expected.projection.weight = expected.source_embedding.weight
    tensors = load_file(tmp_path / "model.safetensors")
    del tensors["lm_head.weight"]
    biased = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
    for twin in ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight"):
        tensors[twin] = tensors["shared.weight"].clone()
    save_file(tensors | {biased: torch.ones(32, 6)}, tmp_path / "model.safetensors")
    path = tmp_path / "config.json"
    facts = json.loads(path.read_text())
    del facts["scale_decoder_outputs"]
    path.write_text(json.dumps(facts | {"tie_word_embeddings": False}))
    assert apart(from_pretrained(tmp_path)(source, target), expected(source, target)) < CLOSE


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"feed_forward_proj": "gated-relu"}, "feed_forward_proj is 'gated-relu', but our feed-"),
        ({"feed_forward_proj": 3}, "feed_forward_proj is 3, but our feed-forward networks have"),
        ({"d_ff": None}, "config.json has no d_ff: it is not complete"),
        ({"d_kv": 11}, "SelfAttention.q.weight (60, 48) instead of (66, 48)"),
        ({"relative_attention_num_buckets": 16}, "relative_attention_bias.weight (32, 6) instead"),
        ({"relative_attention_num_buckets": 7}, "relative_buckets is 7, but it must be a multiple"),
        ({"relative_attention_max_distance": 9}, "relative_distance is 9, but it must be over"),
        ({"num_layers": 2**40}, "head_size is 10, but there are only"),
        ({"model_type": "umt5"}, "model_type is 'umt5', but only"),
    ],
)
def test_what_is_not_read_is_refused_by_its_name(changes, message, tmp_path):
    made("1.0").save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        from_pretrained(tmp_path)
    assert "\n" not in str(caught.value)


SAID = {"relative_attention_max_distance": 128, "feed_forward_proj": "gated-gelu"}
"""What llama.cpp has no field for, as all of its files mean it."""


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("1.0", {}),
        ("1.0, few buckets", {"num_decoder_layers": 1}),
        ("1.1", SAID),
        ("mT5", SAID | {"num_decoder_layers": 3, "decoder_start_token_id": 5}),
    ],
)
@torch.no_grad()
def test_a_gguf_file_computes_what_the_library_does(name, changes, tmp_path):
    theirs, (source, target) = made(name, **changes), inputs()
    path = tmp_path / "sha256-0"
    write_gguf(path, theirs)
    ours, live = from_pretrained(path), from_pretrained(theirs)
    expected = theirs(source, attention_mask=(source != 0).long(), decoder_input_ids=target).logits
    assert apart(ours(source, target), expected) < CLOSE
    for mine, its in zip(ours.parameters(), live.parameters(), strict=True):
        assert torch.equal(mine, its)
    assert ours.source_config == live.source_config and ours.config == live.config
    head = read_head(path)
    check_gguf(GGUF(path, head.metadata, head.table))
    head.table.pop("dec.blk.0.cross_attn_q.weight")
    with pytest.raises(ValueError, match="missing: decoder.block.0.layer.1.EncDecAttention.q.wei"):
        check_gguf(GGUF(path, head.metadata, head.table))


@torch.no_grad()
def test_a_gguf_file_may_hold_the_table_twice_and_what_nothing_uses(tmp_path):
    theirs, (source, target) = made("1.0"), inputs()
    theirs.lm_head.weight = torch.nn.Parameter(theirs.shared.weight.clone())
    attention = theirs.decoder.block[0].layer[1].EncDecAttention
    attention.relative_attention_bias = torch.nn.Embedding(32, 6)
    write_gguf(tmp_path / "m.gguf", theirs, add_eos_token_id=None, add_pad_token_id=None)
    ours = from_pretrained(tmp_path / "m.gguf")
    expected = theirs(source, attention_mask=(source != 0).long(), decoder_input_ids=target).logits
    assert apart(ours(source, target), expected) < CLOSE
    assert ours.config.tie_embeddings and ours.config.eos_ids == (1,)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"add_value_length": 11}, "attention.value_length is 11, but our model can only repr"),
        ({"add_layer_norm_eps": 1e-3}, "attention.layer_norm_epsilon is 0.001, but our model can"),
        ({"add_relative_attn_buckets_count": None}, "has no t5.attention.relative_buckets_count"),
        ({"add_relative_attn_buckets_count": 16}, "relative_attention_bias.weight (32, 6) instead"),
        ({"add_expert_count": 8}, "t5.expert_count is 8, but it is not read here"),
        ({"add_head_count_kv": 2}, "t5.attention.head_count_kv is 2, but it is not read here"),
    ],
)
def test_what_a_gguf_file_says_more_is_refused(changes, message, tmp_path):
    write_gguf(tmp_path / "m.gguf", made("1.0"), **changes)
    with pytest.raises(ValueError, match=re.escape(message)):
        from_pretrained(tmp_path / "m.gguf")


def test_a_bias_of_its_own_in_each_layer_is_refused_and_so_are_four_bits(tmp_path):
    theirs = made("1.0")  # as in UMT5
    theirs.encoder.block[1].layer[0].SelfAttention.relative_attention_bias = torch.nn.Embedding(
        32, 6
    )
    write_gguf(tmp_path / "m.gguf", theirs)
    with pytest.raises(ValueError, match="extra: encoder.block.1.layer.0.SelfAttention.relative"):
        from_pretrained(tmp_path / "m.gguf")
    with pytest.raises(ValueError, match="are read, and 't5' by `from_pretrained`"):
        packed_llama(tmp_path / "m.gguf")
