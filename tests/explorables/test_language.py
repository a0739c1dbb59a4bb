"""What is German is marked as German in explorables."""

import re

from tests.explorables.stills import as_stored, stills
from tools.site_language import is_german

SHOWN = """[...root.querySelectorAll("svg text")]
    .map(node => [node.textContent, node.getAttribute("lang")])"""
SPOKEN = """[...root.querySelectorAll(":is(h3, .said) [lang=de]")].map(node => node.textContent)"""


def test_words_of_a_picture_and_quotes_around_it_are_marked(show):
    name = min(name for name, one in stills().items() if one["kind"] == "TranslationPlayground")
    page = show(as_stored(name))
    for state in ("the child opens the window .", "the old dog sees the cat ."):
        page.set(sentence=state)
        texts = dict(page.read(SHOWN))
        assert {lang for text, lang in texts.items() if not is_german(text, near=True)} == {None}
        assert {lang for text, lang in texts.items() if is_german(text, near=True)} == {"de"}
        assert "Kind" in texts or "Hund" in texts
        quotes = re.findall("“([^”]+)”", f"{page.title} {page.said}")
        assert page.read(SPOKEN) == [one for one in quotes if is_german(one, near=True)] != []
