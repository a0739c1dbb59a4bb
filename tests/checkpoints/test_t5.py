"""T5 and mT5 compute what the library computes, or are refused by name."""

import json
import re

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM

from tests.checkpoints.t5 import KINDS, made
from transformer_lesson.checkpoints import (
    compare_layers,
    from_pretrained,
    load_checkpoint,
    save_checkpoint,
    to_transformers,
)
from transformer_lesson.generation import generate
from transformer_lesson.model.cache import KeyValueCache
from transformer_lesson.model.hooks import record

CLOSE = 3e-6
"""How far logits may differ, as a share of the largest."""
N = 70  # tokens of a target: past the last bucket of the smaller table


def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    """Return sources, the second one with padding on its left, and targets."""
    source = torch.randint(3, 97, (2, 40))
    source[1, :7] = 0
    return source, torch.randint(3, 97, (2, N))


def apart(ours, theirs) -> float:
    return ((ours - theirs).abs().max() / theirs.abs().max()).item()


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
