"""Other right ways of writing lesson 10's exercise."""

import math

import torch

from transformer_lesson.exercises.mistakes.language import bits

LANGUAGE_RIGHT = {
    "bits_per_character": [
        bits,
        lambda loss, n_tokens, n_characters: torch.tensor(bits(loss, n_tokens, n_characters)),
        lambda loss, n_tokens, n_characters: -math.log2(math.exp(-loss)) / n_characters * n_tokens,
    ],
}
