"""The tokenizer in a GGUF file's metadata: byte pairs, or SentencePiece's pairs of characters.

There are two kinds, by the names that llama.cpp has for them:

- "gpt2": bytes are merged in pairs (lesson 01). First a regular expression cuts the text, and each
  model family has its own; the file only names it ("pre").
- "llama": characters are merged in pairs, over the whole text, with each blank as a visible "▁".
  The file lists no merges: a token that two others make is one, the best score first. A character
  that no token has becomes its bytes, `<0xE2>` and so on.

Source: llama.cpp's src/llama-vocab.cpp; transformers' convert_slow_tokenizer.py, for the merges.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers

from transformer_lesson.checkpoints.gguf import read_gguf
from transformer_lesson.checkpoints.untrusted import readable_errors
from transformer_lesson.files import printable
from transformer_lesson.text.pretrained import BLANK, PretrainedTokenizer

SPECIAL, GIVEN, BYTE = 3, 4, 6
"""What kinds there are. No text can spell a special token, such as <|im_end|>; a given one, such as
<h1>, is found in a text before anything is merged; a byte one stands for one byte."""
LONGEST = 1000  # characters of a token that is cut into pairs; real ones have under 100
APOSTROPHES, REST = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
)


class Cut(NamedTuple):
    """How a family cuts a text before bytes are merged.

    Args:
        pattern: what a piece is; "" for GPT-2's own.
        digits: whether every digit is a piece, before all else.
        composed: whether accents are first joined to their letters (NFC).
        whole: whether a piece that is a token needs no merges.
        begins: whether a text begins with `<bos>`, if the file does not say.
    """

    pattern: str = ""
    digits: bool = False
    composed: bool = False
    whole: bool = False
    begins: bool = False


THREE_DIGITS, ONE_DIGIT = APOSTROPHES + r"\p{N}{1,3}" + REST, APOSTROPHES + r"\p{N}" + REST
CUTS = {
    "gpt-2": Cut(),
    "smollm": Cut(digits=True),
    "qwen2": Cut(ONE_DIGIT, composed=True),
    "deepseek-r1-qwen": Cut(ONE_DIGIT),
    "llama-bpe": Cut(THREE_DIGITS, whole=True, begins=True),
    "smaug-bpe": Cut(THREE_DIGITS),
    "dbrx": Cut(THREE_DIGITS),
    "olmo": Cut(composed=True),
    "mpt": Cut(composed=True),
}
"""The families' cuts, by llama.cpp's names; Llama 3 is "llama-bpe", OLMo 2 and Phi-4 are "dbrx".

