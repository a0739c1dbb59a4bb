"""One text as words, characters and byte pairs, one below the other."""

from functools import cache

import ipywidgets

from transformer_lesson.explorables.base import Explorable, Rendering, sendable, sentence
from transformer_lesson.explorables.canvas import TINTS, Canvas, drawn_width
from transformer_lesson.figures.plots import COLORS
from transformer_lesson.text import menus
from transformer_lesson.text.tokenizers import (
    BytePairTokenizer,
    CharacterTokenizer,
    Tokenizer,
    WordTokenizer,
)

BPE_SIZES = (300, 500, 1000, 2000)
MAX_CHARACTERS = 150
WIDTH, ROW = 860, 46


@cache
def trained() -> dict[str | int, Tokenizer]:
    """The tokenizers, trained on JupyterLab's English menus; byte pairs by vocabulary size."""
    texts = [pair.source for pair in menus.pairs()]
    pieces = {size: BytePairTokenizer.train(texts, size) for size in BPE_SIZES}
    plain = {"words": WordTokenizer, "characters": CharacterTokenizer}
    return {name: kind.train(texts) for name, kind in plain.items()} | pieces


class TokenizerExplorer(Explorable):
    """Type a text and see its tokens and their ids in three tokenizers.

    Args:
        text: at most `MAX_CHARACTERS` characters are drawn.
        bpe_size: vocabulary size of the byte-pair tokenizer, one of `BPE_SIZES`.
    """

    def __init__(self, text: str = "Restart the unbelievable kernel…", bpe_size: int = 1000):
        field = ipywidgets.Text(sendable(text), description="text", continuous_update=False)
        field.layout.width = "32em"
        sizes = ipywidgets.SelectionSlider(
            options=BPE_SIZES, value=bpe_size, description="byte-pair vocabulary"
        )
        sizes.layout.width = "26em"
        super().__init__({"text": field, "bpe_size": sizes})

    def render(self) -> Rendering:
        return render_tokens(**self.values)


def render_tokens(text: str, bpe_size: int) -> Rendering:
    """Draw the tokens of a text with their ids, for words, characters and byte pairs.

    Args:
        text: anything; a blank or too long one gives a sentence that says what to change.
        bpe_size: one of `BPE_SIZES`.
    """
    text = sendable(text)
    if not text.strip():
        return sentence("There is nothing to split: type a few words and press Enter.")
    if len(text) > MAX_CHARACTERS:
        return sentence(
            f"This text has {len(text):,} characters and the picture has room for "
            f"{MAX_CHARACTERS}: shorten it and press Enter."
        )
    kinds = {"words": "words", "characters": "characters", "byte pairs": bpe_size}
    tokens = {name: _pieces(trained()[key], text) for name, key in kinds.items()}
    counts = ", ".join(f"{len(pieces)} as {name}" for name, pieces in tokens.items())
    title = f"Tokens of the same text: {counts}"
    headings = {
        name: f"{name}: {len(pieces)} tokens, {_unknown(pieces)} unknown, vocabulary "
        f"{trained()[kinds[name]].vocab_size:,}"
        for name, pieces in tokens.items()
    }
    facts = "; ".join(f"{headings[name]}: {_listed(tokens[name])}" for name in kinds)
    return Rendering(_draw(title, headings, tokens), f"{title}. {facts}.")


def _pieces(tokenizer: Tokenizer, text: str) -> list[tuple[str, int]]:
    """The tokens of a text with their ids; an unknown one as it was typed."""
    shown = zip(tokenizer.tokens(text), tokenizer.encode(text), strict=True)
    if isinstance(tokenizer, BytePairTokenizer):
        return list(shown)
    typed = tokenizer.split(text)
    unknown = tokenizer.unk_id
    return [
        (raw if id_ == unknown else token, id_)
        for (token, id_), raw in zip(shown, typed, strict=True)
    ]


def _caption(id_: int) -> str:
    return f"unk {id_}" if id_ == Tokenizer.unk_id else str(id_)


def _listed(pieces: list[tuple[str, int]]) -> str:
    """The first twelve tokens in words."""
    first = ", ".join(f"{piece} {_caption(id_)}" for piece, id_ in pieces[:12])
    return first + (f" and {len(pieces) - 12} more" if len(pieces) > 12 else "")


def _unknown(pieces: list[tuple[str, int]]) -> int:
    return sum(id_ == Tokenizer.unk_id for _, id_ in pieces)


def _draw(title: str, headings: dict[str, str], tokens: dict[str, list[tuple[str, int]]]) -> bytes:
    placed = {name: _places(pieces) for name, pieces in tokens.items()}
    height = 40 + sum(places[-1][1] + ROW + 34 for places in placed.values())
    canvas, top = Canvas(title, WIDTH, height), 40
    for name, pieces in tokens.items():
        canvas.text(10, top + 10, headings[name], 12, anchor="lm")
        for i, ((piece, id_), (x, y, width)) in enumerate(zip(pieces, placed[name], strict=True)):
            y += top + 22
            unknown = id_ == Tokenizer.unk_id
            fill, edge = ("white", COLORS[1]) if unknown else (TINTS[i % 3], "white")
            canvas.box(x, y, width, ROW - 6, fill, edge, line=2)
            canvas.text(x + width / 2, y + 12, piece, 13, width=width)
            canvas.text(x + width / 2, y + 29, _caption(id_), 10)
        top += placed[name][-1][1] + ROW + 34
    return canvas.png()


def _places(pieces: list[tuple[str, int]]) -> list[tuple[int, int, int]]:
    """The x, y and width of each token's box, row below row as words on a page."""
    places, x, y = [], 10, 0
    for piece, id_ in pieces:
        wide = max(drawn_width(piece, 13), drawn_width(_caption(id_), 10))
        width = min(WIDTH - 20, round(wide) + 10)
        if x + width > WIDTH - 10:
            x, y = 10, y + ROW
        places.append((x, y, width))
        x += width
    return places
