"""What each “the” finds once its code is turned, in the page as the package computes it."""

import re

from transformer_lesson.explorables import TurnedCodes
from transformer_lesson.lessons.lesson_02.rotation import rotation_between
from transformer_lesson.model.positions import sinusoidal_encoding

BAR = re.compile(r"“the” at (\d) with “(.+)” at (\d): (-?[\d.]+)(, the largest)?")


def test_every_bar_is_the_product_of_a_turned_code_with_a_code(show):
    explorable = TurnedCodes()
    page, PE = show(explorable), sinusoidal_encoding(20, 128).double()
    for k in (-2, 0, 1, 7):
        page.set(k=k)
        products = PE @ rotation_between(PE[10], PE[10 + k]) @ PE.T
        told = [found.groups() for found in map(BAR.match, page.told()) if found]
        assert len(told) == 2 * 6 + 2 * 8
        for p, word, q, product, _ in told:
            assert abs(float(product) - products[int(p), int(q)]) < 0.06
            assert word in explorable.sentences[1].split()
        largest = [word for _, word, _, _, best in told if best]
        assert page.title.startswith(f"k = {k}: ") and all(word in page.title for word in largest)
