"""How many numbers a model learns, by formula and by counting.

Short, because each is one line of arithmetic; no part of the model needs them.
"""

from torch import nn


def count_parameters(module: nn.Module) -> int:
    """Return the number of trained numbers; a matrix used twice (tied) counts once."""
    return sum(parameter.numel() for parameter in module.parameters())


def count_product_weights(model: nn.Module) -> int:
    """Return how many weights take part in a matrix product: each costs 2 operations a token, or 6.

    All matrices count except tables whose rows are only looked up; a tied one also multiplies.

    Args:
        model: with one `embedding` and a `projection`, such as a decoder-only one.
    """
    tables = {id(table) for table in model.embedding.parameters()}
    looked_up = tables - {id(model.projection.weight)}
    matrices = (weight for weight in model.parameters() if weight.ndim == 2)
    return sum(weight.numel() for weight in matrices if id(weight) not in looked_up)


def count_encoder_parameters(d_model: int, d_ff: int, n_layers: int) -> int:
    """Return the number of trained numbers in a stack of encoder blocks, biases included.

    Each block has four projections (d_model x d_model and a bias), two feed-forward maps
    (d_model x d_ff and back, each with a bias) and two norms (a scale and a shift each). The
    number of heads does not matter: it only cuts the projections differently.

    Args:
        d_model, d_ff, n_layers: sizes of the stack.

    Source: "Attention Is All You Need" (2017), table 3 (base: 512, 2048, 6).
    """
    attention = 4 * (d_model * d_model + d_model)
    feed_forward = d_model * d_ff + d_ff + d_ff * d_model + d_model
    norms = 2 * 2 * d_model
    return n_layers * (attention + feed_forward + norms)
