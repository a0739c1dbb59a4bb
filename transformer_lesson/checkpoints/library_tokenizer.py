"""One of our tokenizers as files that the library `transformers` reads.

tokenizer.json says how a text is split, tokenizer_config.json how the library uses that.
"""

import json

from tokenizers import processors
from torch import nn

from transformer_lesson.model.transformers import (
    DecoderOnlyTransformer,
    EncoderDecoderTransformer,
)
from transformer_lesson.text.tokenizers import SPECIAL_TOKENS, Tokenizer


def tokenizer_files(tokenizer: Tokenizer, model: nn.Module) -> dict[str, bytes]:
    """Return the two files by name; a tokenizer read from them gives the same ids and texts.

    What a translator reads, and what it is to write, ends in `<eos>`. Padding is on the right, but
    on the left for a model that continues its text.

    Args:
        tokenizer: of the model's vocabulary.
        model: one of ours.
    """
    library_tokenizer = tokenizer.as_library()
    pad, bos, eos, _ = SPECIAL_TOKENS
    if isinstance(model, EncoderDecoderTransformer):
        library_tokenizer.post_processor = processors.TemplateProcessing(
            single=f"$A {eos}", special_tokens=[(eos, tokenizer.eos_id)]
        )
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": model.config.max_len,
        "pad_token": pad,
        "bos_token": bos,
        "eos_token": eos,
        "padding_side": "left" if isinstance(model, DecoderOnlyTransformer) else "right",
        "split_special_tokens": True,  # only ids are special: a typed "<eos>" is five characters
        "clean_up_tokenization_spaces": False,
    }
    return {
        "tokenizer.json": library_tokenizer.to_str(pretty=True).encode(),
        "tokenizer_config.json": json.dumps(settings, indent=2).encode(),
    }
