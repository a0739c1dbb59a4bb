"""The tokenizers of GGUF files give the ids of those that their models were trained with."""

import io
import json
import re
import unicodedata

import numpy as np
import pytest
import sentencepiece
import tokenizers
from transformers import GPTNeoXTokenizer, Qwen2Tokenizer

from tests.checkpoints.gguf_files import gguf
from tests.checkpoints.hard_texts import HARD, TEXTS, drawn
from tests.checkpoints.llama_files import LINES, MARKS, trained, vocabulary_file
from transformer_lesson.checkpoints.gguf_tokenizer import CUTS, read_tokenizer


def saved(tmp_path, metadata: dict, tensors: dict):
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf({k: v for k, v in metadata.items() if v is not None}, tensors))
    return path


def test_the_tokenizer_is_the_one_that_was_written(tmp_path):
    ours, theirs = read_tokenizer(saved(tmp_path, vocabulary_file(), {})), trained()
    assert ours.vocab_size == theirs.get_vocab_size() and ours.vocabulary == theirs.get_vocab()
    for line in (*LINES, "x  57\n\n 8's", " \t", "", "\x00é"):
        assert ours.encode(line) == theirs.encode(line).ids
        assert ours.decode(ours.encode(line)) == line
    assert ours.tokens(" 123") == ["␣", "1", "2", "3"]
    assert ours.tokens("x  5") == ["x", "␣␣", "5"]  # uncut, the second space goes with the number
    assert (ours.bos_id, ours.eos_id, ours.pad_id, ours.unk_id) == (1, 2, 2, 0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "t5"}, "its tokenizer is of the kind 't5', but only 'gpt2' and 'llama'"),
        ({"model": "llama"}, "holds a value of the wrong kind or size (KeyError"),
        ({"pre": None}, "its tokenizer cuts a text as None does, but only gpt-2, smollm"),
        ({"pre": "tekken"}, "its tokenizer cuts a text as 'tekken' does, but only"),
        ({"tokens": ["a", "a"]}, "of its 2 tokens 1 differ and 300 have a type, but all must"),
        ({"merges": ["Ġ t", "nothing here"]}, "it merges 'nothing here', but a merge must"),
        ({"merges": ["Q Z"]}, "it merges 'Q Z', but a merge must make a token of two"),
        ({"merges": None}, "holds a value of the wrong kind or size (KeyError"),
        ({"tokens": 5}, "holds a value of the wrong kind or size (Type"),
        ({"eos_token_id": 300}, "Token id 300 is outside the vocabulary of 300 tokens"),
    ],
)
def test_a_tokenizer_that_contradicts_itself_is_refused(changes, message, tmp_path):
    with pytest.raises(ValueError, match=re.escape(message)):
        read_tokenizer(saved(tmp_path, vocabulary_file(**changes), {}))


QWEN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
LLAMA_3 = QWEN + "{1,3}"
ENDS = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def merged(pattern: str | None, *lines: str) -> tokenizers.Tokenizer:
    """A tokenizer of the library that cuts by this pattern, trained on what is hard to cut."""
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    steps = [tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not pattern)]
    if pattern:
        cut = tokenizers.pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated")
        steps.insert(0, cut)
    made.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(steps)
    made.decoder = tokenizers.decoders.ByteLevel()
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=700, special_tokens=list(MARKS), initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator([*LINES, *HARD, *lines] * 3, trainer)
    return made


