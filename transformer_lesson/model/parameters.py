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
