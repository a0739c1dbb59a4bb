"""Lesson 17: a picture as a row of tokens.

What `own` makes of a learner's material is not checked: it has no right answer.
"""

from transformer_lesson.exercises.engine.choosing import choose
from transformer_lesson.exercises.engine.specification import Draw, exercise


def _picture_inputs(draw: Draw) -> tuple:
    """One patch, patches of one pixel, one picture, and what lies in memory as its transpose."""
    squares, size = draw.one_of(((3, 2), (1, 5), (2, 5), (5, 3), (2, 3), (3, 1)))
    if draw.small:
        squares, size = draw.size("square", at_least=2), draw.size("pixel", at_least=2)
    else:
        draw.sizes |= {"square": squares, "pixel": size, "picture": draw.one_of((7, 2, 7, 1))}
    draw.sizes |= {"side": squares * size, "patch": squares**2, "number": size**2}
    pictures = draw.normal("picture side side")
    return (pictures.mT.contiguous().mT if draw.number == 4 else pictures), size


@exercise(
    reference="transformer_lesson.lessons.lesson_17.vision:patches",
    make_inputs=_picture_inputs,
    draws=6,
    returns={"patches": "picture patch number"},
    hints=(
        "Lesson 04 cut a row of numbers into heads with one `reshape`. Here two axes are cut: the "
        "rows of a picture and its columns. Into what does each fall?",
        "`pictures.reshape(n, k, size, k, size)` with k = side // size names every pixel by four "
        "numbers: row of the patch, row in the patch, column of the patch, column in the patch. "
        "The two that name the patch must stand together.",
        "`.transpose(2, 3)` brings them together. After it, `reshape(n, k * k, size * size)` joins "
        "both pairs.",
    ),
)
def patches(pictures, size):
    """Cut pictures into squares, row by row."""
    n, side, _ = pictures.shape
    k, size = (side // size, size)
    pictures = choose(
        pictures, upside_down=pictures.flip(1), mirrored=pictures.flip(2), scaled=pictures / 255
    )
    cut = choose(
        pictures.reshape(n, k, size, k, size),
        dealt_out=pictures.reshape(n, size, k, size, k).transpose(1, 2).transpose(3, 4),
        rows_dealt_out=pictures.reshape(n, size, k, k, size).transpose(1, 2),
    )
    squares = choose(
        cut.transpose(2, 3),
        no_transpose=cut,
        patches_by_columns=cut.permute(0, 3, 1, 2, 4),
        pixels_by_columns=cut.permute(0, 1, 3, 4, 2),
        patches_last=cut.permute(0, 2, 4, 1, 3),
    )
    return _tokens(squares, pictures, k, size)


def _tokens(squares, pictures, k, size):
    """Return the squares as rows of numbers."""
    n = len(pictures)
    tokens = squares.reshape(n, k * k, size * size)
    return choose(
        tokens, overlapping=pictures.unfold(1, size, 1).unfold(2, size, 1).flatten(1, 2).flatten(2)
    )
