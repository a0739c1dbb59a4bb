"""How much memory a training step must hold, before anything is trained."""

from typing import NamedTuple

GIB = 2**30


class Sizes(NamedTuple):
    """What the memory of a GPT depends on; its feed-forward network is 4 d_model wide."""

    n_layers: int
    d_model: int
    n_heads: int
    vocab_size: int
    max_len: int


class Needs(NamedTuple):
    """Bytes on each device: what stays, and what the forward pass keeps for the backward pass."""

    weights: float
    gradients: float
    optimizer: float
    activations: float


def parameters_of(sizes: Sizes) -> int:
    """Return how many numbers a GPT-2 of these sizes learns: tied output, biases, positions."""
    layers, d_model, _, vocab_size, max_len = sizes
    block = 12 * d_model**2 + 13 * d_model  # attention 4 d^2, feed-forward 8 d^2, biases, norms
    return layers * block + (vocab_size + max_len + 2) * d_model


def kept_for_backward(sizes: Sizes, n: int, table: bool = False, twice: bool = False) -> int:
    """Return how many numbers the forward pass keeps for each token.

    A block keeps its input and that of its second norm, both norms' outputs and their means and
    scales, queries, keys and values, attention's output, and the feed-forward network's hidden
    layer before and after the activation. Attention in blocks (`table` false) also keeps a total
    for each head; otherwise it keeps the weights of all keys, before and after the mask.

    Args:
        n: tokens of a text.
        table: whether attention keeps its weights, n for each head and token.
        twice: activation checkpointing: blocks keep their input alone, and one is computed anew.

    Source: Korthikanti et al., "Reducing Activation Recomputation" (2022), section 4, for theirs.
    """
    layers, d_model, n_heads, vocab_size, _ = sizes
    attention = 2 * n_heads * n if table else n_heads
    block = 8 * d_model + 2 * (4 * d_model) + 4 + attention
    blocks = layers * d_model + block if twice else layers * block
    return blocks + 2 * d_model + 2 + vocab_size  # the last norm, and the probabilities


def memory_to_train(
    sizes: Sizes,
    batch_size: int,
    n: int,
    bits: int = 32,
    table: bool = False,
    twice: bool = False,
    devices: int = 1,
) -> Needs:
    """Return the bytes that each of some devices holds in a step with Adam.

    With 16 bits, weights, gradients and activations have 2 bytes each, and the optimizer keeps the
    weights in 32 bits beside Adam's two averages. Several devices share weights, gradients and
    optimizer equally, and each reads a batch of its own.

    Args:
        batch_size: texts that a device reads at once.
        n: tokens of a text.
        bits: 32 or 16.
        table, twice: as for `kept_for_backward`.
        devices: over which the weights are sharded.

    Raises:
        ValueError: bits is neither 32 nor 16.

    Source: Rajbhandari et al., "ZeRO" (2019), section 3.1: 16 bytes a weight.
    """
    if bits not in (32, 16):
        raise ValueError(f"bits is {bits}, but training is counted for 32 or 16.")
    number, share = bits // 8, parameters_of(sizes) / devices
    kept = kept_for_backward(sizes, n, table, twice)
    return Needs(
        weights=number * share,
        gradients=number * share,
        optimizer=(8 if bits == 32 else 12) * share,
        activations=number * kept * batch_size * n,
    )
