"""A learner's own files: what is read, what is left out, and what is said about a file at fault."""

import re
import tracemalloc
from contextlib import contextmanager
from itertools import islice

import pytest

from transformer_lesson.text import Pair, parallel_text
from transformer_lesson.text.pairs import LONGEST_LINE, stream_pairs

TABS = [Pair("Go.", "Geh."), Pair("Close all tabs.", "Schließe alle Tabs.")]


@pytest.fixture
def write(tmp_path):
    def write_file(content: str | bytes, name: str = "pairs.tsv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


@contextmanager
def little_memory(most: float):
    """Inside, Python's objects must not come to need more bytes than this."""
    tracemalloc.start()
    yield
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < most


@pytest.mark.parametrize(
    "content",
    [
        "Go.\tGeh.\nClose all tabs.\tSchließe alle Tabs.\n",
        "Go.\tGeh.\nClose all tabs.\tSchließe alle Tabs.",
        "Go.\tGeh.\r\nClose all tabs.\tSchließe alle Tabs.\r\n",
        "Go.\tGeh.\tCC-BY #1 & #2\nClose all tabs.\t Schließe alle Tabs. \t\t7\n",
        "1276\tGo.\t99\tGeh.\n1277\tClose all tabs.\t100\tSchließe alle Tabs.\n",
    ],
    ids=["plain", "no last line break", "CRLF", "more columns", "ids"],
)
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.filterwarnings("error")
def test_a_file_with_tabs(write, content, mark):
    assert parallel_text(write(mark + content)) == TABS


def test_numbers_without_ids_are_sentences_and_separators_in_one_do_not_end_a_line(write):
    path = write("7\t7\tCC-BY\n1\t2\t3\tx\n1\tone\tx\teins\n")
    assert parallel_text(path) == [Pair("7", "7"), Pair("2", "x"), Pair("1", "one")]
    path = write('a\u2028b\x0cc\x85\td\re\n"quoted\tText\n')
    assert parallel_text(path) == [Pair("a\u2028b\x0cc", "d\re"), Pair('"quoted', "Text")]


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_two_aligned_files(write, mark):
    source = write(f"{mark}Go.\nClose all tabs.\n", "train.en")
    target = write(f"{mark}Geh.\r\nSchließe alle Tabs.", "train.de")
    assert parallel_text(source, target) == TABS
    assert parallel_text(str(source), str(target), limit=1) == TABS[:1]


def test_lines_with_an_empty_side_are_left_out_and_counted(write):
    path = write("\nGo.\tGeh.\n \t\nno translation\t \n\tkeine Quelle\nClose all tabs.\tX\n\n")
    with pytest.warns(UserWarning) as caught:
        assert [pair.target for pair in parallel_text(path)] == ["Geh.", "X"]
    (warning,) = caught
    assert str(warning.message) == (
        f"{path}: left out 3 empty lines and 2 lines with text on one side only, the first of them "
        "line 1."
    )
    source, target = write("Go.\n\n\nstay\n", "a.en"), write("Geh.\n\nbleib\n \n", "a.de")
    with pytest.warns(UserWarning, match="left out 1 empty lines and 2 lines.*line 2"):
        assert parallel_text(source, target) == TABS[:1]


@pytest.mark.parametrize(("n_sources", "n_targets"), [(3, 2), (2, 3), (1, 2_000), (1, 0)])
def test_files_of_different_length_are_refused(write, n_sources, n_targets):
    source, target = write("a\n" * n_sources, "a.en"), write("b\n" * n_targets, "a.de")
    message = f"{source} has {n_sources:,} lines and {target} has {n_targets:,}: each line"
    with pytest.raises(ValueError, match=re.escape(message)):
        parallel_text(source, target)


def test_a_line_without_a_tab_is_refused_by_number(write):
    path = write("Go.\tGeh.\n\nClose   all tabs.  Schließe alle Tabs.\n")
    message = f"{path}, line 3 has no tab, it holds 'Close   all tabs.  Schließe alle Tabs.': put"
    with pytest.raises(ValueError, match=re.escape(message)):
        parallel_text(path)
    with pytest.raises(ValueError, match="line 1 has no tab, it holds 'x{59}…': put one"):
        parallel_text(write("x" * 5000))


@pytest.mark.parametrize(
    ("content", "line", "hint"),
    [
        ("Go.\tGeh.\nTabs\tschließen\n".encode("latin-1"), 2, "Byte 0xdf .* it is 'ß': save"),
        ("“Go”\t„Geh“\n".encode("windows-1252"), 1, "Byte 0x93 .* it is '“': save"),
        (b"a\tb\n\x81\tc\n", 2, "Byte 0x81 .* it is '\ufffd': save"),
        ("Go.\tGeh.\n".encode("utf-16"), 1, "looks like UTF-16: save the file as UTF-8"),
        ("\ufeffGo.\tGeh.\n".encode("utf-16-be"), 1, "looks like UTF-16"),
        ("Go.\tGeh.\n".encode("utf-16-le"), 1, "NUL byte, as UTF-16 and"),
        (b"a\tb\na\x00\tb\n", 2, "NUL byte"),
        (b"\x1f\x8b\x08\x00rest\n", 1, "gzip archive: unpack it first"),
        (b"PK\x03\x04\x14\x00\x08\n", 1, "ZIP archive, as a .docx is: unpack it"),
        (b"a\tb\nc\t\xed\xa0\x80\n", 2, "Byte 0xed"),  # half of a surrogate pair
        (b"\xef\xbb\xbf\xe4\tb\n", 1, "Byte 0xe4 .* it is 'ä'"),
    ],
    ids="latin-1 1252 neither utf-16 16-be 16-le NUL gz zip half BOM".split(),
)
def test_other_encodings_are_refused_by_line_with_a_hint(write, content, line, hint):
    path = write(content)
    message = re.escape(f"{path}, line {line} is not UTF-8 text. ") + ".*" + hint
    with pytest.raises(ValueError, match=message):
        parallel_text(path)
    with pytest.raises(ValueError, match=message):
        parallel_text(write("a\nb\nc\n", "right.en"), path)


def test_a_line_that_is_no_sentence_is_refused_before_it_fills_the_memory(write):
    longest = "a\t" + "b" * (LONGEST_LINE - 3) + "\n"
    assert len(parallel_text(write(longest))[0].target) == LONGEST_LINE - 3
    path = write("Go.\tGeh.\n" + "b\t" * 20_000_000)
    message = re.escape(f"{path}, line 2 is longer than 1,000,000 b")
    with little_memory(10e6), pytest.raises(ValueError, match=message):
        parallel_text(path)


@pytest.mark.filterwarnings("ignore:.*left out")
def test_what_is_no_file_or_holds_no_pairs_is_refused(tmp_path, write):
    with pytest.raises(FileNotFoundError, match=r"There is no file .*missing\.tsv: check its name"):
        parallel_text(tmp_path / "missing.tsv")
    with pytest.raises(ValueError, match="is a folder: name the file in it"):
        parallel_text(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"no file .*missing\.de"):
        parallel_text(write("a\n"), tmp_path / "missing.de")
    for content in ("", "\ufeff", "\n\n", "a\t\n"):
        with pytest.raises(ValueError, match=r"pairs\.tsv holds no pairs"):
            parallel_text(write(content))


def test_a_limit_stops_before_what_lies_behind_it(write):
    path = write("Go.\tGeh.\nno tab\n")
    assert parallel_text(path, limit=1) == TABS[:1]
    assert list(islice(stream_pairs(path), 1)) == TABS[:1]
    with pytest.raises(ValueError, match="limit must be 1 or more pairs, or None for all, got 0"):
        parallel_text(path, limit=0)


@pytest.mark.slow
def test_a_long_file_in_a_stream_takes_no_more_memory_than_a_short_one(tmp_path):
    path = tmp_path / "long.tsv"
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"sentence {i}\tSatz {i}\n" for i in range(200_000))
    with little_memory(300_000):
        for _ in islice(stream_pairs(path), 20_000):
            pass
    numbers = (int(pair.target.removeprefix("Satz ")) for pair in stream_pairs(path))
    assert all(found == expected for found, expected in zip(numbers, range(200_000), strict=True))
