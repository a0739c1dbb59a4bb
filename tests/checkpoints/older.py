"""Small random models of the library, of relatives of GPT-2 and BERT."""

import torch
import transformers
from torch import nn

OLDER = {
    "Roberta": {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3}
    | {"intermediate_size": 17, "max_position_embeddings": 44, "pad_token_id": 1},
    "DistilBert": {"dim": 24, "n_layers": 2, "n_heads": 3, "hidden_dim": 17}
    | {"max_position_embeddings": 42, "pad_token_id": 1},
    "OPT": {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "ffn_dim": 17}
    | {"max_position_embeddings": 42, "pad_token_id": 1, "word_embed_proj_dim": 24},
}


def older(name: str, **changes) -> nn.Module:
    """Return a model of the library with random weights."""
    head = "CausalLM" if name == "OPT" else "MaskedLM"
    config = getattr(transformers, f"{name}Config")(vocab_size=97, **OLDER[name] | changes)
    model = getattr(transformers, f"{name}For{head}")(config).eval()
    for weight in model.parameters():
        weight.data += 0.3 * torch.randn_like(weight)
    return model
