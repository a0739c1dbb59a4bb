"""What is German is marked as German on the site's pages."""

import html
import re

from docutils.core import publish_doctree, publish_from_doctree
from docutils.writers import get_writer_class

from tools import site_language
from tools.site_language import ALSO_ENGLISH, GERMAN, is_german
from transformer_lesson.checkpoints.translator import trained_translator
from transformer_lesson.text.grammar import generate

PAGE = """
*das Kind macht*, ``macht``, **<bos> das Fenster**, *die*, *the child*, ``n_heads``,
*the Fenster*, *an*, *ruft an*

===== ======
child Kind
open  auf
===== ======

::

    ['das', 'Kind']
"""
MARKED = [
    "das Kind macht",
    "macht",
    "<bos> das Fenster",
    "die",
    "ruft an",
    "Kind",
    "auf",
    "['das', 'Kind']",
]
LANG = re.compile(r'<(\w+)[^>]* lang="de"[^>]*>(.*?)</\1>', re.DOTALL)


def marked(text: str) -> list[str]:
    page = publish_doctree(text)
    site_language.mark(page)
    page = publish_from_doctree(page, writer=get_writer_class("html5")()).decode()
    parts = [re.sub(r"<[^>]+>", "", part) for _, part in LANG.findall(page)]
    return [html.unescape(part).strip() for part in parts]


def test_spans_cells_and_blocks_of_german_words_are_marked_and_no_others():
    assert marked(PAGE) == MARKED
    assert marked("*die*, *an*, *Baby*, ``den``") == []  # on an English page
    assert not any(map(is_german, ("", "3.5", "<bos>", "the", "open", "Kind and dog")))


def test_the_lists_are_the_german_words_of_the_corpus():
    pairs = generate(4000, seed=7)
    english = {word for pair in pairs for word in pair.source.split()}
    german = {word for pair in pairs for word in pair.target.split()}
    assert german - {".", ","} <= GERMAN and english & GERMAN == {"an"}
    assert ALSO_ENGLISH <= GERMAN <= set(trained_translator().tokenizer.vocabulary)
