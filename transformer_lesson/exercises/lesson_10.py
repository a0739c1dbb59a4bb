"""Lesson 10: a loss that does not depend on how the text was cut into tokens."""

import math

from transformer_lesson.exercises.choosing import choose
from transformer_lesson.exercises.specification import Draw, exercise


def _bits_inputs(draw: Draw) -> tuple:
    """Tokens of several characters, characters of several tokens, one token, no loss at all."""
    if draw.number == 7:
        return 2.5, 1, 5
    n_tokens = int(draw.integers("", 3, 9 if draw.small else 400))
    n_characters = draw.one_of((2, 3, 4, 1, 1, 0, 2)) * n_tokens
    n_characters += draw.one_of((1, 2, 3, 4, 0, n_tokens // 2, 0))
    return (0.0 if draw.number == 6 else 0.5 + draw.number), n_tokens, n_characters


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


def _is_never_negative(answer, inputs: tuple, bits: float) -> str | None:
    if bits >= 0:
        return None
    return (
        f"A text cannot cost less than nothing, and yours costs {bits:.4g} bits per character.\n"
        "The loss has its minus sign already: it is -ln of a probability."
    )


@exercise(
    reference="transformer_lesson.training.loss:bits_per_character",
    make_inputs=_bits_inputs,
    draws=8,
    returns={"bits": ""},
    hints=(
        "How many nats does the whole text cost? Every token costs `loss_in_nats` on average.",
        "A nat is 1 / ln 2 = 1.44 bits, so a loss in bits is a larger number than in nats.",
        "Total in bits, shared out among the characters: `loss_in_nats / math.log(2) * "
        "n_tokens / n_characters`.",
    ),
    invariants=(_is_never_negative, _cut_does_not_matter),
)
def bits_per_character(loss_in_nats, n_tokens, n_characters):
    """Return the bits of all tokens, shared out among their characters."""
    n_tokens = choose(n_tokens, one_token_fewer=n_tokens - 1, one_token_more=n_tokens + 1)
    n_characters = choose(n_characters, one_character_fewer=n_characters - 1)
    bits_per_token = _in_bits(loss_in_nats)
    total = choose(
        bits_per_token * n_tokens,
        not_multiplied=bits_per_token,
        divided_by_both=bits_per_token / n_tokens,
    )
    bits = choose(
        total / n_characters,
        per_token=bits_per_token,
        of_whole_text=total,
        upside_down=bits_per_token * n_characters / n_tokens,
        whole_characters_per_token=bits_per_token / (n_characters // n_tokens),
        whole_tokens_per_character=bits_per_token * (n_tokens // n_characters),
        multiplied_by_both=total * n_characters,
        of_tokens_and_characters=total / (n_tokens + n_characters),
        whole_division=total // n_characters,
    )
    bits = choose(bits, in_bytes=bits / 8, times_8=bits * 8)
    return choose(
        bits,
        perplexity=2**bits,
        exponential=math.exp(bits),
        inverse=1 / bits,
        rounded=round(bits),
        cut_to_whole=int(bits),
        rounded_up=math.ceil(bits),
        two_decimals=round(bits, 2),
        three_decimals=round(bits, 3),
        logarithm_at_the_end=math.log2(bits),
    )


def _in_bits(loss_in_nats):
    """Return a token's cost in bits."""
    cost = choose(
        loss_in_nats,
        perplexity_first=math.exp(loss_in_nats),
        probability_first=math.exp(-loss_in_nats),
        negative=-loss_in_nats,
        logarithm_of_loss=loss_in_nats,  # log2(exp(loss)) would be right, so these do not
        loss_as_probability=loss_in_nats,  # go together with the two exponentials
    )
    return choose(
        cost / math.log(2),
        nats=cost,
        times_ln_2=cost * math.log(2),
        to_base_10=cost / math.log(10),
        logarithm_of_2_to_base_10=cost / math.log10(2),
        factor_of_1_44=cost * 1.44,
        divisor_of_0_69=cost / 0.69,
        three_digits=cost / 0.693,
        ln_2_added=cost + math.log(2),
        ln_2_subtracted=cost - math.log(2),
        halved=cost / 2,
        doubled=cost * 2,
        logarithm_of_loss=math.log2(cost),
        loss_as_probability=-math.log2(cost),
        two_to_the_loss=2**cost,
        fails_at_0=math.exp(math.log(cost) - math.log(math.log(2))),
    )
