"""What a learner brings: used in any alphabet, or refused in one sentence."""

import csv
import io

import pytest

from transformer_lesson.capstone import SHIPPED, read
from transformer_lesson.capstone.material import LEAST_TEXT, MOST_HELD_OUT
from transformer_lesson.capstone.plan import batches_of, short_enough, tokenizer_of, unseen_of
from transformer_lesson.text.pairs import Pair
from transformer_lesson.text.tokenizers import BytePairTokenizer

LINES = {
    "english": "The child opens the window, and the {} looks out.",
    "greek": "Το παιδί ανοίγει το παράθυρο, και ο {} κοιτάζει έξω.",
    "hebrew": "הילד פותח את החלון, ואז {} מסתכל החוצה.",
    "chinese": "孩子打开窗户，{}往外看。",
}


def write(path, text, encoding="utf-8"):
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return path


def text_of(line, n=600):
    return "\n".join(line.format(i * i) for i in range(n))


@pytest.mark.parametrize("language", LINES)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_every_alphabet_is_text(language, encoding, tmp_path):
    text = text_of(LINES[language], 900)
    material = read(write(tmp_path / "a text.txt", text, encoding))
    assert (material.name, material.kind, material.notes) == ("a-text", "text", ())
    every = len("".join(material.held_out)) / len(text)
    assert 0.15 < every < 0.25 and set(material.training) <= set(text)
    assert material.held_out[0] in text and material.held_out[0] not in material.training
    tokenizer = tokenizer_of(material)
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert next(iter(batches_of(material, tokenizer))).labels.shape == (8, 128)
    spelled = sum(characters for _, characters in unseen_of(material, tokenizer))
    assert 0.95 < spelled / len("".join(material.held_out)) <= 1


def test_pairs_come_from_tabs_or_from_two_files_and_none_is_on_both_sides(tmp_path):
    rows = [(f"I see {i} birds .", f"ich sehe {i} Vögel .") for i in range(150)]
    tabs = write(tmp_path / "all.tsv", "\n".join("\t".join(row) for row in [*rows, *rows]))
    two = [write(tmp_path / f"all.{side}", "\n".join(row[side] for row in rows)) for side in (0, 1)]
    one, other = read(tabs), read(two)
    assert one.kind == "pairs" and one[2:4] == other[2:4] and one.fingerprint == other.fingerprint
    assert "150 pairs are left out" in one.notes[0] and other.notes == ()
    assert len(one.training) == 120 and len(one.held_out) == 30
    assert not {p.source for p in one.training} & {p.source for p in one.held_out}
    (tmp_path / "both").mkdir()
    tabs.rename(tmp_path / "both" / "all.tsv")
    write(tmp_path / "both" / "z.txt", text_of(LINES["greek"]))
    mixed = read(tmp_path / "both")
    assert mixed.kind == "text" and "z.txt has no tabs: to learn from pairs" in mixed.notes[0]


def test_pairs_that_are_too_long_for_the_model_are_left_out_and_counted(tmp_path):
    long = " ".join("abcdefghij"[i % 10] * (1 + i % 3) for i in range(400))
    rows = [f"I see {i} birds .\t{'so' if i % 9 else long}" for i in range(200)]
    material = read(write(tmp_path / "long.tsv", "\n".join(rows)))
    tokenizer = BytePairTokenizer.train(["birds"], 300)
    short = short_enough(material, tokenizer)
    assert "23 pairs are left out, longer than 126 tokens" in short.notes[-1]
    assert {pair.target for pair in [*short.training, *short.held_out]} == {"so"}
    only = material._replace(training=[pair._replace(target=long) for pair in material.training])
    with pytest.raises(ValueError, match="more than 126 tokens, and only .* have none: split"):
        short_enough(only, tokenizer)


ROWS = [(str(i), f"I see {i} birds, and more", f"ich sehe {i} Vögel") for i in range(150)]
HEADER = ("id", "English", "German")


def table(rows, delimiter="\t"):
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return text.getvalue()


@pytest.mark.parametrize("columns", [("English", "German"), (2, 3)])
@pytest.mark.parametrize(("name", "delimiter"), [("a.tsv", "\t"), ("a.csv", ","), ("a.csv", ";")])
def test_of_three_columns_two_are_read_by_name_or_number(name, delimiter, columns, tmp_path):
    path = write(tmp_path / name, table([HEADER, *ROWS], delimiter).replace("birds,", "birds"))
    with pytest.raises(ValueError, match="a.... has 3 columns, the first line 'id', 'English', 'G"):
        read(path)
    material = read(path, columns)
    assert "column 2 (English), and its translation in column 3 (German)" in material.read_as
    pairs = [*material.training, *material.held_out]
    assert len(pairs) == 150 and all(pair.target.startswith("ich") for pair in pairs)
    back = read(path, columns[::-1])
    assert all(pair.source.startswith("ich") for pair in back.training)
    for wrong in ((2,), ("English", "Deutsch"), (0, 1), (2, 2), (2, 4), "ab"):
        with pytest.raises(ValueError, match="it must be two of the 3 that .* has, by number"):
            read(path, wrong)


