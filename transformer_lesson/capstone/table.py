"""Pairs from a table: which two columns translate each other, and which line is a header."""

import csv
import io
from collections.abc import Sequence

from transformer_lesson.files import printable
from transformer_lesson.text.pairs import Pair

Columns = Sequence[str | int]
GUESSED_FROM = 20  # lines
CODES = (
    "en de fr es it pt nl sv da no fi pl cs sk hu ro bg uk ru el tr ar he fa hi zh ja ko vi id la"
)
LANGUAGES = (
    "english german french spanish italian portuguese dutch swedish danish norwegian finnish "
    "polish czech slovak hungarian romanian bulgarian ukrainian russian greek turkish arabic "
    "hebrew "
    "persian hindi chinese japanese korean vietnamese indonesian latin deutsch englisch français "
    "anglais español inglés italiano português"
)
ROLES = "source target src tgt trg input output sentence translation original question answer text"
HEADINGS = frozenset(f"{CODES} {LANGUAGES} {ROLES}".split())
"""Words in a header cell that imply that the other columns have headers, too."""


def delimiter_of(text: str, suffix: str) -> str | None:
    """Return a table's delimiter: a tab, or in a .csv file a comma or semicolon.

    `None` if the text is not a table: one of its first twenty lines lacks the delimiter.
    """
    lines = [line for line in text[:100_000].split("\n")[:GUESSED_FROM] if line.strip()]
    for delimiter in ("\t", ",", ";") if suffix.lower() == ".csv" else ("\t",):
        if lines and all(delimiter in line.strip() for line in lines):
            return delimiter
    return None


def pairs_of(
    text: str, delimiter: str, name: str, columns: Columns | None = None
) -> tuple[list[Pair], list[str]]:
    """Return a table's pairs, and sentences on how it was read and what was left out.

    Args:
        text: of the file.
        delimiter: between its columns; with quotes around cells, unless it is a tab.
        name: of the file, for sentences.
        columns: which two translate each other: names in the first line, or numbers from 1. A table
            of two needs none, and neither does Tatoeba's: number, sentence, number, translation.

    Raises:
        ValueError: other columns, more than two without a choice, or a line without the second.
    """
    quoting = csv.QUOTE_NONE if delimiter == "\t" else csv.QUOTE_MINIMAL
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quoting=quoting))
    first = next(row for row in rows if any(map(str.strip, row)))
    chosen = _chosen(first, columns, name)
    header = any(isinstance(column, str) for column in columns or ()) or all(
        first[place].strip().casefold() in HEADINGS for place in chosen
    )
    pairs, blank, half = [], 0, 0
    for number, row in enumerate(rows, start=1):
        if row is first and header:
            continue
        if 0 < len(row) <= max(chosen) and any(map(str.strip, row)):
            raise ValueError(
                f"{name}, line {number:,} has no column {max(chosen) + 1}, it holds "
                f"{printable(delimiter.join(row).strip(), 60)!r}: put "
                f"{'a tab' if delimiter == chr(9) else repr(delimiter)} between the sentence and "
                "its translation, or name two files in a list."
            )
        sides = [row[place].strip() for place in chosen] if row else ["", ""]
        blank += not any(sides)
        half += any(sides) and not all(sides)
        pairs += [Pair(*sides)] if all(sides) else []
    sides = [f"column {place + 1}" + f" ({first[place].strip()})" * header for place in chosen]
    summary = f"{name} is read as pairs: {sides[0]}, and its translation in {sides[1]}."
    left = [f"{n:,} {flaw}" for n, flaw in ((blank, "empty"), (half, "with one side only")) if n]
    return pairs, [printable(summary)] + [f"Of {name}, lines left out: {', '.join(left)}."] * bool(
        left
    )


def _chosen(first: list[str], columns: Columns | None, name: str) -> tuple[int, int]:
    cells = [cell.strip() for cell in first]
    if columns is None:
        if len(cells) >= 4 and cells[0].isdigit() and cells[2].isdigit():
            return 1, 3  # Tatoeba
        if len(cells) == 2:
            return 0, 1
        shown = printable(", ".join(map(repr, cells)), 120)
        raise ValueError(
            f"{name} has {len(cells)} columns, the first line {shown}: say which two are a "
            "sentence and its translation, as in columns=(1, 2), or by the first line's names."
        )
    places = {name: place for place, name in reversed([*enumerate(cells)])}
    places |= {number: number - 1 for number in range(1, len(cells) + 1)}
    two = tuple(places.get(column, -1) for column in columns)
    if len(set(two)) != 2 or -1 in two or len(two) != 2:
        shown = printable(", ".join(map(repr, cells)), 120)
        raise ValueError(
            f"columns is {columns!r}, but it must be two of the {len(cells)} that {name} has, by "
            f"number from 1, or by name in the first line: {shown}."
        )
    return two
