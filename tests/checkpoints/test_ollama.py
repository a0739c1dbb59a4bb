"""What Ollama has on a machine is listed by what its files say, and opened by name."""

import os
import re
import socket
import struct
import subprocess

import numpy as np
import pytest

from tests.checkpoints.gguf_files import gguf, pair, row, whole
from tests.checkpoints.llama_files import llama_file, small_llama, vocabulary_file
from tests.checkpoints.stores import LIBRARY, add, layer, manifest, put
from transformer_lesson.checkpoints import from_pretrained, gguf_of, models_here, ollama
from transformer_lesson.checkpoints.gguf_tokenizer import read_tokenizer

DIGEST = "a" * 64


def small_file(**changes) -> bytes:
    metadata, tensors = llama_file(small_llama(vocab_size=300))
    return gguf(metadata | vocabulary_file() | changes, tensors)


@pytest.fixture
def store(tmp_path, monkeypatch):
    """An empty folder of models in place of this machine's; nothing may be fetched or run."""

    def forbidden(*_, **__):
        raise AssertionError("something was fetched or run")

    for home, name in ((socket, "socket"), (subprocess, "Popen"), (os, "system")):
        monkeypatch.setattr(home, name, forbidden)
    place = tmp_path / "models"
    place.mkdir()
    monkeypatch.setenv("OLLAMA_MODELS", str(place))
    return place


def test_a_model_is_listed_and_opened_by_its_name(store):
    weights = small_file()
    blob = add(store, f"{LIBRARY}/tiny/latest", weights)
    (model,) = models_here()
    assert model == ("tiny:latest", len(weights), "llama", "F32", model.n_numbers, "")
    opened = from_pretrained(gguf_of("tiny"))
    assert gguf_of("tiny") == blob and blob.suffix == ""
    assert model.n_numbers == sum(W.numel() for W in opened.parameters())
    assert read_tokenizer(blob).vocab_size == opened.config.vocab_size
    assert re.search(r"tiny:latest +\d\d kB +\d\d kB +llama +F32 +yes", repr(models_here()))


@pytest.mark.parametrize(
    ("place", "shown", "names"),
    [
        (f"{LIBRARY}/gemma3/270m", "gemma3:270m", ["gemma3:270m", "library/gemma3:270m"]),
        (f"{LIBRARY}/gemma3/latest", "gemma3:latest", ["gemma3", "Gemma3:LATEST"]),
        ("manifests/registry.ollama.ai/ann/tiny/v1", "ann/tiny:v1", ["ann/tiny:v1"]),
        ("manifests-v2/ollama.com/library/qwen3/4b", "qwen3:4b", ["qwen3:4b"]),
        (
            "manifests/hf.co/bartowski/Llama-3.2-1B-Instruct-GGUF/Q4_K_M",
            "hf.co/bartowski/Llama-3.2-1B-Instruct-GGUF:Q4_K_M",
            ["hf.co/bartowski/Llama-3.2-1B-Instruct-GGUF:Q4_K_M", "hf.co/bartowski/llama-3.2-1b-"
             "instruct-gguf:q4_k_m"],
        ),
        ("manifests/registry.ollama.ai/library/a/b", "a:b", ["registry.ollama.ai/library/a:b"]),
        ("manifests/localhost:5000/x/y/z", "localhost:5000/x/y:z", ["localhost:5000/x/y:z"]),
    ],
)  # fmt: skip
def test_names_are_ollamas(place, shown, names, store):
    blob = add(store, place, small_file())
    assert [model.name for model in models_here()] == [shown]
    assert [gguf_of(name) for name in names] == [blob] * len(names)
    for other in ("gemma3:1b", "hf.co/gemma3:270m", "bob/tiny:v1", "", "a:b:c"):
        with pytest.raises(ValueError, match=f"Ollama has no model .* but {re.escape(shown)}: "):
            gguf_of(other)


