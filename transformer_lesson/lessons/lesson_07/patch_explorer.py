"""From a picture to tokens: where each pixel goes when squares become rows."""

import traitlets

from transformer_lesson.explorables.in_page import PageExplorable
from transformer_lesson.lessons.lesson_07.vision import CLASSES, SIDE, draw_digits


class PatchExplorer(PageExplorable):
    """Cut a digit into squares, lay each out as a row, and follow a pixel to its place.

    The page orders the numbers like `vision.patches`.

    Args:
        digit: which digit is shown, 0 to 9.
        size: side of a square in pixels.
        stage: 0 the picture, 1 its squares apart, 2 a row for each.
        row, column: the pixel to follow, from 0 at the top left.

    Source: Dosovitskiy and others, "An Image is Worth 16x16 Words" (2020), section 3.1.
    """

    pictures = traitlets.List().tag(sync=True, fact=True)
    digit = traitlets.Int(4, min=0, max=CLASSES - 1).tag(sync=True)
    size = traitlets.Enum((2, 4, 8), 4).tag(sync=True)
    stage = traitlets.Int(2, min=0, max=2).tag(sync=True)
    row = traitlets.Int(5, min=0, max=SIDE - 1).tag(sync=True)
    column = traitlets.Int(9, min=0, max=SIDE - 1).tag(sync=True)

    def __init__(self, **values):
        digits = draw_digits(100, seed=1)
        first = [digits.labels.tolist().index(digit) for digit in range(CLASSES)]
        tenths = (10 * digits.pictures[first]).round() / 10
        pictures = [[[round(x, 1) for x in row] for row in picture] for picture in tenths.tolist()]
        super().__init__(pictures=pictures, **values)
