"""One of our tokenizers as the files that the library `transformers` reads.

tokenizer.json says how a text is cut, tokenizer_config.json how the library is to use that.
"""

import json

from tokenizers import processors

from transformer_lesson.text.tokenizers import SPECIAL_TOKENS, Tokenizer


def tokenizer_files(tokenizer: Tokenizer, max_len: int, translates: bool) -> dict[str, bytes]:
    """Return the two files by name; read from them, it gives the same ids and the same texts.

    Args:
        tokenizer: of the model's vocabulary.
        max_len: most tokens that the model reads.
        translates: whether its texts are read by a translator, which wants `<eos>` behind each and
            padding on the right. A model that goes on writing wants neither.
    """
    made = tokenizer.as_library()
    names = dict(zip(("pad_token", "bos_token", "eos_token"), SPECIAL_TOKENS, strict=False))
    if translates:
        end = names["eos_token"]
        made.post_processor = processors.TemplateProcessing(
            f"$A {end}", f"$A {end} $B {end}", [(end, tokenizer.eos_id)]
        )
    settings = names | {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": max_len,
        "padding_side": "right" if translates else "left",
        "split_special_tokens": True,  # only ids are special: a typed "<eos>" is five characters
        "clean_up_tokenization_spaces": False,
    }
    return {
        "tokenizer.json": made.to_str(pretty=True).encode(),
        "tokenizer_config.json": json.dumps(settings, indent=2).encode(),
    }