def metadata_of(library: tokenizers.Tokenizer, pre: str, **changes) -> dict:
    model = json.loads(library.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    types = np.array([3] * 3 + [1] * (len(tokens) - 3), dtype="<i4")
    merges = [" ".join(pair) for pair in model["merges"]]
    return vocabulary_file(pre=pre, tokens=tokens, token_type=types, merges=merges, **changes)


def test_qwens_ids_are_those_of_the_librarys_own_tokenizer(tmp_path):
    library = merged(QWEN + ENDS)
    model = json.loads(library.to_str())["model"]
    theirs = Qwen2Tokenizer(model["vocab"], [tuple(pair) for pair in model["merges"]])
    ours = read_tokenizer(saved(tmp_path, metadata_of(library, "qwen2"), {}))
    for text in TEXTS:
        assert ours.encode(text) == theirs.encode(text, add_special_tokens=False), repr(text)
    assert ours.encode("a\u0301") == ours.encode("á") and not ours.begins


def test_pythias_ids_are_those_of_the_librarys_own_tokenizer(tmp_path):
    library = merged(None)
    model = json.loads(library.to_str())["model"]
    roles = {"pad_token": MARKS[1], "eos_token": MARKS[2]}
    pairs = [tuple(pair) for pair in model["merges"]]
    theirs = GPTNeoXTokenizer(model["vocab"], pairs, **roles)
    runs = [" " * n for n in range(24, 1, -1)]  # as in GPT-NeoX-20B's tokenizer.json, at its end
    theirs.add_tokens([tokenizers.AddedToken(run, normalized=True) for run in runs])
    file = metadata_of(library, "olmo")
    file["tokenizer.ggml.tokens"] += runs
    types = file["tokenizer.ggml.token_type"]
    file["tokenizer.ggml.token_type"] = np.append(types, [4] * len(runs)).astype("<i4")
    ours = read_tokenizer(saved(tmp_path, file, {}))
    for text in TEXTS:
        ids = theirs.encode(text, add_special_tokens=False)
        assert ours.encode(text) == ids, repr(text)
        assert ours.decode(ids) == unicodedata.normalize("NFC", text)
    assert ours.tokens("a  b   c")[1] == "␣␣" and not ours.begins
    assert ours.encode("a\u0301") == ours.encode("á")
    older = read_tokenizer(saved(tmp_path, file | {"tokenizer.ggml.pre": "mpt"}, {}))
    assert [older.encode(text) for text in TEXTS] == [ours.encode(text) for text in TEXTS]


@pytest.mark.parametrize(
    ("pre", "pattern"),
    [
        ("gpt-2", None),
        ("deepseek-r1-qwen", QWEN + ENDS),
        ("llama-bpe", LLAMA_3 + ENDS),
        ("dbrx", LLAMA_3 + ENDS),
        ("smaug-bpe", LLAMA_3 + ENDS),
    ],
)
def test_each_familys_text_is_cut_as_its_own_tokenizer_does(pre, pattern, tmp_path):
    theirs = merged(pattern)
    theirs.encode_special_tokens = True
    ours = read_tokenizer(saved(tmp_path, metadata_of(theirs, pre), {}))
    for text in TEXTS:
        assert ours.encode(text) == theirs.encode(text).ids, repr(text)
        assert ours.decode(ours.encode(text)) == text
    assert ours.begins == (pre == "llama-bpe")
    assert ours.start("a") == [1] * ours.begins + ours.encode("a")
    if pre != "deepseek-r1-qwen":
        with pytest.raises(AssertionError):  # the texts are hard enough to see another cut
            other = read_tokenizer(saved(tmp_path, metadata_of(theirs, "deepseek-r1-qwen"), {}))
            assert [other.encode(text) for text in TEXTS] == [ours.encode(t) for t in TEXTS]


def test_llama_3_takes_a_piece_that_is_a_token_without_merging(tmp_path):
    changes = {"tokens": ["a", "b", "c", "ab", "bc", "abc"], "merges": ["b c", "a b"]}
    changes |= {"token_type": np.ones(6, dtype="<i4"), "bos_token_id": 0, "eos_token_id": 0}
    changes |= {"padding_token_id": 0, "unknown_token_id": 0}
    for pre, ids in (("llama-bpe", [5]), ("dbrx", [0, 4])):
        words = read_tokenizer(saved(tmp_path, vocabulary_file(pre=pre, **changes), {}))
        assert words.encode("abc") == ids


@pytest.fixture(scope="module")
def pieces():
    """A SentencePiece model like Llama 2's and Gemma's: pairs of characters, or bytes."""
    written, hard = io.BytesIO(), [text for text in HARD if text.strip()]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*LINES * 20, *hard, *drawn(200)]),
        model_writer=written, model_type="bpe", vocab_size=900, byte_fallback=True,
        character_coverage=0.98, normalization_rule_name="identity", split_digits=True,
        remove_extra_whitespaces=False, allow_whitespace_only_pieces=True, minloglevel=2,
        user_defined_symbols=["<h1>", "</h1>"], max_sentence_length=10000,
    )  # fmt: skip
    return sentencepiece.SentencePieceProcessor(model_proto=written.getvalue())


