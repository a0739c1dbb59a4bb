"""A model's training material: a text or sentence pairs, part of it held out."""

import codecs
import hashlib
from collections import Counter
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from transformer_lesson.capstone.table import Columns, delimiter_of, pairs_of
from transformer_lesson.files import printable
from transformer_lesson.text import grammar, manual, stories
from transformer_lesson.text.pairs import Pair, other_format

LEAST_TEXT, LEAST_PAIRS = 10_000, 100  # characters, pairs
MOST_TEXT, MOST_PAIRS = 20_000_000, 200_000  # bytes of all files, pairs
PIECE, MOST_HELD_OUT = 1000, 100  # characters; pieces or pairs to test on
STRETCH, MUCH = 50, 0.2  # characters; share of copied stretches from which on a note says so
MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
Source = str | PathLike | Sequence


class Material(NamedTuple):
    """Training and test material for `own`.

    Args:
        name: for a folder's name: letters, digits, hyphens and underscores.
        kind: "text" or "pairs".
        training: one long text, or pairs.
        held_out: pieces of text, or pairs, that are never trained on.
        notes: sentences on what was left out and on what weakens the test.
        read_as: how the columns were interpreted, in a sentence.
    """

    name: str
    kind: str
    training: str | list[Pair]
    held_out: list[str] | list[Pair]
    notes: tuple[str, ...] = ()
    read_as: str = ""

    @property
    def fingerprint(self) -> str:
        """A hash of the material."""
        return hashlib.sha256(repr((self.training, self.held_out)).encode()).hexdigest()[:16]

    @property
    def texts(self) -> list[str]:
        """The texts that a tokenizer may be trained on."""
        if self.kind == "text":
            return [self.training]
        return [text for pair in self.training for text in (pair.source, pair.target)]


def read(source: Source, columns: Columns | None = None) -> Material:
    """Read a learner's material, in any alphabet and writing direction.

    Args:
        source: the name of material that the course ships ("manual", "stories", "grammar"); a file
            or folder of texts, or of pairs, with a tab in every line or as .csv; or a list of two
            files whose lines translate each other. "~" is the home folder.
        columns: which two columns of a table translate each other; see `pairs_of`.

    Raises:
        ValueError: unusable material; one sentence says what is wrong and what to do.
        OSError: a file cannot be read.
    """
    if isinstance(source, str) and source in SHIPPED:
        return SHIPPED[source]()
    if not isinstance(source, str | PathLike | list | tuple) or source == "":
        raise ValueError(
            f"source is {printable(repr(source), 80)}, but it must name a file or a folder, or be "
            "a list of two files: write the name between quotes."
        )
    if not isinstance(source, str | PathLike):
        if len(source) != 2:
            raise ValueError(
                f"source is a list of {len(source)} files, but it must be 2, sentences and their "
                "translations: put several texts in a folder and name that."
            )
        return _two_files(*(Path(path).expanduser() for path in source))
    path = Path(source).expanduser()
    if not path.exists():
        raise ValueError(
            f"There is no such file or folder as {printable(str(path), 80)}, and the course ships "
            f"only {', '.join(SHIPPED)}: check the name."
        )
    if path.is_dir():
        return _folder(path, columns)
    text, notes = _text(path, MOST_TEXT)
    if delimiter := delimiter_of(text, path.suffix):
        pairs, (summary, *more) = pairs_of(text, delimiter, _shown(path), columns)
        return _pairs(path, pairs, [*notes, *more], summary)
    return _cut(
        path, text, notes, f"{_shown(path)} is read as one text, which the model goes on with."
    )


