"""Zip archives from students, Moodle or Canvas, read within limits, never unpacked."""

import io
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

LARGEST = 20_000_000  # bytes of a notebook; the lessons have less than 5 million
ENTRIES, DEPTH = 10_000, 2  # files in an archive; nested archives
UNPACKED, RATIO = (
    200_000_000,
    100,
)  # bytes always allowed, and bytes allowed per compressed byte
BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError)


class Unreadable(Exception):
    """The file is not a notebook of this course; the text says why, and what to hand in."""


class File(NamedTuple):
    """A file in a folder or an archive: its displayed path, and a function that reads it."""

    path: Path
    load: Callable[[], bytes]


def files_in(path: Path, source: Path | IO[bytes], depth: int = 1) -> Iterator[File]:
    """Yield the files of a zip archive, including those of nested archives.

    Args:
        path: the archive's displayed path, which its files' paths continue.
        source: the archive itself.
        depth: nesting level of its files.

    Raises:
        Unreadable: not an archive, or beyond the limits.
    """
    try:
        with zipfile.ZipFile(source) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            _check(entries, archive.start_dir)
            for entry in entries:
                inside = File(path / _name(entry), partial(_load, source, entry))
                if inside.path.suffix.lower() != ".zip":
                    yield inside
                else:
                    yield from _files_inside(inside, depth + 1)
    except BROKEN as error:
        raise Unreadable("The archive is damaged or no zip: pack it again, as a zip.") from error
    except OSError as error:
        raise Unreadable(f"The archive cannot be read: {error.strerror}.") from error


def _files_inside(inner: File, depth: int) -> Iterator[File]:
    """Yield the files of a nested archive; if it is refused, yield it, so that others are read."""
    try:
        if depth > DEPTH:
            raise Unreadable("An archive in an archive in an archive: hand in a zip of files.")
        yield from files_in(inner.path, io.BytesIO(inner.load()), depth)
    except Unreadable as error:
        yield File(inner.path, partial(refuse, str(error)))


def refuse(sentence: str) -> bytes:
    """Raise `Unreadable`, in place of reading a file."""
    raise Unreadable(sentence)


def _check(entries: list[zipfile.ZipInfo], packed: int) -> None:
    """Raise `Unreadable` for archives too large to be homework."""
    if len(entries) > ENTRIES:
        raise Unreadable(
            f"The archive has more than {ENTRIES:,} files: hand in the notebooks alone."
        )
    unpacked = sum(entry.file_size for entry in entries)
    if unpacked > max(UNPACKED, RATIO * packed):
        raise Unreadable(
            f"The archive would unpack to {unpacked // 10**6:,} MB, over {RATIO} times its size: "
            "hand in the notebooks alone."
        )
    for entry in entries:
        name = entry.filename.replace("\\", "/")
        if ".." in name.split("/") or re.match(r"/|[A-Za-z]:/", name):
            raise Unreadable(
                "The archive holds a path that leads out of it: pack its folder again."
            )


def _name(entry: zipfile.ZipInfo) -> str:
    """Return an entry's path; some programs write UTF-8 without declaring it."""
    name = entry.filename
    if not entry.flag_bits & 0x800:
        try:
            name = name.encode("cp437").decode()
        except UnicodeError:
            name = entry.filename  # really cp437, as declared
    return name.replace("\\", "/")


def _load(source: Path | IO[bytes], entry: zipfile.ZipInfo) -> bytes:
    """Return an entry's content.

    Raises:
        Unreadable: encrypted, a link, too large or damaged.
    """
    if entry.flag_bits & 0x1:
        raise Unreadable("The archive is encrypted: pack it again, without a password.")
    if stat.S_ISLNK(entry.external_attr >> 16):
        raise Unreadable("The archive holds a link in place of a file: hand in an ordinary file.")
    limit = UNPACKED if entry.filename.lower().endswith(".zip") else LARGEST
    try:
        with zipfile.ZipFile(source) as archive, archive.open(entry) as file:
            content = file.read(limit + 1)
    except BROKEN as error:
        raise Unreadable("The archive is damaged: pack it again.") from error
    return within(content, limit)


def within(content: bytes, limit: int = LARGEST) -> bytes:
    """Return the content if it is not too large.

    Raises:
        Unreadable: too large.
    """
    if len(content) > limit:
        raise Unreadable(
            f"The file is larger than {limit // 10**6} MB: clear its outputs (in Jupyter: Edit, "
            "Clear Outputs of All Cells) and hand it in again."
        )
    return content
