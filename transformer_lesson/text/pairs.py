"""A sentence and its translation: the unit of every parallel corpus."""

import warnings
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import chain, islice, zip_longest
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from tqdm.auto import tqdm

LONGEST_LINE = 1_000_000  # bytes; anything longer is not a sentence
_OTHER_FORMATS = {
    b"\x1f\x8b": "This is a gzip archive: unpack it first.",
    b"PK\x03\x04": "This is a ZIP archive, as a .docx is: unpack it, or save the document as text.",
    b"%PDF": "This is a PDF: copy its text into a file of its own.",
    b"\xd0\xcf\x11\xe0": "This is an old Office document: save it as text.",
    **dict.fromkeys(
        (b"\xff\xd8\xff", b"\x89PNG", b"GIF8", b"BM", b"II*\x00", b"MM\x00*", b"RIFF"),
        "This is a picture or a recording: write what it says into a text file.",
    ),
    **dict.fromkeys(
        (b"7z\xbc\xaf", b"Rar!", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd"),
        "This is an archive: unpack it first.",
    ),
    b"\xff\xfe": "This looks like UTF-16: save the file as UTF-8.",
    b"\xfe\xff": "This looks like UTF-16: save the file as UTF-8.",
}


class Pair(NamedTuple):
    """A sentence and its translation.

    `alignment` says which words belong together, as (index of the source word, index of the
    target word); it is empty if that is unknown.
    """

    source: str
    target: str
    alignment: tuple[tuple[int, int], ...] = ()


def without_blanks(rows: Iterable[tuple[str, str]], name: str) -> Iterator[Pair]:
    """The rows that have text on both sides, as pairs; at the end a warning counts the others.

    Args:
        rows: source and target of each line.
        name: what the warning calls the rows' origin.
    """
    empty = one_sided = first = 0
    for number, (source, target) in enumerate(rows, start=1):
        source, target = source.strip(), target.strip()
        if source and target:
            yield Pair(source, target)
            continue
        first = first or number
        empty += not source and not target
        one_sided += bool(source or target)
    if first:
        warnings.warn(
            f"{name}: left out {empty:,} empty lines and {one_sided:,} lines with text on one side "
            f"only, the first of them line {first:,}.",
            stacklevel=4,  # the reader of the rows, its caller, and the line that asked for pairs
        )


def _existing(path: str | PathLike) -> Path:
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path} is a folder: name the file in it.")
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}: check its name and its folder.")
    return path


def _is_text(raw: bytes) -> bool:
    try:
        return "\x00" not in raw.decode()
    except UnicodeDecodeError:
        return False


def other_format(raw: bytes) -> str:
    """Say which format other than text begins with these bytes, and what to do; "" if unknown."""
    return next((advice for start, advice in _OTHER_FORMATS.items() if raw.startswith(start)), "")


def _advice(raw: bytes) -> str:
    """What a line that is not UTF-8 text probably is, and what to do about it."""
    if advice := other_format(raw):
        return advice
    if b"\x00" in raw:
        return "It holds a NUL byte, as UTF-16 and files other than text do: save it as UTF-8."
    marked = raw.decode(errors="surrogateescape")  # writes a wrong byte b as the code 0xdc00 + b
    byte = next(ord(c) for c in marked if "\udc80" <= c <= "\udcff") - 0xDC00
    character = bytes([byte]).decode("windows-1252", errors="replace")
    return (
        f"Byte 0x{byte:x} is not UTF-8; in Windows-1252, which is almost Latin-1, it is "
        f"{character!r}: save the file as UTF-8."
    )


def _lines(path: Path, bar: tqdm) -> Iterator[str]:
    """The lines of a file in UTF-8, without a byte-order mark."""
    number = 0
    with path.open("rb") as file:
        while raw := file.readline(LONGEST_LINE + 1):
            number += 1
            bar.update(len(raw))
            if len(raw) > LONGEST_LINE:
                raise ValueError(
                    f"{path}, line {number:,} is longer than {LONGEST_LINE:,} bytes: give each "
                    "sentence a line of its own."
                )
            if not _is_text(raw):
                raise ValueError(f"{path}, line {number:,} is not UTF-8 text. {_advice(raw)}")
            line = raw.decode()
            yield line.removeprefix("\ufeff") if number == 1 else line


def _one_file(path: Path, bar: tqdm) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(_lines(path, bar), start=1):
        columns = line.split("\t")
        if len(columns) >= 4 and columns[0].isdigit() and columns[2].isdigit():
            columns = columns[1::2]  # Tatoeba: id, sentence, id, translation
        if len(columns) > 1:
            yield columns[0], columns[1]
        elif not line.strip():
            yield "", ""
        else:
            shown = line.strip() if len(line.strip()) <= 60 else line.strip()[:59] + "…"
            raise ValueError(
                f"{path}, line {number:,} has no tab, it holds {shown!r}: put one between the "
                "sentence and its translation, or name a second file with the translations."
            )


def _two_files(path: Path, target_path: Path, bar: tqdm) -> Iterator[tuple[str, str]]:
    sources, targets = _lines(path, bar), _lines(target_path, bar)
    for number, (source, target) in enumerate(zip_longest(sources, targets), start=1):
        if source is None or target is None:
            longer, shorter = number + sum(1 for _ in chain(sources, targets)), number - 1
            n_sources, n_targets = (shorter, longer) if source is None else (longer, shorter)
            raise ValueError(
                f"{path} has {n_sources:,} lines and {target_path} has {n_targets:,}: each line of "
                "one file must translate the same line of the other."
            )
        yield source, target


def stream_pairs(path: str | PathLike, target_path: str | PathLike | None = None) -> Iterator[Pair]:
    """The pairs of `parallel_text` one by one, for files that are larger than memory.

    Raises: as `parallel_text`, when the offending pair is reached.
    """
    paths = [_existing(path)] + ([] if target_path is None else [_existing(target_path)])
    name = " and ".join(map(str, paths))
    size = sum(path.stat().st_size for path in paths)
    with tqdm(total=size, unit="B", unit_scale=True, desc=name, delay=1, leave=False) as bar:
        rows = _one_file(*paths, bar) if target_path is None else _two_files(*paths, bar)
        yield from without_blanks(rows, name)


def parallel_text(
    path: str | PathLike, target_path: str | PathLike | None = None, limit: int | None = None
) -> list[Pair]:
    """Sentences and their translations from one file with tabs, or from two aligned files.

    White space around a sentence is dropped. Lines that are empty on one side or both are left
    out; a warning counts them once the whole file has been read. Anything over a second shows a
    progress bar.

    Args:
        path: a file with a tab between sentence and translation, or the file of the sentences.
        target_path: the file of the translations.
        limit: stop after this many pairs.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a folder, no pairs, `limit` under 1, a line without a tab, other than UTF-8 or
            longer than `LONGEST_LINE`, or two files of different length; file and line are named.
    """
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be 1 or more pairs, or None for all, got {limit}.")
    with closing(stream_pairs(path, target_path)) as stream:
        pairs = list(islice(stream, limit))
    if not pairs:
        raise ValueError(f"{path} holds no pairs: every line is empty.")
    return pairs
