"""Does cross-attention find the words that belong together? Heads against the true alignment."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from transformer_lesson.model.evaluation import evaluating
from transformer_lesson.model.hooks import record
from transformer_lesson.model.transformers import EncoderDecoderTransformer
from transformer_lesson.ranking import first_largest
from transformer_lesson.text.batches import pad_batch
from transformer_lesson.text.pairs import Pair
from transformer_lesson.text.tokenizers import WordTokenizer


def alignment_hits(
    model: EncoderDecoderTransformer, tokenizer: WordTokenizer, pairs: Sequence[Pair]
) -> Float[Tensor, "layer head"]:
    """Return how often each head looks most at a source word that belongs to the target word.

    The model reads the true target, shifted right by `<bos>`: the query that predicts target
    word j is at position j, on the word before it. It hits if its largest weight is on a source
    word that is aligned with word j. Words without an alignment are not counted; a weight that is
    largest on the source's `<eos>` is a miss.

    Args:
        model: a trained translator, whose pad_id is the tokenizer's.
        tokenizer: one token per word, shared by both languages.
        pairs: sentence pairs with their alignment, a few hundred at most: they form one batch.

    Returns:
        The share of hits, from 0 to 1, shape (layer, head).

    Raises:
        ValueError: no alignment, a sentence whose tokens are not its words, or a model with
            another pad_id.

    Source: arg-max alignment as in Garg et al., "Jointly Learning to Align and Translate with
        Transformer Models" (2019), section 3.
    """
    sources = [_one_token_per_word(pair.source, tokenizer) + [tokenizer.eos_id] for pair in pairs]
    targets = [[tokenizer.bos_id] + _one_token_per_word(pair.target, tokenizer) for pair in pairs]
    links = {(row, j, i) for row, pair in enumerate(pairs) for i, j in pair.alignment}
    if not links:
        raise ValueError(
            "these pairs have no alignment: take them from transformer_lesson.text.grammar, or "
            "give each Pair its own."
        )
    if model.source_config.pad_id != tokenizer.pad_id:
        raise ValueError(
            f"the model's pad_id is {model.source_config.pad_id}, but the tokenizer pads with "
            f"{tokenizer.pad_id}: build the model with pad_id={tokenizer.pad_id}."
        )
    rows, queries = torch.tensor(sorted({(row, j) for row, j, _ in links})).T  # (word,)
    device = model.projection.weight.device
    batch = [pad_batch(side, tokenizer.pad_id).to(device) for side in (sources, targets)]
    with evaluating(model), torch.no_grad(), record(model) as run:
        model(*batch)
    table = []
    for layer in range(model.config.n_layers):
        weights = run[f"decoder.{layer}.cross_attention.weights"]  # (batch, head, query, key)
        keys = first_largest(weights)[rows, :, queries].tolist()  # (word, head)
        words = zip(rows.tolist(), queries.tolist(), keys, strict=True)
        table.append([[(row, j, i) in links for i in of_heads] for row, j, of_heads in words])
    return torch.tensor(table).float().mean(dim=1)  # (layer, head)


def _one_token_per_word(text: str, tokenizer: WordTokenizer) -> list[int]:
    ids = tokenizer.encode(text)
    if len(ids) != len(text.split()):
        raise ValueError(
            f"{text!r} has {len(text.split())} words but {len(ids)} tokens: an alignment of "
            "words needs a WordTokenizer and a text whose words are separated by spaces."
        )
    return ids
