"""Lesson 14: the functions of `bugs`, repaired."""

import math
from collections.abc import Callable, Iterable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer_lesson.model import attention, masks


def gpt_block(
    x: Tensor, attention_1: Callable, attention_2: Callable, feed_forward: Callable
) -> Tensor:
    """Two attentions under the same causal mask, then the feed-forward, each added to x."""
    mask = masks.causal_mask(x.size(1))  # (1, 1, query, key)
    x = x + attention_1(x, x, x, mask)
    x = x + attention_2(x, x, x, mask)
    return x + feed_forward(x)


def next_token_logits(
    ids: Tensor, embedding: Callable, blocks: Iterable[Callable], projection: Callable
) -> Tensor:
    """Logits for each next token from the tokens up to it."""
    x = embedding(ids)  # (batch, n, d_model)
    mask = masks.causal_mask(ids.size(1))  # (1, 1, query, key)
    for block in blocks:
        x = block(x, mask)
    return projection(x)  # (batch, n, vocab_size)


def mask_for_batch(ids: Tensor, pad_id: int) -> Tensor:
    """The mask that hides what comes later, and padding wherever it stands."""
    mask = masks.causal_mask(ids.size(1))  # (1, 1, query, key)
    return mask & masks.padding_mask(ids, pad_id)  # (batch, 1, query, key)


