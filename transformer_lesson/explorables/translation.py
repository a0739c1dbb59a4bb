"""What a translator makes of a typed sentence: read it, translate it, keep what it looked at."""

import difflib
from collections.abc import Collection
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from transformer_lesson.generation import generate
from transformer_lesson.generation.writer import evaluating
from transformer_lesson.models import EncoderDecoderTransformer
from transformer_lesson.recording import record
from transformer_lesson.tokenizer import WordTokenizer, words

LONGEST = 30  # words of a translation: an untrained model does not stop by itself
N_CANDIDATES = 5


class Reading(NamedTuple):
    """A typed sentence as a translator can read it.

    Args:
        tokens: its words, each as the vocabulary has it.
        known: for each word whether the vocabulary has it.
        changes: in sentences, what was changed.
        offers: in sentences, words that are not known, and similar ones that are.
    """

    tokens: tuple[str, ...]
    known: tuple[bool, ...]
    changes: tuple[str, ...]
    offers: tuple[str, ...]


def read_sentence(sentence: str, vocabulary: Collection[str], closing: str = "") -> Reading:
    """Split a sentence into words and look for each of them, in other spellings too.

    "The" is read as "the", and "doesn't" as "does not", where the vocabulary has only those.

    Args:
        sentence: anything.
        vocabulary: the words that the translator has learned in the source language.
        closing: the mark that ends every sentence of the vocabulary's language, if one does.
    """
    read, respelled, unknown = [], [], []
    visible = "".join(c for c in sentence if c.isprintable() or c.isspace())
    for word in words(visible):
        tokens = _spelled(word, vocabulary)
        read += tokens or [word]
        if not tokens:
            unknown.append(word)
        elif tokens != [word]:
            respelled.append(f"“{word}” as “{' '.join(tokens)}”")
    changes = [f"Read {_listed(respelled)}."] if respelled else []
    if closing and read and read[-1].isalnum():
        read.append(closing)
        changes.append(f"A “{closing}” was added: every sentence of the corpus ends with one.")
    offers = [_offer(word, vocabulary) for word in list(dict.fromkeys(unknown))[:5]]
    known = tuple(word in vocabulary for word in read)
    return Reading(tuple(read), known, tuple(changes), tuple(offers))


def _spelled(word: str, vocabulary: Collection[str]) -> list[str]:
    """Return the word as the vocabulary has it, or nothing."""
    for form in (word, word.lower(), word.capitalize()):
        if form in vocabulary:
            return [form]
    stem = word.lower().replace("’", "'").removesuffix("n't")
    return [stem, "not"] if stem in vocabulary and "not" in vocabulary else []


def _offer(word: str, vocabulary: Collection[str]) -> str:
    similar = difflib.get_close_matches(word[:30].lower(), sorted(vocabulary), n=3)
    offered = f"; similar words that are: {', '.join(similar)}" if similar else ""
    return f"“{word:.30}” is not in the vocabulary{offered}."


def _listed(items: list[str]) -> str:
    return ", ".join(items[:6]) + (" and others" if len(items) > 6 else "")


def source_ids(tokenizer: WordTokenizer, reading: Reading) -> list[int]:
    """Return the ids that the encoder reads: `<unk>` for unknown words, `<eos>` at the end."""
    ids = [
        tokenizer.vocabulary[token] if known else tokenizer.unk_id
        for token, known in zip(reading.tokens, reading.known, strict=True)
    ]
    return [*ids, tokenizer.eos_id]


class Translation(NamedTuple):
    """What a translator wrote, and what it looked at and thought of at each word.

    Args:
        reading: what it read; `<eos>` came after it.
        written: the tokens of the translation, `<eos>` included if it came to it.
        weights: row t is where the decoder looked in the source when it chose `written[t]`.
        candidates: for each token written the likeliest ones there and their probabilities.
    """

    reading: Reading
    written: tuple[str, ...]
    weights: Float[Tensor, "layer head target source"]
    candidates: tuple[tuple[tuple[str, float], ...], ...]


def watch_translation(
    model: EncoderDecoderTransformer, tokenizer: WordTokenizer, reading: Reading
) -> Translation:
    """Translate greedily, and keep what the model looked at.

    Args:
        model: in evaluation mode, with one vocabulary for both languages.
        tokenizer: of this vocabulary.
        reading: a sentence; words that are not known are read as `<unk>`.
    """
    ids = source_ids(tokenizer, reading)
    longest = min(LONGEST, model.config.max_len - 1)
    written = generate(model, ids, longest).ids[0]
    target_ids = torch.tensor([[tokenizer.bos_id, *written[:-1]]])  # (1, target)
    logits, weights = cross_attention(model, torch.tensor([ids]), target_ids)
    best = logits[0].softmax(dim=-1).topk(min(N_CANDIDATES, logits.size(-1)))  # (target, candidate)
    candidates = [
        tuple((tokenizer.token(id_), p) for id_, p in zip(row, chances, strict=True))
        for row, chances in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    ]
    words_written = tuple(map(tokenizer.token, written))
    return Translation(reading, words_written, weights[:, 0], tuple(candidates))


def cross_attention(
    model: EncoderDecoderTransformer,
    source_ids: Int[Tensor, "batch source"],
    target_ids: Int[Tensor, "batch target"],
) -> tuple[
    Float[Tensor, "batch target vocab_size"], Float[Tensor, "layer batch head target source"]
]:
    """Return the model's logits and where each layer's decoder looked in the source.

    Row t belongs to the token that *follows* `target_ids[:, t]`: to choose it the model looked.
    """
    device = model.projection.weight.device
    with evaluating(model), torch.no_grad(), record(model) as run:
        logits = model(source_ids.to(device), target_ids.to(device))  # (batch, target, vocab_size)
    weights = [value for name, value in run.items() if name.endswith("cross_attention.weights")]
    weights = torch.stack(weights)  # (layer, batch, head, target, source)
    return logits.float().cpu(), weights.float().cpu()