def _two_files(source: Path, target: Path) -> Material:
    """Read a file and its translation line by line."""
    texts, notes = zip(*(_text(path, MOST_TEXT) for path in (source, target)), strict=True)
    sides = [text.rstrip("\n").split("\n") for text in texts]
    n, m = map(len, sides)
    if n != m:
        raise ValueError(
            f"{_shown(source)} has {n:,} lines and {_shown(target)} has {m:,}: each line of one "
            "file must translate the same line of the other."
        )
    rows = [(a.strip(), b.strip()) for a, b in zip(*sides, strict=True)]
    pairs = [Pair(*row) for row in rows if all(row)]
    left = [f"{n - len(pairs):,} lines are left out, empty on one side or both."] * (len(pairs) < n)
    summary = (
        f"{_shown(source)} is read line by line as sentences, {_shown(target)} as translations."
    )
    return _pairs(source, pairs, [*sum(notes, []), *left], summary)


def _folder(folder: Path, columns: Columns | None) -> Material:
    """Read all text files of a folder, one after another; note the files left out."""
    texts, notes, left = {}, [], MOST_TEXT
    for path in sorted(path for path in folder.iterdir() if path.is_file() and path.name[0] != "."):
        try:
            text, more = _text(path, left)
        except ValueError as error:
            text, more = "", [f"Left out: {error}"]
        left -= len(text.encode())
        texts |= {path: text} if text.strip() else {}
        notes += more
    if not texts:
        why = f" {notes[0]}" if notes else ""
        raise ValueError(
            f"{_shown(folder)} holds no file of text (folders in it are not read): put one "
            f"there.{why}"
        )
    tables = {path: delimiter_of(text, path.suffix) for path, text in texts.items()}
    without = [path for path, delimiter in tables.items() if not delimiter]
    if not without:
        read = [pairs_of(text, tables[path], _shown(path), columns) for path, text in texts.items()]
        summary = " ".join(summary for _, (summary, *_) in read)
        notes += [more for _, (_, *left) in read for more in left]
        return _pairs(folder, [pair for pairs, _ in read for pair in pairs], notes, summary)
    names = printable(", ".join(path.name for path in texts), 120)
    summary = f"{_shown(folder)} is read as one text of {len(texts)} files: {names}."
    if len(without) < len(texts):
        notes.append(
            f"All is read as one text, since {_shown(without[0])} has no tabs: to learn from "
            "pairs, move it to another folder."
        )
    return _cut(folder, "\n".join(texts.values()), notes, summary)


def _text(path: Path, most: int) -> tuple[str, list[str]]:
    """Read at most `most` bytes of a file, whole characters only."""
    with path.open("rb") as file:
        raw = file.read(most)
        cut = bool(file.read(1))
    encoding = next((name for mark, name in MARKS.items() if raw.startswith(mark)), "utf-8-sig")
    advice = other_format(raw) or "Save it as plain text in UTF-8."
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(raw, final=not cut)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{_shown(path)} is not text in UTF-8, as its byte {error.start:,} shows. {advice}"
        ) from None
    if "\x00" in text:
        raise ValueError(f"{_shown(path)} holds a NUL character, so it is no text. {advice}")
    much = f"{_shown(path)} is read up to {most:,} bytes: more cannot be learned in minutes."
    return text.replace("\r\n", "\n"), [much] if cut else []


