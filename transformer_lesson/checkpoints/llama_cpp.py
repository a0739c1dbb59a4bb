"""A Llama as llama.cpp keeps it in a GGUF file: its config and its names.

llama.cpp has its own names and its own order. Its rotary positions turn neighbors (2j, 2j + 1) of
each query and key; ours and the library's turn number j with number j + d_head / 2. So the rows of
W_Q and W_K are reordered when such a file is written, and put back here.

Source: llama.cpp's convert_hf_to_gguf.py, `LlamaModel.permute`.
"""

import re
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer_lesson.checkpoints.gguf import GGUF, read_gguf
from transformer_lesson.checkpoints.gguf_formats import parts_q4_1
from transformer_lesson.checkpoints.gguf_tokenizer import read_tokenizer as read_tokenizer
from transformer_lesson.checkpoints.llama import LlamaFamily
from transformer_lesson.checkpoints.untrusted import Stored, readable_errors, require_room
from transformer_lesson.checkpoints.zero_copy import parameters_on_meta
from transformer_lesson.model.fast import plain
from transformer_lesson.model.packed import FourBitLinear
from transformer_lesson.model.transformers import DecoderOnlyTransformer

ARCHITECTURE, LLAMA = "llama", LlamaFamily()
FACTS = {
    "hidden_size": "llama.embedding_length",
    "intermediate_size": "llama.feed_forward_length",
    "max_position_embeddings": "llama.context_length",
    "num_attention_heads": "llama.attention.head_count",
    "num_key_value_heads": "llama.attention.head_count_kv",
    "num_hidden_layers": "llama.block_count",
    "rms_norm_eps": "llama.attention.layer_norm_rms_epsilon",
    "head_dim": "llama.rope.dimension_count",
}
"""A field of config.json to llama.cpp's name for it; a file must have all of them."""


def read_llama(path: str | Path) -> Stored:
    """Read a GGUF file with a Llama, and return config and tensors in the library's form.

    Raises:
        ValueError: a damaged file, another architecture, or incomplete metadata.
    """
    file = read_gguf(path)
    with readable_errors(f"the metadata of {path}"):
        facts = _facts(file)
        n_heads = {"q": facts["num_attention_heads"], "k": facts["num_key_value_heads"]}
        tensors = {}
        for name in file.table:
            tensor = file.tensor(name)
            if match := re.fullmatch(r"blk\.\d+\.attn_([qk])\.weight", name):
                tensor = halves_from_neighbors(tensor, n_heads[match[1]])
            theirs = LLAMA.rename(our_name(name))
            if theirs in tensors:
                raise ValueError(
                    f"tensor {name[:80]!r} is a second {theirs!r}: get the file again."
                )
            tensors[theirs] = tensor
    return Stored(facts, tensors, str(path))


def packed_llama(path: str | Path) -> DecoderOnlyTransformer:
    """Return a Llama that computes in bfloat16 and whose Q4_1 matrices stay in 4 bits.

    With TRANSFORMER_LESSON_PLAIN=1 in the environment these are in bfloat16 too.

    Raises:
        ValueError: a damaged file, another architecture, or tensors that do not fit its metadata.
    """
    file = read_gguf(path)
    model = empty_llama(file)
    for name in file.table:
        _put(model, file, name)
    return model.eval()


def empty_llama(file: GGUF) -> DecoderOnlyTransformer:
    """Return the model that a file's header describes, without its numbers.

    Raises:
        ValueError: another architecture, or tensors that do not fit its metadata.
    """
    with readable_errors(f"the metadata of {file.path}"):
        (config,) = LLAMA.read_config(_facts(file))
        shapes = {our_name(name): entry.shape for name, entry in file.table.items()}
        require_room((config,), {name: torch.empty(s, device="meta") for name, s in shapes.items()})
        with parameters_on_meta():
            model = DecoderOnlyTransformer(config)
    for name, parameter in model.named_parameters():
        if shapes.pop(name, None) != tuple(parameter.shape):
            raise ValueError(f"{file.path}: it has no {name} of shape {tuple(parameter.shape)}.")
    if shapes or len(file.table) > len(list(model.parameters())):
        raise ValueError(f"{file.path} has more than a Llama's tensors: {str(list(shapes))[:200]}.")
    return model


