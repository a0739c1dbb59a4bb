"""Small random models of the library, of T5's kinds."""

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
