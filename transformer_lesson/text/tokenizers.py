"""Text to ids and back, in three sizes of token: words, characters, byte pairs.

All three tokenizers have the same interface. Their first four ids are special: `<pad>` fills a
batch, `<bos>` begins a sequence, `<eos>` ends it, `<unk>` stands for whatever the vocabulary lacks.
Only ids are special: the text "<eos>" is five ordinary characters, so typing it ends no sequence.
"""

import json
import operator
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import SupportsIndex

SPECIAL_TOKENS = ("<pad>", "<bos>", "<eos>", "<unk>")


def words(text: str) -> list[str]:
    """Split a text into words and punctuation marks; only white space is dropped.

    An apostrophe inside a word stays with it: `words("Don't stop…")` is `["Don't", "stop", "…"]`.
    """
    return re.findall(r"\w+(?:['’]\w+)*|[^\w\s]", text)


LIBRARY_WORDS = r"W+(?:['’]W+)*|[^W\s\x{1c}-\x{1f}]".replace("W", r"[\p{L}\p{N}_]")
"""What `words` finds, as the library `tokenizers` writes it: its \\w and \\s are not Python's."""


def _checked(text: str) -> str:
    if not isinstance(text, str):
        raise TypeError(f"A text must be a str, got {type(text).__name__}: pass one string.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"The text has half of a surrogate pair, {text[error.start]!r}, at position "
            f"{error.start}: remove it, because it is not a character."
        ) from None
    return text


def _checked_training(texts: Iterable[str], vocab_size: int | None, smallest: int) -> list[str]:
    if isinstance(texts, str):
        raise TypeError("texts must be a list of strings, got one str: wrap it in a list.")
    texts = [_checked(text) for text in texts]
    if not any(text.strip() for text in texts):
        raise ValueError("There is no text to train on: pass at least one that is not blank.")
    if vocab_size is not None and vocab_size < smallest:
        raise ValueError(f"vocab_size must be at least {smallest} here, got {vocab_size}.")
    return texts


class Tokenizer:
    """What the three tokenizers share. `vocabulary` maps each token to its id, in order of id."""

    pad_id, bos_id, eos_id, unk_id = range(4)

    def __init__(self, vocabulary: dict[str, int]):
        numbered = list(vocabulary.values()) == list(range(len(vocabulary)))
        if not numbered or tuple(vocabulary)[:4] != SPECIAL_TOKENS:
            raise ValueError(
                f"A vocabulary must start with {', '.join(SPECIAL_TOKENS)} and number its tokens "
                f"0, 1, 2, ...; got {list(vocabulary.items())[:5]}: make it with .train(texts)."
            )
        self.vocabulary = vocabulary
        self._tokens = list(vocabulary)

    @property
    def vocab_size(self) -> int:
        """How many different tokens there are, the four special ones included."""
        return len(self._tokens)

    def encode(self, text: str, add_special: bool = False) -> list[int]:
        """The ids of a text; with `add_special` between `bos_id` and `eos_id`.

        Raises: TypeError for anything but a string, ValueError for half of a surrogate pair, and
        with `add_special` for a tokenizer that lacks one of the two.
        """
        ids = self._to_ids(_checked(text))
        return [self.special_id("bos"), *ids, self.special_id("eos")] if add_special else ids

    def special_id(self, role: str) -> int:
        """The id for a role, "pad", "bos", "eos" or "unk".

        Raises: ValueError where it is `None`, as it may be in other people's tokenizers.
        """
        if (id_ := getattr(self, f"{role}_id")) is None:
            raise ValueError(
                f"This tokenizer has no {role}_id, but one is needed here: say which of its tokens "
                f"serves as {role} when you make it."
            )
        return id_

    def decode(self, ids: Iterable[SupportsIndex], keep_special: bool = False) -> str:
        """The text of a list or tensor of ids; `keep_special` keeps `<pad>`, `<bos>` and `<eos>`.

        Raises: ValueError for an id outside the vocabulary.
        """
        ids = [self._checked_id(id_) for id_ in ids]
        silent = () if keep_special else (self.pad_id, self.bos_id, self.eos_id)
        return self._to_text([id_ for id_ in ids if id_ not in silent])

    def tokens(self, text: str) -> list[str]:
        """The tokens of a text, one per id of `encode(text)`, each written as by `token`."""
        return [self.token(id_) for id_ in self.encode(text)]

    def token(self, token_id: SupportsIndex) -> str:
        """The token of one id as a figure shows it: a space as "␣", a line break as "\\n"."""
        text = self._tokens[self._checked_id(token_id)].replace(" ", "␣")
        return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)

    def to_json(self) -> str:
        """The tokenizer as text that can be stored; `tokenizer_from_json` restores it."""
        return json.dumps({"kind": type(self).__name__, "learned": self._learned()})

    def _checked_id(self, token_id: SupportsIndex) -> int:
        token_id = operator.index(token_id)
        if not 0 <= token_id < self.vocab_size:
            raise ValueError(
                f"Token id {token_id} is outside the vocabulary of {self.vocab_size} tokens: "
                f"ids go from 0 to {self.vocab_size - 1}."
            )
        return token_id


