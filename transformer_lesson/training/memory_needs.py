"""How much memory training and writing take, computed before either is tried."""

from typing import NamedTuple

GIB = 2**30
KEYS = ("all heads", "in groups", "one head", "latent")
"""What a cache keeps of a token: keys and values of this many heads, or one vector for all."""
BITS_HELD = {32: 32, 16: 16, 8: 8, 4: 5}
"""Bits stored per weight: with 4, a block of 32 also has a scale and a smallest number of 16."""


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
        twice: activation checkpointing: blocks keep only their input, and one is recomputed.

    Source: Korthikanti et al., "Reducing Activation Recomputation" (2022), section 4, who count
        their own model.
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
    """Return the bytes that each device holds in a training step with Adam.

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


class WritingNeeds(NamedTuple):
    """Bytes on each device while a model writes."""

    weights: float
    cache: float


def kept_of_a_token(sizes: Sizes, keys: str = "all heads") -> int:
    """Return how many numbers each layer's cache keeps of a token.

    Keys and values have d_head numbers for each head. In groups, four query heads or a few more
    share one; see `groups_of`. The latent vector has four times d_head.

    Source: Ainslie et al., "GQA" (2023); Shazeer, "Fast Transformer Decoding" (2019) for one head;
        DeepSeek-AI, "DeepSeek-V2" (2024), section 2.1, for the latent vector.
    Differs: DeepSeek's has half a d_head more, which carries rotary positions.
    """
    if keys not in KEYS:
        raise ValueError(f"keys is {keys!r}, but a cache keeps one of {', '.join(KEYS)}.")
    d_head = sizes.d_model // sizes.n_heads
    if keys == "latent":
        return 4 * d_head
    return 2 * d_head * {"all heads": sizes.n_heads, "one head": 1}.get(keys, groups_of(sizes))


def groups_of(sizes: Sizes) -> int:
    """Return the largest divisor of n_heads that is at most a quarter of it, and at least 1."""
    quarter = max(1, sizes.n_heads // 4)
    return next(n for n in range(quarter, 0, -1) if sizes.n_heads % n == 0)


def memory_to_write(
    sizes: Sizes, batch_size: int, n: int, bits: int = 16, keys: str = "all heads", devices: int = 1
) -> WritingNeeds:
    """Return the bytes that each device holds while a GPT writes, with a cache.

    With 8 or 4 bits only the blocks' matrices are so small; embeddings, norms, biases and the cache
    have 16. Devices share the weights, and the cache by its heads or by its texts, equally.

    Args:
        batch_size: texts at once, on all devices together.
        n: tokens of a text, prompt included.
        bits: 32, 16, 8 or 4.
        keys: see `kept_of_a_token`. Fewer heads of keys and values have smaller matrices, too;
            latent vectors have one that makes them, and two that read keys and values from them.

    Raises:
        ValueError: other bits or keys.
    """
    if bits not in BITS_HELD:
        raise ValueError(f"bits is {bits}, but writing is counted for 32, 16, 8 or 4.")
    layers, d_model, *_ = sizes
    kept, others = kept_of_a_token(sizes, keys), max(bits, 16) / 8  # bytes of other numbers
    matrix, bias = (3 * d_model * kept, 0) if keys == "latent" else (d_model * kept, kept)
    matrices = layers * (10 * d_model**2 + matrix)
    rest = parameters_of(sizes) - layers * (12 * d_model**2 + 2 * d_model - bias)
    weights = matrices * BITS_HELD[bits] / 8 + rest * others
    return WritingNeeds(weights / devices, others * layers * kept * batch_size * n / devices)