def test_a_header_of_two_columns_and_lines_without_text_are_told_and_left_out(tmp_path):
    rows = [row[1:] for row in ROWS]
    rows = [("en", "de"), *rows[:9], (), *rows[9:], ("only one side", "")]
    material = read(write(tmp_path / "a.csv", table(rows, ",")))
    assert "column 1 (en), and its translation in column 2 (de)" in material.read_as
    assert material.notes == ("Of a.csv, lines left out: 1 empty, 1 with one side only.",)
    assert {*material.training, *material.held_out} == {Pair(*row[1:]) for row in ROWS}
    late = table([row[1:] for row in ROWS]) + "no tab in here\n"
    with pytest.raises(ValueError, match="line 151 has no column 2, it holds 'no tab in here'"):
        read(write(tmp_path / "late.tsv", late))


def test_no_held_out_translation_is_read_or_the_notes_say_how_many_are(tmp_path):
    some = [(f"I see {i} birds", f"ich sehe {i % 100} Vögel") for i in range(160)]
    material = read(write(tmp_path / "some.tsv", table(some)))
    read_ones = {pair.target for pair in material.training}
    assert material.notes == () and len(material.held_out) == 32
    assert not any(pair.target in read_ones for pair in material.held_out)
    few = [(f"I see {i} birds", f"{i % 3} Vögel") for i in range(160)]
    (note,) = read(write(tmp_path / "few.tsv", table(few))).notes
    assert note.startswith("Of 32 translations that are held out, 32 may stand in what is read")


def test_a_home_folder_and_what_a_folder_left_out_are_told(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / "mine").mkdir()
    write(tmp_path / "a.txt", text_of(LINES["greek"]))
    assert read("~/a.txt").read_as.endswith(
        "a.txt is read as one text, which the model goes on with."
    )
    write(tmp_path / "mine" / "b.pdf", b"%PDF-1.7\xe2")
    write(tmp_path / "mine" / "a.txt", "short")
    with pytest.raises(ValueError, match="has 5 characters, but .* Left out: .*b.pdf .*a PDF"):
        read("~/mine")


def test_a_folder_gives_all_that_is_text_and_names_the_rest(tmp_path):
    write(tmp_path / "b.txt", text_of(LINES["greek"]))
    write(tmp_path / "a.txt", text_of(LINES["english"]))
    write(tmp_path / "picture.png", b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    write(tmp_path / ".hidden", "no")
    material = read(tmp_path)
    assert material.training.startswith("The child") and "παιδί" in material.training
    (note,) = material.notes
    assert note.startswith("Left out: ") and "picture.png is not text in UTF-8" in note


def test_a_huge_text_is_read_as_far_as_it_can_be_learned(tmp_path, monkeypatch):
    monkeypatch.setattr("transformer_lesson.capstone.material.MOST_TEXT", 20_001)
    material = read(write(tmp_path / "huge.txt", "é" * 30_000))  # the limit cuts one in two
    assert len(material.training) + len("".join(material.held_out)) == 10_000
    assert "huge.txt is read up to 20,001 bytes" in material.notes[0]


def test_what_is_held_out_but_stands_in_the_rest_too_is_told(tmp_path):
    letter = text_of(LINES["english"], 40)
    (note,) = read(write(tmp_path / "letters.txt", 12 * letter)).notes
    assert note.startswith("100% of what is held out stands letter for letter in what is read")


BAD = {
    "empty": (b"", "bad.txt has 0 characters, but 10,000 are needed"),
    "binary": (b"\x89PNG" + bytes(20_000), "bad.txt is not text in UTF-8, as its byte 0"),
    "zeros": (b"a\x00" * 20_000, "bad.txt holds a NUL character"),
    "PDF": (
        b"%PDF-1.7\xe2" * 2000,
        "bad.txt is not text in UTF-8, as its byte 8 shows. This is a PDF",
    ),
    "few pairs": (b"a\tb\n" * 2000, "bad.txt has 1 different sentence with a translation"),
}


@pytest.mark.parametrize("raw", BAD.values(), ids=BAD)
def test_what_cannot_be_used_is_refused_in_one_sentence(raw, tmp_path):
    raw, expected = raw
    with pytest.raises(ValueError) as caught:
        read(write(tmp_path / "bad.txt", raw))
    message = str(caught.value)
    assert expected in message and "\n" not in message and message.endswith(".")


def test_other_sources_are_refused_by_name(tmp_path):
    with pytest.raises(ValueError, match="source is '', but it must name a file"):
        read("")
    longer, shorter = (write(tmp_path / f"{n}.txt", "a line\n" * n) for n in (300, 200))
    with pytest.raises(ValueError, match="300 lines and .* has 200"):
        read([longer, shorter])
    with pytest.raises(ValueError, match="a list of 3 files, but it must be 2"):
        read(["a", "b", "c"])
    with pytest.raises(ValueError, match="no such file or folder as .*storys"):
        read("storys")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="empty holds no file of text .*: put one there"):
        read(tmp_path / "empty")


@pytest.mark.slow
@pytest.mark.parametrize("name", SHIPPED)
def test_what_is_shipped_is_enough(name, unchecked):
    material = read(name)
    assert material.name == name and len(material.held_out) > 40
    assert len(material.held_out) <= MOST_HELD_OUT and len("".join(material.texts)) > LEAST_TEXT
    seen = material.training if material.kind == "text" else set(material.training)
    assert not any(piece in seen for piece in material.held_out)
