"""Text in, text out: translating sentences with a tokenizer."""

from collections.abc import Sequence

from transformer_lesson.generation.generate import generate
from transformer_lesson.generation.strategies import GREEDY, Strategy
from transformer_lesson.model.config import size
from transformer_lesson.model.transformers import EncoderDecoderTransformer
from transformer_lesson.text.tokenizers import Tokenizer


def translate(
    model: EncoderDecoderTransformer,
    tokenizer: Tokenizer,
    sentences: Sequence[str],
    strategy: Strategy = GREEDY,
    max_new_tokens: int | None = None,
    batch_size: int = 64,
) -> list[str]:
    """Translate sentences, `batch_size` at a time.

    The model reads each sentence's ids and `<eos>`, as in training.

    Args:
        model: a trained model, whose two languages share the tokenizer.
        tokenizer: turns text to ids and back.
        sentences: the source sentences.
        strategy: how tokens are chosen.
        max_new_tokens: most tokens per translation; by default all that the model has room for.
        batch_size: sentences per batch.

    Raises:
        ValueError: one string instead of a list, or a batch_size under 1; and as `generate`.
    """
    if isinstance(sentences, str):
        raise ValueError("sentences must be a list of strings: wrap one string in a list.")
    batch_size = size.check("batch_size", batch_size)
    if max_new_tokens is None:
        max_new_tokens = model.config.max_len - 1  # 1 is <bos>
    translations, eos_id = [], tokenizer.special_id("eos")
    for start in range(0, len(sentences), batch_size):
        chunk = sentences[start : start + batch_size]
        sources = [[*tokenizer.encode(text), eos_id] for text in chunk]
        written = generate(
            model,
            sources,
            max_new_tokens,
            strategy,
            eos_id=eos_id,
            bos_id=tokenizer.bos_id,
        )
        translations += [tokenizer.decode(ids) for ids in written.ids]
    return translations
