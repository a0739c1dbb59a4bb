"""Every term is introduced before it is used, and every symbol has one meaning."""

import re
from itertools import takewhile

import pytest

from tests.stored_lessons import cells, lesson, source
from transformer_lesson.exercises.engine.question_bank import find_question

STORY = [f"{number:02}" for number in range(14)]
TERMS = {
    "block": ("00", r"blocks?"),
    "query": ("03", r"query|queries"),
    "head": ("03", r"heads?"),
    "logits": ("07", r"logits?"),
    "nat": ("08", r"nats?"),
}
"""By term: the lesson that introduces it, in bold, and what it looks like."""
SYMBOLS = {
    "N": r"N($| = \d|\\,\()",  # the number of blocks
    "P": r"P(\(| = |_\{\\text\{)",  # probabilities
}
"""By letter: how it stands in a formula where it means what it always means."""
NO_PROSE = re.compile(
    r"```.*?```|`[^`]*`|\$\$?[^$]+\$\$?|\[\d\d · [^\]]*\]|(?<=\])\([^)]*\)", re.DOTALL
)
SAID = re.compile(r'"([^"\n]* [^"\n]*)"|# (.*)')  # in code: words in quotes, a comment
A_BLOCK = re.compile(
    r"layers? \d|\b(encoder|decoder|first|second|last|lower|upper|every|each) layers?\b", re.I
)


def texts(number: str) -> list[str]:
    """What a lesson says, cell by cell: prose, predictions with their options, strings of code."""
    found = []
    for cell in cells(lesson(number)):
        text = source(cell)
        if asked := re.match(r'predict\("([^"]+)"\)', text):
            question = find_question(asked[1])
            options = (f"{one.text} {one.explanation}" for one in question.options)
            found.append(NO_PROSE.sub(" ", " ".join([question.text, *options])))
        elif cell["cell_type"] == "markdown":
            found.append(NO_PROSE.sub(" ", text))
        else:
            found += [" ".join(said) for said in SAID.findall(text)]
    return found


@pytest.mark.parametrize("term", TERMS)
def test_a_term_is_in_bold_where_it_is_first_used(term):
    introduced, pattern = TERMS[term]
    word = re.compile(rf"\b(?:{pattern})\b", re.I)
    for number in takewhile(lambda number: number < introduced, STORY):
        assert [text for text in texts(number) if word.search(text)] == [], number
    first = next(text for text in texts(introduced) if word.search(text))
    bold = [text for text in re.findall(r"\*\*(.*?)\*\*", first) if word.search(text)]
    assert bold and first[: word.search(first).start()].count("**") % 2 == 1


def formulas(number: str) -> list[str]:
    prose = map(source, cells(lesson(number), "markdown"))
    return [formula for text in prose for formula in re.findall(r"\$\$?([^$]+)\$\$?", text)]


@pytest.mark.parametrize("letter", SYMBOLS)
def test_a_letter_of_the_formulas_has_one_meaning(letter):
    alone = re.compile(rf"(?<![\\\w{{]){letter}(?![\w}}])")
    for number in STORY:
        for formula in formulas(number):
            for found in alone.finditer(formula):
                assert re.match(SYMBOLS[letter], formula[found.start() :]), (number, formula)


@pytest.mark.parametrize("number", [n for n in STORY if n != "12"])  # a BERT of one block there
def test_a_block_is_called_no_layer(number):
    assert [found[0] for text in texts(number) for found in A_BLOCK.finditer(text)] == []
    assert not any(re.search(r"d_\{?(\\text\{)?h", formula) for formula in formulas(number))
