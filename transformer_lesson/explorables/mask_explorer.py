"""The masks of a typed batch, each with its shape, and how they broadcast into one."""

from functools import reduce
from operator import and_

import ipywidgets
import torch
from jaxtyping import Bool
from torch import Tensor

from transformer_lesson.explorables.base import Explorable, Rendering, sendable
from transformer_lesson.explorables.base import sentence as say
from transformer_lesson.explorables.canvas import TINTS, Canvas
from transformer_lesson.model.masks import causal_mask, padding_mask
from transformer_lesson.text import pad_batch
from transformer_lesson.text.tokenizers import words

BATCH = "Close all tabs\nYou have unsaved changes.\nUndo"
MAX_SENTENCES, MAX_TOKENS = 5, 10
PAD = "<pad>"
LEFT, TOP, ROW, SIDE = 90, 84, 26, 340


class MaskExplorer(Explorable):
    """Type a batch, one sentence per line; switch its masks on and off.

    Args:
        batch: at most `MAX_SENTENCES` lines of at most `MAX_TOKENS` tokens.
        sentence: whose combined mask is drawn, counted from 0.
        padding, causal: which masks are on.
        side: where short sentences are filled up, "right" or "left".
    """

    still_values = {}

    def __init__(
        self,
        batch: str = BATCH,
        sentence: int = 0,
        padding: bool = True,
        causal: bool = True,
        side: str = "right",
    ):
        field = ipywidgets.Textarea(
            sendable(batch), description="batch", rows=MAX_SENTENCES, continuous_update=False
        )
        field.layout.width = "30em"
        number = ipywidgets.IntSlider(sentence, 0, MAX_SENTENCES - 1, description="sentence")
        ipywidgets.dlink((field, "value"), (number, "max"), lambda text: len(_lines(text)) - 1)
        super().__init__(
            {
                "batch": field,
                "sentence": number,
                "padding": ipywidgets.Checkbox(padding, description="padding mask", indent=False),
                "causal": ipywidgets.Checkbox(causal, description="causal mask", indent=False),
                "side": ipywidgets.ToggleButtons(
                    options=["right", "left"], value=side, description="padding side"
                ),
            }
        )

    def render(self) -> Rendering:
        return render_masks(**self.values)


def _lines(batch: str) -> list[str]:
    return [line for line in batch[:2000].splitlines() if line.strip()][:MAX_SENTENCES] or [""]


def render_masks(batch: str, sentence: int, padding: bool, causal: bool, side: str) -> Rendering:
    """Draw the padding mask, the causal mask, and what one sentence gets from both.

    Args:
        batch: one sentence per line.
        sentence: number of the drawn sentence; past the last one it is the last.
        padding, causal: which masks are on.
        side: "right" or "left".
    """
    sentences = [words(line) for line in batch.splitlines() if line.strip()]
    if not sentences:
        return say("The batch is empty: type one sentence per line and leave the field.")
    longest = max(len(tokens) for tokens in sentences)
    if len(sentences) > MAX_SENTENCES or longest > MAX_TOKENS:
        return say(
            f"The picture has room for {MAX_SENTENCES} sentences of {MAX_TOKENS} tokens, and this "
            f"batch has {len(sentences):,} of up to {longest:,}: shorten it and leave the field."
        )
    chosen = min(sentence, len(sentences) - 1)
    present = [[1] * len(tokens) for tokens in sentences]
    ids = pad_batch(present, pad_id=0, side=side)  # (batch, n): 1 for a token, 0 for padding
    masks = {}
    if padding:
        masks["padding"] = padding_mask(ids, pad_id=0)  # (batch, 1, 1, key)
    if causal:
        masks["causal"] = causal_mask(longest)  # (1, 1, query, key)
    nothing_hidden = torch.ones(1, 1, 1, 1, dtype=torch.bool)
    combined = reduce(and_, masks.values(), nothing_hidden)  # as large as the masks make it
    allowed = combined.expand(len(ids), 1, longest, longest)[chosen, 0]  # (query, key)
    rows = [_filled(tokens, longest, side) for tokens in sentences]
    return _rendering(rows, chosen, masks, tuple(combined.shape), allowed)