def _put(model: nn.Module, file: GGUF, name: str) -> None:
    """Put one tensor of a file into a model."""
    ours, entry, config = our_name(name), file.table[name], model.config
    rows, (layer, _, _) = slice(None), ours.rpartition(".")
    if ours.endswith((".W_Q.weight", ".W_K.weight")):
        n_heads = config.n_heads if "W_Q" in ours else config.n_kv_heads
        order = torch.arange(float(entry.shape[0]))[:, None]
        rows = halves_from_neighbors(order, n_heads)[:, 0].long()

    linear = type(model.get_submodule(layer)) is nn.Linear and entry.shape[0] % 16 == 0
    if entry.format.name == "Q4_1" and linear and not plain():
        parts = parts_q4_1(file.blocks(name))
        packed = FourBitLinear(*(part.view(entry.shape[0], -1)[rows] for part in parts))
        model.set_submodule(layer, packed)
    else:
        matrix = file.tensor(name, torch.bfloat16)[rows]
        torch.utils.swap_tensors(model.get_parameter(ours), nn.Parameter(matrix))


def halves_from_neighbors(
    W: Float[Tensor, "d_out d_in"], n_heads: int
) -> Float[Tensor, "d_out d_in"]:
    """Put the rows of W_Q or W_K in the order that `apply_rotary` expects.

    Rows 0, 1, 2, 3, ... of a head become rows 0, d_head / 2, 1, d_head / 2 + 1, ...

    Args:
        W: as `nn.Linear` stores it; d_out = n_heads * d_head.
        n_heads: heads that the rows belong to; keys may have fewer than queries.
    """
    pairs = W.view(n_heads, -1, 2, W.size(1))  # (head, d_head / 2, of a pair, d_in)
    return pairs.transpose(1, 2).reshape(W.shape)


def our_name(name: str) -> str:
    """Return our name for a Llama's tensor, from llama.cpp's; unknown parts stay as they are.

    Source: llama.cpp's gguf-py/gguf/constants.py, `TENSOR_NAMES`.
    """
    parts = {
        "token_embd": "embedding",
        "attn_norm": "norm_1",
        "attn_q": "self_attention.W_Q",
        "attn_k": "self_attention.W_K",
        "attn_v": "self_attention.W_V",
        "attn_output": "self_attention.W_O",
        "ffn_norm": "norm_2",
        "ffn_gate": "feed_forward.W_gate",
        "ffn_up": "feed_forward.W_up",
        "ffn_down": "feed_forward.W_down",
        "output_norm": "decoder_norm",
        "output": "projection",
    }
    words = [parts.get(word, word) for word in name.split(".")]
    return ".".join(["decoder" if word == "blk" else word for word in words])


def _facts(file: GGUF) -> dict[str, Any]:
    """Return what config.json would say."""
    metadata, kind = file.metadata, file.metadata.get("general.architecture")
    if kind != ARCHITECTURE:
        raise ValueError(
            f"{file.path}: general.architecture is {kind!r}, but only {ARCHITECTURE!r} is read."
        )
    embedding = file.table.get("token_embd.weight")
    missing = [name for name in FACTS.values() if name not in metadata]
    if missing or embedding is None:
        lost = ", ".join(missing or ["token_embd.weight"])
        raise ValueError(f"{file.path} has no {lost}: it is not complete, get the file again.")
    facts = {field: _as_written(metadata[name]) for field, name in FACTS.items()}
    for token in ("bos", "eos"):
        facts[f"{token}_token_id"] = metadata.get(f"tokenizer.ggml.{token}_token_id")
    return facts | {
        "model_type": "llama",
        "vocab_size": embedding.shape[0],
        "pad_token_id": metadata.get("tokenizer.ggml.padding_token_id"),
        "rope_theta": metadata.get("llama.rope.freq_base", 10000.0),
        "rope_scaling": {"rope_type": metadata.get("llama.rope.scaling.type", "default")},
        "tie_word_embeddings": "output.weight" not in file.table,
    }


def _as_written(fact: Any) -> Any:
    """Return the number that the file rounded to 32 bits: 1e-5, where it has 9.9999997e-6."""
    return float(f"{fact:.7g}") if isinstance(fact, float) else fact
