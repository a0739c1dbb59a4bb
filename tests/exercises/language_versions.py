"""Right and wrong versions of lesson 10's exercise."""

import math

import torch


def bits(loss_in_nats, n_tokens, n_characters):
    return loss_in_nats * math.log2(math.e) * n_tokens / n_characters


LANGUAGE_RIGHT = {
    "bits_per_character": [
        bits,
        lambda loss, n_tokens, n_characters: torch.tensor(bits(loss, n_tokens, n_characters)),
        lambda loss, n_tokens, n_characters: -math.log2(math.exp(-loss)) / n_characters * n_tokens,
    ],
}

LANGUAGE_WRONG = {
    "bits_per_character": {
        "in nats": lambda loss, tokens, characters: loss * tokens / characters,
        "bits per token": lambda loss, tokens, characters: loss / math.log(2),
        "times ln 2": lambda loss, tokens, characters: loss * math.log(2) * tokens / characters,
        "upside down": lambda loss, tokens, characters: loss / math.log(2) * characters / tokens,
        "log2 of the loss": lambda loss, tokens, characters: math.log2(loss) * tokens / characters,
        "whole characters per token": lambda loss, tokens, characters: (
            loss / math.log(2) / (characters // tokens)
        ),
        "in dits": lambda loss, tokens, characters: loss / math.log(10) * tokens / characters,
        "of the whole text": lambda loss, tokens, characters: loss / math.log(2) * tokens,
        "perplexity": lambda loss, tokens, characters: math.exp(loss * tokens / characters),
    },
}
