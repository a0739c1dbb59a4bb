"""Small files in the format of llama.cpp."""

import json

import gguf
import numpy as np
import tokenizers
from tokenizers import pre_tokenizers
from transformers import LlamaForCausalLM

from tests.checkpoints.families import drawn_fields, library_model


def llama_cpps_name(name: str, n_layers: int) -> str:
    """Return what llama.cpp calls a tensor of the library."""
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, n_layers)
    return names.get_name(name, try_suffixes=(".weight",))


def neighbors_from_halves(W: np.ndarray, n_heads: int) -> np.ndarray:
    """Row j and row j + d_head / 2 of a head become neighbors, as llama.cpp stores them."""
    return W.reshape(n_heads, 2, -1, W.shape[1]).swapaxes(1, 2).reshape(W.shape)


def llama_file(theirs: LlamaForCausalLM, **changes) -> tuple[dict, dict]:
    """The metadata and the tensors that llama.cpp would write of a model of the library."""
    config = theirs.config
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    metadata = {
        "general.architecture": "llama",
        "llama.embedding_length": config.hidden_size,
        "llama.feed_forward_length": config.intermediate_size,
        "llama.context_length": config.max_position_embeddings,
        "llama.attention.head_count": heads["q_proj"],
        "llama.attention.head_count_kv": heads["k_proj"],
        "llama.block_count": config.num_hidden_layers,
        "llama.attention.layer_norm_rms_epsilon": config.rms_norm_eps,
        "llama.rope.dimension_count": config.hidden_size // config.num_attention_heads,
        "llama.rope.freq_base": config.rope_parameters["rope_theta"],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.padding_token_id": 3,
    }
    tensors = {}
    for name, weight in theirs.state_dict().items():
        projection, weight = name.split(".")[-2], weight.numpy()
        if projection in heads:
            weight = neighbors_from_halves(weight, heads[projection])
        if projection != "lm_head" or not config.tie_word_embeddings:
            tensors[llama_cpps_name(name, config.num_hidden_layers)] = weight
    return metadata | changes, tensors


def small_llama(seed: int = 0, **fields) -> LlamaForCausalLM:
    drawn = drawn_fields("llama", seed) | {"attention_bias": False}
    return library_model("llama", **drawn | fields)


MARKS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")

LINES = ["The tallest tower has 1234 steps, and it's 56 m high.", "Türme und 日本, 1999 999 99"]

WIDE = "a  1  2  3  4  5"


def trained() -> tokenizers.Tokenizer:
    """A tokenizer of the library that cuts numbers into digits, as SmolLM2's own does."""
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    digits, pieces = pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.pre_tokenizer = pre_tokenizers.Sequence([digits, pieces])
    made.decoder = tokenizers.decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=300, special_tokens=list(MARKS), initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator([*LINES, *[WIDE] * 9], trainer)
    return made


def vocabulary_file(**changes) -> dict:
    model = json.loads(trained().to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    ids = {"bos_token_id": 1, "eos_token_id": 2, "padding_token_id": 2, "unknown_token_id": 0}
    fields = ids | {
        **{"model": "gpt2", "pre": "smollm", "tokens": tokens},
        "token_type": np.array([3] * 3 + [1] * (len(tokens) - 3), dtype="<i4"),
        "merges": [" ".join(pair) for pair in model["merges"]],
    }
    return {f"tokenizer.ggml.{field}": value for field, value in (fields | changes).items()}
