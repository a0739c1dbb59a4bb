"""The head that is built by hand: words with their places, and what trained heads hand over."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from transformer_lesson.model.hooks import record
from transformer_lesson.model.positions import sinusoidal_encoding
from transformer_lesson.model.transformers import EncoderDecoderTransformer
from transformer_lesson.text.grammar.lexicon import NOUNS, VERBS
from transformer_lesson.text.tokenizers import Tokenizer

PROPERTIES = ("article", "noun", "verb", "feminine", "neuter")
VERB_FORMS = {form for verb in VERBS.values() for form in (verb.english, verb.english_s)}
FRAME = "the child sees the {} ."


def word_vectors(words: Sequence[str]) -> Float[Tensor, "n 7"]:
    """Return a vector for each word: the five `PROPERTIES`, then the tip of a clock hand.

    The hand at place i points to (sin i, cos i).

    Args:
        words: English words of the grammar, nouns in the singular; others have no properties.
    """
    x = torch.zeros(len(words), len(PROPERTIES))
    for row, word in zip(x, words, strict=True):
        noun = NOUNS.get(word)
        genders = [noun is not None and noun.article == article for article in ("die", "das")]
        known = [word == "the", noun is not None, word in VERB_FORMS, *genders]
        row[:] = torch.tensor(known).float()
    return torch.cat([x, sinusoidal_encoding(len(words), 2)], dim=1)


def one_step() -> Float[Tensor, "2 2"]:
    """Return R, which turns the hand by one step: code(i) @ R is code(i + 1)."""
    sine, cosine = sinusoidal_encoding(2, 2)[1]
    return torch.stack([torch.stack([cosine, -sine]), torch.stack([sine, cosine])])


def own_noun(
    R: Float[Tensor, "2 2"],
) -> tuple[Float[Tensor, "7 d_k"], Float[Tensor, "7 d_k"]]:
    """Return W_Q and W_K of a head in which each article finds its own noun.

    An article asks for a noun, and every word for the next place: of the nouns, the one nearest
    to it wins.

    Args:
        R: code(i) @ R is code(i + 1).
    """
    W_Q, W_K = torch.zeros(2, len(PROPERTIES) + 2, 3)
    W_Q[0, 0] = 40.0  # an article asks for a noun
    W_K[1, 0] = 1.0
    W_Q[5:, 1:] = 20.0 * R  # and for the next place
    W_K[5:, 1:] = torch.eye(2)
    return W_Q, W_K


def neighbors_of_the_same_gender(
    model: EncoderDecoderTransformer, tokenizer: Tokenizer, draws: int = 200
) -> tuple[list[int], list[int]]:
    """Return, for each head of encoder block 1, how many nouns have a neighbor of their gender.

    A noun's neighbor is the one whose value is nearest, of all nouns of the grammar, each read in
    the same sentence. The second list is the control: the same counts for as many random matrices
    in the place of W_V as `draws` says.
    """
    values, block_inputs = [], []
    for noun in NOUNS:
        words = FRAME.format(noun).split()
        ids = torch.tensor([[*tokenizer.encode(" ".join(words)), tokenizer.eos_id]])
        with torch.no_grad(), record(model) as run:
            model.encode(ids)
        values.append(run["encoder.1.self_attention.values"][0, :, words.index(noun)])
        block_inputs.append(run["encoder.0.output"][0, words.index(noun)])
    of_head = torch.stack(values, dim=1)  # (head, noun, d_head)
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randn(draws, model.config.d_model, of_head.size(-1), generator=generator)
    return _counts(of_head), _counts(torch.stack(block_inputs) @ drawn)


def _counts(values: Float[Tensor, "head noun d_head"]) -> list[int]:
    articles = [noun.article for noun in NOUNS.values()]
    apart = torch.cdist(values, values) + torch.eye(len(articles)) * 1e9
    return [
        sum(articles[i] == articles[j] for i, j in enumerate(nearest))
        for nearest in apart.argmin(dim=-1).tolist()
    ]
