"""One of our tokenizers as the files that the library `transformers` reads.

tokenizer.json says how a text is cut, tokenizer_config.json how the library is to use that.
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
    """Return the two files by name; read from them, it gives the same ids and the same texts.

    What a translator reads, and what it is to write, ends in `<eos>`. Padding stands on the right,
    but for a model that goes on writing behind its text on the left.

    Args:
        tokenizer: of the model's vocabulary.
        model: one of ours.
    """
    made = tokenizer.as_library()
    pad, bos, eos, _ = SPECIAL_TOKENS
    if isinstance(model, EncoderDecoderTransformer):
        made.post_processor = processors.TemplateProcessing(
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
        "tokenizer.json": made.to_str(pretty=True).encode(),
        "tokenizer_config.json": json.dumps(settings, indent=2).encode(),
    }
