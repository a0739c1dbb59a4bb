"""Lesson 14, second part: functions with a bug that a published text has, for repair.

`repairs_2` holds the repaired ones under the same names. The two modules at the end are put into a
translator to show what comes of such a bug.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def add_and_norm(x: Tensor, sublayer: Callable, dropout: Callable, norm: Callable) -> Tensor:
    """Bug: dropout falls on what the norm has made."""
    return dropout(norm(x + sublayer(x)))


def close_branch(x: Tensor, branch: Tensor, block: nn.Module) -> Tensor:
    """Bug: norm and dropout are new at every call, so nothing trains or switches off."""
    branch = nn.Dropout(0.3)(branch)
    return nn.LayerNorm(x.size(-1))(x + branch)


def last_logits(x: Tensor, W: Tensor, b: Tensor) -> Tensor:
    """Bug: probabilities under the name of logits."""
    logits = x[:, -1] @ W + b  # (batch, vocab_size)
    logits = logits.softmax(dim=-1)
    return logits


def smoothed_targets(labels: Tensor, n_classes: int, smoothing: float) -> Tensor:
    """Bug: the label gets no part of what is spread."""
    targets = torch.full((len(labels), n_classes), smoothing / (n_classes - 1))
    targets[torch.arange(len(labels)), labels] = 1 - smoothing
    return targets


def next_token_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Bug: softmax before a loss that does a softmax."""
    probabilities = logits.softmax(dim=-1)  # (batch, n, vocab_size)
    return F.cross_entropy(probabilities.flatten(0, 1), labels.flatten())


def continue_text(
    next_logits: Callable, prompt: list[int], eos_id: int, max_new_tokens: int
) -> list[int]:
    """Bug: nothing looks for the end."""
    ids = list(prompt)
    for _ in range(max_new_tokens):
        ids.append(int(next_logits(ids).argmax()))
    return ids


def look_up(words: list[str], vocabulary: dict[str, int], unk_id: int) -> list:
    """Bug: an unknown word becomes `None`."""
    return [vocabulary.get(word) for word in words]


def fill_up(next_logits: Callable, start: Tensor, length: int) -> Tensor:
    """Bug: `len` counts the texts of a batch, and the new tokens stand in a row."""
    ids = start  # (batch, n)
    for _ in range(length - len(start)):
        best = next_logits(ids).argmax(dim=-1)  # (batch,)
        ids = torch.cat([ids, best.unsqueeze(0)], dim=1)
    return ids


def width_message(x: Tensor, table: Tensor) -> str:
    """Bug: a row of the table where its width is meant."""
    return f"Expected vectors of {table[1]} numbers, but got {x.shape[-1]}."


def run_listing(model: nn.Module, ids: Tensor) -> Tensor | None:
    """Bug: a part by a name that it does not have, and no result."""
    x = model.embed(ids)  # (batch, n, d_model)
    for layer in model.layers:
        x = layer(x)
    model.out(x)  # (batch, n, vocab_size)


def gpt2_d_model(n_heads: int) -> int:
    """Bug: the width of GPT-2 large taken for that of GPT-2 medium."""
    d_head = 1280 // 16  # GPT-2 medium has 16 heads
    return n_heads * d_head


class BlockEnd(nn.Module):
    """Bug: a dropout that is made on the fly, in a module."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x, thinned out in training and in evaluation."""
        return nn.Dropout(0.3)(x)


class ModelEnd(nn.Module):
    """Bug: probabilities under the name of logits, in a module."""

    def forward(self, logits: Tensor) -> Tensor:
        """Return probabilities."""
        return logits.softmax(dim=-1)