@pytest.mark.parametrize("name", ["../../secret", "..", "a/../../b:c", "/etc/passwd", "x" * 10**6])
def test_a_name_leads_nowhere_but_to_what_is_listed(name, store):
    put(store.parent, "secret", small_file())
    with pytest.raises(ValueError, match="Ollama has no model .* but no models: name") as caught:
        gguf_of(name)
    assert len(str(caught.value)) < 300


def test_what_cannot_be_opened_says_why(store):
    add(store, f"{LIBRARY}/gpt2/latest", small_file(**{"general.architecture": "gpt2"}))
    add(store, f"{LIBRARY}/yarn/latest", small_file(**{"llama.rope.scaling.type": "yarn"}))
    add(store, f"{LIBRARY}/nemo/latest", small_file(**{"tokenizer.ggml.pre": "tekken"}))
    head = [pair("general.architecture", "gptoss")]
    add(store, f"{LIBRARY}/oss/20b", whole(head, [row("W", (32, 1), 39, 0)], bytes(32)))
    add(store, f"{LIBRARY}/later/1", b"GGUF" + struct.pack("<IQQ", 4, 0, 0))
    add(store, f"{LIBRARY}/cut/1", small_file()[:-100])
    models = {model.name: model for model in models_here()}
    reasons = {
        "gpt2:latest": ("gpt2", "general.architecture is 'gpt2', but only"),
        "yarn:latest": ("llama", "rope_scaling has rope_type 'yarn'"),
        "nemo:latest": ("llama", "its tokenizer cuts a text as 'tekken' does, but only"),
        "oss:20b": ("gptoss", "tensor 'W': its numbers have the format MXFP4, but only"),
        "later:1": ("", "it has version 4 of the format"),
        "cut:1": ("llama", "and end within the file's"),
    }
    assert models.keys() == reasons.keys()
    for name, (family, reason) in reasons.items():
        assert models[name].family == family and reason in models[name].why_not
        assert str(store) not in models[name].why_not and "\n" not in models[name].why_not
        shown = " ".join(repr(models_here()).split())
        assert f"{name}: {models[name].why_not}" in shown


def link_outside(store):
    outside = put(store.parent, "outside", small_file())
    put(store, f"{LIBRARY}/bad/latest", manifest(layer(f"sha256:{DIGEST}")))
    (store / "blobs").mkdir()
    (store / f"blobs/sha256-{DIGEST}").symlink_to(outside)


def linked_manifest(store):
    place = put(store, f"{LIBRARY}/bad/x", b"").parent
    (place / "x").unlink()
    (place / "latest").symlink_to(put(store.parent, "outside", manifest()))


def circle(store):
    put(store, f"{LIBRARY}/bad/latest", manifest(layer(f"sha256:{DIGEST}")))
    (store / "blobs").mkdir()
    (store / f"blobs/sha256-{DIGEST}").symlink_to(f"sha256-{DIGEST}")


def pipe(store):
    put(store, f"{LIBRARY}/bad/latest", manifest(layer(f"sha256:{DIGEST}")))
    (store / "blobs").mkdir()
    os.mkfifo(store / f"blobs/sha256-{DIGEST}")


def huge(store):
    path = put(store, f"{LIBRARY}/bad/latest", b"")
    with path.open("r+b") as file:
        file.truncate(10**12)  # a hole: it takes no room


def said(content: bytes):
    return lambda store: put(store, f"{LIBRARY}/bad/latest", content)


