"""Small GGUF files, piece by piece: whole ones, and whatever a liar would write."""

import struct

import numpy as np
from gguf import GGMLQuantizationType, quantize

F32, Q4_1, Q8_0 = 0, 3, 8
NUMBERS = {np.dtype(t): kind for t, kind in (("<u4", 4), ("<i4", 5), ("<f4", 6), ("<u8", 10))}


def text(characters: str | bytes) -> bytes:
    data = characters if isinstance(characters, bytes) else characters.encode()
    return struct.pack("<Q", len(data)) + data


def value(of) -> bytes:
    if isinstance(of, bool):
        return struct.pack("<I?", 7, of)
    if isinstance(of, int):
        return struct.pack("<II", 4, of)
    if isinstance(of, float):
        return struct.pack("<If", 6, of)
    if isinstance(of, str):
        return struct.pack("<I", 8) + text(of)
    if isinstance(of, np.ndarray):
        return struct.pack("<IIQ", 9, NUMBERS[of.dtype], len(of)) + of.tobytes()
    return struct.pack("<IIQ", 9, 8, len(of)) + b"".join(map(text, of))


def pair(key: str, of) -> bytes:
    return text(key) + value(of)


def row(name: str | bytes, axes: tuple[int, ...], kind: int, offset: int) -> bytes:
    """What the table says of a tensor; axes as GGUF has them, the fastest first."""
    return text(name) + struct.pack(f"<I{len(axes)}QIQ", len(axes), *axes, kind, offset)


def whole(pairs: list[bytes], rows: list[bytes], data: bytes, alignment: int = 32) -> bytes:
    head = b"GGUF" + struct.pack("<IQQ", 3, len(rows), len(pairs)) + b"".join(pairs + rows)
    return head + bytes(-len(head) % alignment) + data


def gguf(metadata: dict, tensors: dict[str, np.ndarray], alignment: int = 32, q4_1=()) -> bytes:
    rows, data = [], b""
    for name, tensor in tensors.items():
        kind = Q4_1 if name in q4_1 else F32
        data += bytes(-len(data) % alignment)
        rows.append(row(name, tensor.shape[::-1], kind, len(data)))
        data += quantize(tensor.astype("<f4"), GGMLQuantizationType(kind)).tobytes()
    return whole([pair(*item) for item in metadata.items()], rows, data, alignment)
