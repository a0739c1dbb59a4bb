"""Text to ids and back, in three sizes of token: words, characters, byte pairs.

All three tokenizers have the same interface. Their first four ids are special: `<pad>` fills a
batch, `<bos>` begins a sequence, `<eos>` ends it, `<unk>` stands for whatever the vocabulary lacks.
Only ids are special: a text that holds the five characters "<eos>" gives five characters' worth of
tokens, so that nobody can end a sequence by typing.
"""

import operator
import re
from collections import Counter
from collections.abc import Iterable

SPECIAL_TOKENS = ("<pad>", "<bos>", "<eos>", "<unk>")


def words(text: str) -> list[str]:
    """Split a text into words and punctuation marks; only white space is dropped.

    An apostrophe inside a word stays with it: `words("Don't stop…")` is `["Don't", "stop", "…"]`.
    """
    return re.findall(r"\w+(?:['’]\w+)*|[^\w\s]", text)


def encode(text: str, vocabulary: dict[str, int], unk_id: int) -> list[int]:
    """The id of each of `words(text)`; a word that the vocabulary lacks gets `unk_id`."""
    return [vocabulary.get(word, unk_id) for word in words(text)]


def visible(text: str) -> str:
    """A token as a figure shows it: a space as "␣", a line break as "\\n", a lone byte as "⟨c3⟩".

    Lone bytes come as the surrogates that `bytes.decode(errors="surrogateescape")` makes.
    """

    def show(character: str) -> str:
        if "\udc80" <= character <= "\udcff":
            return f"⟨{ord(character) - 0xDC00:02x}⟩"
        if character.isprintable():
            return character.replace(" ", "␣")
        return character.encode("unicode_escape").decode()

    return "".join(show(character) for character in text)


def _checked(text: str) -> str:
    if not isinstance(text, str):
        raise TypeError(f"A text must be a str, got {type(text).__name__}: pass one string.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"The text holds half of a surrogate pair, {text[error.start]!r} at position "
            f"{error.start}, which is no character: remove it."
        ) from None
    return text


def _checked_training(texts: Iterable[str], vocab_size: int | None, smallest: int) -> list[str]:
    if isinstance(texts, str):
        raise TypeError("texts must be a list of strings, got one str: wrap it in a list.")
    texts = [_checked(text) for text in texts]
    if not any(text.strip() for text in texts):
        raise ValueError("texts holds no text to train on: pass at least one that is not blank.")
    if vocab_size is not None and vocab_size < smallest:
        raise ValueError(f"vocab_size must be at least {smallest} here, got {vocab_size}.")
    return texts


class Tokenizer:
    """What the three tokenizers share. `vocabulary` maps each token to its id, in order of id."""

    pad_id, bos_id, eos_id, unk_id = range(4)

    def __init__(self, vocabulary: dict[str, int]):
        if tuple(vocabulary)[:4] != SPECIAL_TOKENS or list(vocabulary.values()) != list(
            range(len(vocabulary))
        ):
            raise ValueError(
                f"A vocabulary must map {', '.join(SPECIAL_TOKENS)} to 0, 1, 2, 3 and its other "
                "tokens to the numbers that follow: make it with .train(texts)."
            )
        self.vocabulary = vocabulary
        self._tokens = list(vocabulary)

    @property
    def vocab_size(self) -> int:
        """How many different tokens there are, the four special ones included."""
        return len(self._tokens)

    def encode(self, text: str, add_special: bool = False) -> list[int]:
        """The ids of a text; with `add_special` between `bos_id` and `eos_id`.

        Raises:
            TypeError: `text` is no string.
            ValueError: `text` holds half of a surrogate pair.
        """
        ids = self._to_ids(_checked(text))
        return [self.bos_id, *ids, self.eos_id] if add_special else ids

    def decode(self, ids: Iterable[int], keep_special: bool = False) -> str:
        """The text of some ids. `<pad>`, `<bos>` and `<eos>` are left out unless `keep_special`.

        Raises:
            ValueError: an id is outside the vocabulary.
        """
        ids = [self._checked_id(id_) for id_ in ids]
        return self._to_text([id_ for id_ in ids if keep_special or id_ not in (0, 1, 2)])

    def tokens(self, text: str) -> list[str]:
        """The tokens of a text, one per id of `encode(text)`, in a form that can be read."""
        return [self.token(id_) for id_ in self.encode(text)]

    def token(self, token_id: int) -> str:
        """The token of one id, in a form that can be read."""
        return visible(self._tokens[self._checked_id(token_id)])

    def _checked_id(self, token_id: int) -> int:
        token_id = operator.index(token_id)
        if not 0 <= token_id < self.vocab_size:
            raise ValueError(
                f"Token id {token_id} is outside the vocabulary of {self.vocab_size} tokens: "
                f"ids go from 0 to {self.vocab_size - 1}."
            )
        return token_id