UP = manifest(layer("sha256:../../../../outside"))
FAR = manifest(layer("sha256-" + "../" * 21 + "x"))
TWO = manifest(layer(f"sha256:{DIGEST}"), layer(f"sha256:{DIGEST}"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (said(UP), "it names the weights 'sha256:../../../../outside', but that must be"),
        (said(FAR), "but that must be sha256: and 64 digits"),
        (said(manifest(layer(5))), "it names the weights '5', but"),
        (said(manifest(layer(f"sha256:{DIGEST}\n"))), "but that must be sha256: and 64 digits"),
        (said(manifest(layer(f"sha256:{DIGEST}"))), "its weights, sha256-aaaaaaaaaaaa..., are mi"),
        (said(TWO), "it names 2 files of weights, but one GGUF file is read"),
        (said(manifest()), "it names 0 files of weights"),
        (said(b'{"layers": [{'), "its manifest cannot be read: .* is not JSON"),
        (said(b"\xff\xfe"), "its manifest cannot be read: .* is not JSON"),
        (said(b"[" * 10**5), "its manifest cannot be read: .* is not JSON"),
        (said(b"[]"), "its manifest cannot be read: .* holds a list"),
        (said(b'{"layers": {"a": 1}}'), "its manifest has no list of layers"),
        (said(b'{"layers": ["x", 3]}'), "its manifest has no list of layers"),
        (said(b"{}"), "its manifest has no list of layers"),
        (huge, "its manifest has more than 1,000,000 bytes"),
        (link_outside, "is a link that leads out of Ollama's folder"),
        (linked_manifest, "is a link that leads out of Ollama's folder"),
        (circle, "its weights are no GGUF file"),
        (pipe, "its weights are no GGUF file"),
    ],
)
def test_a_hostile_folder_gets_one_sentence(make, message, store):
    make(store)
    put(store.parent, "outside", small_file())
    with pytest.raises(ValueError, match=f"^bad:latest of Ollama's: .*{message}") as caught:
        gguf_of("bad")
    assert "\n" not in str(caught.value)
    (model,) = models_here()
    assert re.search(message, model.why_not) and model.n_bytes == 0


def test_one_bad_model_hides_no_other(store):
    huge(store)
    blob = add(store, f"{LIBRARY}/good/latest", small_file())
    put(store, f"{LIBRARY}/.DS_Store", b""), put(store, f"{LIBRARY}/stray", b"")
    put(store, f"{LIBRARY}/\x1b[2Jtwo\nlines/latest", manifest())
    shown = [model.name for model in models_here()]
    assert shown == ["\\x1b[2Jtwo\\nlines:latest", "bad:latest", "good:latest"]
    assert gguf_of("good") == blob and repr(models_here()).count("no, see below") == 2


def test_folders_that_are_looked_at(store, tmp_path, monkeypatch):
    other = tmp_path / "other"
    add(other, f"{LIBRARY}/tiny/latest", small_file())
    said = f"Ollama has no models here: there are none in {store}."
    assert models_here() == [] and repr(models_here()) == said
    assert [model.name for model in models_here(other)] == ["tiny:latest"]
    assert gguf_of("tiny", other).parent == other / "blobs"
    monkeypatch.delenv("OLLAMA_MODELS")
    monkeypatch.setattr(ollama.Path, "home", lambda: tmp_path)
    assert models_here() == [] and ".ollama" in repr(models_here())
    other.rename(tmp_path / "models-of-mine")
    (tmp_path / ".ollama").mkdir()
    (tmp_path / ".ollama/models").symlink_to(tmp_path / "models-of-mine")  # a folder may be a link
    assert [model.name for model in models_here()] == ["tiny:latest"]
    assert from_pretrained(gguf_of("tiny")).config.vocab_size == 300


def test_numbers_are_counted_in_the_file_and_not_in_its_bytes(store):
    metadata, tensors = llama_file(small_llama(vocab_size=300, hidden_size=64, head_dim=32,
        num_attention_heads=2, num_key_value_heads=1, intermediate_size=96))  # fmt: skip
    four = [name for name, W in tensors.items() if W.ndim == 2]
    data = gguf(metadata | vocabulary_file(), tensors, q4_1=four)
    add(store, f"{LIBRARY}/few/bits", data)
    (model,) = models_here()
    assert model.n_numbers == sum(W.size for W in tensors.values()) and model.format == "Q4_1"
    assert not model.why_not and np.prod(tensors["token_embd.weight"].shape) < model.n_numbers
