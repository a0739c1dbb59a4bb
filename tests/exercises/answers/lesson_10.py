"""What learners might write for the exercises of lesson 10."""

import math

import numpy as np
import torch

from tests.exercises.answers import right, wrong


@wrong("bits_per_character", "usual", "multiplies by ln 2 where it must divide")
def _(loss_in_nats, n_tokens, n_characters):
    bits_per_token = loss_in_nats * math.log(2)
    return bits_per_token * n_tokens / n_characters


@wrong("bits_per_character", "usual", "the ratio of tokens and characters is upside down")
def _(loss_in_nats, n_tokens, n_characters):
    characters_per_token = n_characters / n_tokens
    return loss_in_nats / math.log(2) * characters_per_token


@wrong("bits_per_character", "usual", "stays in nats")
def _(loss_in_nats, n_tokens, n_characters):
    total_loss = loss_in_nats * n_tokens
    return total_loss / n_characters


@wrong("bits_per_character", "usual", "bits per token, not shared out among the characters")
def _(loss_in_nats, n_tokens, n_characters):
    return loss_in_nats / math.log(2)


@wrong("bits_per_character", "usual", "takes the loss for the loss of the whole text")
def _(loss_in_nats, n_tokens, n_characters):
    bits = loss_in_nats * math.log2(math.e)
    return bits / n_characters


@wrong("bits_per_character", "usual", "takes the base 2 logarithm of the loss")
def _(loss_in_nats, n_tokens, n_characters):
    return math.log2(loss_in_nats) * n_tokens / n_characters


@wrong("bits_per_character", "unusual", "divides whole numbers, the rest is lost")
def _(loss_in_nats, n_tokens, n_characters):
    nats = loss_in_nats * n_tokens
    bits = nats / math.log(2)
    return float(bits // n_characters)


@wrong("bits_per_character", "unusual", "1.44 for 1 / ln 2, rounded to two digits")
def _(loss_in_nats, n_tokens, n_characters):
    NAT_IN_BITS = 1.44
    return NAT_IN_BITS * loss_in_nats * n_tokens / n_characters


@wrong("bits_per_character", "unusual", "returns the perplexity per character")
def _(loss_in_nats, n_tokens, n_characters):
    bits = loss_in_nats * n_tokens / math.log(2) / n_characters
    return 2**bits


@wrong("bits_per_character", "unusual", "takes the logarithm of 2 to the base 10")
def _(loss_in_nats, n_tokens, n_characters):
    return float(loss_in_nats / np.log10(2) * n_tokens / n_characters)


@wrong("bits_per_character", "unusual", "the first token has no prediction: counts one token less")
def _(loss_in_nats, n_tokens, n_characters):
    n_predicted = n_tokens - 1
    return loss_in_nats * n_predicted / (n_characters * math.log(2))


@wrong("bits_per_character", "unusual", "rounds the result to two digits")
def _(loss_in_nats, n_tokens, n_characters):
    bpc = (loss_in_nats / math.log(2)) * (n_tokens / n_characters)
    return round(bpc, 2)


@wrong("bits_per_character", "unusual", "fails for a perfect model, whose loss is 0.0")
def _(loss_in_nats, n_tokens, n_characters):
    # log2 of the perplexity, by change of base
    return math.exp(math.log(loss_in_nats) - math.log(math.log(2))) * n_tokens / n_characters


@wrong(
    "bits_per_character",
    "pair",
    "multiplies by ln 2 where it must divide",
    "the ratio of tokens and characters is upside down",
)
def _(loss_in_nats, n_tokens, n_characters):
    per_token = math.log(2) * loss_in_nats
    tokens_per_character = n_characters / n_tokens
    return per_token * tokens_per_character


@wrong(
    "bits_per_character",
    "pair",
    "stays in nats",
    "divides by the characters without multiplying by the tokens",
)
def _(loss_in_nats, n_tokens, n_characters):
    return loss_in_nats / n_characters


@wrong(
    "bits_per_character",
    "pair",
    "takes the logarithm of 2 to the base 10",
    "forgets the characters, so it gives the bits of the whole text",
)
def _(loss_in_nats, n_tokens, n_characters):
    total = loss_in_nats * n_tokens
    return total / math.log(2, 10)


@wrong(
    "bits_per_character",
    "pair",
    "takes the base 2 logarithm of the loss",
    "whole-number division of tokens by characters",
)
def _(loss_in_nats, n_tokens, n_characters):
    return float(math.log2(loss_in_nats) * (n_tokens // n_characters))


@wrong(
    "bits_per_character",
    "pair",
    "adds ln 2 where it must divide",
    "bits per byte: divides by 8",
)
def _(loss_in_nats, n_tokens, n_characters):
    bits = loss_in_nats + math.log(2)
    return bits * n_tokens / n_characters / 8


@right("bits_per_character")
def _(loss_in_nats, n_tokens, n_characters):
    nats = loss_in_nats * n_tokens
    bits = nats * math.log2(math.e)
    return bits / n_characters


@right("bits_per_character")
def _(loss_in_nats, n_tokens, n_characters):
    nats_per_bit = torch.tensor(2.0, dtype=torch.float64).log()
    return (loss_in_nats / nats_per_bit * n_tokens / n_characters).item()


@right("bits_per_character")
def _(loss_in_nats, n_tokens, n_characters):
    return float(np.float64(loss_in_nats) * n_tokens / np.log(2.0) / n_characters)


@right("bits_per_character")
def _(loss_in_nats, n_tokens, n_characters):
    # a fair choice among 2 costs ln 2 nats; how many such choices is one character worth?
    tokens_per_character = n_tokens / n_characters
    nats_per_character = loss_in_nats * tokens_per_character
    one_bit = -math.log(0.5)
    return nats_per_character / one_bit


@right("bits_per_character")  # a number in a tensor is a number, as in all exercises
def _(loss_in_nats, n_tokens, n_characters):
    loss = torch.tensor(loss_in_nats, dtype=torch.float64)
    return loss / torch.log(torch.tensor(2.0, dtype=torch.float64)) * n_tokens / n_characters


@right("bits_per_character")  # it overflows above 709 nats a token; guessing costs ln(vocab_size)
def _(loss_in_nats, n_tokens, n_characters):
    perplexity = math.exp(loss_in_nats)
    return math.log2(perplexity) * n_tokens / n_characters
