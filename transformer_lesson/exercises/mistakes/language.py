"""Mistakes in lesson 10: from the loss of a token to bits per character."""

import math

from transformer_lesson.exercises.specification import Mistake


def bits(loss, n_tokens, n_characters):
    """Bits per character."""
    return loss * math.log2(math.e) * n_tokens / n_characters


LANGUAGE_MISTAKES = {
    "bits_per_character": (
        Mistake(
            "nats for bits",
            "The loss was taken with the natural logarithm, so your number looks 31 % better than "
            "it is. How many nats are one bit, and do you multiply or divide by that?",
            lambda loss, tokens, characters: loss * tokens / characters,
        ),
        Mistake(
            "bits per token",
            "A token may be one letter or a whole word, so this number depends on the tokenizer, "
            "and two models cannot be compared by it. Share the bits among the characters.",
            lambda loss, tokens, characters: loss / math.log(2),
        ),
        Mistake(
            "multiplying by ln 2",
            "A bit is the smaller unit (0.69 nats), so there must be more bits than nats. Yours "
            "are fewer, and the model looks better than it is. Turn the operation round.",
            lambda loss, tokens, characters: loss * math.log(2) * tokens / characters,
        ),
        Mistake(
            "characters per token turned upside down",
            "You multiply by the characters, so a model with long tokens looks worse the more "
            "text it covers. A character costs part of a token: which number divides?",
            lambda loss, tokens, characters: loss / math.log(2) * characters / tokens,
        ),
        Mistake(
            "the logarithm of the loss",
            "The loss is a logarithm already, of a probability. Changing its base is one division "
            "by a constant; a second logarithm means nothing and fails at a loss of 0.",
            lambda loss, tokens, characters: math.log2(loss) * tokens / characters,
        ),
        Mistake(
            "a whole number of characters per token",
            "`//` throws the rest away, so 3.9 characters per token count as 3, and the model "
            "looks worse by 30 %. Divide with `/`.",
            lambda loss, tokens, characters: loss / math.log(2) / (characters // tokens),
        ),
        Mistake(
            "the logarithm to base 10",
            "A bit is a choice between two, so its logarithm has base 2. Yours counts decimal "
            "digits of information, 3.3 bits each. Which constant do you divide by?",
            lambda loss, tokens, characters: loss / math.log(10) * tokens / characters,
        ),
        Mistake(
            "the bits of the whole text",
            "A longer text always costs more, so this says nothing about the model. Share the "
            "total out: among how many characters?",
            lambda loss, tokens, characters: loss / math.log(2) * tokens,
        ),
        Mistake(
            "a perplexity",
            "The exponential turns a cost into a number of equally likely choices. Bits are the "
            "cost itself, in another unit: leave out `exp`.",
            lambda loss, tokens, characters: math.exp(loss * tokens / characters),
        ),
    ),
}
