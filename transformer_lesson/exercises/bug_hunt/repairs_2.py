"""Lesson 14, second part: the functions of `bugs_2`, repaired."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn


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