class WordTokenizer(Tokenizer):
    """One token per word or punctuation mark. A word not seen in training becomes `<unk>`.

    `decode` puts one space between tokens: the text's own spacing is not in the ids.
    """

    split = staticmethod(words)
    separator = " "
    pattern = LIBRARY_WORDS

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int | None = None):
        """A tokenizer of the texts' most frequent tokens, at most `vocab_size`, by default all.

        Raises:
            TypeError: `texts` is one string, or holds anything but strings.
            ValueError: there is no text, or `vocab_size` is under 5 (4 special and one more).
        """
        texts = _checked_training(texts, vocab_size, len(SPECIAL_TOKENS) + 1)
        counts = Counter(token for text in texts for token in cls.split(text))
        ranked = sorted(counts, key=lambda token: (-counts[token], token))
        return cls._from_learned([*SPECIAL_TOKENS, *ranked][:vocab_size])

    @classmethod
    def _from_learned(cls, tokens: list[str]):
        return cls({token: id_ for id_, token in enumerate(tokens)})

    def as_library(self):
        """The same tokenizer in the library `tokenizers`, whose files other programs read."""
        import tokenizers

        library_tokenizer = tokenizers.Tokenizer(
            tokenizers.models.WordLevel(self.vocabulary, "<unk>")
        )
        pattern = tokenizers.Regex(self.pattern)
        library_tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Split(
            pattern, "removed", invert=True
        )
        if not self.separator:
            library_tokenizer.decoder = tokenizers.decoders.Fuse()
        return library_tokenizer

    def _learned(self) -> list[str]:
        return self._tokens

    def _to_ids(self, text: str) -> list[int]:
        return [self.vocabulary.get(token, self.unk_id) for token in self.split(text)]

    def _to_text(self, ids: list[int]) -> str:
        return self.separator.join(self._tokens[id_] for id_ in ids)


class CharacterTokenizer(WordTokenizer):
    """One token per character, spaces included. A character not seen in training is `<unk>`."""

    split = staticmethod(list)
    separator = ""
    pattern = r"[\s\S]"


@cache
def byte_characters() -> Mapping[str, int]:
    """The printable character by which byte-level BPE writes each of the 256 bytes (GPT-2)."""
    same = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in same]
    named = [chr(byte) for byte in same] + [chr(256 + n) for n in range(len(others))]
    return MappingProxyType(dict(zip(named, same + others, strict=True)))


def _byte_level(*vocabulary_and_merges):
    import tokenizers

    library_tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(*vocabulary_and_merges))
    library_tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    library_tokenizer.decoder = tokenizers.decoders.ByteLevel()
    return library_tokenizer


class BytePairTokenizer(Tokenizer):
    """Frequent pieces of words, built from bytes: every text has ids, nothing is `<unk>`.

    Training starts with the 256 bytes and keeps merging the pair of neighbors that is most
    frequent, until the vocabulary is full. A token that holds only some of a character's bytes
    is written like "\\xc3".

    Source: Sennrich et al. (2016), "Neural Machine Translation of Rare Words with Subword Units".
    Differs: starts from bytes instead of characters, as GPT-2 does.
    """

    def __init__(self, library_tokenizer):
        # Only ids are special: without this, the text "<eos>" would become the id 2.
        library_tokenizer.encode_special_tokens = True
        self._library = library_tokenizer
        ids, byte_of = library_tokenizer.get_vocab(), byte_characters()
        tokens = [bytes(byte_of[c] for c in token) for token in sorted(ids, key=ids.get)]
        super().__init__({t.decode(errors="backslashreplace"): i for i, t in enumerate(tokens)})

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int | None = None):
        """Merge until there are `vocab_size` tokens (by default 1000) or no more pairs to merge.

        Raises: as `WordTokenizer.train`; `vocab_size` must be at least 260 (256 bytes, 4 special).
        """
        from tokenizers.trainers import BpeTrainer

        texts = _checked_training(texts, vocab_size, 256 + len(SPECIAL_TOKENS))
        library_tokenizer = _byte_level()
        trainer = BpeTrainer(
            vocab_size=vocab_size or 1000,
            special_tokens=list(SPECIAL_TOKENS),
            initial_alphabet=list(byte_characters()),
            show_progress=False,
        )
        library_tokenizer.train_from_iterator(texts, trainer)
        return cls(library_tokenizer)

    @classmethod
    def _from_learned(cls, merges: list[str]):
        pairs = [tuple(merge.split(" ")) for merge in merges]
        pieces = [*SPECIAL_TOKENS, *byte_characters(), *map("".join, pairs)]
        vocabulary = {piece: id_ for id_, piece in enumerate(dict.fromkeys(pieces))}
        for pair in pairs:
            if len(pair) != 2 or not vocabulary.keys() >= set(pair):
                raise ValueError(f"A merge must join two known pieces, got {' '.join(pair)!r}.")
        return cls(_byte_level(vocabulary, pairs))

    def as_library(self):
        """A copy of the library's tokenizer inside this one."""
        return type(self._library).from_str(self._library.to_str())

    def _learned(self) -> list[str]:
        return [" ".join(pair) for pair in json.loads(self._library.to_str())["model"]["merges"]]

    def _to_ids(self, text: str) -> list[int]:
        return self._library.encode(text).ids

    def _to_text(self, ids: list[int]) -> str:
        return self._library.decode(ids, skip_special_tokens=False)


def tokenizer_from_json(text: str) -> Tokenizer:
    """The tokenizer that wrote this text with `to_json`.

    Raises: ValueError for any other text; the message says what is wrong with it.
    """
    try:
        parts = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"A tokenizer is stored as JSON, and this is not JSON: {error}.") from None
    kinds = {kind.__name__: kind for kind in (WordTokenizer, CharacterTokenizer, BytePairTokenizer)}
    kind = parts.get("kind") if isinstance(parts, dict) else None
    if kind not in list(kinds):
        raise ValueError(f"The kind of a tokenizer is one of {', '.join(kinds)}, got {kind!r}.")
    learned = parts.get("learned")
    if not isinstance(learned, list) or {type(token) for token in learned} - {str}:
        raise ValueError('What the tokenizer has "learned" must be a list of strings.')
    _checked("".join(learned))
    return kinds[kind]._from_learned(learned)
