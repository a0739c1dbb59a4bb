"""Lessons 01 and 02: from text to vectors that know their position."""

import re

import torch
from torch import Tensor

from transformer_lesson.exercises.specification import Draw, Exercise
from transformer_lesson.text.tokenizers import words

TEXTS = (
    "Save, then close the file.",
    "The loop ends; the loop's target keeps its last value.",
    "Don't close the file.",
    "Run, run, run: the kernel is busy (again)!",
    "",
)


def _encode_inputs(draw: Draw) -> tuple:
    text = TEXTS[draw.number % len(TEXTS)]
    known = list(dict.fromkeys(words(text)))[::2]  # the vocabulary lacks every second word
    asked = map(re.escape, draw.some(words(text)))
    text = re.search(r"\s*".join(asked), text)[0]  # with the spaces as they are
    return text, {word: 7 * i for i, word in enumerate(known)}, 3 + draw.number


def _pad_batch_inputs(draw: Draw) -> tuple:
    longest = draw.size("n")
    draw.size("batch", at_least=2)
    lengths = draw.integers("batch", 1, longest + 1).tolist()
    lengths[0], lengths[-1] = 1, longest  # the longest sentence is not the first
    sequences = [torch.randint(1, 50, (n,), generator=draw.generator).tolist() for n in lengths]
    return sequences, 0 if draw.number % 2 else 60 + draw.number


def _embed_inputs(draw: Draw) -> tuple:
    table = draw.normal("vocab_size d_model")
    return draw.integers("batch n", 0, draw.size("vocab_size")), table


def _sinusoidal_inputs(draw: Draw) -> tuple:
    draw.sizes["d_model"] = 2 * draw.size("pair")
    base = 10000.0 if draw.number % 2 == 0 else 100.0
    return draw.size("n_positions"), draw.sizes["d_model"], base


def _starts_at_zero(answer, inputs: tuple, encoding: Tensor) -> str | None:
    first = torch.tensor([0.0, 1.0]).repeat(encoding.size(1) // 2)
    if torch.allclose(encoding[0].float(), first, atol=1e-5):
        return None
    return (
        "Row 0 must be 0, 1, 0, 1, ...: the sine and the cosine of angle 0, in turn.\n"
        "Do your positions count from 0? Do sines stand at even and cosines at odd columns?"
    )


TEXT_EXERCISES = (
    Exercise(
        name="encode",
        reference="transformer_lesson.text.tokenizers:encode",
        make_inputs=_encode_inputs,
        returns={"ids": "token"},
        hints=(
            "`words(text)` splits the text. You need one id for each word, in the same order.",
            "What should a word get that is not in the vocabulary? Not `None`: an id.",
            "A dictionary's `get` takes a second argument: what to return for a missing key.",
        ),
    ),
    Exercise(
        name="pad_batch",
        reference="transformer_lesson.text.batches:pad_batch",
        make_inputs=_pad_batch_inputs,
        returns={"batch": "batch n"},
        hints=(
            "How wide must the result be so that every sequence fits, and no wider?",
            "Each row is the sequence, then as many `pad_id` as it is shorter than the longest.",
            "`sequence + [pad_id] * (longest - len(sequence))` is one row; `torch.tensor` turns "
            "the list of rows into a batch.",
        ),
    ),
    Exercise(
        name="embed",
        reference="transformer_lesson.model.embedding:embed",
        make_inputs=_embed_inputs,
        returns={"embedding": "batch n d_model"},
        hints=(
            "Row i of the table is the vector of token i. Indexing does the lookup.",
            "`table[ids]` has shape (batch, n, d_model). The paper scales it.",
            "Multiply by the square root of the table's last size, `table.size(-1)`.",
        ),
    ),
    Exercise(
        name="sinusoidal_encoding",
        reference="transformer_lesson.model.positions:sinusoidal_encoding",
        make_inputs=_sinusoidal_inputs,
        returns={"encoding": "n_positions d_model"},
        hints=(
            "Dimensions 2i and 2i + 1 share one angle: position / base^(2i / d_model).",
            "`torch.arange(n_positions)[:, None]` against a row of frequencies gives all angles "
            "at once, shape (n_positions, d_model / 2).",
            "With 2i = `torch.arange(0, d_model, 2)`, the angle is `position / base ** "
            "(two_i / d_model)`. Fill `encoding[:, 0::2]` with its sine and `encoding[:, 1::2]` "
            "with its cosine.",
        ),
        invariants=(_starts_at_zero,),
    ),
)
