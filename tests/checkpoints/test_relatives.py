"""Llama's relatives compute what the library computes, or are refused by name."""

import json
import re
from dataclasses import replace

import pytest
import torch
from transformers import AutoModelForCausalLM

from tests.checkpoints.relatives import FAMILIES, made, write_gguf
from transformer_lesson.checkpoints import (
    from_pretrained,
    load_checkpoint,
    save_checkpoint,
    to_transformers,
)
from transformer_lesson.generation import generate
from transformer_lesson.mine import MyLlama
from transformer_lesson.model.cache import KeyValueCache
from transformer_lesson.model.config import LATER
from transformer_lesson.model.hooks import record
from transformer_lesson.model.transformers import DecoderOnlyTransformer

CLOSE = 3e-6
"""How far logits may differ, as a share of the largest."""
N = 40
NOT_IN_GGUF = ("Qwen 2, windows", "Gemma 2, 27B's kind", "SmolLM3, windows")
"""What no such file says: windows of a Qwen or SmolLM, a scale of scores of a model this small."""


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def padded() -> torch.Tensor:
    """Return two texts, the second one with padding on its left."""
    ids = torch.randint(3, 97, (2, N))
    ids[1, :7] = 0
    return ids


def apart(ours, theirs) -> float:
    return ((ours - theirs).abs().max() / theirs.abs().max()).item()


def their_logits(theirs, ids):
    mask = (ids != 0).long()
    positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
    return theirs(ids, attention_mask=mask, position_ids=positions).logits[ids != 0]


@torch.no_grad()
def token_by_token(ours, ids, start: int = 13):
    cache = KeyValueCache(ids.size(1))
    steps = [ours(ids[:, :start], cache)]
    return torch.cat(steps + [ours(ids[:, i : i + 1], cache) for i in range(start, N)], dim=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
@torch.no_grad()
def test_logits_with_padding_a_cache_and_hooks_and_texts_are_the_librarys(name, tmp_path):
    theirs, ids = made(name), padded()
    theirs.save_pretrained(tmp_path)
    ours, expected, real = from_pretrained(tmp_path), their_logits(theirs, ids), ids != 0
    assert apart(ours(ids)[real], expected) < CLOSE
    assert apart(token_by_token(ours, ids)[real], expected) < CLOSE
    with record(ours) as run:
        assert apart(ours(ids)[real], expected) < CLOSE
    weights = run["decoder.1.self_attention.weights"]
    assert weights.shape == (2, ours.config.n_heads, N, N)
    window = ours.config.windows[1] or N
    assert ((weights[0] > 0).sum(-1) == torch.arange(1, N + 1).clamp(max=window)).all()
    prompt = ids[:1, :20]
    written = theirs.generate(prompt, max_new_tokens=15, do_sample=False, eos_token_id=None)
    assert generate(ours, prompt, 15, eos_id=None).ids[0] == written[0, 20:].tolist()
    if name not in NOT_IN_GGUF:
        write_gguf(tmp_path / "m.gguf", theirs)
        file = from_pretrained(tmp_path / "m.gguf")
        assert apart(file(ids)[real], expected) < CLOSE
        assert (file.config.pad_id, file.config.bos_id, file.config.eos_ids) == (0, 1, (2,))
    assert to_transformers(ours, tmp_path / "new") == tmp_path / "new"
    back = AutoModelForCausalLM.from_pretrained(tmp_path / "new", attn_implementation="eager")
    assert apart(their_logits(back.eval(), ids), expected) < CLOSE
    save_checkpoint(tmp_path / "ours.safetensors", ours)
    again = load_checkpoint(tmp_path / "ours.safetensors").model
    assert again.config == ours.config and torch.equal(again(ids), ours(ids))


@pytest.mark.parametrize("name", FAMILIES)
@torch.no_grad()
def test_the_comparison_sees_every_switch_of_the_family(name):
    theirs, ids = made(name), padded()
    ours, expected = from_pretrained(theirs), their_logits(theirs, ids)
    off = LATER | {"norm_position": "pre", "activation": "swiglu", "scale_embedding": False}
    off |= {"attention_window": None, "bias": False}
    on = [field for field, value in off.items() if getattr(ours.config, field) != value]
    for field in on:
        changed = {field: off[field]}
        if field == "attention_window":
            changed |= {"layers_without_window": (), "window_rotary_base": None}
        if field in ("head_size", "output_bias"):
            continue  # other shapes
        other = DecoderOnlyTransformer(replace(ours.config, **changed)).eval()
        other.load_state_dict(ours.state_dict(), strict=False)
        assert apart(other(ids)[ids != 0], expected) > 1e-4, field


def test_what_no_function_of_a_lesson_computes_does_not_run_on_a_learners():
    with pytest.raises(ValueError, match="rotary_divisors is .* but `llama_block` knows only"):
        MyLlama.with_weights_of(from_pretrained(made("Llama 3.1", rms_norm_eps=1e-5)))


YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128}
HALF = {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}
LONG = {"rope_type": "longrope", "short_factor": [1.0] * 4, "long_factor": [2.0] * 4}
REFUSED = [
    ("Llama 3.1", {"rope_scaling": YARN}, "rope_scaling has rope_type 'yarn'"),
    ("Llama 3.1", {"rope_parameters": HALF}, "partial_rotary_factor is 0.5"),
    ("Llama 3.1", {"sliding_window": 4}, "sliding_window is 4"),
    ("Llama 3.1", {"hidden_act": "relu"}, "hidden_act is 'relu', but our gated networks have"),
    ("Llama 3.1", {"rope_parameters": {"rope_type": "linear", "factor": -1}}, "factor is -1"),
    ("Mistral", {"layer_types": ["full_attention"] * 4}, "layer_types is"),
    ("Mistral", {"attention_bias": True}, "attention_bias is True"),
    ("Mistral", {"sliding_window": -3}, "sliding_window is -3, but it must be an int >= 1"),
    ("Mistral", {"num_hidden_layers": 2**31}, "num_hidden_layers is 2147483648, but it must be"),
    ("Qwen 2, windows", {"layer_types": ["chunked_attention"] * 4}, "has 'chunked_attention'"),
    ("Qwen 2", {"rope_scaling": LONG}, "rope_scaling has rope_type 'longrope'"),
    ("Qwen 3", {"quantization_config": {"bits": 4}}, "quantization_config is"),
    ("Gemma", {"hidden_act": "silu", "use_bidirectional_attention": True}, "use_bidirectional_at"),
    ("Gemma 2", {"final_logit_softcapping": -1.0}, "final_logit_softcapping is -1.0, but it must"),
    ("Gemma 3", {"model_type": "gemma3"}, "model_type is 'gemma3', but only"),
    ("Gemma 3", {"rope_parameters": {"sliding_attention": YARN}}, "of sliding_attention is 'yarn'"),
    ("OLMo 2", {"layer_types": ["full_attention"] * 4}, "layer_types is ['full_attention', "),
    ("Phi-3", {"rope_scaling": LONG}, "rope_scaling has rope_type 'longrope'"),
    ("SmolLM3", {"mlp_bias": True}, "mlp_bias is True"),
    ("Qwen 3", {"model_type": "qwen3_moe"}, "model_type is 'qwen3_moe', but only"),
]


@pytest.mark.parametrize(("name", "changes", "message"), REFUSED)
def test_what_is_not_read_is_refused_by_its_name(name, changes, message, tmp_path):
    made(name).save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        from_pretrained(tmp_path)
    assert "\n" not in str(caught.value)
