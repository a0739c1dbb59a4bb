"""An induction model with handwritten weights: the circuit is known, so a search can be tested.

Its stream has a place for each fact: the current token, the previous one, the answer.
"""

from dataclasses import replace

import torch
from torch import Tensor

from transformer_lesson.lessons.lesson_11.induction import CONFIG, AttentionOnlyDecoder

V, PLACES = CONFIG.vocab_size, 64  # vocabulary; position columns, the fastest waves
ANSWER, TOKEN, BEFORE = range(V), range(PLACES, PLACES + V), range(PLACES + V, PLACES + 2 * V)
D_MODEL = PLACES + 2 * V
TRUTH = (
    ("embedding", "0.0.v"),  # head 0.0 looks one back and copies that token ...
    ("0.0", "1.0.k"),  # ... into the keys of head 1.0,
    ("embedding", "1.0.q"),  # which looks for its own token
    ("embedding", "1.0.v"),  # and reads the token found there:
    ("1.0", "logits"),  # the answer
)
"""Sender and receiver of every edge that the answer needs."""


def one_back() -> Tensor:
    """Return the matrix that turns a position's sinusoids into those of the previous position."""
    angle = 10_000.0 ** (-torch.arange(0, PLACES, 2) / D_MODEL)
    turn, even = torch.zeros(PLACES, PLACES), torch.arange(0, PLACES, 2)
    turn[even, even] = turn[even + 1, even + 1] = angle.cos()
    turn[even, even + 1] = angle.sin()  # a row vector (sin, cos) times this is one step back
    turn[even + 1, even] = -angle.sin()
    return turn


def programmed_model(seed: int = 0) -> AttentionOnlyDecoder:
    """Return a model with two working heads and two useless ones.

    Head 0.0 looks at the previous token, head 1.0 does induction. Head 0.1 looks three back, head
    1.1 at earlier occurrences of its own token; nothing uses what they add to the stream.

    Args:
        seed: of the two useless heads' outputs and of the noise in every weight of a head, whose
            standard deviation is 0.003.

    Source: Elhage et al., "A Mathematical Framework for Transformer Circuits" (2021): the circuit.
    """
    torch.manual_seed(seed)
    model = AttentionOnlyDecoder(replace(CONFIG, d_model=D_MODEL)).requires_grad_(False)
    for parameter in model.parameters():
        parameter.zero_()
    identity = torch.eye(V)
    model.embedding.weight[:, TOKEN] = 8 * identity / D_MODEL**0.5
    model.projection.weight[:, ANSWER] = 1.5 * identity
    first, second = (block.self_attention for block in model.decoder)
    steps = torch.linalg.matrix_power(one_back(), 3)
    for head, turn in ((0, one_back()), (1, steps)):  # in block 0, by position
        rows = range(head * D_MODEL // 2, head * D_MODEL // 2 + PLACES)
        first.W_Q.weight[rows, :PLACES] = 8 * turn.T
        first.W_K.weight[rows, :PLACES] = 8 * torch.eye(PLACES)
    for head, key in ((0, BEFORE), (1, TOKEN)):  # in block 1, by token
        rows = torch.arange(V) + head * D_MODEL // 2
        second.W_Q.weight[rows[:, None], list(TOKEN)] = 2 * identity
        second.W_K.weight[rows[:, None], list(key)] = 2 * identity
    for attention, write in ((first, BEFORE), (second, ANSWER)):
        attention.W_V.weight[:V, TOKEN] = identity
        attention.W_O.weight[list(write), :V] = identity
        idle = slice(D_MODEL // 2, D_MODEL // 2 + V)
        attention.W_V.weight[idle, TOKEN] = identity
        attention.W_O.weight[:, idle] = 0.02 * torch.randn(D_MODEL, V)
        for part in attention.parameters():
            part += 0.003 * torch.randn_like(part)
    return model
