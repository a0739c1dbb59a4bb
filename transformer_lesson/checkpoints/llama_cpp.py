"""A Llama, a relative or a GPT-NeoX in a GGUF file: its config and its names.

llama.cpp has its own names and its own order. Its Llama turns neighbors (2j, 2j + 1) of each query
and key; ours and the library's turn number j with number j + d_head / 2. So the rows of W_Q and W_K
are reordered when such a file is written, and put back here. In a GPT-NeoX, which it turns as the
library does, the fused matrix begins with the queries of all heads.

Source: llama.cpp's convert_hf_to_gguf.py, `LlamaModel.permute`, `GPTNeoXModel.modify_tensors`.
"""

import re
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from transformer_lesson.checkpoints.family import require
from transformer_lesson.checkpoints.gguf import GGUF, read_gguf
from transformer_lesson.checkpoints.gguf_formats import FOUR_BITS
from transformer_lesson.checkpoints.gguf_tokenizer import read_tokenizer as read_tokenizer
from transformer_lesson.checkpoints.gpt_neox import NEOX, GPTNeoXFamily, head_by_head
from transformer_lesson.checkpoints.llama import RELATIVES, LlamaFamily
from transformer_lesson.checkpoints.rotations import FULL, LOCAL, share_of
from transformer_lesson.checkpoints.untrusted import Stored, readable_errors, require_room
from transformer_lesson.checkpoints.zero_copy import parameters_on_meta
from transformer_lesson.files import printable
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.fast import plain
from transformer_lesson.model.packed import FourBitLinear
from transformer_lesson.model.transformers import DecoderOnlyTransformer

LLAMA = RELATIVES[0]
ARCHITECTURES = {family.model_type.removesuffix("_text"): family for family in RELATIVES} | {
    "gptneox": NEOX
}
"""llama.cpp's name of a family; it keeps a Mistral as a Llama."""
NEIGHBORS = ("llama", "mistral", "smollm3")
"""The families whose rows of W_Q and W_K it reorders."""
FACTS = {
    "hidden_size": "embedding_length",
    "intermediate_size": "feed_forward_length",
    "max_position_embeddings": "context_length",
    "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "num_hidden_layers": "block_count",
    "rms_norm_eps": "attention.layer_norm_rms_epsilon",
}
"""A field of config.json to llama.cpp's name for it; a file must have all of them."""
NEOX_FACTS = dict(FACTS, layer_norm_eps="attention.layer_norm_epsilon")
del NEOX_FACTS["rms_norm_eps"], NEOX_FACTS["num_key_value_heads"]
MORE_FACTS = {
    "rope_theta": "rope.freq_base",
    "rope_local_base_freq": "rope.freq_base_swa",
    "sliding_window": "attention.sliding_window",
    "attn_logit_softcapping": "attn_logit_softcapping",
    "final_logit_softcapping": "final_logit_softcapping",
}
"""The same, of fields that a file may leave out."""
READ = {*FACTS.values(), *MORE_FACTS.values(), "attention.key_length", "attention.value_length"}
READ |= {"attention.sliding_window_pattern", "rope.dimension_count"}
READ |= {"rope.scaling.type", "rope.scaling.factor"}
NEOX_READ = {
    *NEOX_FACTS.values(),
    "rope.freq_base",
    "rope.dimension_count",
    "use_parallel_residual",
}
WITHOUT_EFFECT = {"vocab_size", "rope.scaling.original_context_length", "rope.scaling.finetuned"}
"""Metadata that is known; any other fact about a model is refused, by name."""
FREQUENCIES = "rope_freqs.weight"
"""What each pair's frequency is divided by. The library reads such a file, but not this."""
LARGEST = (("gemma2", 46), ("gemma3_text", 62))
"""Two models of 27 billion numbers, whose scores have another scale; no file says so."""


def stored_llama(file: GGUF, with_numbers: bool = True) -> Stored:
    """Return config and tensors as the library's; without their numbers they are on "meta".

    Raises:
        ValueError: another architecture, or incomplete metadata.
    """
    with readable_errors(f"the metadata of {file.path}"):
        family, facts = _facts(file)
        n_heads = {"q": facts["num_attention_heads"], "k": facts.get("num_key_value_heads")}
        tensors = {}
        for name in file.table:
            if name == FREQUENCIES:
                continue
            shape = file.table[name].shape
            tensor = file.tensor(name) if with_numbers else torch.empty(shape, device="meta")
            match = re.fullmatch(r"blk\.\d+\.attn_([qk]|qkv)\.(weight|bias)", name)
            if match and family is NEOX:
                tensor = head_by_head(tensor, n_heads["q"])
            elif match and family.model_type in NEIGHBORS:
                rows = tensor.view(len(tensor), -1)
                tensor = halves_from_neighbors(rows, n_heads[match[1]]).view_as(tensor)
            if family.plus_one and "norm" in name:  # llama.cpp has added the 1
                tensor = tensor.double() - 1
            theirs = family.rename(our_name(name, family))
            if theirs in tensors:
                raise ValueError(
                    f"tensor {name[:80]!r} is a second {theirs!r}: get the file again."
                )
            tensors[theirs] = tensor
    return Stored(facts, tensors, str(file.path))


