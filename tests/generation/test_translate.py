"""From text to text, and heads measured against the true alignment."""

import pytest
import torch

from tests.generation.writers import lively
from transformer_lesson.generation import Beam, generate, translate
from transformer_lesson.interpretability.alignment import alignment_hits
from transformer_lesson.model.hooks import record
from transformer_lesson.model.transformers import EncoderDecoderTransformer
from transformer_lesson.text.pairs import Pair
from transformer_lesson.text.tokenizers import BytePairTokenizer, WordTokenizer

SOURCES = ["the dog sees a cat", "a cat sleeps", "dog", "the cat sees the dog today"]
TARGETS = ["der Hund sieht eine Katze", "eine Katze schläft", "Hund", "heute sieht die Katze"]


@pytest.fixture
def tokenizer():
    return WordTokenizer.train(SOURCES + TARGETS)


@pytest.fixture
def model(tokenizer):
    return lively(EncoderDecoderTransformer, vocab_size=tokenizer.vocab_size)


@pytest.mark.slow
def test_translates_in_order_whatever_the_batch_size(model, tokenizer):
    sources = [*SOURCES, ""]
    encoded = [[*tokenizer.encode(text), tokenizer.eos_id] for text in sources]
    expected = [tokenizer.decode(generate(model, source, 19).ids[0]) for source in encoded]
    for batch_size in (1, 3, 64):
        assert translate(model, tokenizer, sources, batch_size=batch_size) == expected
    assert len(set(expected)) > 1


def test_passes_strategy_and_length_on(model, tokenizer):
    assert translate(model, tokenizer, [], Beam(2)) == []
    for strategy in (Beam(3), Beam(1)):
        [translation] = translate(model, tokenizer, SOURCES[:1], strategy, max_new_tokens=3)
        source = [*tokenizer.encode(SOURCES[0]), tokenizer.eos_id]
        assert translation == tokenizer.decode(generate(model, source, 3, strategy).ids[0])


BAD = [({"texts": "the dog"}, "must be a list of strings")]
BAD += [({"batch_size": n}, f"batch_size is {n}, .* an int >= 1") for n in (0, -1, True)]
BAD += [({"max_new_tokens": n}, f"max_new_tokens is {n}, but .* >= 1") for n in (0, -1, 2.5, False)]


@pytest.mark.parametrize(("changes", "message"), BAD)
def test_bad_input_is_named(changes, message, model, tokenizer, unchecked):
    arguments = {"texts": SOURCES} | changes
    with pytest.raises(ValueError, match=message):
        translate(model, tokenizer, arguments.pop("texts"), **arguments)


def looked_at(model, tokenizer, source: str, target: str) -> torch.Tensor:
    """Return (layer, head, word): where each head looks most while it predicts a target word."""
    source_ids = torch.tensor([[*tokenizer.encode(source), tokenizer.eos_id]])
    target_ids = torch.tensor([[tokenizer.bos_id, *tokenizer.encode(target)]])
    with torch.no_grad(), record(model) as run:
        model(source_ids, target_ids)
    layers = range(model.config.n_layers)
    weights = [run[f"decoder.{layer}.cross_attention.weights"][0] for layer in layers]
    return torch.stack(weights)[:, :, :-1].argmax(-1)  # the last query predicts <eos>


def test_words_with_several_partners_or_none_and_pairs_without_alignment(model, tokenizer):
    keys = looked_at(model, tokenizer, SOURCES[0], TARGETS[0])  # (layer, head, word)
    alignment = ((0, 0), (1, 1), (2, 1), (4, 1), (3, 4))  # words 2 and 3 of the target have none
    partners = {0: {0}, 1: {1, 2, 4}, 4: {3}}
    hits = alignment_hits(model, tokenizer, [Pair(SOURCES[0], TARGETS[0], alignment)])
    for layer in range(2):
        for head in range(2):
            expected = [int(keys[layer, head, j]) in partners[j] for j in partners]
            assert hits[layer, head].item() == pytest.approx(sum(expected) / 3)
    aligned = Pair(SOURCES[0], TARGETS[0], ((0, 0), (1, 1), (2, 2)))
    alone = alignment_hits(model, tokenizer, [aligned])
    other = Pair(SOURCES[1], TARGETS[1])
    assert torch.equal(alignment_hits(model, tokenizer, [other, aligned, other]), alone)


def test_bad_input_of_alignment_is_named(model, tokenizer, unchecked):
    pair = Pair(SOURCES[0], TARGETS[0], ((0, 0),))
    with pytest.raises(
        ValueError, match="no alignment: take them from transformer_lesson.text.grammar"
    ):
        alignment_hits(model, tokenizer, [Pair("dog", "Hund")])
    with pytest.raises(ValueError, match="'dog!' has 1 words but 2 tokens"):
        alignment_hits(model, tokenizer, [pair, Pair("dog!", "Hund")])
    byte_pairs = BytePairTokenizer.train(SOURCES)
    with pytest.raises(ValueError, match="needs a WordTokenizer"):
        alignment_hits(model, byte_pairs, [Pair("wolf", "Wolf", ((0, 0),))])
    unpadded = lively(EncoderDecoderTransformer, vocab_size=tokenizer.vocab_size, pad_id=None)
    with pytest.raises(ValueError, match="pad_id is None, but the tokenizer pads with 0"):
        alignment_hits(unpadded, tokenizer, [pair])
