"""Mark on the web site's pages what is German, for screen readers (WCAG 3.1.2): a Sphinx extension.

A span, a cell of a table or a block is German if all its words are German words of the corpus.
The explorables' front ends do the same in their pictures, by the same lists.
"""

import re

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

from transformer_lesson.explorables.bundle import WEB

LISTS = re.findall(r'new Set\(\s*[`"]([^`"]+)', (WEB / "german.js").read_text(encoding="utf-8"))
GERMAN, ALSO_ENGLISH = (frozenset(words.split()) for words in LISTS)
PARTS = (nodes.emphasis, nodes.strong, nodes.literal, nodes.entry, nodes.literal_block)


def is_german(text: str, near: bool = False) -> bool:
    """Return whether a text is German.

    Words that are English, too, count only with German near, and "an", which the corpus has in both
    languages, only beside others.
    """
    words = re.findall(r"[^\W\d_]+", re.sub(r"<\w+>", " ", text))

    def counts(word: str) -> bool:
        return word not in ALSO_ENGLISH or (near and word != "an")

    return GERMAN.issuperset(words) and any(map(counts, words))


def mark(page: nodes.Element) -> None:
    """Give what is German on a page the class that becomes `lang="de"`."""
    parts = [node for kind in PARTS for node in page.findall(kind)]
    near = any(is_german(node.astext()) for node in parts)
    for node in parts:
        if is_german(node.astext(), near):
            node["classes"].append("language-de")


class German(SphinxPostTransform):
    """Mark one page."""

    default_priority = 900  # after MyST-NB chose among outputs

    def run(self, **kwargs) -> None:
        """Mark one page."""
        mark(self.document)


def setup(app) -> dict[str, bool]:
    """Connect to Sphinx."""
    app.add_post_transform(German)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