def packed_llama(path: str | Path) -> DecoderOnlyTransformer:
    """Return a Llama or a relative that computes in bfloat16 and whose matrices stay in 4 bits.

    That holds for matrices of blocks in the formats Q4_0, Q4_1 and Q4_K; all others are dequantized
    to bfloat16, and so are these with TRANSFORMER_LESSON_PLAIN=1 in the environment.

    Raises:
        ValueError: a damaged file, another architecture, or tensors that do not fit its metadata.
    """
    file = read_gguf(path)
    with readable_errors(f"the metadata of {path}"):
        family, facts = _facts(file)
        (config,) = family.read_config(facts)
        table = {name: entry for name, entry in file.table.items() if name != FREQUENCIES}
        numbers = {name: torch.empty(e.shape, device="meta") for name, e in table.items()}
        require_room((config,), numbers)
        places = {
            ours: (name, rows)
            for name, entry in table.items()
            for ours, rows in _places(name, entry.shape[0], family, config).items()
        }
        with parameters_on_meta():
            model = DecoderOnlyTransformer(config)
    parameters, used = dict(model.named_parameters()), set()
    for ours, parameter in parameters.items():
        name, rows = places.get(ours, ("", ()))
        if (len(rows), *numbers.get(name, torch.empty(0)).shape[1:]) != tuple(parameter.shape):
            raise ValueError(f"{file.path}: it has no {ours} of shape {tuple(parameter.shape)}.")
        used.add(name)
    if extra := sorted((places.keys() - parameters) | (table.keys() - used)):
        more = f"{file.path} has more than a {family.name}'s tensors"
        raise ValueError(f"{more}: {printable(', '.join(extra), 200)}.")
    for ours, (name, rows) in places.items():
        _put(model, file, name, ours, rows)
    return model.eval()


def _places(
    name: str, n_rows: int, family: LlamaFamily | GPTNeoXFamily, config: ModelConfig
) -> dict[str, Int64[Tensor, " row"]]:
    """Return which of our parameters a tensor of a file holds, and which rows are theirs, in order.

    A fused matrix holds several, on top of each other.
    """
    ours, rows = our_name(name, family), torch.arange(n_rows)
    d_keys = (config.n_kv_heads or config.n_heads) * config.d_head
    if ".W_QKV." in ours:
        parts = rows.split([n_rows - 2 * d_keys, d_keys, d_keys])
        return {
            ours.replace("W_QKV", f"W_{part}"): its for part, its in zip("QKV", parts, strict=True)
        }
    if ".W_gate_up." in ours:
        halves = zip(("_gate", "_up"), rows.chunk(2), strict=True)
        return {ours.replace("_gate_up", part): its for part, its in halves}
    if family.model_type in NEIGHBORS and re.search(r"\.W_[QK]\.", ours):
        n_heads = config.n_heads if ".W_Q." in ours else d_keys // config.d_head
        rows = halves_from_neighbors(rows.double()[:, None], n_heads)[:, 0].long()
    return {ours: rows}


def _put(model: nn.Module, file: GGUF, name: str, ours: str, rows: Tensor) -> None:
    """Put these rows of a file's tensor into a model."""
    entry, (layer, _, kind) = file.table[name], ours.rpartition(".")
    module = model.get_submodule(layer)
    linear = kind == "weight" and type(module) is nn.Linear and len(rows) % 16 == 0
    if torch.equal(rows, torch.arange(entry.shape[0])):
        rows = slice(None)  # no copy
    if linear and entry.format.name in FOUR_BITS and not plain():
        parts = FOUR_BITS[entry.format.name](file.blocks(name))
        parts = [part.view(entry.shape[0], -1)[rows] for part in parts]
        model.set_submodule(layer, FourBitLinear(*parts, module.bias))
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


def our_name(name: str, family: LlamaFamily | GPTNeoXFamily = LLAMA) -> str:
    """Return our name for a tensor, from llama.cpp's; unknown parts stay as they are.

    Source: llama.cpp's gguf-py/gguf/constants.py, `TENSOR_NAMES`.
    """
    parts = {
        "token_embd": "embedding",
        "attn_q": "self_attention.W_Q",
        "attn_k": "self_attention.W_K",
        "attn_v": "self_attention.W_V",
        "attn_qkv": "self_attention.W_QKV",
        "attn_q_norm": "self_attention.norm_Q",
        "attn_k_norm": "self_attention.norm_K",
        "attn_output": "self_attention.W_O",
        "ffn_gate": "feed_forward.W_gate",
        "ffn_up": "feed_forward.W_gate_up" if family.fused else "feed_forward.W_up",
        "ffn_down": "feed_forward.W_down",
        "output_norm": "decoder_norm",
        "output": "projection",
        **{theirs: ours for ours, _, theirs in family.norms},
    }
    if family is NEOX:
        parts |= {"ffn_up": "feed_forward.W_1", "ffn_down": "feed_forward.W_2"}
    words = [parts.get(word, word) for word in name.split(".")]
    return ".".join(["decoder" if word == "blk" else word for word in words])


