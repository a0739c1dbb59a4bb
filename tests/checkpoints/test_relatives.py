"""Llama's relatives and GPT-NeoX compute what the library computes, or are refused by name."""

import json
import re
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM

from tests.checkpoints.closeness import CLOSE, apart
from tests.checkpoints.older import OLDER, older
from tests.checkpoints.relatives import FAMILIES, made, write_gguf
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
from transformer_lesson.mine import MyLlama
from transformer_lesson.model.cache import KeyValueCache
from transformer_lesson.model.config import LATER
from transformer_lesson.model.hooks import record
from transformer_lesson.model.packed import FourBitLinear
from transformer_lesson.model.transformers import DecoderOnlyTransformer, EncoderDecoderTransformer

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


@torch.no_grad()
def test_pythias_older_files_say_the_same_in_other_words(tmp_path):
    made("GPT-NeoX").save_pretrained(tmp_path)
    expected, ids = from_pretrained(tmp_path), torch.randint(3, 97, (2, N))
    path = tmp_path / "config.json"
    facts = json.loads(path.read_text())
    del facts["rope_parameters"], facts["attention_bias"], facts["use_parallel_residual"]
    path.write_text(json.dumps(facts | {"rotary_pct": 0.5, "rotary_emb_base": 1e4}))
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["lm_head.weight"] = tensors.pop("embed_out.weight")
    tensors["gpt_neox.layers.0.attention.bias"] = torch.ones(1, 1, 8, 8)
    save_file(tensors, tmp_path / "model.safetensors")
    ours = from_pretrained(tmp_path)
    assert ours.config == replace(expected.config, d_rotary=4) and expected.config.d_rotary == 2
    other = DecoderOnlyTransformer(expected.config).eval()
    other.load_state_dict(ours.state_dict())
    assert torch.equal(other(ids), expected(ids))


def test_a_neox_that_rotates_all_of_a_query_says_so(tmp_path):
    whole = {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 1.0}
    ours = from_pretrained(made("GPT-NeoX", rope_parameters=whole))
    to_transformers(ours, tmp_path)
    assert ours.config.d_rotary is None and from_pretrained(tmp_path).config == ours.config


def test_side_by_side_needs_norms_before_and_no_source():
    config = from_pretrained(made("GPT-NeoX")).config
    with pytest.raises(ValueError, match="parallel is True, but it must be False unless norm_posi"):
        replace(config, norm_position="post")
    with pytest.raises(ValueError, match="parallel is True, but .* a block with cross-attention"):
        EncoderDecoderTransformer(config)


def test_the_first_gemmas_files_say_gelu_and_mean_its_approximation(tmp_path):
    made("Gemma").save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"hidden_act": "gelu"}))
    assert from_pretrained(tmp_path).config.activation == "geglu"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Llama 3.1", "Gemma 3"])
@torch.no_grad()
def test_angles_round_as_the_librarys_do_in_a_long_text(name):
    theirs = made(name, max_position_embeddings=2048)
    ids = torch.randint(3, 97, (1, 1400))
    assert apart(from_pretrained(theirs)(ids)[0], their_logits(theirs, ids)) < CLOSE


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


