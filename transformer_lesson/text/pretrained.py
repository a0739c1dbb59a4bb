"""Tokenizers that come with other people's models, and the form in which these models chat."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path

import tokenizers

from transformer_lesson.files import printable
from transformer_lesson.text.tokenizers import Tokenizer, byte_characters

BLANK = "\u2581"
"""What SentencePiece writes for a space."""
MARKS, SPEAKERS = ("<|im_start|>", "<|im_end|>"), ("system", "user", "assistant")


class PretrainedTokenizer(Tokenizer):
    """Somebody else's tokenizer with the interface of the course's own.

    Here too only ids are special: the text "<|im_end|>" is ordinary characters, so nobody can end a
    message by typing it. `vocabulary` has all tokens' ids, the special ones included.

    Args:
        library_tokenizer: a tokenizer of the package `tokenizers`.
        ids: which id begins a text ("bos"), ends it ("eos"), fills a batch ("pad") and replaces
            what the vocabulary lacks ("unk"); `None` for those that a model does not have.
        begins: whether the model was trained on texts that begin with `<bos>`; see `start`.
        chat_template: the form in which the model chats; see `chat_templates.template_prompt`.

    Raises:
        ValueError: an id outside the vocabulary.
    """

    def __init__(
        self,
        library_tokenizer: tokenizers.Tokenizer,
        ids: Mapping[str, int | None],
        begins: bool = False,
        chat_template: str | None = None,
    ):
        self.chat_template = chat_template
        library_tokenizer.encode_special_tokens = True
        self._library = library_tokenizer
        id_of = library_tokenizer.get_vocab()
        self._tokens = sorted(id_of, key=id_of.get)
        self.vocabulary = {token: id_of[token] for token in self._tokens}
        if list(self.vocabulary.values()) != list(range(len(self._tokens))):
            raise ValueError("The tokenizer's ids must be 0, 1, 2, ...: get its file again.")
        ids = {role: id_ if id_ is None else self._checked_id(id_) for role, id_ in ids.items()}
        self.bos_id, self.eos_id = ids.get("bos"), ids.get("eos")
        self.pad_id, self.unk_id = ids.get("pad"), ids.get("unk")
        self.begins = begins and self.bos_id is not None
        decoder = library_tokenizer.decoder
        if isinstance(decoder, tokenizers.decoders.ByteLevel):
            added = library_tokenizer.get_added_tokens_decoder().values()
            special = {token.content for token in added}
            self._tokens = [t if t in special else _shown(t) for t in self._tokens]
        elif decoder is not None and BLANK.encode() in decoder.__getstate__():
            self._tokens = [token.replace(BLANK, " ") for token in self._tokens]

    @classmethod
    def from_file(cls, path: str | Path, **names: str):
        """Return the tokenizer of a `tokenizer.json`.

        Args:
            path: the file.
            names: the special tokens, as in `bos="[CLS]", eos="[SEP]", pad="[PAD]"`.

        Raises:
            ValueError: no such file, something else in it, or a name that it lacks.
        """
        try:
            library_tokenizer = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises no other kind
            raise ValueError(
                f"{path} is not a tokenizer, or only part of one ({error})."
            ) from error
        library_tokenizer.no_padding(), library_tokenizer.no_truncation()
        ids = {role: library_tokenizer.token_to_id(name) for role, name in names.items()}
        for role, name in names.items():
            if ids[role] is None:
                raise ValueError(f"{path} has no token {name!r} for {role}: check the file.")
        return cls(library_tokenizer, ids, chat_template=_template_beside(Path(path)))

    @property
    def marks(self) -> dict[str, tokenizers.AddedToken]:
        """The special tokens by their texts, which no text can spell."""
        added = self._library.get_added_tokens_decoder().values()
        return {token.content: token for token in added if token.special}

    @property
    def mark_of_role(self) -> dict[str, str]:
        """The texts of the tokens that begin and end a text and fill a batch, for templates."""
        ids = {"bos": self.bos_id, "eos": self.eos_id, "pad": self.pad_id, "unk": self.unk_id}
        token = self._library.id_to_token
        return {f"{role}_token": token(id_) for role, id_ in ids.items() if id_ is not None}

    def to_json(self) -> str:
        """Raise a `ValueError`: it is kept in the file that it was read from."""
        raise ValueError(
            "A pretrained tokenizer is kept in the file that it came from: save the model alone."
        )

    def start(self, text: str) -> list[int]:
        """The ids of a text for the model to go on with: after `<bos>`, if it is used to that."""
        return [*([self.bos_id] if self.begins else []), *self.encode(text)]

    def _to_ids(self, text: str) -> list[int]:
        return self._library.encode(text, add_special_tokens=False).ids

    def _to_text(self, ids: list[int]) -> str:
        return self._library.decode(ids, skip_special_tokens=False)


def _template_beside(path: Path) -> str | None:
    """Return the chat template in the files of a tokenizer's directory, if there is one.

    Newer ones are in chat_template.jinja, older ones in tokenizer_config.json; of several the one
    called "default" is taken.
    """
    alone, config = path.with_name("chat_template.jinja"), path.with_name("tokenizer_config.json")
    if alone.is_file():
        return alone.read_text(encoding="utf-8", errors="replace")
    try:
        facts = json.loads(config.read_text(encoding="utf-8"))
        template = facts.get("chat_template")
        if isinstance(template, list):
            template = {entry["name"]: entry["template"] for entry in template}.get("default")
    except (OSError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        return None  # it is for the library, which may find it damaged
    return template if isinstance(template, str) else None


def _shown(token: str) -> str:
    """Return the text of a token that is written in bytes."""
    byte_of = byte_characters()
    return bytes(byte_of[c] for c in token).decode(errors="backslashreplace")


def checked_messages(messages: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the messages of a conversation.

    Raises:
        ValueError: something else than a list of pairs (role, text), or another role.
    """
    if isinstance(messages, str | Mapping) or not isinstance(messages, Iterable):
        raise ValueError(
            f"messages is {printable(repr(messages), 60)}, but it must be a list of pairs "
            "(role, text): pass [('user', 'Hello')], for example."
        )
    messages = list(messages)
    for number, message in enumerate(messages):
        shown = f"Message {number} is {printable(repr(message), 60)}, but"
        if not isinstance(message, tuple | list) or [*map(type, message)] != [str, str]:
            raise ValueError(
                f"{shown} it must be a pair (role, text): write ('user', 'Hello'), for example."
            )
        if message[0] not in SPEAKERS:
            raise ValueError(
                f"{shown} its role must be one of {', '.join(SPEAKERS)}: change {message[0]!r}."
            )
    return messages


