"""Small random models of the library, of Llama's relatives and GPT-NeoX, and their GGUF files."""

from pathlib import Path

import gguf
import numpy as np
import torch
from torch import nn

from tests.checkpoints.llama_files import neighbors_from_halves

SIZES = {"vocab_size": 97, "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 4}
SIZES |= {"num_attention_heads": 6, "num_key_value_heads": 2, "max_position_embeddings": 512}
IDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0}
LLAMA3 |= {"high_freq_factor": 4.0, "original_max_position_embeddings": 64}
LINEAR = {
    "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
    "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
}
PARTIAL = {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.75}
FAMILIES = {
    "Llama 3.1": ("Llama", {"rope_parameters": LLAMA3}),
    "Llama, biases": ("Llama", {"attention_bias": True, "head_dim": 10}),
    "Mistral": ("Mistral", {"sliding_window": 16, "head_dim": 12}),
    "Mistral NeMo": ("Mistral", {"sliding_window": None, "head_dim": 10}),
    "Qwen 2": ("Qwen2", {"tie_word_embeddings": True}),
    "Qwen 2, windows": (
        "Qwen2",
        {"use_sliding_window": True, "sliding_window": 16, "max_window_layers": 2},
    ),
    "Qwen 3": ("Qwen3", {"head_dim": 12, "tie_word_embeddings": True}),
    "Gemma": ("Gemma", {"head_dim": 12}),
    "Gemma 2": ("Gemma2", {"head_dim": 12, "sliding_window": 16, "query_pre_attn_scalar": 12}),
    "Gemma 2, 27B's kind": (
        "Gemma2",
        {"head_dim": 12, "sliding_window": 16, "query_pre_attn_scalar": 20},
    ),
    "Gemma 3": (
        "Gemma3",
        {"num_hidden_layers": 7, "num_attention_heads": 4, "num_key_value_heads": 1}
        | {"head_dim": 16, "sliding_window": 16, "query_pre_attn_scalar": 16},
    ),
    "Gemma 3, 4B's kind": (
        "Gemma3",
        {"num_hidden_layers": 6, "head_dim": 12, "sliding_window": 16}
        | {"query_pre_attn_scalar": 12, "rope_parameters": LINEAR},
    ),
    "OLMo 2": ("Olmo2", {}),
    "Phi-3": ("Phi3", {"sliding_window": 16}),
    "Phi-4 mini": ("Phi3", {"rope_parameters": PARTIAL}),
    "SmolLM3": ("SmolLM3", {}),
    "SmolLM3, windows": ("SmolLM3", {"use_sliding_window": True, "sliding_window": 16}),
    "GPT-NeoX": ("GPTNeoX", {"num_key_value_heads": 6}),
    "GPT-NeoX, in a row": (
        "GPTNeoX",
        {"use_parallel_residual": False, "rope_parameters": PARTIAL, "num_key_value_heads": 6}
        | {"tie_word_embeddings": True},
    ),
}
"""Each with the start of its classes' names in the library, and fields of its config."""


def made(name: str, **changes) -> nn.Module:
    """Return a model of the library with random weights, also where it would begin with 0 or 1."""
    import transformers

    start, fields = FAMILIES[name]
    fields = SIZES | IDS | fields | changes
    kind = "Gemma3TextConfig" if start == "Gemma3" else f"{start}Config"
    config = getattr(transformers, kind)(**fields, attn_implementation="eager")
    model = getattr(transformers, f"{start}ForCausalLM")(config)
    for weight_name, weight in model.named_parameters():
        center = float("norm" in weight_name and not start.startswith("Gemma"))
        scale = 0.2 if weight.dim() == 1 else weight.size(-1) ** -0.5
        weight.data = center + scale * torch.randn_like(weight)
    return model.eval()