def weights_of_real_keys(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the keys that the mask allows; zeros where it allows none."""
    lowest = torch.finfo(scores.dtype).min  # finite, so that no row is 0 / 0
    weights = scores.masked_fill(~mask, lowest).softmax(dim=-1)
    return weights.masked_fill(~mask, 0.0)  # (batch, head, query, key)


def half_precision_weights(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the keys that the mask allows, in any precision; zeros where it allows none."""
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return scores.softmax(dim=-1).masked_fill(~mask, 0.0)  # (batch, head, query, key)


def cut_into_heads(x: Tensor, n_heads: int) -> Tensor:
    """Give each head its own d_model / n_heads numbers of every token."""
    n, d_model = x.shape
    x = x.view(n, n_heads, d_model // n_heads)  # (n, head, d_head)
    return x.transpose(0, 1)  # (head, n, d_head)


def all_heads(x: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor) -> Tensor:
    """The results of all heads at once: the matrices' head axis becomes an axis of Q, K and V."""
    Q, K, V = (torch.einsum("bnd,hdk->bhnk", x, W) for W in (W_Q, W_K, W_V))
    return attention.scaled_dot_product_attention(Q, K, V)[0]  # (batch, head, n, d_head)


def is_linear(attend: Callable, x: Tensor, y: Tensor) -> bool:
    """Whether self-attention of a sum is the sum of the self-attentions."""
    together = attend(x + y, x + y, x + y)
    apart = attend(x, x, x) + attend(y, y, y)
    return torch.allclose(together, apart, atol=1e-5)


def projection_parameters(d_model: int, n_heads: int) -> int:
    """Numbers in W_Q, W_K and W_V of all heads together, without biases."""
    d_k = d_model // n_heads
    W_Q = W_K = W_V = d_model * d_k  # numbers in each matrix of one head
    return n_heads * (W_Q + W_K + W_V)


def encoding_by_formula(n_positions: int, d_model: int) -> Tensor:
    """Sines in even columns, cosines in odd ones; positions and columns count from 0."""
    encoding = torch.zeros(n_positions, d_model)
    for pos in range(n_positions):
        for column in range(d_model):
            angle = pos / 10000 ** (2 * (column // 2) / d_model)
            encoding[pos, column] = math.cos(angle) if column % 2 else math.sin(angle)
    return encoding


def encoding_of_any_width(n_positions: int, d_model: int) -> Tensor:
    """Sines and cosines in turn; an odd width ends in a sine without its cosine."""
    two_i = torch.arange(0, d_model, 2)  # 0, 2, 4, ...
    angle = torch.arange(n_positions)[:, None] / 10000 ** (two_i / d_model)
    encoding = torch.zeros(n_positions, d_model)
    encoding[:, 0::2] = angle.sin()
    encoding[:, 1::2] = angle.cos()[:, : d_model // 2]
    return encoding


def add_positions(x: Tensor, table: Tensor) -> Tensor:
    """Add row i of the table to token i of every sentence."""
    return x + table[: x.size(1)]  # (batch, n, d_model) + (n, d_model)


def frequencies(d_model: int) -> Tensor:
    """The speed of each pair of columns: 10000^(-2i / d_model), in radians per token."""
    two_i = torch.arange(0, d_model, 2)  # 0, 2, 4, ...
    return torch.exp(two_i * (-math.log(10000.0) / d_model))


def add_and_norm(x: Tensor, sublayer: Callable, dropout: Callable, norm: Callable) -> Tensor:
    """Return norm(x + dropout(sublayer(x))): the paper's residual branch in training.

    Args:
        x: shape (batch, n, d_model).
        sublayer, dropout, norm: functions that keep that shape.

    Source: "Attention Is All You Need" (2017), section 5.4.
    """
    return norm(x + dropout(sublayer(x)))


def close_branch(x: Tensor, branch: Tensor, block: nn.Module) -> Tensor:
    """Return norm(x + dropout(branch)) with the block's own dropout and norm.

    Args:
        x: the sub-layer's input, shape (batch, n, d_model).
        branch: its output, same shape.
        block: has `dropout` and `norm`, modules made once.
    """
    return block.norm(x + block.dropout(branch))


def last_logits(
    x: Float[Tensor, "batch n d_model"],
    W: Float[Tensor, "d_model vocab_size"],
    b: Float[Tensor, " vocab_size"],
) -> Float[Tensor, "batch vocab_size"]:
    """Return the logits of the token that follows each text: no softmax.

    Args:
        x: the decoder's output, shape (batch, n, d_model).
        W, b: the output projection, shapes (d_model, vocab_size) and (vocab_size,).
    """
    return x[:, -1] @ W + b  # (batch, vocab_size)


def smoothed_targets(
    labels: Int[Tensor, " n"], n_classes: int, smoothing: float
) -> Float[Tensor, "n n_classes"]:
    """Return the distribution that label smoothing asks for at each label.

    Args:
        labels: the right classes, shape (n,).
        n_classes: how many classes there are.
        smoothing: share that is spread over all classes, the label's own included.

    Source: Szegedy et al., "Rethinking the Inception Architecture" (2015), section 7.
    """
    targets = torch.full((len(labels), n_classes), smoothing / n_classes)
    targets[torch.arange(len(labels)), labels] += 1 - smoothing
    return targets


def next_token_loss(
    logits: Float[Tensor, "batch n vocab_size"], labels: Int[Tensor, "batch n"]
) -> Float[Tensor, ""]:
    """Return the mean cross-entropy in nats; `F.cross_entropy` does the softmax itself.

    Args:
        logits: shape (batch, n, vocab_size).
        labels: the right ids, shape (batch, n).
    """
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def continue_text(
    next_logits: Callable, prompt: list[int], eos_id: int, max_new_tokens: int
) -> list[int]:
    """Append the likeliest token until one is `<eos>`, at most max_new_tokens of them.

    Args:
        next_logits: from the list of all ids so far to logits, shape (vocab_size,).
        prompt: the ids to go on from. An `<eos>` in it ends nothing.
        eos_id: the id that ends the text; it stays in the result.
        max_new_tokens: most tokens to append.
    """
    ids = list(prompt)
    for _ in range(max_new_tokens):
        ids.append(int(next_logits(ids).argmax()))
        if ids[-1] == eos_id:
            break
    return ids


def look_up(words: list[str], vocabulary: dict[str, int], unk_id: int) -> list[int]:
    """Return one id per word, `unk_id` for a word that the vocabulary does not have.

    Args:
        words: the words of a text.
        vocabulary: word to id.
        unk_id: id of `<unk>`.
    """
    return [vocabulary.get(word, unk_id) for word in words]


def fill_up(
    next_logits: Callable, start: Int[Tensor, "batch n"], length: int
) -> Int[Tensor, "batch length"]:
    """Append the likeliest token to every text of a batch until all have `length` tokens.

    Args:
        next_logits: from ids (batch, n) to logits (batch, vocab_size).
        start: the ids to go on from, shape (batch, n).
        length: tokens per text in the end, those of the start included.
    """
    ids = start  # (batch, n)
    for _ in range(length - start.size(1)):
        best = next_logits(ids).argmax(dim=-1)  # (batch,)
        ids = torch.cat([ids, best.unsqueeze(1)], dim=1)
    return ids


def width_message(
    x: Float[Tensor, "batch n width"], table: Float[Tensor, "n_positions d_model"]
) -> str:
    """Return what to say when x is not as wide as the table of positions.

    Args:
        x: vectors, shape (batch, n, width).
        table: shape (n_positions, d_model).
    """
    return f"Expected vectors of {table.shape[1]} numbers, but got {x.shape[-1]}."


def run_listing(model: nn.Module, ids: Int[Tensor, "batch n"]) -> Tensor:
    """Return a model's logits: embedding, layers one after the other, projection.

    Args:
        model: has `embedding`, `layers` and `out`.
        ids: shape (batch, n).
    """
    x = model.embedding(ids)  # (batch, n, d_model)
    for layer in model.layers:
        x = layer(x)
    return model.out(x)  # (batch, n, vocab_size)


def gpt2_d_model(n_heads: int) -> int:
    """Return the width of the GPT-2 that has so many heads: each has 64 numbers.

    Args:
        n_heads: heads per layer; 12, 16, 20 and 25 are small, medium, large and XL.
    """
    d_head = 64
    return n_heads * d_head
