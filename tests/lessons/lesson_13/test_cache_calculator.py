"""What keys and values take, in the page: against the tensors that the package's cache keeps."""

import re

import torch

from transformer_lesson.explorables import CacheCalculator
from transformer_lesson.model.cache import KeyValueCache
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.transformers import DecoderOnlyTransformer

SIZES = {"n_layers": 3, "n_heads": 4, "n_kv_heads": 2, "d_head": 8, "d_latent": 12}
UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
NAMES = ("with all heads", "in groups", "with one head", "as a latent vector")


def sizes_said(said: str) -> list[float]:
    """The bytes of a text that a sentence tells, one for each way."""
    found = [re.search(rf"([\d.,]+) (\w+) {name}", said).groups() for name in NAMES]
    return [float(number.replace(",", "")) * UNITS[unit] for number, unit in found]


def kept_by_the_package(n_kv_heads: int, n: int) -> int:
    """Bytes of what a cache holds after n tokens, as 16-bit numbers."""
    config = ModelConfig(
        11, 32, 4, 3, 16, n, n_kv_heads=n_kv_heads, positions="rotary", dropout=0.0
    )
    model, cache = DecoderOnlyTransformer(config).eval(), KeyValueCache(n)
    with torch.no_grad():
        model(torch.zeros(1, n, dtype=torch.long), cache=cache)
    kept = [t for layer in cache.layers.values() for t in (layer.keys, layer.values)]
    return sum(t.numel() * 2 for t in kept)


def test_a_text_takes_what_the_packages_cache_takes(show):
    page = show(CacheCalculator(tokens=1024, memory=8, parameters=1e8, **SIZES))
    wanted = [kept_by_the_package(heads, 1024) for heads in (4, 2, 1)]
    wanted.append(2 * 3 * 12 * 1024)
    assert sizes_said(page.said) == wanted
    page.set(bits=4)
    assert sizes_said(page.said) == [one / 4 for one in wanted]


def test_as_many_texts_as_there_are_blocks_fit_and_no_more(show):
    page = show(CacheCalculator(tokens=131_072))
    room, texts = 80 * 2**30 - 2 * 8.03e9, [1, 4, 32, 14]
    for size, n in zip(sizes_said(page.said), texts, strict=True):
        assert n * size <= room < (n + 1) * size
    assert page.title == "1, 4, 32 and 14 texts of 131,072 tokens fit beside the weights"
    told = page.told()
    assert told[:4] == ["the weights: 15 GiB of 80 GiB"] * 4
    assert told[5:9] == [f"groups: text {i} of 4, 16 GiB each" for i in range(1, 5)]
    assert len(told) == 4 + sum(texts)
    page.set(memory=8)
    assert page.title.startswith("0, 0, 0 and 0 texts")
    assert page.written().count("the weights alone do not fit") == 4