def metadata_of_pieces(pieces, **changes) -> dict:
    n = range(pieces.get_piece_size())
    types = [
        2 if pieces.is_unknown(i) else 3 if pieces.is_control(i) else 6 if pieces.is_byte(i)
        else 4 if pieces.id_to_piece(i) in ("<h1>", "</h1>") else 1
        for i in n
    ]  # fmt: skip
    fields = {
        "model": "llama",
        "tokens": [pieces.id_to_piece(i) for i in n],
        "scores": np.array([pieces.get_score(i) for i in n], dtype="<f4"),
        "token_type": np.array(types, dtype="<i4"),
        **{"bos_token_id": 1, "eos_token_id": 2, "unknown_token_id": 0},
    }
    return {f"tokenizer.ggml.{field}": value for field, value in (fields | changes).items()}


def without_given(texts) -> list[str]:
    """Texts without <h1>: SentencePiece puts no blank behind one, llama.cpp and we do."""
    return [text for text in texts if "h1>" not in text]


def test_pieces_are_those_of_sentencepiece(pieces, tmp_path):
    ours = read_tokenizer(saved(tmp_path, metadata_of_pieces(pieces), {}))
    n_bytes = 0
    for text in without_given(TEXTS):
        ids = pieces.encode(text)
        assert ours.encode(text) == ids, (text, ours.tokens(text), pieces.encode_as_pieces(text))
        assert ours.decode(ids) == text
        n_bytes += any(map(pieces.is_byte, ids))
    assert n_bytes > 10
    assert ours.tokens("the tower")[0].startswith("␣") and ours.begins
    assert ours.start("a") == [1, *pieces.encode("a")]
    given = ours.tokens("the<h1>the")
    assert given.count("<h1>") == 1 and given[given.index("<h1>") + 1].startswith("␣")


def test_a_text_may_begin_without_a_blank(pieces, tmp_path):
    file = metadata_of_pieces(pieces, add_space_prefix=False, add_bos_token=False)
    ours = read_tokenizer(saved(tmp_path, file, {}))
    assert not ours.begins and ours.tokens("tower")[0][0] == "t"
    assert all(ours.decode(ours.encode(text)) == text for text in TEXTS)


def test_gemmas_merges_are_in_the_order_of_its_ids(pieces, tmp_path):
    wrong = np.zeros(pieces.get_piece_size(), dtype="<f4")
    file = metadata_of_pieces(pieces, scores=wrong, add_space_prefix=True)
    texts = without_given(TEXTS)
    gemma = file | {"general.architecture": "gemma3"}
    ours = read_tokenizer(saved(tmp_path, gemma, {}))
    assert [ours.encode(text) for text in texts] == [pieces.encode(text) for text in texts]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scores": None}, "holds a value of the wrong kind or size (KeyError"),
        ({"scores": np.zeros(3, dtype="<f4")}, "of the wrong kind or size (IndexError"),
        ({"tokens": ["a"] * 900}, "of its 900 tokens 1 differ"),
        ({"token_type": np.zeros(3, dtype="<i4")}, "and 3 have a type, but all must"),
        ({"unknown_token_id": 10**6}, "of the wrong kind or size (IndexError"),
    ],
)
def test_pieces_that_contradict_each_other_are_refused(changes, message, pieces, tmp_path):
    with pytest.raises(ValueError, match=re.escape(message)):
        read_tokenizer(saved(tmp_path, metadata_of_pieces(pieces, **changes), {}))


def test_a_token_without_end_costs_no_time(pieces, tmp_path):
    tokens = [pieces.id_to_piece(i) for i in range(pieces.get_piece_size())]
    tokens[-1] = "a" * 300_000
    ours = read_tokenizer(saved(tmp_path, metadata_of_pieces(pieces, tokens=tokens), {}))
    assert len(ours.encode("aaaa")) <= 4


def test_every_cut_is_tested():
    known = {"gpt-2", "smollm", "qwen2", "deepseek-r1-qwen", "llama-bpe", "dbrx", "smaug-bpe"}
    assert {*CUTS} == known | {"olmo", "mpt"}
