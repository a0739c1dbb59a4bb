"""GGUF: a model's metadata, tokenizer and weights in one file, as llama.cpp reads it.

A file is, in this order, every number little-endian:

    "GGUF"                       and the format's version (uint32)
    two counts                   of tensors and of metadata (uint64 each)
    for each piece of metadata   its key, the kind of its value (uint32), the value
    for each tensor              its name, the number of its axes (uint32), the length of each axis
                                 (uint64, the fastest first), its format (uint32), and where its
                                 bytes begin (uint64)
    zeros                        up to a multiple of general.alignment
    the tensors' bytes           counted from here

A text is its length in bytes (uint64) and its UTF-8. Most weights are quantized:
see `gguf_formats`.

Nothing in a file is trusted: every length is compared with the bytes that are there before any
memory is allocated for it.

Source: ggml's docs/gguf.md.
"""

import math
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from transformer_lesson.checkpoints.gguf_formats import FORMATS, OTHERS, Format
from transformer_lesson.checkpoints.untrusted import LARGEST_TEXT

MAGIC, VERSION = b"GGUF", 3
SCALARS = dict(enumerate("BbHhIif?")) | dict(enumerate("Qqd", start=10))
"""The kinds of numbers in metadata, with struct's letter for each."""
TEXT, ARRAY = 8, 9
MOST_AXES = 4
PIECE = 2**9  # blocks that are dequantized at a time
ALIGNMENT = 32  # bytes, unless the metadata says otherwise


class Entry(NamedTuple):
    """A tensor in the table: format, PyTorch's shape, first byte in the file, number of bytes."""

    format: Format
    shape: tuple[int, ...]
    start: int
    n_bytes: int


class GGUF(NamedTuple):
    """A file's header; the numbers stay in the file until they are needed.

    `metadata` has numbers, strings, lists of strings, and NumPy arrays of numbers.
    """

    path: Path
    metadata: dict[str, Any]
    table: dict[str, Entry]

    def blocks(self, name: str) -> UInt8[Tensor, "block n_bytes"]:
        """Return a tensor's raw bytes, one row per block.

        Raises:
            ValueError: the file has become shorter since its header was read.
        """
        return next(self._pieces(name, self.table[name].n_bytes))

    def tensor(self, name: str, dtype: torch.dtype = torch.float32) -> Float[Tensor, "..."]:
        """Return a tensor's numbers in PyTorch's shape.

        They are read in pieces, so that nothing else as large as the result is in memory.
        """
        entry = self.table[name]
        numbers, end = torch.empty(math.prod(entry.shape), dtype=dtype), 0
        for blocks in self._pieces(name, PIECE * entry.format.n_bytes):
            piece = entry.format.dequantize(blocks).flatten()
            end += len(piece)
            numbers[end - len(piece) : end] = piece
        return numbers.view(entry.shape)

    def same_bytes(self, name: str, other: str) -> bool:
        """Whether two tensors of one format have the same bytes; the first difference ends it."""
        n_bytes = PIECE * self.table[name].format.n_bytes
        pieces = (self._pieces(tensor, n_bytes) for tensor in (name, other))
        return all(torch.equal(a, b) for a, b in zip(*pieces, strict=True))

    def _pieces(self, name: str, n_bytes: int) -> Iterator[UInt8[Tensor, "block n_bytes"]]:
        entry = self.table[name]
        with self.path.open("rb") as file:
            file.seek(entry.start)
            for start in range(0, entry.n_bytes, n_bytes):
                data = bytearray(min(n_bytes, entry.n_bytes - start))
                if file.readinto(data) < len(data):
                    raise ValueError(f"{self.path} ends within {name}: get the file again.")
                yield torch.frombuffer(data, dtype=torch.uint8).view(-1, entry.format.n_bytes)


class Head(NamedTuple):
    """What a file says of itself, even if its numbers cannot be read: `refused` says why not."""

    metadata: dict[str, Any]
    table: dict[str, Entry]
    refused: str


def is_gguf(path: str | Path) -> bool:
    """Whether a file begins as a GGUF file does, whatever its name: Ollama's have no suffix."""
    try:
        if not Path(path).is_file():
            return False
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:  # such as a file that this user may not read
        return False


def read_gguf(path: str | Path) -> GGUF:
    """Read the header of a GGUF file.

    Raises:
        ValueError: not a GGUF file, only part of one, an impossible header, or a format of numbers
            that cannot be read here; the message says which.
    """
    head = read_head(path)
    if head.refused:
        raise ValueError(f"{path}: {head.refused}")
    return GGUF(Path(path), head.metadata, head.table)


