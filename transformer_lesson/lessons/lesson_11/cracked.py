"""What was measured on unknown model 1, beside its controls. Crack it yourself before you read on.

Which head carries the token that the model copies, and what it takes to break its rule. None of it
uses up a learner's runs.
"""

import random

import torch

from transformer_lesson.lessons.lesson_11.hidden_rules import MAX_LENGTH, N_TOKENS, trained_model
from transformer_lesson.lessons.lesson_11.unknown import HEADS
from transformer_lesson.model.hooks import record

SEPARATOR, SEQUENCES = 3, 200  # the token that model 1's rule depends on; how many are drawn
OTHERS = [token for token in range(N_TOKENS) if token != SEPARATOR]


@torch.no_grad()
def carried(seed: int = 0) -> dict[str, int]:
    """Return, for each head, in how many of 200 sequences its output alone changes the guess.

    A sequence has 24 tokens, a 3 at place 4 and no other. Elsewhere the token after the 3 is
    another one; counted is how often the last guess becomes that token when one head sends what it
    sends there.
    """
    chance, model = random.Random(seed), trained_model(1)
    rows = [[chance.choice(OTHERS) for _ in range(24)] for _ in range(SEQUENCES)]
    ids = torch.tensor(rows)
    ids[:, 4] = SEPARATOR
    ids[:, 5], elsewhere = 0, ids.clone()
    elsewhere[:, 5] = 7
    with record(model) as run:
        model(elsewhere)
    moved = {}
    for name in HEADS:
        point, head = f"decoder.{name[0]}.self_attention.heads", int(name[2])

        def instead(outputs, sent=run[point], head=head):  # (batch, head, n, d_head)
            outputs = outputs.clone()
            outputs[:, head] = sent[:, head]
            return outputs

        with record(model, {point: instead}):
            moved[name] = int((model(ids)[:, -1].argmax(dim=-1) == 7).sum())
    return moved


@torch.no_grad()
def after_equal_tokens(before: int) -> tuple[int, int]:
    """Return for how many tokens the rule holds at a 3 after `before` copies, and of how many."""
    ids = torch.tensor([[token] * before + [SEPARATOR] for token in OTHERS])
    return int((trained_model(1)(ids)[:, -1].argmax(dim=-1) == SEPARATOR).sum()), len(OTHERS)


@torch.no_grad()
def after_mixed_tokens(before: int, seed: int = 0) -> tuple[int, int]:
    """Return in how many sequences the rule holds at a 3 after `before` mixed tokens, of how many.

    Raises:
        ValueError: more tokens than the model reads.
    """
    if not 0 <= before < MAX_LENGTH:
        raise ValueError(f"{before} tokens before the 3: pass from 0 to {MAX_LENGTH - 1}.")
    chance = random.Random(seed)
    rows = [[chance.choice(OTHERS) for _ in range(before)] + [SEPARATOR] for _ in range(SEQUENCES)]
    guesses = trained_model(1)(torch.tensor(rows))[:, -1].argmax(dim=-1)
    return int((guesses == SEPARATOR).sum()), SEQUENCES