def _filled(tokens: list[str], n: int, side: str) -> list[str]:
    padding = [PAD] * (n - len(tokens))
    return padding + tokens if side == "left" else tokens + padding


def _rendering(rows, chosen, masks, shape, allowed) -> Rendering:
    count, n = int(allowed.sum()), len(allowed)
    title = f"Sentence {chosen} may use {count} of its {n * n} query-key pairs"
    shapes = [f"{name} {tuple(mask.shape)}" for name, mask in masks.items()] or ["no mask"]
    text = f"{title}. {' & '.join(shapes)}"
    if len(masks) == 2:
        text += f" broadcast to {shape}"
    text += (
        f". Its {n} tokens, {rows[chosen].count(PAD)} of them padding: {' '.join(rows[chosen])}."
    )
    empty = int((~allowed.any(dim=-1)).sum())
    if empty:
        text += f" Queries without any key: {empty}; attention gives zeros for them."
    return Rendering(_draw(title, rows, chosen, masks, shape, allowed), text)


def _draw(title, rows, chosen, masks, shape, allowed) -> bytes:
    n, batch = len(allowed), len(rows)
    right = LEFT + SIDE + 130
    below = TOP + max(2, batch) * ROW + 84
    canvas = Canvas(title, right + SIDE + 10, below + n * ROW + 34)
    _key(canvas)
    canvas.text(right, TOP - 30, _heading("padding mask", masks.get("padding")), anchor="lm")
    padding, causal = "padding" in masks, "causal" in masks
    allowed_keys = masks["padding"][:, 0, 0] if padding else torch.ones(batch, n, dtype=torch.bool)
    names = [f"sentence {i}" for i in range(batch)]
    _grid(canvas, right, TOP, allowed_keys, names, rows)
    canvas.box(right - 2, TOP + chosen * ROW - 1, SIDE + 4, ROW + 2, edge="black", line=2)
    earlier = masks["causal"][0, 0] if causal else torch.ones(n, n, dtype=torch.bool)
    canvas.text(LEFT, below - 42, _heading("causal mask", masks.get("causal")), anchor="lm")
    _grid(canvas, LEFT, below, earlier, [str(i) for i in range(n)])
    together = f"{' & '.join(masks)}: {shape}" if masks else "no mask"
    canvas.text(right, below - 42, f"sentence {chosen}, {together}", anchor="lm")
    if causal:
        canvas.text(LEFT, below - 14, "→ the same for every sentence", 11, anchor="lm")
    if padding:
        canvas.text(right, below - 14, "↓ the framed row, repeated for each query", 11, anchor="lm")
    _grid(canvas, right, below, allowed, rows[chosen])
    for x in (LEFT, right):
        canvas.text(x + SIDE / 2, below + n * ROW + 16, "key (rows: query)", 11)
    return canvas.png()


def _heading(name: str, mask: Bool[Tensor, "_ 1 _ key"] | None) -> str:
    return f"{name}: off" if mask is None else f"{name}: {tuple(mask.shape)}"


def _key(canvas: Canvas) -> None:
    """Explain the two kinds of cell."""
    for row, (allowed, meaning) in enumerate([(True, "may attend"), (False, "hidden")]):
        y = TOP + row * (ROW + 6)
        _cell(canvas, LEFT, y, 34, allowed, "")
        canvas.text(LEFT + 44, y + ROW / 2, meaning, anchor="lm")


def _grid(canvas, x, y, allowed: Bool[Tensor, "row key"], names, words_in_cells=None) -> None:
    """Draw a mask with a name before each row."""
    width = SIDE / allowed.shape[1]
    for row, values in enumerate(allowed.tolist()):
        canvas.text(x - 8, y + (row + 0.5) * ROW, names[row], 11, anchor="rm", width=76)
        for key, value in enumerate(values):
            word = words_in_cells[row][key] if words_in_cells else ""
            _cell(canvas, x + key * width, y + row * ROW, width, value, word)


def _cell(canvas: Canvas, x, y, width, allowed: bool, word: str) -> None:
    canvas.box(x, y, width, ROW, fill=TINTS[5] if allowed else "#666666")
    canvas.text(x + width / 2, y + ROW / 2, word, 10, "black" if allowed else "white", width=width)
    if not allowed and not word:
        canvas.cross(x, y, width, ROW, "white")
