"""A folder laid out like Ollama's, for those who have none: SmolLM2 in it, or a tiny Llama.

The tiny one is trained here, in seconds, on six sentences, and written as llama.cpp would write it.
"""

import hashlib
import json
import os
import shutil
import struct
from pathlib import Path

import tokenizers
import torch
import torch.nn.functional as F
from tokenizers import pre_tokenizers, trainers
from torch import Tensor

from transformer_lesson.checkpoints.llama_cpp import our_name
from transformer_lesson.checkpoints.ollama import WEIGHTS
from transformer_lesson.checkpoints.weights import have_weights, weights
from transformer_lesson.lessons.lesson_12.asking import GERMAN
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.transformers import DecoderOnlyTransformer
from transformer_lesson.text import manual

SMOLLM2, TINY = "smollm2:135m", "tiny:latest"
LIBRARY = "manifests/registry.ollama.ai/library"
END = "<|endoftext|>"
BLOCKS, STEPS, UNREAD = 2, 200, 39  # 39: the number of MXFP4, which is not read here


def small_store(folder: str | Path) -> Path:
    """Lay out a folder like Ollama's, with a model that opens and the head of one that does not.

    Args:
        folder: an empty one, or one that does not exist.

    Returns:
        The folder. In it is SmolLM2 if `make weights` has fetched it, otherwise the tiny Llama.
    """
    folder = Path(folder)
    if have_weights("SmolLM2"):
        path = weights("SmolLM2")
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        blob = _named(folder, SMOLLM2, digest)
        if not blob.exists():
            try:
                os.link(path, blob)  # the same file under a second name: it takes no room
            except OSError:  # such as another disk
                shutil.copyfile(path, blob)
    else:
        _add(folder, TINY, gguf_bytes(*tiny_llama()))
    row = _text("blk.0.ffn_gate_exps.weight") + struct.pack("<I2QIQ", 2, 32, 1, UNREAD, 0)
    head = {"general.architecture": "gptoss"}
    _add(folder, "gpt-oss:20b", _file(head, [row], b"\0" * 32))
    return folder


def known_sentences(name: str) -> tuple[str, ...]:
    """Return sentences to measure a model on: the manual's, or those that the tiny one knows."""
    return tuple(GERMAN) if name == TINY else tuple(manual.EXAMPLES)


def beginning(name: str) -> str:
    """Return the beginning of a sentence that a model can finish."""
    return "the child opens" if name == TINY else "The capital of France is"


def tiny_llama() -> tuple[DecoderOnlyTransformer, tokenizers.Tokenizer]:
    """Return a Llama with two blocks that knows six sentences by heart, and its tokenizer."""
    words = tokenizers.Tokenizer(tokenizers.models.BPE())
    words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    options = {"special_tokens": [END], "initial_alphabet": alphabet, "show_progress": False}
    words.train_from_iterator(GERMAN, trainers.BpeTrainer(vocab_size=320, **options))
    texts = [torch.tensor([0, *words.encode(text).ids, 0]) for text in GERMAN]
    ids = torch.nn.utils.rnn.pad_sequence(texts, batch_first=True)
    llama = {"activation": "swiglu", "positions": "rotary", "norm": "rms", "norm_epsilon": 1e-5}
    llama |= {"bias": False, "tie_embeddings": True, "scale_embedding": False, "dropout": 0.0}
    llama |= {"attention_dropout": 0.0, "pad_id": None, "bos_id": 0, "eos_ids": (0,)}
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(0)
        config = ModelConfig(words.get_vocab_size(), 32, 2, BLOCKS, 64, 64, n_kv_heads=1, **llama)
        model = DecoderOnlyTransformer(config)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        for _ in range(STEPS):
            logits = model(ids[:, :-1])  # (text, n - 1, vocab_size)
            F.cross_entropy(logits.mT, ids[:, 1:]).backward()
            optimizer.step(), optimizer.zero_grad()
    return model.eval(), words