@pytest.mark.slow
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("name", OLDER)
@torch.no_grad()
def test_an_old_familys_relatives_compute_what_the_librarys_do(name, side, tied, tmp_path):
    theirs = older(name, tie_word_embeddings=tied)
    theirs.save_pretrained(tmp_path)
    ours, ids = from_pretrained(tmp_path), torch.randint(3, 97, (2, N))
    ids[1, :7] = 1
    ids[1] = ids[1].flip(0) if side == "right" else ids[1]
    compared = compare_layers(ours, theirs, ids if name == "OPT" else (ids, 0 * ids), quiet=True)
    assert compared.first is None and len(compared.layers) > 5
    assert compared.largest < CLOSE * compared.layers[-1].scale
    to_transformers(ours, tmp_path / "new")
    back = (AutoModelForCausalLM if name == "OPT" else AutoModelForMaskedLM).from_pretrained(
        tmp_path / "new"
    )
    assert type(back).__name__ in ("GPT2LMHeadModel", "BertForMaskedLM")
    assert apart(back(ids[:1]).logits, theirs(ids[:1]).logits) < CLOSE
    if name == "OPT":
        written = theirs.generate(
            ids[:1, :20], max_new_tokens=9, do_sample=False, eos_token_id=None
        )
        assert generate(ours, ids[:1, :20], 9, eos_id=None).ids[0] == written[0, 20:].tolist()
        assert apart(token_by_token(ours, ids)[0], theirs(ids[:1]).logits[0]) < CLOSE


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("Roberta", {"hidden_act": "relu"}, "hidden_act is 'relu', but our model can only"),
        ("Roberta", {"pad_token_id": 0}, "pad_token_id is 0, but our model can only"),
        ("DistilBert", {"dim": None}, "config.json has no dim: it is not complete"),
        ("OPT", {"do_layer_norm_before": False}, "do_layer_norm_before is False"),
        ("OPT", {"word_embed_proj_dim": 12}, "word_embed_proj_dim is 12, but our model can only"),
        ("OPT", {"model_type": "gptj"}, "model_type is 'gptj', but only"),
    ],
)
def test_what_an_old_familys_relative_has_more_is_refused(name, changes, message, tmp_path):
    older(name).save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(ValueError, match=re.escape(message)):
        from_pretrained(tmp_path)


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
    ("Qwen 2, windows", {"layer_types": ["chunked_attention"] * 4}, "['chunked_attention', '"),
    ("Qwen 2, windows", {"layer_types": ["full_attention"] * 3}, "of each of 4 layers"),
    ("Qwen 2", {"rope_scaling": LONG}, "rope_scaling has rope_type 'longrope'"),
    ("Qwen 3", {"quantization_config": {"bits": 4}}, "quantization_config is"),
    ("Gemma", {"hidden_act": "silu", "use_bidirectional_attention": True}, "use_bidirectional_at"),
    ("Gemma 2", {"final_logit_softcapping": -1.0}, "final_logit_softcapping is -1.0, but it must"),
    ("Gemma 3", {"model_type": "gemma3"}, "model_type is 'gemma3', but only"),
    ("Gemma 3", {"rope_parameters": {"sliding_attention": YARN}}, "of sliding_attention is 'yarn'"),
    ("OLMo 2", {"layer_types": ["full_attention"] * 4}, "layer_types is ['full_attention', "),
    ("Phi-3", {"rope_scaling": LONG}, "rope_scaling has rope_type 'longrope'"),
    ("SmolLM3", {"mlp_bias": True}, "mlp_bias is True"),
    ("GPT-NeoX", {"rope_parameters": YARN}, "rope_parameters has rope_type 'yarn'"),
    ("GPT-NeoX", {"hidden_act": "tanh"}, "hidden_act is 'tanh', but our feed-forward network"),
    ("GPT-NeoX", {"hidden_size": None}, "config.json has no hidden_size: it is not complete"),
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


@pytest.mark.parametrize("name", sorted(set(FAMILIES) - set(NOT_IN_GGUF)))
def test_the_head_of_a_file_tells_whether_it_can_be_read(name, tmp_path):
    path = tmp_path / "sha256-0"
    write_gguf(path, made(name))
    head = read_head(path)
    check_gguf(GGUF(path, head.metadata, head.table))
    head.table.pop(next(part for part in head.table if part.startswith("blk.1.ffn_down")))
    with pytest.raises(ValueError, match=r"down_proj|dense_4h_to_h"):
        check_gguf(GGUF(path, head.metadata, head.table))


PACKABLE = {"hidden_size": 64, "num_attention_heads": 4, "head_dim": 16, "intermediate_size": 96}


@pytest.mark.parametrize("quantized", ["Q4_0", "Q4_1"])
@pytest.mark.parametrize("name", sorted(set(FAMILIES) - set(NOT_IN_GGUF)))
@torch.no_grad()
def test_a_packed_relative_computes_what_its_file_says(name, quantized, tmp_path):
    path = tmp_path / "m.gguf"
    write_gguf(path, made(name, **PACKABLE), quantized)
    exact, ours = from_pretrained(path), packed_llama(path)
    layers = {n: m for n, m in ours.named_modules() if isinstance(m, FourBitLinear)}
    assert len(layers) == sum(W.dim() == 2 for W in exact.decoder.parameters())
    for layer, packed in layers.items():
        linear = exact.get_submodule(layer)
        x = torch.randn(5, linear.in_features).bfloat16()
        expected = linear(x.float())
        assert (packed(x) - expected).norm() < 0.02 * expected.norm(), layer
    ids = torch.randint(3, 97, (2, N))
    expected, logits = exact(ids), ours(ids)
    assert logits.dtype == torch.bfloat16
    assert (logits - expected).norm() < 0.06 * expected.norm()
    assert len(generate(ours, ids, 5, eos_id=None).ids[0]) == 5