class WordTokenizer(Tokenizer):
    """One token per word or punctuation mark. A word not seen in training becomes `<unk>`.

    `decode` puts one space between tokens: what spacing the text had is not in the ids.
    """

    split = staticmethod(words)
    separator = " "

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int | None = None):
        """A tokenizer of the texts' most frequent tokens, at most `vocab_size`, by default all.

        Raises:
            TypeError: `texts` is one string, or holds something else than strings.
            ValueError: there is no text, or `vocab_size` has no room beside the special tokens.
        """
        texts = _checked_training(texts, vocab_size, len(SPECIAL_TOKENS) + 1)
        counts = Counter(token for text in texts for token in cls.split(text))
        ranked = sorted(counts, key=lambda token: (-counts[token], token))
        tokens = [*SPECIAL_TOKENS, *ranked][:vocab_size]
        return cls({token: id_ for id_, token in enumerate(tokens)})

    def _to_ids(self, text: str) -> list[int]:
        return [self.vocabulary.get(token, self.unk_id) for token in self.split(text)]

    def _to_text(self, ids: list[int]) -> str:
        return self.separator.join(self._tokens[id_] for id_ in ids)


class CharacterTokenizer(WordTokenizer):
    """One token per character, spaces included. A character not seen in training is `<unk>`."""

    split = staticmethod(list)
    separator = ""


def _byte_characters() -> dict[str, int]:
    """The printable character by which byte-level BPE writes each of the 256 bytes (GPT-2)."""
    same = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in same]
    return {chr(byte): byte for byte in same} | {
        chr(256 + n): byte for n, byte in enumerate(others)
    }


class BytePairTokenizer(Tokenizer):
    """Frequent pieces of words, built from bytes: every text has ids, nothing is `<unk>`.

    Training starts with the 256 bytes and keeps merging the pair of neighbours that is most
    frequent, until the vocabulary is full. `vocabulary` shows the tokens as `tokens` does.

    Source: Sennrich et al. (2016), "Neural Machine Translation of Rare Words with Subword Units".
    Differs: starts from bytes instead of characters, as GPT-2 does.
    """

    def __init__(self, library_tokenizer):
        # Only ids are special: without this, the text "<eos>" would become the id 2.
        library_tokenizer.encode_special_tokens = True
        self._library = library_tokenizer
        byte_of = _byte_characters()
        raw = sorted(library_tokenizer.get_vocab().items(), key=operator.itemgetter(1))
        texts = [bytes(byte_of[c] for c in t).decode(errors="surrogateescape") for t, _ in raw]
        super().__init__({visible(text): id_ for id_, text in enumerate(texts)})
        self._tokens = texts

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int | None = None):
        """Merge the texts' most frequent pairs into a vocabulary of `vocab_size`, by default 1000.

        Short texts run out of pairs before; the vocabulary is smaller then.

        Raises:
            TypeError: `texts` is one string, or holds something else than strings.
            ValueError: there is no text, or `vocab_size` is under 260 (256 bytes, 4 special).
        """
        from tokenizers import Tokenizer as LibraryTokenizer
        from tokenizers import decoders, models, pre_tokenizers, trainers

        texts = _checked_training(texts, vocab_size, 256 + len(SPECIAL_TOKENS))
        library_tokenizer = LibraryTokenizer(models.BPE())
        library_tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        library_tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=vocab_size or 1000,
            special_tokens=list(SPECIAL_TOKENS),
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        library_tokenizer.train_from_iterator(texts, trainer)
        return cls(library_tokenizer)

    def _to_ids(self, text: str) -> list[int]:
        return self._library.encode(text).ids

    def _to_text(self, ids: list[int]) -> str:
        return self._library.decode(ids, skip_special_tokens=False)
