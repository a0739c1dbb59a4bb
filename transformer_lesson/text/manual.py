"""CPython's own manual: real English, some 465,000 characters.

It is what `help("while")` prints, by topic, in CPython 3.11.7. Each Python has another edition, so
this one is stored: a model that reads it learns the same everywhere. It was written for a terminal,
so most of this module finds the prose between titles, tables, grammar rules and code.
"""

import gzip
import json
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

STORED = Path(__file__).with_name("manual.json.gz")  # `topics` of pydoc_data.topics, as JSON

# About a tenth of the manual, from every part of the alphabet. These share no passage of 100
# characters with another topic; many others do ("specialnames" repeats most of "customization").
VALIDATION_TOPICS = (
    "assert",
    "binary",
    "booleans",
    "calls",
    "import",
    "lambda",
    "objects",
    "raise",
    "subscriptions",
    "typesmapping",
    "yield",
)

EXAMPLES = (
    "The global namespace is searched first.",
    "Objects are Python's abstraction for data.",
    "The value of some objects can change.",
    'Division by zero raises the "ZeroDivisionError" exception.',
    "The expressions are evaluated from left to right.",
    "The items of a list are arbitrary Python objects.",
    "Every object has an identity, a type and a value.",
    "Some objects contain references to other objects; these are called containers.",
    "An empty tuple can be formed by an empty pair of parentheses.",
    "Note that it is actually the comma which makes a tuple, not the parentheses.",
    "A character is not a separate data type but a string of exactly one character.",
    'A "break" statement executed in the first suite terminates the loop without executing '
    'the "else" clause\'s suite.',
)

_PLAIN = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "-", "…": "..."})
_NOT_PROSE = re.compile(r"::=|>>>|={4}|-{4}|\*{4}|^\s*[+|]|^\.\.\. ", re.MULTILINE)
_VERSION_NOTE = re.compile(r"(New|Added|Changed|Deprecated|Removed)\b.* version 3")
_BULLET = re.compile(r"(\*|\(?\d+[.)]) +")
_EMPHASIS = re.compile(r'(?<![\w"*])(\*{1,2})(\w[^*"]*)\1')
_FOOTNOTE = re.compile(r" *\[\d+\]")
_SENTENCE_END = re.compile(
    r"""(?<!e\.g\.)(?<!i\.e\.)(?<!etc\.)(?:(?<=[.!?])|(?<=[.!?][)"']))\s+(?=["'(]*[A-Z])"""
)
_SENTENCE = re.compile(r"""["'(]?[A-Z].*\s.*\s.*[.!?][)"']*""")  # at least three words


class Split(NamedTuple):
    """The manual as two texts; no passage of one is in the other."""

    training: str
    validation: str


@cache
def _topics() -> dict[str, str]:
    stored = json.loads(gzip.decompress(STORED.read_bytes()))
    return {name: stored[name].translate(_PLAIN) for name in sorted(stored)}


def topics() -> dict[str, str]:
    """The unedited manual by topic; only curly quotes and dashes are made plain."""
    return dict(_topics())


def split() -> Split:
    """The manual as running text for a language model, split by topic.

    Topics follow one another by name, as `topics` gives them, with their titles, tables, code and
    line breaks. `VALIDATION_TOPICS` are the validation text, 9 to 10 % of the characters; all
    others are the training text. A split anywhere else, or by sentence, would show the model in
    training what it is tested on: whole sections appear in two or three topics.
    """
    parts = ([], [])
    for name, text in _topics().items():
        parts[name in VALIDATION_TOPICS].append(text)
    return Split(*("\n".join(part) for part in parts))


def _indent(block: str) -> int:
    return len(block) - len(block.lstrip(" "))


def _blocks(text: str) -> list[str]:
    """Split at blank lines and leave out code: it is indented by three below a line with ":"."""
    blocks, opener, in_code = [], "", False
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        deep = _indent(block) >= _indent(opener) + 3
        in_code = deep and (in_code or opener.endswith(":"))
        if not in_code:
            blocks.append(block)
            opener = block
    return blocks


def _paragraph(block: str) -> str:
    """One block as one line without markup; empty where the block is not prose."""
    first, *rest = block.split("\n")
    bullet = _BULLET.match(first.lstrip())
    if bullet:
        first = first.lstrip()[bullet.end() :]
    elif rest and _indent(rest[0]) > _indent(first):  # a term above its explanation
        first = ""
    line = " ".join(" ".join([first, *rest]).split())
    if _NOT_PROSE.search(block) or _VERSION_NOTE.match(line):
        return ""
    line = re.sub(r"(?<=[a-z]-) (?=[a-z])", "", line)  # a word broken at its hyphen
    return _FOOTNOTE.sub("", _EMPHASIS.sub(r"\2", line))


@cache
def _sentences(topic: str) -> tuple[str, ...]:
    lines = [_paragraph(block) for block in _blocks(_topics()[topic])]
    pieces = [piece for line in lines for piece in _SENTENCE_END.split(line)]
    return tuple(piece for piece in pieces if _SENTENCE.fullmatch(piece))


def sentences(topic: str | None = None) -> list[str]:
    """The sentences of one topic, or of the whole manual, each once, in the manual's order.

    Titles, tables, code, grammar and version notes are left out; emphasis (`*x*`) loses its
    stars; the quotes around code stay.

    Raises:
        ValueError: there is no such topic.
    """
    if topic is not None and topic not in _topics():
        raise ValueError(f"The manual has no topic {topic!r}; it has {', '.join(_topics())}.")
    names = _topics() if topic is None else [topic]
    return list(dict.fromkeys(sentence for name in names for sentence in _sentences(name)))
