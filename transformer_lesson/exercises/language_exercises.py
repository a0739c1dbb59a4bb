"""Lesson 10: a loss that does not depend on how the text was cut into tokens."""

import math

from transformer_lesson.exercises.specification import Draw, Exercise


def _bits_inputs(draw: Draw) -> tuple:
    n_tokens = int(draw.integers("", 20, 400))
    characters_per_token = (1, 2, 3, 1, 4)[draw.number % 5]
    extra = 0 if draw.number == 0 else draw.number  # rarely a whole number per token
    loss = (0.5 + draw.number) * math.log(2)
    return loss, n_tokens, n_tokens * characters_per_token + extra


def _cut_does_not_matter(answer, inputs: tuple, bits: float) -> str | None:
    loss, n_tokens, n_characters = inputs
    halved = float(answer(loss / 2, 2 * n_tokens, n_characters))
    if math.isclose(halved, float(bits), rel_tol=1e-4):
        return None
    return (
        "Cut every token into two that cost half as much: the text and its total loss are the "
        f"same, so the bits per character must be too. Yours go from {bits:.4g} to {halved:.4g}.\n"
        "What is the loss of all tokens together, and how many characters share it?"
    )


LANGUAGE_EXERCISES = (
    Exercise(
        name="bits_per_character",
        reference="transformer_lesson.training.loss:bits_per_character",
        make_inputs=_bits_inputs,
        returns={"bits": ""},
        hints=(
            "How many nats does the whole text cost? Every token costs `loss_in_nats` on average.",
            "A nat is 1 / ln 2 = 1.44 bits, so a loss in bits is a larger number than in nats.",
            "Total in bits, shared out among the characters: `loss_in_nats / math.log(2) * "
            "n_tokens / n_characters`.",
        ),
        invariants=(_cut_does_not_matter,),
    ),
)