def write_gguf(path: Path, theirs: nn.Module, quantized: str | None = None) -> None:
    """Write a model with the package gguf, by the rules of llama.cpp's convert_hf_to_gguf.py.

    If the name of a format is given, the blocks' matrices are quantized.
    """
    c = theirs.config
    kinds = {"mistral": "llama", "gpt_neox": "gptneox"}
    kind = kinds.get(c.model_type, c.model_type.removesuffix("_text"))
    writer = gguf.GGUFWriter(path, kind)
    for add, value in _metadata(c, kind):
        getattr(writer, add)(value)
    number = next(key for key, name in gguf.MODEL_ARCH_NAMES.items() if name == kind)
    names = gguf.get_tensor_name_map(number, c.num_hidden_layers)
    heads = {"q_proj": c.num_attention_heads, "k_proj": c.num_key_value_heads}
    for name, weight in theirs.state_dict().items():
        W, part = weight.numpy(), name.split(".")[-2]
        if kind in ("llama", "smollm3") and part in heads:
            W = neighbors_from_halves(W.reshape(len(W), -1), heads[part]).reshape(W.shape)
        if kind.startswith("gemma") and "norm" in name:
            W = W + 1
        if part == "query_key_value":
            W = W.reshape(c.num_attention_heads, 3, -1, *W.shape[1:]).swapaxes(0, 1)
            W = W.reshape(-1, *W.shape[3:])
        if name != "lm_head.weight" or not c.tie_word_embeddings:
            theirs_in_file = names.get_name(name, try_suffixes=(".weight", ".bias"))
            W = np.ascontiguousarray(W)
            if quantized and W.ndim == 2 and theirs_in_file.startswith("blk"):
                kind_of = gguf.GGMLQuantizationType[quantized]
                writer.add_tensor(theirs_in_file, gguf.quantize(W, kind_of), raw_dtype=kind_of)
            else:
                writer.add_tensor(theirs_in_file, W)
    if c.rope_parameters.get("rope_type") == "llama3":
        writer.add_tensor("rope_freqs.weight", llama3_factors(c))
    writer.write_header_to_file(), writer.write_kv_data_to_file(), writer.write_tensors_to_file()
    writer.close()


def _metadata(c, kind: str) -> list[tuple]:
    rope = c.rope_parameters.get("full_attention", c.rope_parameters)
    d_head = getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads
    facts = [
        ("add_context_length", c.max_position_embeddings),
        ("add_embedding_length", c.hidden_size),
        ("add_block_count", c.num_hidden_layers),
        ("add_feed_forward_length", c.intermediate_size),
        ("add_head_count", c.num_attention_heads),
        ("add_rope_dimension_count", int(d_head * rope.get("partial_rotary_factor", 1.0))),
        ("add_rope_freq_base", rope["rope_theta"]),
        ("add_vocab_size", c.vocab_size),
        ("add_bos_token_id", 1),
        ("add_eos_token_id", 2),
        ("add_pad_token_id", 0),
    ]
    if kind == "gptneox":
        facts.append(("add_layer_norm_eps", c.layer_norm_eps))
        facts.append(("add_parallel_residual", c.use_parallel_residual))
        return facts
    facts += [
        ("add_head_count_kv", c.num_key_value_heads),
        ("add_layer_norm_rms_eps", c.rms_norm_eps),
        ("add_key_length", d_head),
        ("add_value_length", d_head),
    ]
    if getattr(c, "sliding_window", None) and kind not in ("qwen2", "qwen3", "smollm3"):
        facts.append(("add_sliding_window", c.sliding_window))
    if kind == "gemma2":
        facts.append(("add_attn_logit_softcapping", c.attn_logit_softcapping))
        facts.append(("add_final_logit_softcapping", c.final_logit_softcapping))
    if rope["rope_type"] == "linear":
        facts.append(("add_rope_scaling_type", gguf.RopeScalingType.LINEAR))
        facts.append(("add_rope_scaling_factor", rope["factor"]))
    return facts


def llama3_factors(c) -> np.ndarray:
    """Return what llama.cpp's converter writes for a stretched Llama."""
    rope, factors = c.rope_parameters, []
    low = rope["original_max_position_embeddings"] / rope["low_freq_factor"]
    high = rope["original_max_position_embeddings"] / rope["high_freq_factor"]
    for j in range(0, c.head_dim, 2):
        length = 2 * np.pi * rope["rope_theta"] ** (j / c.head_dim)
        smooth = (low / length - 1) / (rope["high_freq_factor"] / rope["low_freq_factor"] - 1)
        between = 1 / ((1 - smooth) / rope["factor"] + smooth)
        factors.append(1.0 if length < high else rope["factor"] if length > low else between)
    return np.array(factors, dtype=np.float32)