def gguf_bytes(model: DecoderOnlyTransformer, words: tokenizers.Tokenizer) -> bytes:
    """Return a Llama and its tokenizer as a GGUF file, in float32; see `checkpoints.gguf`."""
    c, known = model.config, json.loads(words.to_str())["model"]
    sizes = {"embedding_length": c.d_model, "feed_forward_length": c.d_ff, "context_length": 64}
    sizes |= {"block_count": c.n_layers, "attention.head_count": c.n_heads}
    sizes |= {"attention.head_count_kv": c.n_kv_heads, "rope.freq_base": c.rotary_base}
    sizes |= {"rope.dimension_count": c.d_model // c.n_heads}
    sizes |= {"attention.layer_norm_rms_epsilon": c.norm_epsilon}
    tokens = sorted(known["vocab"], key=known["vocab"].get)
    of_words = {"model": "gpt2", "pre": "gpt-2", "tokens": tokens, "bos_token_id": 0}
    of_words |= {"eos_token_id": 0, "token_type": [3] + [1] * (len(tokens) - 1)}
    of_words |= {"merges": [" ".join(pair) for pair in known["merges"]], "add_bos_token": True}
    metadata = {"general.architecture": "llama"}
    metadata |= {f"llama.{name}": value for name, value in sizes.items()}
    metadata |= {f"tokenizer.ggml.{name}": value for name, value in of_words.items()}
    rows, data, weights_of = [], b"", model.state_dict()
    for name in _names(c.n_layers):
        W = weights_of[our_name(name)]
        if "attn_q" in name or "attn_k" in name:
            W = neighbors_from_halves(W, c.n_heads if "attn_q" in name else c.n_kv_heads)
        data += bytes(-len(data) % 32)
        axes = W.shape[::-1]
        rows.append(_text(name) + struct.pack(f"<I{len(axes)}QIQ", len(axes), *axes, 0, len(data)))
        data += W.contiguous().numpy().astype("<f4").tobytes()
    return _file(metadata, rows, data)


def neighbors_from_halves(W: Tensor, n_heads: int) -> Tensor:
    """Put the rows of W_Q or W_K in llama.cpp's order, the way back of `halves_from_neighbors`."""
    halves = W.view(n_heads, 2, -1, W.size(1))  # (head, half, d_head / 2, d_in)
    return halves.transpose(1, 2).reshape(W.shape)


def _names(n_layers: int) -> list[str]:
    """Return llama.cpp's names of a Llama's tensors."""
    parts = ("attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate")
    parts += ("ffn_up", "ffn_down")
    names = [f"blk.{i}.{part}.weight" for i in range(n_layers) for part in parts]
    return ["token_embd.weight", *names, "output_norm.weight"]


def _add(folder: Path, name: str, content: bytes) -> None:
    _named(folder, name, hashlib.sha256(content).hexdigest()).write_bytes(content)


def _named(folder: Path, name: str, digest: str) -> Path:
    """Write the manifest of a model; return where its weights belong."""
    manifest, blobs = folder / LIBRARY / name.replace(":", "/"), folder / "blobs"
    manifest.parent.mkdir(parents=True, exist_ok=True), blobs.mkdir(exist_ok=True)
    layers = [{"mediaType": WEIGHTS, "digest": f"sha256:{digest}"}]
    manifest.write_text(json.dumps({"schemaVersion": 2, "layers": layers}), encoding="utf-8")
    return blobs / f"sha256-{digest}"


def _text(characters: str) -> bytes:
    data = characters.encode()
    return struct.pack("<Q", len(data)) + data


def _value(value) -> bytes:
    """Return a piece of metadata: the number of its kind, and its bytes."""
    if isinstance(value, list):
        kind = 8 if isinstance(value[0], str) else 5
        items = [_text(item) if kind == 8 else struct.pack("<i", item) for item in value]
        return struct.pack("<IIQ", 9, kind, len(value)) + b"".join(items)
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    kind, letter = {bool: (7, "?"), int: (4, "I"), float: (6, "f")}[type(value)]
    return struct.pack(f"<I{letter}", kind, value)


def _file(metadata: dict, rows: list[bytes], data: bytes) -> bytes:
    pairs = [_text(key) + _value(value) for key, value in metadata.items()]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(rows), len(pairs)) + b"".join(pairs + rows)
    return head + bytes(-len(head) % 32) + data