def read_head(path: str | Path) -> Head:
    """Read the header of a GGUF file, its metadata even where the table of tensors is refused.

    Raises:
        ValueError: not a GGUF file, or its metadata is damaged.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"{path}: there is no such file.")
    with path.open("rb") as file:
        header = _Header(file)
        try:
            n_tensors, metadata = _metadata(header)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
        try:
            return Head(metadata, _tensors(header, n_tensors, metadata), "")
        except ValueError as error:
            return Head(metadata, {}, str(error))


class _Header:
    """Reads the parts of a header, and never more than there is."""

    def __init__(self, file: BinaryIO):
        self.file, self.size = file, os.fstat(file.fileno()).st_size

    def take(self, n: int) -> bytes:
        """Return the next n bytes."""
        here = self.file.tell()
        left = min(self.size, LARGEST_TEXT) - here
        if n > left:
            raise ValueError(
                f"at byte {here:,} its header asks for {n:,} more, but there can only be {left:,}: "
                "get the file again."
            )
        return self.file.read(n)

    def number(self, letter: str) -> Any:
        """Return the next number, of the kind that struct has this letter for."""
        return struct.unpack(f"<{letter}", self.take(struct.calcsize(f"<{letter}")))[0]

    def text(self) -> str:
        """Return the next text."""
        data = self.take(self.number("Q"))
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise ValueError(
                f"the text that ends at byte {self.file.tell():,} is not UTF-8 ({error.reason}): "
                "get the file again."
            ) from error

    def value(self) -> Any:
        """Return the next value of the metadata."""
        kind = self.number("I")
        if kind == TEXT:
            return self.text()
        if kind == ARRAY:
            kind, n = self.number("I"), self.number("Q")
            if kind == TEXT:
                return [self.text() for _ in range(n)]
            return np.frombuffer(self.take(n * struct.calcsize(_letter(kind))), f"<{_letter(kind)}")
        return self.number(_letter(kind))

    def entry(self) -> tuple[Format, tuple[int, ...], int]:
        """Return what follows a tensor's name: format, shape, and where its bytes begin."""
        n_axes = self.number("I")
        if not 1 <= n_axes <= MOST_AXES:
            raise ValueError(f"it has {n_axes:,} axes, but it must have 1 to {MOST_AXES}.")
        axes = struct.unpack(f"<{n_axes}Q", self.take(8 * n_axes))
        number, offset = self.number("I"), self.number("Q")
        if number not in FORMATS:
            name = OTHERS.get(number, number)
            known = ", ".join(known_format.name for known_format in FORMATS.values())
            raise ValueError(f"its numbers have the format {name}, but only {known} are read.")
        return FORMATS[number], axes[::-1], offset


def _letter(kind: int) -> str:
    if kind not in SCALARS:
        known = ", ".join(map(str, SCALARS))
        raise ValueError(
            f"a value in its metadata is of the kind {kind}, but numbers are one of {known}."
        )
    return SCALARS[kind]


def _metadata(header: _Header) -> tuple[int, dict[str, Any]]:
    """Return the number of tensors, and the metadata."""
    if header.size < len(MAGIC) or header.take(len(MAGIC)) != MAGIC:
        raise ValueError('it is not a GGUF file: it does not begin with "GGUF".')
    version = header.number("I")
    if version != VERSION:
        raise ValueError(f"it has version {version} of the format, but only {VERSION} is read.")
    n_tensors, n_values = header.number("Q"), header.number("Q")
    metadata = {}
    for _ in range(n_values):
        key = _new(header.text(), metadata)
        metadata[key] = header.value()
    return n_tensors, metadata


def _tensors(header: _Header, n_tensors: int, metadata: dict[str, Any]) -> dict[str, Entry]:
    """Return the table of tensors, which follows the metadata."""
    rows = {}
    for _ in range(n_tensors):
        name = _new(header.text(), rows)
        try:
            rows[name] = header.entry()
        except ValueError as error:
            raise ValueError(f"tensor {name[:80]!r}: {error}") from error
    alignment = metadata.get("general.alignment", ALIGNMENT)
    if type(alignment) is not int or alignment < 8 or alignment % 8:
        raise ValueError(f"general.alignment is {alignment!r}, but it must be a multiple of 8.")
    first = math.ceil(header.file.tell() / alignment) * alignment
    return _table(rows, first, alignment, header.size)


def _new(name: str, known: dict[str, Any]) -> str:
    if name in known:
        raise ValueError(f"{name[:80]!r} appears twice in its header: get the file again.")
    return name


def _table(
    rows: dict[str, tuple[Format, tuple[int, ...], int]], first: int, alignment: int, size: int
) -> dict[str, Entry]:
    """Return where each tensor is, if each has its own bytes within the file."""
    table = {}
    for name, (kind, shape, offset) in rows.items():
        if shape[-1] % kind.numbers or offset % alignment:
            raise ValueError(
                f"tensor {name[:80]!r} has rows of {shape[-1]:,} numbers from byte {offset:,}, but "
                f"they must fill blocks of {kind.numbers} and begin at a multiple of {alignment}."
            )
        n_bytes = math.prod(shape) // kind.numbers * kind.n_bytes
        table[name] = Entry(kind, shape, first + offset, n_bytes)
    end, before = first, "header"
    for name, entry in sorted(table.items(), key=lambda row: row[1].start):
        stop = entry.start + entry.n_bytes
        if entry.start < end or not 0 < entry.n_bytes <= size - entry.start:
            raise ValueError(
                f"tensor {name[:80]!r} lies at bytes {entry.start:,} to {stop:,}, but it must hold "
                f"numbers, begin after {before[:80]!r}, which ends at {end:,}, and end within the "
                f"file's {size:,}: get the file again."
            )
        end, before = stop, name
    return table
