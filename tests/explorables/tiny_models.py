"""Untrained models that are quick to ask: a translator, a language model, the package's own."""

import torch

from tests.explorables.forward_pass import Pass, forward_pass
from transformer_lesson.checkpoints.translator import trained_translator
from transformer_lesson.generation import generate
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.transformers import DecoderOnlyTransformer, EncoderDecoderTransformer
from transformer_lesson.text.tokenizers import CharacterTokenizer, WordTokenizer

ENGLISH = "the cat sees dog . does not open Anna"
GERMAN = "die Katze sieht den Hund . öffnet nicht Anna"


def translator(seed: int = 3) -> tuple[EncoderDecoderTransformer, WordTokenizer]:
    tokenizer = WordTokenizer.train([ENGLISH, GERMAN])
    sizes = {"d_model": 12, "n_heads": 3, "n_layers": 2, "d_ff": 20, "max_len": 40}
    config = ModelConfig(tokenizer.vocab_size, **sizes, pad_id=0, tie_embeddings=False)
    torch.manual_seed(seed)
    return EncoderDecoderTransformer(config).eval(), tokenizer


def language_model(seed: int = 6) -> tuple[DecoderOnlyTransformer, CharacterTokenizer]:
    tokenizer = CharacterTokenizer.train(["abcdefg hij$<>"])
    torch.manual_seed(seed)
    model = DecoderOnlyTransformer(ModelConfig(tokenizer.vocab_size, 12, 3, 2, 20, 40)).eval()
    return model, tokenizer


def long_reader(seed: int = 5) -> DecoderOnlyTransformer:
    """Return a rotary model that has room for 256 tokens of 11 kinds."""
    sizes = {"d_model": 16, "n_heads": 2, "n_layers": 2, "d_ff": 12, "max_len": 256}
    choices = {"positions": "rotary", "activation": "swiglu", "norm": "rms", "bias": False}
    torch.manual_seed(seed)
    config = ModelConfig(11, **sizes, **choices, norm_position="pre", n_kv_heads=1)
    return DecoderOnlyTransformer(config).eval()


def translation(text: str, written: int) -> tuple[Pass, list[str], list[str]]:
    """The pass that a page shows of the trained translator, and the words read and written."""
    model, tokenizer, _ = trained_translator()
    source = [*tokenizer.encode(text), tokenizer.eos_id]
    ids = [1, *generate(model, torch.tensor([source]), 12).ids[0][:written]]
    run = forward_pass(model, {"source": source, "target": ids})
    return run, list(map(tokenizer.token, source)), list(map(tokenizer.token, ids))