GPT-NeoX and Pythia are "olmo", in older files "mpt": models with their tokenizer, which llama.cpp's
converter knows by what it makes of one text.
"""
PAIRS, PIECES = "gpt2", "llama"


def read_tokenizer(path: str | Path) -> PretrainedTokenizer:
    """Return the tokenizer in a GGUF file's metadata, with the form in which its model chats.

    Raises:
        ValueError: a damaged file, another kind of tokenizer, or one that contradicts itself.

    Differs: `transformers` reads SmolLM2's file without splitting numbers into digits. llama.cpp
        does not compose accents for Qwen and Pythia, whose own tokenizers do. Where a text begins
        with a blank of its own, the text behind a given token does, too, as in llama.cpp;
        SentencePiece puts it only at the beginning.
    """
    metadata = read_gguf(path).metadata
    with readable_errors(f"the metadata of {path}"):
        try:
            return _tokenizer(metadata)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error


def require_known(metadata: Mapping[str, Any]) -> None:
    """Refuse a tokenizer of another kind, by its name.

    Raises:
        ValueError: it is neither of the two kinds, or cuts a text in a way that is not listed.
    """
    kind, pre = (metadata.get(f"tokenizer.ggml.{field}") for field in ("model", "pre"))
    if kind == PIECES or (kind == PAIRS and isinstance(pre, str) and pre in CUTS):
        return
    if kind == PAIRS:
        raise ValueError(
            f"its tokenizer cuts a text as {printable(repr(pre), 60)} does, but only "
            f"{', '.join(CUTS)} are read."
        )
    raise ValueError(
        f"its tokenizer is of the kind {printable(repr(kind), 60)}, but only {PAIRS!r} and "
        f"{PIECES!r} are read."
    )


def _tokenizer(metadata: Mapping[str, Any]) -> PretrainedTokenizer:
    require_known(metadata)
    fact = {key.removeprefix("tokenizer.ggml."): value for key, value in metadata.items()}
    tokens, types = fact["tokens"], [int(kind) for kind in fact["token_type"]]
    names = {"bos": "bos", "eos": "eos", "pad": "padding", "unk": "unknown"}
    ids = {role: fact.get(f"{name}_token_id") for role, name in names.items()}
    if fact["model"] == PAIRS:
        cut = CUTS[fact["pre"]]
        tokenizer, begins = _byte_pairs(tokens, types, fact["merges"], cut), cut.begins
    else:
        gemma = str(metadata.get("general.architecture", "")).startswith("gemma")
        tokenizer = _characters(tokens, types, fact, gemma)
        begins = True
    _add(tokenizer, tokens, types, blanks=fact["model"] == PAIRS)
    template = metadata.get("tokenizer.chat_template")
    return PretrainedTokenizer(
        tokenizer,
        ids,
        begins=bool(fact.get("add_bos_token", begins)),
        chat_template=template if isinstance(template, str) else None,
    )


def _add(
    tokenizer: tokenizers.Tokenizer, tokens: list[str], types: list[int], blanks: bool
) -> None:
    """Mark the special tokens, and those that are found before anything is merged.

    Args:
        blanks: whether a run of blanks is found like that, as in Pythia. SentencePiece merges it.
    """
    of_kind = {
        kind: [
            AddedToken(token, normalized=False)
            for token, its in zip(tokens, types, strict=True)
            if its == kind and (kind == SPECIAL or blanks or token.strip(" "))
        ]
        for kind in (SPECIAL, GIVEN)
    }
    tokenizer.add_special_tokens(of_kind[SPECIAL])
    tokenizer.add_tokens(of_kind[GIVEN])


def _numbered(tokens: list[str], types: list[int]) -> dict[str, int]:
    """Return each token's id.

    Raises:
        ValueError: a token appears twice, or has no type.
    """
    vocabulary = {token: id_ for id_, token in enumerate(tokens)}
    if len(vocabulary) < len(tokens) or len(types) != len(tokens):
        raise ValueError(
            f"of its {len(tokens):,} tokens {len(vocabulary):,} differ and {len(types):,} have a "
            "type, but all must: get the file again."
        )
    return vocabulary


def _byte_pairs(
    tokens: list[str], types: list[int], merges: list[str], cut: Cut
) -> tokenizers.Tokenizer:
    """Return GPT-2's pairs of bytes, merged within each piece that is cut."""
    vocabulary = _numbered(tokens, types)
    pairs = [tuple(merge.split(" ")) for merge in merges]
    for pair in pairs:
        if len(pair) != 2 or not vocabulary.keys() >= {*pair, "".join(pair)}:
            raise ValueError(
                f"it merges {printable(' '.join(pair), 80)!r}, but a merge must make a token of "
                "two: get the file again."
            )
    tokenizer = tokenizers.Tokenizer(models.BPE(vocabulary, pairs, ignore_merges=cut.whole))
    steps = [pre_tokenizers.Digits(individual_digits=True)] if cut.digits else []
    if cut.pattern:
        steps.append(pre_tokenizers.Split(Regex(cut.pattern), "isolated"))
    steps.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not cut.pattern))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps)
    if cut.composed:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _characters(
    tokens: list[str], types: list[int], fact: Mapping[str, Any], gemma: bool
) -> tokenizers.Tokenizer:
    """Return SentencePiece's pairs of characters, merged over the whole text.

    Gemma's tokens are in the order of its merges; of others, scores say which merge comes first.
    """
    tokens = [BLANK * len(t) if len(t) > 1 and not t.strip(" ") else t for t in tokens]
    vocabulary = _numbered(tokens, types)
    order = range(len(tokens))
    if not gemma:
        scores = [float(score) for score in fact["scores"]]
        order = sorted(order, key=lambda id_: -scores[id_])
    unknown = fact.get("unknown_token_id")
    unknown = None if unknown is None else tokens[unknown]
    merges = list(_merges(tokens, types, order))
    parts = {"fuse_unk": True, "unk_token": unknown, "byte_fallback": True}
    tokenizer = tokenizers.Tokenizer(models.BPE(vocabulary, merges, **parts))
    steps = [normalizers.Replace(" ", BLANK)]
    back = [decoders.Replace(BLANK, " "), decoders.ByteFallback(), decoders.Fuse()]
    if fact.get("add_space_prefix", not gemma):  # every text begins as a word does, with a blank
        steps.insert(0, normalizers.Prepend(BLANK))
        back.append(decoders.Strip(" ", 1, 0))
    tokenizer.normalizer, tokenizer.decoder = normalizers.Sequence(steps), decoders.Sequence(back)
    return tokenizer


def _merges(tokens: list[str], types: list[int], order: Iterable[int]) -> Iterable[tuple[str, str]]:
    """Return the pairs of tokens that make a token, in an order of these."""
    parts = {t for t, kind in zip(tokens, types, strict=True) if kind not in (SPECIAL, BYTE)}
    for token in (tokens[id_] for id_ in order):
        if token in parts and len(token) <= LONGEST:
            for cut in range(len(token) - 1, 0, -1):
                if token[:cut] in parts and token[cut:] in parts:
                    yield token[:cut], token[cut:]
