"""Without Ollama there is a folder like its own, with a model that opens and one that does not."""

import pytest
import torch

from tests.real_weights import needs_weights
from transformer_lesson.checkpoints import from_pretrained, gguf_of, models_here
from transformer_lesson.checkpoints.gguf_tokenizer import read_tokenizer
from transformer_lesson.checkpoints.weights import PLACE, weights
from transformer_lesson.generation import generate
from transformer_lesson.lessons.lesson_12 import small_store
from transformer_lesson.lessons.lesson_12.asking import GERMAN


@pytest.mark.slow
@torch.no_grad()
def test_without_weights_a_tiny_llama_is_trained_and_opened_by_name(tmp_path, monkeypatch):
    monkeypatch.setenv(PLACE, str(tmp_path / "nowhere"))
    before = torch.get_rng_state()
    store = small_store.small_store(tmp_path / "models")
    assert torch.equal(before, torch.get_rng_state())
    models = {model.name: model for model in models_here(store)}
    assert sorted(models) == ["gpt-oss:20b", small_store.TINY]
    assert not models[small_store.TINY].why_not
    assert "MXFP4" in models["gpt-oss:20b"].why_not
    path = gguf_of("tiny", store)
    model, words = from_pretrained(path), read_tokenizer(path)
    for text in GERMAN:
        start = " ".join(text.split()[:2])
        written = generate(model, words.start(start), 20)
        assert written.finished[0] and start + words.decode(written.ids[0]) in GERMAN
    begun = small_store.beginning(small_store.TINY)
    assert any(text.startswith(begun) for text in small_store.known_sentences(small_store.TINY))


@pytest.mark.slow
@torch.no_grad()
def test_the_tiny_file_holds_the_model_that_was_trained(tmp_path):
    model, words = small_store.tiny_llama()
    path = tmp_path / "tiny"
    path.write_bytes(small_store.gguf_bytes(model, words))
    read, tokenizer = from_pretrained(path), read_tokenizer(path)
    ids = torch.tensor([tokenizer.start("they know that")])
    assert torch.equal(read(ids), model(ids))
    assert tokenizer.encode("they know, at 7") == words.encode("they know, at 7").ids
    assert read.config.eos_ids == (0,) and read.config.bos_id == 0


@needs_weights("SmolLM2")
def test_with_weights_they_lie_in_the_store(tmp_path):
    for _ in range(2):  # a cell may be run twice
        store = small_store.small_store(tmp_path)
    assert gguf_of("smollm2:135m", store).samefile(weights("SmolLM2")) or (
        gguf_of("smollm2:135m", store).stat().st_size == weights("SmolLM2").stat().st_size
    )
    assert small_store.beginning(small_store.SMOLLM2) != small_store.beginning(small_store.TINY)
