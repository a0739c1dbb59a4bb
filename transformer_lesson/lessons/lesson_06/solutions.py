"""Lesson 06: the mask that hides padding, and a swap of one vector."""


def padding_mask(ids, pad_id):
    """Return the mask that hides the keys that are padding."""
    return (ids != pad_id)[:, None, None, :]  # (batch, 1, 1, key)


def swap(memory, other, place):
    """Return memory with the vectors that other has at one place."""
    swapped = memory.clone()  # (batch, n, d_model)
    swapped[:, place] = other[:, place]
    return swapped
