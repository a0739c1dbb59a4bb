"""Searching among sentences: by what they mean, and by the words that they share.

A sentence's vector is the mean of its tokens' vectors, as an encoder such as MiniLM gives them that
was trained to put sentences of one meaning close together.
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
        model: an encoder of ids (batch, n), which tells padding by its id.
        tokenizer: the one that it was trained with.
        sentences: what is read, each from its first mark to its last.

    Source: Reimers and Gurevych, "Sentence-BERT" (2019), section 3.
    """
    pad_id = tokenizer.special_id("pad")
    rows = [tokenizer.encode(sentence, add_special=True) for sentence in sentences]
    by_length = sorted(range(len(rows)), key=lambda i: len(rows[i]))
    vectors = torch.zeros(len(rows), model.config.d_model)
    for start in range(0, len(rows), BATCH):
        some = by_length[start : start + BATCH]
        ids = pad_batch([rows[i] for i in some], pad_id)  # (batch, n)
        real = (ids != pad_id).unsqueeze(-1)  # (batch, n, 1)
        vectors[some] = (model(ids) * real).sum(dim=1) / real.sum(dim=1)
    return vectors


def most_similar(
    query: Float[Tensor, " d_model"], vectors: Float[Tensor, "sentence d_model"], k: int
) -> list[int]:
    """Return the numbers of the k vectors that point most nearly where the query points.

    Args:
        query: shape (d_model,).
        vectors: shape (sentence, d_model).
        k: how many; all of them where there are fewer.

    Returns:
        By cosine, the largest first; of equals the first one wins.
    """
    cosines = F.normalize(vectors, dim=-1) @ F.normalize(query, dim=-1)  # (sentence,)
    return cosines.sort(descending=True, stable=True).indices[:k].tolist()


def most_words_shared(question: str, sentences: Sequence[str], k: int) -> list[int]:
    """Return the numbers of the k sentences that share most with a question, word for word.

    A shared word counts the more, the fewer of the sentences have it: -ln of their share. Long
    sentences, which share something with everything, are divided by the root of their length.

    Args:
        question: any text.
        sentences: what is searched; of equals the first one wins.
        k: how many are returned; all of them where there are fewer.

    Source: Spärck Jones, "A statistical interpretation of term specificity" (1972).
    """
    words = [re.findall(r"\w+", sentence.lower()) for sentence in sentences]
    having = Counter(word for one in words for word in set(one))
    asked = set(re.findall(r"\w+", question.lower()))

    def shared(i: int) -> float:
        """Return what sentence i shares with the question."""
        common = sum(math.log(len(sentences) / having[word]) for word in asked & set(words[i]))
        return common / math.sqrt(1 + len(words[i]))

    return sorted(range(len(sentences)), key=shared, reverse=True)[:k]
