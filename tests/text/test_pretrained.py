"""Other people's tokenizers keep their ids, show their tokens as ours do, and read no commands."""

import json
import re

import pytest
import tokenizers
from tokenizers import models, pre_tokenizers, processors

from tests.parity import small_config
from transformer_lesson import EncoderDecoderTransformer, EncoderOnlyTransformer
from transformer_lesson.generation import translate
from transformer_lesson.text.batches import epoch
from transformer_lesson.text.pairs import Pair
from transformer_lesson.text.pretrained import PretrainedTokenizer, chat_prompt
from transformer_lesson.text.search import sentence_vectors

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "##s", "<", ">", "[", "]", "sep"]
ROLES = {"bos": "[CLS]", "eos": "[SEP]", "pad": "[PAD]", "unk": "[UNK]"}
MARKS = ["<|im_start|>", "<|im_end|>"]


def pieces_file(tmp_path):
    """A `tokenizer.json` like BERT's, which pads, cuts and adds marks by itself."""
    vocabulary = {word: id_ for id_, word in enumerate(WORDS)}
    made = tokenizers.Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = tokenizers.decoders.WordPiece()
    made.add_special_tokens(list(ROLES.values()))
    around = [("[CLS]", 2), ("[SEP]", 3)]
    made.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", None, around)
    made.enable_padding(length=50), made.enable_truncation(4)
    path = tmp_path / "tokenizer.json"
    made.save(str(path))
    return path


def byte_pairs(*merges: tuple[str, str]) -> tokenizers.Tokenizer:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    pieces = [*MARKS, *alphabet, *map("".join, merges)]
    made = tokenizers.Tokenizer(models.BPE({p: i for i, p in enumerate(pieces)}, list(merges)))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    made.add_special_tokens(MARKS)
    return made


def test_a_file_of_word_pieces(tmp_path):
    words = PretrainedTokenizer.from_file(pieces_file(tmp_path), **ROLES)
    assert words.encode("the cats the cats") == [4, 5, 6, 4, 5, 6]  # neither cut nor padded
    assert words.encode("cat", add_special=True) == [2, 5, 3]
    assert words.tokens("the cats dog") == ["the", "cat", "##s", "[UNK]"]
    assert (words.pad_id, words.unk_id, words.bos_id, words.eos_id) == (0, 1, 2, 3)
    assert words.vocab_size == len(WORDS) and words.vocabulary["sep"] == 11
    assert words.decode([2, 4, 5, 6, 3]) == "the cats"
    assert words.decode([2, 4, 3], keep_special=True) == "[CLS] the [SEP]"


def test_a_typed_mark_is_no_mark(tmp_path):
    words = PretrainedTokenizer.from_file(pieces_file(tmp_path), **ROLES)
    assert words.encode("[sep] [SEP]")[:3] == [9, 11, 10] and 3 not in words.encode("[SEP]")
    chat = PretrainedTokenizer(byte_pairs(), {"eos": 1})
    ids = chat_prompt(chat, [("user", "a<|im_end|>b")])
    assert [ids.count(0), ids.count(1)] == [2, 1]


NO_MESSAGES = [
    ([("user", "a"), {"user": "b"}], "Message 1 is {'user': 'b'}, but it must be a pair"),
    ([{"role": "user", "content": "a"}], "Message 0 is {'role': 'user', 'content': 'a'}, but it"),
    ([("user", "a", "b")], "Message 0 is ('user', 'a', 'b'), but it must be a pair"),
    ([("user", None)], "Message 0 is ('user', None), but it must be a pair"),
    (["hi"], "Message 0 is 'hi', but it must be a pair"),
    ("Hello", "messages is 'Hello', but it must be a list of pairs"),
    ({"user": "a"}, "messages is {'user': 'a'}, but it must be a list of pairs"),
    (7, "messages is 7, but it must be a list of pairs"),
]


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda words: words.encode("a", add_special=True), "no bos_id, but one is needed here"),
        (lambda words: epoch([Pair("a", "b")], words, 1), "This tokenizer has no eos_id"),
        (
            lambda words: translate(EncoderDecoderTransformer(small_config()), words, ["a"]),
            "This tokenizer has no eos_id",
        ),
        (
            lambda words: sentence_vectors(EncoderOnlyTransformer(small_config()), words, ["a"]),
            "This tokenizer has no pad_id",
        ),
        (lambda words: chat_prompt(words, [("user", "a"), ("you", "b")]), "Message 1 .*, user, "),
        *(
            (lambda words, bad=bad: chat_prompt(words, bad), f"{re.escape(message)}.*, for example")
            for bad, message in NO_MESSAGES
        ),
        (lambda words: words.to_json(), "kept in the file that it came from"),
    ],
)
def test_what_a_tokenizer_has_no_token_or_form_for_is_refused(use, message, unchecked):
    with pytest.raises(ValueError, match=message):
        use(PretrainedTokenizer(byte_pairs(), {}))


def test_tokens_are_shown_as_those_of_the_course():
    chat = PretrainedTokenizer(byte_pairs(("Ġ", "t"), ("Ã", "¼")), {})
    assert chat.tokens("ü to\n") == ["ü", "␣t", "o", "\\n"]
    assert chat.token(0) == "<|im_start|>"
    assert chat.tokens("é") == ["\\xc3", "\\xa9"]


def test_what_is_no_tokenizer_is_refused(tmp_path):
    path = pieces_file(tmp_path)
    whole, words = path.read_text(), PretrainedTokenizer.from_file(path, **ROLES)
    with pytest.raises(ValueError, match=r"no token '<\|im_start\|>', which ChatML needs"):
        chat_prompt(words, [("user", "the cat")])
    with pytest.raises(ValueError, match=r"tokenizer.json has no token '<s>' for bos: check the"):
        PretrainedTokenizer.from_file(path, bos="<s>")
    for text in ("", "{}", whole[:100]):
        path.write_text(text)
        with pytest.raises(ValueError, match="tokenizer.json is not a tokenizer, or only part of"):
            PretrainedTokenizer.from_file(path)
    with pytest.raises(ValueError, match="nothing.json is not a tokenizer"):
        PretrainedTokenizer.from_file(tmp_path / "nothing.json")
    facts = json.loads(whole)
    facts["model"]["vocab"]["sep"] = 99
    path.write_text(json.dumps(facts))
    with pytest.raises(ValueError, match=r"ids must be 0, 1, 2, \.\.\.: get its file again"):
        PretrainedTokenizer.from_file(path)
    with pytest.raises(ValueError, match="Token id 300 is outside the vocabulary"):
        PretrainedTokenizer(byte_pairs(), {"eos": 300})
