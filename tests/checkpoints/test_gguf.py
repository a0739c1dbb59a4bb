"""GGUF files are read to the bit, and those that lie are refused before they cost anything."""

import struct

import gguf as library
import numpy as np
import pytest
import torch

from tests.checkpoints.cost import little_memory
from tests.checkpoints.gguf_files import F32, Q4_1, Q8_0, gguf, pair, row, text, value, whole
from transformer_lesson.checkpoints import gguf as gguf_module
from transformer_lesson.checkpoints.gguf import read_gguf
from transformer_lesson.checkpoints.gguf_formats import FORMATS, FOUR_BITS

BLOCK = np.arange(32, dtype="<f4") / 8 - 1


def written(tmp_path, data: bytes):
    path = tmp_path / "model.gguf"
    path.write_bytes(data)
    return path


def refusal(tmp_path, data: bytes) -> str:
    path = written(tmp_path, data)
    with pytest.raises(ValueError) as caught:
        read_gguf(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ") and message.endswith(".") and "\n" not in message
    return message.removeprefix(f"{path}: ")


@pytest.mark.parametrize("kind", FORMATS)
def test_every_byte_gives_the_librarys_number(kind):
    one = FORMATS[kind]
    blocks = np.random.default_rng(kind).integers(0, 256, (3001, one.n_bytes), dtype=np.uint8)
    ours = one.dequantize(torch.tensor(blocks)).numpy()
    with np.errstate(invalid="ignore"):
        theirs = library.dequantize(blocks, library.GGMLQuantizationType[one.name])
    finite = np.isfinite(theirs)
    assert finite.sum() > 80_000 or one.numbers == 1
    assert ours.shape == theirs.shape and ours[finite].tobytes() == theirs[finite].tobytes()
    assert np.array_equal(ours, theirs, equal_nan=True)


@pytest.mark.parametrize("one", FORMATS.values(), ids=lambda one: one.name)
def test_formats_of_four_bits_come_apart_into_steps_scales_and_smallest_numbers(one):
    if one.name not in FOUR_BITS:
        assert "4_" not in one.name
        return
    blocks = torch.randint(0, 256, (50, one.n_bytes), dtype=torch.uint8)
    blocks[:, 1] = blocks[:, 3] = 60  # no NaN
    steps, scale, smallest = FOUR_BITS[one.name](blocks)
    assert steps.dtype == torch.uint8 and steps.max() == 15 and smallest.dtype == torch.float32
    spread = (part.repeat_interleave(32, dim=1) for part in (scale, smallest))
    torch.testing.assert_close(next(spread) * steps + next(spread), one.dequantize(blocks))


@pytest.mark.parametrize("name", ["F32", "Q4_1", "Q8_0"])
def test_what_the_library_writes_is_read(name, tmp_path, monkeypatch):
    monkeypatch.setattr(gguf_module, "PIECE", 3)  # blocks: W is read in several pieces
    path, kind = tmp_path / "model.gguf", library.GGMLQuantizationType[name]
    writer = library.GGUFWriter(path, "llama")
    writer.add_uint32("a", 7)
    writer.add_array("b", ["x", "ü"])
    numbers = np.random.default_rng(0).normal(size=(5, 64)).astype(np.float32)
    writer.add_tensor("W", library.quantize(numbers, kind), raw_dtype=kind)
    writer.add_tensor("scale", numbers[0])
    writer.write_header_to_file(), writer.write_kv_data_to_file(), writer.write_tensors_to_file()
    writer.close()
    file = read_gguf(path)
    assert file.metadata == {"general.architecture": "llama", "a": 7, "b": ["x", "ü"]}
    stored = library.dequantize(library.quantize(numbers, kind), kind).reshape(5, 64)
    assert file.tensor("W").numpy().tobytes() == stored.tobytes()
    assert file.tensor("W").shape == (5, 64)
    assert np.abs(stored - numbers).max() <= {"F32": 0, "Q4_1": 0.3, "Q8_0": 0.03}[name]
    assert file.tensor("scale").tolist() == numbers[0].tolist()
    halves = file.tensor("W", torch.bfloat16)
    assert torch.equal(halves, file.tensor("W").bfloat16())


def test_every_kind_of_metadata(tmp_path):
    numbers = {0: ("B", 255), 1: ("b", -2), 2: ("H", 65535), 3: ("h", -3), 4: ("I", 2**32 - 1)}
    numbers |= {5: ("i", -5), 6: ("f", 0.5), 7: ("?", True), 10: ("Q", 2**64 - 1)}
    numbers |= {11: ("q", -(2**63)), 12: ("d", 0.1)}
    pairs = [
        text(str(kind)) + struct.pack(f"<I{letter}", kind, number)
        for kind, (letter, number) in numbers.items()
    ]
    pairs += [
        text(f"{kind} twice") + struct.pack(f"<IIQ2{letter}", 9, kind, 2, number, number)
        for kind, (letter, number) in numbers.items()
    ]
    pairs += [pair("text", "日本"), pair("texts", ["", "b"]), pair("none", [])]
    metadata = read_gguf(written(tmp_path, whole(pairs, [], b""))).metadata
    for kind, (_, number) in numbers.items():
        assert metadata[str(kind)] == number
        assert metadata[f"{kind} twice"].tolist() == [number, number]
    assert (metadata["text"], metadata["texts"], metadata["none"]) == ("日本", ["", "b"], [])


@pytest.mark.parametrize("alignment", [8, 32, 64])
def test_shapes_places_and_alignments(alignment, tmp_path):
    tensors = {
        "a": np.arange(3, dtype="<f4"),
        "b": np.arange(2 * 3 * 5, dtype="<f4").reshape(2, 3, 5),
        "c": np.ones((1, 1, 1, 7), dtype="<f4"),
    }
    data = gguf({"general.alignment": alignment}, tensors, alignment)
    file = read_gguf(written(tmp_path, data))
    assert list(file.table) == ["a", "b", "c"] and file.table["b"].format.name == "F32"
    for name, numbers in tensors.items():
        assert torch.equal(file.tensor(name), torch.tensor(numbers))
    assert file.blocks("a").shape == (3, 4)


def test_what_is_no_gguf_file(tmp_path):
    for data in (b"", b"GGU", b"GGML" + bytes(40), b"PK\3\4" + bytes(40)):
        assert refusal(tmp_path, data) == ('it is not a GGUF file: it does not begin with "GGUF".')
    later = b"GGUF" + struct.pack("<IQQ", 4, 0, 0)
    assert refusal(tmp_path, later) == "it has version 4 of the format, but only 3 is read."
    with pytest.raises(ValueError, match="nothing.gguf: there is no such file"):
        read_gguf(tmp_path / "nothing.gguf")


def test_a_file_that_is_cut_off_anywhere_is_refused(tmp_path):
    tensors = {"W": BLOCK[None], "b": BLOCK}
    data = gguf({"a": 1, "names": ["x", "y"], "numbers": np.arange(3, dtype="<i4")}, tensors)
    read_gguf(written(tmp_path, data))
    for length in range(len(data)):
        assert refusal(tmp_path, data[:length])


@pytest.mark.parametrize("claimed", (2**63, 2**64 - 1, 2**40, 10**9))
@pytest.mark.parametrize(
    "lie",
    [
        lambda n: b"GGUF" + struct.pack("<IQQ", 3, n, 0),
        lambda n: b"GGUF" + struct.pack("<IQQ", 3, 0, n),
        lambda n: whole([struct.pack("<Q", n) + b"key"], [], b""),
        lambda n: whole([text("a") + struct.pack("<IQ", 8, n)], [], b""),
        lambda n: whole([text("a") + struct.pack("<IIQ", 9, 8, n)], [], b""),
        lambda n: whole([text("a") + struct.pack("<IIQ", 9, 12, n)], [], b""),
        lambda n: whole([], [struct.pack("<Q", n) + b"name"], b""),
        lambda n: whole([], [row("W", (n,), F32, 0)], b""),
        lambda n: whole([], [row("W", (32, n, n, n), Q4_1, 0)], bytes(20)),
        lambda n: whole([], [row("W", (32,), Q8_0, n // 32 * 32)], bytes(34)),
    ],
    ids="tensors values key text texts numbers name axis axes offset".split(),
)
def test_numbers_larger_than_the_file_cost_nothing(lie, claimed, tmp_path):
    with little_memory(20_000):
        assert "get the file again" in refusal(tmp_path, lie(claimed))


def test_a_sparse_file_has_no_endless_header(tmp_path):
    path = written(tmp_path, b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 5 * 10**9))
    with open(path, "r+b") as file:
        file.truncate(6 * 10**9)  # takes no room on the disk
    match = "there can only be 99,999,968: get the file again"
    with little_memory(), pytest.raises(ValueError, match=match):
        read_gguf(path)


@pytest.mark.parametrize(
    ("pairs", "rows", "message"),
    [
        ([text(b"\xff\xfe") + value(1)], [], "is not UTF-8 (invalid start byte)"),
        ([text("a") + struct.pack("<I", 13)], [], "of the kind 13, but numbers are one of 0, 1,"),
        ([text("a") + struct.pack("<IIQ", 9, 9, 1)], [], "of the kind 9, but numbers are one of"),
        ([pair("a", 1), pair("a", 2)], [], "'a' appears twice in its header"),
        ([pair("general.alignment", 0)], [], "general.alignment is 0, but it must be a multiple"),
        ([pair("general.alignment", "8")], [], "general.alignment is '8', but it"),
        ([], [row("W", (8,), F32, 0)] * 2, "'W' appears twice in its header"),
        ([], [row("W", (), F32, 0)], "'W': it has 0 axes, but it must have 1 to 4"),
        ([], [row("W", (1,) * 5, F32, 0)], "'W': it has 5 axes, but it must have 1 to 4"),
        ([], [row("W", (32,), 39, 0)], "'W': its numbers have the format MXFP4, but only F32, F16"),
        ([], [row("W", (32,), 99, 0)], "'W': its numbers have the format 99, but only F32, F16"),
        ([], [row("W", (48,), Q4_1, 0)], "rows of 48 numbers from byte 0, but they must fill"),
        ([], [row("W", (8,), F32, 8)], "from byte 8, but they must fill blocks of 1 and begin"),
        ([], [row("W", (0, 8), F32, 0)], "but it must hold numbers"),
        ([], [row("W", (33,), F32, 0)], "but it must hold numbers, begin after 'header'"),
        ([], [row("a", (16,), F32, 0), row("b", (8,), F32, 32)], "'b' lies at bytes 128 to 160, "),
        ([], [row("b", (8,), F32, 0), row("a", (8,), F32, 0)], "begin after 'b', which ends at "),
    ],
)
def test_what_cannot_be_is_refused(pairs, rows, message, tmp_path):
    assert message in refusal(tmp_path, whole(pairs, rows, bytes(128)))


def test_a_file_that_shrinks_after_its_header_was_read(tmp_path):
    path = written(tmp_path, gguf({}, {"W": BLOCK}))
    file = read_gguf(path)
    with open(path, "r+b") as stream:
        stream.truncate(path.stat().st_size - 1)
    with pytest.raises(ValueError, match="model.gguf ends within W: get the file again"):
        file.tensor("W")