def _cut(path: Path, text: str, notes: Sequence[str], summary: str) -> Material:
    """Hold out every fifth piece of a text, or fewer if it is long."""
    if len(text.strip()) < LEAST_TEXT:
        raise ValueError(
            " ".join(
                [
                    f"{_shown(path)} has {len(text.strip()):,} characters, but {LEAST_TEXT:,} are "
                    "needed to learn from and to test on: bring a longer text, or a folder of "
                    "several.",
                    *notes,
                ]
            )
        )
    pieces = _pieces(text, min(PIECE, len(text) // 50))
    every = max(5, len(pieces) // MOST_HELD_OUT)
    held_out = pieces[every // 2 :: every]
    del pieces[every // 2 :: every]
    training = "".join(pieces)
    notes = (*notes, *_copied(held_out, training))
    return Material(_slug(path), "text", training, held_out, notes, summary)


def _copied(held_out: Sequence[str], training: str) -> list[str]:
    """Note if much of the held-out text is also in the training text: form letters, licenses.

    Source: Brown and others, "Language Models are Few-Shot Learners" (2020), appendix C, who look
        for runs of 13 words.
    """
    starts = range(0, len(held_out[0]) - STRETCH + 1, 4 * STRETCH)
    stretches = [piece[start : start + STRETCH] for piece in held_out for start in starts]
    share = sum(stretch in training for stretch in stretches) / len(stretches)
    note = (
        f"{share:.0%} of what is held out stands letter for letter in what is read, too (stretches "
        f"of {STRETCH} characters): on text that is new the model will be worse than its test says."
    )
    return [note] if share >= MUCH else []


def _pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text) - size + 1, size)]


def _pairs(path: Path, pairs: list[Pair], notes: Sequence[str], summary: str) -> Material:
    """Hold out every fifth pair, or fewer if there are many; no source sentence is in both parts.

    Pairs with a unique translation are held out first, so that no held-out translation was read. If
    there are too few of them, the notes say how many translations are known.
    """
    pairs = pairs[:MOST_PAIRS]
    different = list({pair.source: pair for pair in pairs}.values())
    if len(different) < LEAST_PAIRS:
        s = "" if len(different) == 1 else "s"
        raise ValueError(
            f"{_shown(path)} has {len(different)} different sentence{s} with a translation, but "
            f"{LEAST_PAIRS} are needed to learn from and to test on: bring more."
        )
    targets = Counter(pair.target for pair in different)
    once = [pair for pair in different if targets[pair.target] == 1]
    every = max(5, len(different) // MOST_HELD_OUT)
    n = len(range(every // 2, len(different), every))
    held_out = _spread(once, n) if len(once) >= n else different[every // 2 :: every]
    chosen = {pair.source for pair in held_out}
    training = [pair for pair in different if pair.source not in chosen]
    more = []
    if left := len(pairs) - len(different):
        more.append(f"{left:,} pairs are left out, their sentences are there already.")
    if len(pairs) >= MOST_PAIRS:
        more.append(f"Pairs are read up to {MOST_PAIRS:,}: more cannot be learned in minutes.")
    if known := sum(targets[pair.target] > 1 for pair in held_out):
        more.append(
            f"Of {len(held_out)} translations that are held out, {known} may stand in what is "
            "read, too: BLEU then tells whether the model finds them, not whether it writes new "
            "ones."
        )
    return Material(_slug(path), "pairs", training, held_out, (*notes, *more), summary)


def _spread(pairs: list[Pair], n: int) -> list[Pair]:
    """Return n evenly spaced pairs."""
    return [pairs[(2 * i + 1) * len(pairs) // (2 * n)] for i in range(n)]


def _manual() -> Material:
    training, unseen = manual.split()  # by topic: some sections of the manual occur twice
    summary = "The manual of Python is read as one text."
    return Material("manual", "text", training, _pieces(unseen, PIECE)[:MOST_HELD_OUT], (), summary)


def _stories() -> Material:
    texts = stories.generate(4000 + MOST_HELD_OUT, seed=0)
    training, held_out = "\n".join(texts[MOST_HELD_OUT:]), texts[:MOST_HELD_OUT]
    return Material(
        "stories", "text", training, held_out, (), "4,000 stories are read as one text."
    )


def _grammar() -> Material:
    training, unseen, _ = grammar.splits(20_000, MOST_HELD_OUT, seed=0)
    summary = "20,000 sentences of the course's grammar are read with their translations."
    return Material("grammar", "pairs", training, unseen[:MOST_HELD_OUT], (), summary)


SHIPPED = {"manual": _manual, "stories": _stories, "grammar": _grammar}


def _slug(path: Path) -> str:
    name = "".join(c if c.isalnum() or c in "-_" else "-" for c in path.resolve().stem)
    return name[:40] or "text"


def _shown(path: Path) -> str:
    """Return a file's name without its folder, as it may appear in a public model card."""
    return printable(path.resolve().name, 80)