def _facts(file: GGUF) -> tuple[LlamaFamily | GPTNeoXFamily, dict[str, Any]]:
    """Return the family, and what config.json would say."""
    family, metadata = _architecture(file)
    names, embedding = NEOX_FACTS if family is NEOX else FACTS, file.table.get("token_embd.weight")
    missing = [name for name in names.values() if name not in metadata]
    if missing or embedding is None:
        start = f"{file.metadata['general.architecture']}."
        lost = ", ".join([start + name for name in missing] or ["token_embd.weight"])
        raise ValueError(f"{file.path} has no {lost}: it is not complete, get the file again.")
    if family is LLAMA and metadata.get("attention.sliding_window"):
        family = ARCHITECTURES["mistral"]
    facts = {field: as_written(metadata[name]) for field, name in names.items()}
    facts |= {f: as_written(metadata[name]) for f, name in MORE_FACTS.items() if name in metadata}
    facts |= {
        f"{token}_token_id": file.metadata.get(f"tokenizer.ggml.{name}_token_id")
        for token, name in (("bos", "bos"), ("eos", "eos"), ("pad", "padding"))
    }
    facts |= {
        "model_type": family.model_type,
        "vocab_size": embedding.shape[0],
        "tie_word_embeddings": "output.weight" not in file.table,
    }
    if "attention_bias" in family.reads:
        biases = {"blk.0.attn_q.bias", "blk.0.attn_qkv.bias"}
        facts["attention_bias"] = bool(biases & file.table.keys())
    if family is NEOX:
        facts["use_parallel_residual"] = metadata.get("use_parallel_residual", True)
    facts |= _heads(family, facts, metadata) | _windows(metadata) | _stretching(file, metadata)
    return family, facts


def _architecture(file: GGUF) -> tuple[LlamaFamily | GPTNeoXFamily, dict[str, Any]]:
    """Return the family, and what the file says of it, by names without their common start."""
    kind = file.metadata.get("general.architecture")
    family = ARCHITECTURES.get(kind) if isinstance(kind, str) else None
    if family is None:
        raise ValueError(
            f"{file.path}: general.architecture is {kind!r}, but only "
            f"{', '.join(map(repr, ARCHITECTURES))} are read, and 't5' by `from_pretrained`."
        )
    return family, said_by(file, kind, NEOX_READ if family is NEOX else READ)


def said_by(file: GGUF, kind: str, read: set[str]) -> dict[str, Any]:
    """Return what a file says of its model, by names without their common start.

    Raises:
        ValueError: it says more than is read here.
    """
    start = f"{kind}."
    metadata = {k.removeprefix(start): v for k, v in file.metadata.items() if k.startswith(start)}
    for name in sorted(metadata.keys() - read - WITHOUT_EFFECT):
        raise ValueError(
            f"{file.path}: {start}{name} is {str(metadata[name])[:80]}, but it is not read here: "
            "this model would compute something else."
        )
    return metadata


def _heads(
    family: LlamaFamily | GPTNeoXFamily, facts: dict[str, Any], metadata: dict[str, Any]
) -> dict[str, Any]:
    """Return the fields that say how large a head is, and how much of it turns."""
    usual = facts["hidden_size"] // facts["num_attention_heads"]
    d_head = metadata.get("attention.key_length", usual)
    require({"value_length": metadata.get("attention.value_length", d_head)}, value_length=d_head)
    fields = {"head_dim": d_head}
    turned = metadata.get("rope.dimension_count", d_head)
    if turned != d_head or family is NEOX:
        fields["partial_rotary_factor"] = share_of(turned, d_head)
    if "query_pre_attn_scalar" in family.reads:
        largest = (family.model_type, facts["num_hidden_layers"]) in LARGEST
        fields["query_pre_attn_scalar"] = usual if largest else d_head
    return fields


def _windows(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that say which layers have a window, if the file does."""
    pattern = metadata.get("attention.sliding_window_pattern")
    if pattern is None or isinstance(pattern, int):
        return {} if pattern is None else {"sliding_window_pattern": pattern}
    return {"layer_types": [LOCAL if local else FULL for local in pattern.tolist()]}


def _stretching(file: GGUF, metadata: dict[str, Any]) -> dict[str, Any]:
    """Return the field that says how rotary positions are stretched."""
    kind = metadata.get("rope.scaling.type", "none")
    scaling = {"rope_type": "default" if kind == "none" else kind}
    if kind == "linear":
        scaling["factor"] = as_written(metadata["rope.scaling.factor"])
    if FREQUENCIES not in file.table:
        return {"rope_scaling": scaling}
    require({"rope.scaling.type": kind}, **{"rope.scaling.type": "none"})
    each = file.tensor(FREQUENCIES).flatten().tolist()
    same = {"short_factor": each, "long_factor": each, "attention_factor": 1.0}
    return {"rope_scaling": {"rope_type": "longrope"} | same}


def as_written(fact: Any) -> Any:
    """Return the number that the file rounded to 32 bits: 1e-5, where it has 9.9999997e-6."""
    return float(f"{fact:.7g}") if isinstance(fact, float) else fact
