"""Small random models of the library, of T5's kinds, and their GGUF files."""

from pathlib import Path

import gguf
import torch
import transformers
from torch import nn

GATED = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
KINDS = {
    "1.0": ("T5", {}),
    "1.0, few buckets": ("T5", {"relative_attention_num_buckets": 8, "num_layers": 3}),
    "1.1": ("T5", GATED | {"relative_attention_max_distance": 40}),
    "mT5": ("MT5", GATED | {"feed_forward_proj": "gated-silu"}),
}


def made(name: str, **changes) -> nn.Module:
    """Return a model of the library whose projection has its own matrix, if it is not tied."""
    start, fields = KINDS[name]
    sizes = {
        "vocab_size": 97,
        "d_model": 48,
        "d_kv": 10,
        "d_ff": 80,
        "num_layers": 2,
        "num_decoder_layers": 2,
    }
    fields = sizes | {"num_heads": 6, "decoder_start_token_id": 0} | fields
    fields |= {"attn_implementation": "eager"}
    config = getattr(transformers, f"{start}Config")(**fields | changes)
    model = getattr(transformers, f"{start}ForConditionalGeneration")(config).eval()
    if fields.get("tie_word_embeddings") is False:
        model.lm_head.weight = torch.nn.Parameter(torch.empty(97, 48))
    for name, weight in model.named_parameters():
        center, scale = (1.0, 0.2) if weight.dim() == 1 else (0.0, weight.size(-1) ** -0.5)
        scale *= config.d_kv**-0.5 if ".q." in name else 1.0  # nothing else scales the scores
        weight.data = center + scale * torch.randn_like(weight)
    return model


def write_gguf(path: Path, theirs: nn.Module, **changes) -> None:
    """Write a model with the package gguf, by the rules of llama.cpp's conversion/t5.py.

    Args:
        changes: methods of the writer with other arguments, or with `None`: then left out.
    """
    c, writer = theirs.config, gguf.GGUFWriter(path, "t5")
    facts = {
        "add_context_length": 512,
        "add_embedding_length": c.d_model,
        "add_feed_forward_length": c.d_ff,
        "add_block_count": c.num_layers,
        "add_decoder_block_count": c.num_decoder_layers,
        "add_head_count": c.num_heads,
        "add_key_length": c.d_kv,
        "add_value_length": c.d_kv,
        "add_layer_norm_eps": c.layer_norm_epsilon,
        "add_layer_norm_rms_eps": c.layer_norm_epsilon,
        "add_relative_attn_buckets_count": c.relative_attention_num_buckets,
        "add_decoder_start_token_id": c.decoder_start_token_id,
        "add_eos_token_id": 1,
        "add_pad_token_id": 0,
    }
    for add, value in (facts | changes).items():
        if value is not None:
            getattr(writer, add)(value)
    layers = max(c.num_layers, c.num_decoder_layers)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.T5, layers)
    head = theirs.lm_head.weight is not theirs.shared.weight
    for name, weight in theirs.state_dict().items():
        if "embed_tokens" not in name and (head or name != "lm_head.weight"):
            writer.add_tensor(names.get_name(name, try_suffixes=(".weight",)), weight.numpy())
    writer.write_header_to_file(), writer.write_kv_data_to_file(), writer.write_tensors_to_file()
    writer.close()
