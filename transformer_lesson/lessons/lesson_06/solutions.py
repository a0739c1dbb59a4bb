"""Lesson 06: the mask that hides padding."""


def padding_mask(ids, pad_id):
    """Return the mask that hides the keys at which padding stands."""
    return (ids != pad_id)[:, None, None, :]  # (batch, 1, 1, key)