def _of_a_chat(function: Callable) -> Callable:
    """Refuse a tokenizer without ChatML's marks, and messages of another form, by a sentence."""

    @wraps(function)
    def checked(tokenizer: Tokenizer, messages: Sequence[tuple[str, str]]) -> list[int]:
        """Check both, then call."""
        for mark in MARKS:
            if mark not in tokenizer.vocabulary:
                raise ValueError(
                    f"The tokenizer has no token {mark!r}, which ChatML needs: use the tokenizer "
                    "of a model that was trained on ChatML, such as SmolLM2."
                )
        return function(tokenizer, checked_messages(messages))

    return checked


@_of_a_chat
def chat_prompt(tokenizer: Tokenizer, messages: Sequence[tuple[str, str]]) -> list[int]:
    r"""Return the ids of a conversation up to where the assistant begins to write.

    The form is ChatML, which SmolLM2 was trained on. Each message is
    `<|im_start|>role\ntext<|im_end|>\n`, the two marks as one id each.

    Args:
        tokenizer: one whose vocabulary has both marks.
        messages: pairs (role, text); the roles are system, user and assistant.

    Raises:
        ValueError: a tokenizer without the marks, a message that is no such pair, or another role.
    """
    start, end = (tokenizer.vocabulary[mark] for mark in ("<|im_start|>", "<|im_end|>"))
    line_break = tokenizer.encode("\n")
    ids = []
    for role, text in messages:
        ids += [start, *tokenizer.encode(f"{role}\n{text}"), end, *line_break]
    return ids + [start, *tokenizer.encode("assistant\n")]
