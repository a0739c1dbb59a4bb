"""A T5 or mT5 in a GGUF file: its config and its names.

llama.cpp says less of a T5 than config.json does. It has no field for the activation: a network
with a gate has GELU, one without has ReLU. It has none for the largest distance of the buckets,
which is always 128, and none for the scale of logits: a model whose table is embedding and
projection at once is of version 1.0.

Differs: llama.cpp leaves out version 1.0's scale of logits, 1 / sqrt(d_model). The likeliest token
    is the same without it, the probabilities are not. We compute what the library does.

Source: llama.cpp's conversion/t5.py (`T5Model`) and src/models/t5.cpp; gguf-py's `TENSOR_NAMES`.
"""

import re
from typing import Any

import torch

from transformer_lesson.checkpoints.family import require
from transformer_lesson.checkpoints.gguf import GGUF
from transformer_lesson.checkpoints.llama_cpp import as_written, said_by
from transformer_lesson.checkpoints.t5 import HEAD
from transformer_lesson.checkpoints.untrusted import Stored, readable_errors

KIND = "t5"
FACTS = {
    "d_model": "embedding_length",
    "d_ff": "feed_forward_length",
    "d_kv": "attention.key_length",
    "num_heads": "attention.head_count",
    "num_layers": "block_count",
    "n_positions": "context_length",
    "layer_norm_epsilon": "attention.layer_norm_rms_epsilon",
    "relative_attention_num_buckets": "attention.relative_buckets_count",
}
"""A field of config.json to llama.cpp's name for it; a file must have all of them."""
MORE_FACTS = {
    "num_decoder_layers": "decoder_block_count",
    "decoder_start_token_id": "decoder_start_token_id",
}
"""The same, of fields that a file may leave out."""
READ = {*FACTS.values(), *MORE_FACTS.values()}
READ |= {"attention.value_length", "attention.layer_norm_epsilon"}
RULES = (
    (r"^token_embd\.", "shared."),
    (r"^output\.", "lm_head."),
    (r"^enc\.", "encoder."),
    (r"^dec\.", "decoder."),
    (r"\.output_norm\.", ".final_layer_norm."),
    (r"\.blk\.", ".block."),
    (r"\.cross_attn_norm\.", ".layer.1.layer_norm."),
    (r"\.cross_attn_rel_b\.", ".layer.1.EncDecAttention.relative_attention_bias."),
    (r"\.cross_attn_([qkvo])\.", r".layer.1.EncDecAttention.\1."),
    (r"\.attn_norm\.", ".layer.0.layer_norm."),
    (r"\.attn_rel_b\.", ".layer.0.SelfAttention.relative_attention_bias."),
    (r"\.attn_([qkvo])\.", r".layer.0.SelfAttention.\1."),
    (r"^(encoder.*)\.ffn_", r"\1.layer.1."),
    (r"^(decoder.*)\.ffn_", r"\1.layer.2."),
    (r"(layer\.[12])\.norm\.", r"\1.layer_norm."),
    (r"(layer\.[12])\.gate\.", r"\1.DenseReluDense.wi_0."),
    (r"(layer\.[12])\.down\.", r"\1.DenseReluDense.wo."),
)
"""Pairs (pattern, replacement) that turn llama.cpp's tensor's name into the library's, in order."""
UP, GATE = re.compile(r"(layer\.[12])\.up\."), "enc.blk.0.ffn_gate.weight"


def stored_t5(file: GGUF, with_numbers: bool = True) -> Stored:
    """Return config and tensors as the library's; without their numbers they are on "meta".

    Raises:
        ValueError: incomplete metadata, or a fact that is not read here.
    """
    with readable_errors(f"the metadata of {file.path}"):
        facts, tensors = _facts(file), {}
        for name, entry in file.table.items():
            tensor = file.tensor(name) if with_numbers else torch.empty(entry.shape, device="meta")
            theirs = their_name(name, GATE in file.table)
            if theirs in tensors:
                raise ValueError(
                    f"tensor {name[:80]!r} is a second {theirs!r}: get the file again."
                )
            tensors[theirs] = tensor
    if facts["tie_word_embeddings"]:
        tensors.pop(HEAD, None)
    return Stored(facts, tensors, str(file.path))


def their_name(name: str, gated: bool) -> str:
    """Return the library's name of a tensor, from llama.cpp's; unknown parts stay as they are."""
    for pattern, replacement in RULES:
        name = re.sub(pattern, replacement, name)
    return UP.sub(r"\1.DenseReluDense.wi_1." if gated else r"\1.DenseReluDense.wi.", name)


def _facts(file: GGUF) -> dict[str, Any]:
    """Return what config.json would say."""
    metadata, embedding = said_by(file, KIND, READ), file.table.get("token_embd.weight")
    lost = [f"{KIND}.{name}" for name in FACTS.values() if name not in metadata]
    if lost or embedding is None:
        lost = ", ".join(lost or ["token_embd.weight"])
        raise ValueError(f"{file.path} has no {lost}: it is not complete, get the file again.")
    facts = {field: as_written(metadata[name]) for field, name in FACTS.items()}
    facts |= {field: metadata[name] for field, name in MORE_FACTS.items() if name in metadata}
    for name, same in (
        ("attention.value_length", "d_kv"),
        ("attention.layer_norm_epsilon", "layer_norm_epsilon"),
    ):
        require({name: as_written(metadata.get(name, facts[same]))}, **{name: facts[same]})
    ids = {
        f"{token}_token_id": file.metadata.get(f"tokenizer.ggml.{name}_token_id")
        for token, name in (("eos", "eos"), ("pad", "padding"))
    }
    return {
        **facts,
        **{field: id_ for field, id_ in ids.items() if id_ is not None},
        "model_type": KIND,
        "vocab_size": embedding.shape[0],
        "feed_forward_proj": "gated-gelu" if GATE in file.table else "relu",
        "tie_word_embeddings": _is_tied(file),
    }


def _is_tied(file: GGUF) -> bool:
    """Whether the projection is missing or, as in some files of version 1.0, the table again."""
    head = file.table.get("output.weight")
    if head is None:
        return True
    same = head._replace(start=0) == file.table["token_embd.weight"]._replace(start=0)
    return same and file.same_bytes("output.weight", "token_embd.weight")
