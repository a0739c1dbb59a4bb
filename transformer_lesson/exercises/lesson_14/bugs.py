"""Lesson 14: functions with a bug that a published text has, for repair.

`repairs` holds the repaired ones under the same names. Norms and dropout are left out where
they have no part in the bug. The two modules at the end are put into a translator to show what
comes of such a bug.
"""

import math
from collections.abc import Callable, Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lesson.model import attention, masks


def gpt_block(
    x: Tensor, attention_1: Callable, attention_2: Callable, feed_forward: Callable
) -> Tensor:
    """Bug: the second attention has no mask."""
    mask = masks.causal_mask(x.size(1))  # (1, 1, query, key)
    x = x + attention_1(x, x, x, mask)
    x = x + attention_2(x, x, x)
    return x + feed_forward(x)


def next_token_logits(
    ids: Tensor, embedding: Callable, blocks: Iterable[Callable], projection: Callable
) -> Tensor:
    """Bug: the blocks take a mask, and nobody makes one."""
    x = embedding(ids)  # (batch, n, d_model)
    for block in blocks:
        x = block(x)
    return projection(x)  # (batch, n, vocab_size)


def mask_for_batch(ids: Tensor, pad_id: int) -> Tensor:
    """Bug: padding on the left stands before a token, and is seen."""
    mask = masks.causal_mask(ids.size(1))  # (1, 1, query, key)
    return mask.expand(len(ids), -1, -1, -1)  # (batch, 1, query, key)


def weights_of_real_keys(scores: Tensor, mask: Tensor) -> Tensor:
    """Bug: a softmax over nothing but minus infinity is 0 / 0."""
    hidden = torch.zeros(mask.shape).masked_fill(~mask, -math.inf)
    return (scores + hidden).softmax(dim=-1)  # (batch, head, query, key)


def half_precision_weights(scores: Tensor, mask: Tensor) -> Tensor:
    """Bug: half precision ends at 65504, and a fully masked row becomes uniform."""
    scores = scores.masked_fill(~mask, -1e9)
    return scores.softmax(dim=-1)  # (batch, head, query, key)


def cut_into_heads(x: Tensor, n_heads: int) -> Tensor:
    """Bug: `view` deals out the numbers token after token."""
    n, d_model = x.shape
    return x.view(n_heads, n, d_model // n_heads)  # (head, n, d_head)


def all_heads(x: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor) -> Tensor:
    """Bug: none in the numbers, but every head waits for the one before."""
    heads = []
    for i in range(len(W_Q)):
        Q, K, V = x @ W_Q[i], x @ W_K[i], x @ W_V[i]  # (batch, n, d_head)
        heads.append(attention.scaled_dot_product_attention(Q, K, V)[0])
    return torch.stack(heads, dim=1)  # (batch, head, n, d_head)


def is_linear(attend: Callable, x: Tensor, y: Tensor) -> bool:
    """Bug: queries and keys stay as they are while the values change."""
    together = attend(x, x, x + y)
    apart = attend(x, x, x) + attend(x, x, y)
    return torch.allclose(together, apart, atol=1e-5)


def projection_parameters(d_model: int, n_heads: int) -> int:
    """Bug: a head's matrices map from d_model numbers, not from d_k."""
    d_k = d_model // n_heads
    W_Q = W_K = W_V = d_k * d_k  # numbers in each matrix of one head
    return n_heads * (W_Q + W_K + W_V)


def encoding_by_formula(n_positions: int, d_model: int) -> Tensor:
    """Bug: positions and columns count from 1, the formula from 0."""
    encoding = torch.zeros(n_positions, d_model)
    for pos in range(1, n_positions + 1):
        for column in range(1, d_model + 1):
            angle = pos / 10000 ** (2 * (column // 2) / d_model)
            value = math.cos(angle) if column % 2 else math.sin(angle)
            encoding[pos - 1, column - 1] = value
    return encoding


def encoding_of_any_width(n_positions: int, d_model: int) -> Tensor:
    """Bug: an odd width has room for one cosine fewer."""
    two_i = torch.arange(0, d_model, 2)  # 0, 2, 4, ...
    angle = torch.arange(n_positions)[:, None] / 10000 ** (two_i / d_model)
    encoding = torch.zeros(n_positions, d_model)
    encoding[:, 0::2] = angle.sin()
    encoding[:, 1::2] = angle.cos()
    return encoding


def add_positions(x: Tensor, table: Tensor) -> Tensor:
    """Bug: the first axis of x is the sentence, not the token."""
    table = table[:, None]  # (max_len, 1, d_model)
    return x + table[: x.size(0)]


def frequencies(d_model: int) -> Tensor:
    """Bug: the exponent is the same for every entry."""
    two_i = torch.arange(0, d_model, 2)  # 0, 2, 4, ...
    return two_i * 1 / math.exp(math.log(10000.0) / d_model)  # radians per token


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
