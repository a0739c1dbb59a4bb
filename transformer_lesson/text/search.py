"""Searching among sentences: by what they mean, and by the words that they share.

A sentence's vector is the mean of its tokens' vectors, from an encoder such as MiniLM that was
trained to put sentences of the same meaning close together.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from transformer_lesson.text.batches import pad_batch
from transformer_lesson.text.tokenizers import Tokenizer

BATCH = 32  # sentences, of about the same length


@torch.no_grad()
def sentence_vectors(
    model: nn.Module, tokenizer: Tokenizer, sentences: Sequence[str]
) -> Float[Tensor, "sentence d_model"]:
    """Return one vector for each sentence: the mean of its tokens' vectors, padding left out.

    Args:
        model: an encoder of ids (batch, n), which recognizes padding by its id.
        tokenizer: the one that it was trained with.
        sentences: each is read with `<bos>` and `<eos>`, or what the tokenizer has for them.

    Source: Reimers and Gurevych, "Sentence-BERT" (2019), section 3.
    """
    pad_id = tokenizer.special_id("pad")
    rows = [tokenizer.encode(sentence, add_special=True) for sentence in sentences]
    by_length = sorted(range(len(rows)), key=lambda i: len(rows[i]))
    vectors = torch.zeros(len(rows), model.config.d_model)
    for start in range(0, len(rows), BATCH):
        batch = by_length[start : start + BATCH]
        ids = pad_batch([rows[i] for i in batch], pad_id)  # (batch, n)
        real = (ids != pad_id).unsqueeze(-1)  # (batch, n, 1)
        vectors[batch] = (model(ids) * real).sum(dim=1) / real.sum(dim=1)
    return vectors


def most_similar(
    query: Float[Tensor, " d_model"], vectors: Float[Tensor, "sentence d_model"], k: int
) -> list[int]:
    """Return the indices of the k vectors whose direction is closest to the query's.

    Args:
        query: shape (d_model,).
        vectors: shape (sentence, d_model).
        k: how many; all of them if there are fewer.

    Returns:
        By cosine, the largest first; ties go to the first.
    """
    cosines = F.normalize(vectors, dim=-1) @ F.normalize(query, dim=-1)  # (sentence,)
    return cosines.sort(descending=True, stable=True).indices[:k].tolist()


def most_words_shared(question: str, sentences: Sequence[str], k: int) -> list[int]:
    """Return the indices of the k sentences that share most with a question, word for word.

    The fewer sentences have a shared word, the more it counts: -ln of their share. Long sentences,
    which share something with everything, are divided by the root of their length.

    Args:
        question: any text.
        sentences: those to search; ties go to the first.
        k: how many to return; all of them if there are fewer.

    Source: Spärck Jones, "A statistical interpretation of term specificity" (1972).
    """
    words = [re.findall(r"\w+", sentence.lower()) for sentence in sentences]
    n_with = Counter(word for row in words for word in set(row))  # sentences that have the word
    query = set(re.findall(r"\w+", question.lower()))

    def score(i: int) -> float:
        total = sum(math.log(len(sentences) / n_with[word]) for word in query & set(words[i]))
        return total / math.sqrt(1 + len(words[i]))

    return sorted(range(len(sentences)), key=score, reverse=True)[:k]
