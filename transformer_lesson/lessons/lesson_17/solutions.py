"""Lesson 17: a picture as a row of tokens."""


def patches(pictures, size):
    """Cut pictures into squares, row by row."""
    n, side, _ = pictures.shape
    k = side // size
    squares = pictures.reshape(n, k, size, k, size).transpose(2, 3)
    return squares.reshape(n, k * k, size * size)
