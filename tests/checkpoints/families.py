"""Small random-weight models of the library, and the names of the fields that they are made of."""

import random

import torch
from torch import Tensor, nn

FAMILIES = ("gpt2", "bert", "bert base", "albert", "albert base", "marian", "llama")
ACTIVATIONS = ("gelu", "gelu_new", "relu", "swish")


def drawn_fields(family: str, seed: int) -> dict:
    """Draw sizes of a small model; eight seeds in a row try each activation, tied and untied."""
    draw = random.Random(f"{family} {seed}")
    n_heads = draw.choice((1, 2, 3, 4))
    d_model = n_heads * draw.choice((4, 6, 10))
    layers, width = draw.choice((1, 2, 3)), draw.choice((7, 17, 24))
    activation, tied = ACTIVATIONS[seed % 4], seed % 8 < 4
    if family == "gpt2":
        return {
            **{"vocab_size": 37, "n_positions": 40, "n_embd": d_model, "n_head": n_heads},
            **{"n_layer": layers, "n_inner": draw.choice((None, width)), "pad_token_id": 3},
            **{"activation_function": activation, "tie_word_embeddings": tied},
            "layer_norm_epsilon": draw.choice((1e-5, 1e-3)),
        }
    common = {"vocab_size": 37, "max_position_embeddings": 40, "tie_word_embeddings": tied}
    if family == "marian":
        divisors = [n for n in (1, 2, n_heads) if d_model % n == 0]
        return common | {
            **{"d_model": d_model, "encoder_layers": layers, "decoder_layers": draw.choice((1, 2))},
            **{
                "encoder_attention_heads": n_heads,
                "decoder_attention_heads": draw.choice(divisors),
            },
            **{"encoder_ffn_dim": width, "decoder_ffn_dim": draw.choice((5, width))},
            **{"activation_function": activation, "scale_embedding": seed % 2 == 0},
            **{"pad_token_id": 36, "decoder_start_token_id": 36},
            "share_encoder_decoder_embeddings": seed % 3 > 0,
        }
    common |= {"hidden_size": d_model, "num_hidden_layers": layers, "num_attention_heads": n_heads}
    common |= {"intermediate_size": width}
    if family == "llama":
        divisors = [n for n in range(1, n_heads + 1) if n_heads % n == 0]
        return common | {
            **{"num_key_value_heads": draw.choice(divisors), "pad_token_id": 3},
            **{"attention_bias": draw.random() < 0.5, "rms_norm_eps": draw.choice((1e-6, 1e-3))},
            "rope_parameters": {"rope_type": "default", "rope_theta": draw.choice((1e4, 5e5))},
        }
    if family.startswith("albert"):
        common["embedding_size"] = draw.choice((5, 8))
    return common | {
        **{"hidden_act": activation, "type_vocab_size": draw.choice((1, 2, 3))},
        **{"pad_token_id": 0, "layer_norm_eps": draw.choice((1e-12, 1e-5))},
    }


def library_model(family: str, **fields) -> nn.Module:
    import transformers

    kind, *base = family.split()
    name = {"gpt2": "GPT2"}.get(kind, kind.title())
    heads = {"gpt2": "LMHeadModel", "marian": "MTModel", "llama": "ForCausalLM"}
    head = "Model" if base else heads.get(kind, "ForMaskedLM")
    config = getattr(transformers, f"{name}Config")(**fields)
    model = getattr(transformers, f"{name}{head}")(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name:
                center = 1.0 if parameter.dim() == 1 and "norm" in name.lower() else 0.0
                parameter.copy_(center + 0.3 * torch.randn_like(parameter))
        if family == "marian":
            model.final_logits_bias.normal_()
    return model.eval()


def inputs_of(family: str, model: nn.Module, padding: str | None = None) -> tuple[Tensor, ...]:
    """Return a batch of ids with as much padding as there is room for, and what goes with it."""
    pad, n = model.config.pad_token_id, 9
    ids = torch.randint(4, 35, (3, n))
    for row, pads in enumerate((0, 2, 5) if padding else ()):
        if pads:
            ids[row, slice(0, pads) if padding == "left" else slice(n - pads, n)] = pad
    if family == "marian":
        return ids, torch.randint(4, 35, (3, 6))
    if "bert" in family:
        return ids, torch.randint(0, model.config.type_vocab_size, (3, n))
    return (ids,)
