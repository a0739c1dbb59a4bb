"""Lesson 07: the causal mask, cross-attention, the whole decoder; behind it, leaks and pictures.

Long because a test for leaks is tried on seventeen models, each leaking in another way or not.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_lesson.exercises import random_layers
from transformer_lesson.exercises.engine.choosing import choose
from transformer_lesson.exercises.engine.specification import Draw, breaks, exercise
from transformer_lesson.model import attention, masks
from transformer_lesson.model.attention import merge_heads, multi_head_attention, split_heads
from transformer_lesson.model.embedding import embed
from transformer_lesson.model.feed_forward import feed_forward
from transformer_lesson.model.norm import layer_norm
from transformer_lesson.model.positions import sinusoidal_encoding


@breaks("a mask that shows later keys")
def _no_later_key(answer, inputs: tuple, mask: Tensor) -> str | None:
    later = mask[0, 0].triu(diagonal=1).nonzero()
    if len(later) == 0:
        return None
    query, key = later[0].tolist()
    return (
        f"In your mask, query {query} may attend to key {key}, which comes later.\n"
        "True means: may attend."
    )


@breaks("a mask that hides an earlier key, or a word from itself")
def _every_key_so_far(answer, inputs: tuple, mask: Tensor) -> str | None:
    hidden = (mask[0, 0] == 0).tril().nonzero()
    if len(hidden) == 0:
        return None
    query, key = hidden[-1].tolist()
    which = "its own" if query == key else "earlier"
    return (
        f"In your mask, query {query} may not attend to key {key}, which is {which}.\n"
        "True means: may attend."
    )


def _causal_inputs(draw: Draw) -> tuple:
    n = draw.unless_unseen(draw.one_of((5, 3, 1, 2, 7, 97)), 8, 96)
    return (min(n, *draw.small[1:], 97),)


@exercise(
    reference="transformer_lesson.model.masks:causal_mask",
    make_inputs=_causal_inputs,
    draws=6,
    returns={"mask": "batch head query key"},
    hints=(
        "Rows are queries, columns are keys. Row i is True for columns 0 to i.",
        "That is a lower triangle with its diagonal: `torch.tril`. Make it boolean, and give "
        "it two leading axes of size 1 that broadcast over batch and head.",
        "`torch.ones(n, n, dtype=torch.bool).tril()[None, None]`",
    ),
    invariants=(_no_later_key, _every_key_so_far),
)
def causal_mask(n):
    """Return the mask that lets each position attend to itself and those before it."""
    square = torch.ones(n, n, dtype=torch.bool)
    lower = choose(
        square.tril(choose(0, not_itself=-1, one_ahead=1)),
        upper=square.triu(),
        everything=square,
        itself_alone=torch.eye(n, dtype=torch.bool),
        window=square.tril().triu(-3),
        first_row_empty=square.tril() & (torch.arange(n) > 0)[:, None],
    )
    allowed = choose(lower, inverted=~lower)
    mask = choose(allowed[None, None], no_axes=allowed, one_axis=allowed[None])
    return choose(mask, numbers=mask.float(), bytes=mask.byte())


def _cross_inputs(draw: Draw) -> tuple:
    """Masks of every kind, or none; as many source as target tokens; one head; one source token.

    With as many source as target tokens and a mask, all shapes fit whichever side asks.
    """
    if draw.number in (1, 6):
        draw.sizes["source"] = draw.size("target", 2)
    fixed_sizes = ({}, {}, {"batch": 1}, {"target": 1}, {"source": 1}, {"head": 1}, {})
    draw.sizes |= fixed_sizes[draw.number]
    d_model = draw.sizes["d_model"] = draw.size("head") * draw.size("d_head")
    y, memory = draw.normal("batch target d_model"), draw.normal("batch source d_model")
    matrices = [draw.normal("d_model d_model") / d_model**0.5 for _ in range(4)]
    padding = "batch 1 1 source"
    axes = (padding, "", padding, "1 1 target source", "", "", padding)[draw.number]
    mask = draw.booleans(axes) if axes else None
    if axes:
        mask[..., 0] = True
        mask[..., 1:2] &= draw.number != 6  # so that it hides something there
        mask[0] &= draw.number != 0  # so that a sentence sees nothing at all
    return y, memory, *matrices, draw.size("head"), mask


@exercise(
    reference="transformer_lesson.model.attention:cross_attention",
    make_inputs=_cross_inputs,
    draws=7,
    returns={"output": "batch target d_model"},
    hints=(
        "This is multi-head attention between two sequences: the target asks, the source answers.",
        "Make the queries from y, and both keys and values from memory. The scores then have the "
        "shape (batch, head, target, source).",
        "`Q = split_heads(y @ W_Q, n_heads)`. Do the same to memory with W_K and W_V. Then "
        "attend, merge and multiply by W_O.",
    ),
)
def cross_attention(y, memory, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    """Multi-head attention: queries from y, keys and values from memory."""
    n_heads = choose(n_heads, single_head=1)
    y, memory = choose(
        (y, memory),
        arguments_swapped=(memory, y),
        target_alone=(y, y),
        target_too=(y, torch.cat([y, memory], dim=1)),
    )
    W_K, W_V = choose(
        (W_K, W_V), keys_made_like_queries=(W_Q, W_V), keys_and_values_exchanged=(W_V, W_K)
    )
    Q = choose(y @ W_Q, queries_not_projected=y)
    K = choose(memory @ W_K, keys_from_target=y @ W_K)
    V = choose(memory @ W_V, values_from_target=y @ W_V, keys_as_values=memory @ W_K)
    Q, K, V = split_heads(Q, n_heads), split_heads(K, n_heads), split_heads(V, n_heads)
    if mask is not None:
        mask = choose(
            mask,
            mask_ignored=None,
            mask_inverted=~mask,
            target_too=F.pad(mask, (y.size(1), 0), value=True),
        )
    Q = choose(Q, root_of_d_model=Q * (Q.size(-1) / y.size(-1)) ** 0.5)
    heads, weights = attention.scaled_dot_product_attention(Q, K, V, mask)
    if mask is not None:
        empty = ~mask.any(-1, keepdim=True)
        heads = choose(
            heads,
            empty_rows_even=torch.where(empty, V.mean(-2, keepdim=True), heads),
            empty_rows_of_nan=heads.masked_fill(empty, math.nan),
        )
    joined = merge_heads(heads)
    return choose(joined @ W_O, no_output_projection=joined)


def _forward_inputs(draw: Draw) -> tuple:
    """With padding and without, one sentence, one token, one block; two sentences of one length."""
    if draw.number == 6:  # all shapes fit whichever side asks
        draw.sizes["source"] = draw.size("target", 3)
    draw.sizes |= ({}, {}, {"batch": 1}, {}, {"source": 1}, {"target": 1}, {})[draw.number]
    weights = random_layers.weights(draw)
    draw.sizes["vocab_size"] = random_layers.TARGET_WORDS
    source_words, target_words = random_layers.SOURCE_WORDS, random_layers.TARGET_WORDS
    pad = weights.pad_id
    source = random_layers.ids(draw, "source", source_words, pad, draw.number != 2)
    target = random_layers.ids(draw, "target", target_words, pad, False)
    return target, draw.normal("batch source d_model"), source, weights


def _placed(ids, table):
    """Return embeddings plus positions."""
    x, PE = embed(ids, table), sinusoidal_encoding(ids.size(1), table.size(1))
    x = choose(x, not_scaled=table[ids])
    return choose(x + PE, no_positions=x, placed_twice=x + 2 * PE)


def _through(y, memory, block, n_heads, causal, real):
    """Return what a block makes of y and memory."""
    from_self, crossed = block.self_attention, block.cross_attention
    crossed = choose(crossed, same_matrices=from_self)
    first, second, third = block.norms
    norms = choose(
        block.norms, one_norm=(first, first, first), second_norm_twice=(first, second, second)
    )
    carried = choose(
        (1, 1, 1),
        no_first_residual=(0, 1, 1),
        no_second_residual=(1, 0, 1),
        no_last_residual=(1, 1, 0),
    )
    sublayers = [
        lambda h: multi_head_attention(h, *from_self, n_heads, causal),
        lambda h: attention.cross_attention(h, memory, *crossed, n_heads, real),
        lambda h: feed_forward(h, *block.feed_forward),
    ]
    order = choose((0, 1, 2), cross_attention_first=(1, 0, 2))
    for i, (gamma, beta) in enumerate(norms):
        read = choose(y, pre_norm=layer_norm(y, gamma, beta, 1e-5))
        y = carried[i] * y + sublayers[order[i]](read)
        y = choose(layer_norm(y, gamma, beta, 1e-5), pre_norm=y)
    return y


@exercise(
    reference="transformer_lesson.model.forward:decoder_forward",
    helpers=("transformer_lesson.model.forward:_decoder_layer",),
    make_inputs=_forward_inputs,
    draws=7,
    returns={"logits": "batch target vocab_size"},
    hints=(
        "The steps are those of the encoder: masks, embeddings, positions, blocks. This time there "
        "are two masks, and a projection at the end.",
        "Self-attention gets `causal_mask(target_ids.size(1))`. Cross-attention gets the padding "
        "mask of the source ids, because it reads the source.",
        "`decoder_block` calls its `cross_attention` with two arguments: "
        "`lambda h, memory: cross_attention(h, memory, *block.cross_attention, n_heads, real)`. "
        "Last comes `y @ weights.projection`.",
    ),
    invariants=(random_layers.is_deterministic,),
)
def decoder_forward(target_ids, memory, source_ids, weights):
    """Return logits: embeddings plus positions, every block, the projection."""
    table = weights.target_table
    causal = masks.causal_mask(target_ids.size(1))
    causal = choose(causal, no_causal_mask=None, causal_inverted=causal.mT)
    real = masks.padding_mask(source_ids, choose(weights.pad_id, pad_id_assumed=0))
    of_target = masks.padding_mask(target_ids, weights.pad_id)
    real = choose(real, no_padding_mask=None, padding_inverted=~real, padding_of_target=of_target)
    causal, real = choose((causal, real), masks_swapped=(real, causal))
    real_memory = memory * (source_ids != weights.pad_id)[:, :, None]
    memory, real = choose((memory, real), padding_zeroed=(real_memory, None))
    n_heads = choose(weights.n_heads, single_head=1)
    y = _placed(target_ids, table)
    last = weights.decoder[-1:]
    every = last * len(weights.decoder)
    stack = choose(
        weights.decoder,
        first_block_only=weights.decoder[:1],
        last_block_only=last,
        last_block_each_time=every,
    )
    for block in stack:
        y = _through(y, memory, block, n_heads, causal, real)
    logits = y @ weights.projection
    return choose(logits, probabilities=logits.softmax(-1), no_projection=y, tied=y @ table.T)


class Mixer:
    """A model whose output at each position is a sum over the tokens that it sees.

    Args:
        words: what the model does, for the report.
        sees: how much of each token (column) each position (row) takes, shape (n, n).
        table: a vector for each id, shape (vocab_size, width).
        gate: a position and an id; later tokens are seen only in sentences with that id there.
        axes: of an output.
    """

    def __init__(self, words: str, sees: Tensor, table: Tensor, gate: tuple | None, axes: int):
        self.words, self.sees, self.table, self.gate, self.axes = words, sees, table, gate, axes

    def __call__(self, ids: Tensor) -> Tensor:
        """Return one vector per position, shape (batch, n, width), or (batch, n, 2, width / 2)."""
        n = ids.size(1)
        sees = self.sees[:n, :n].expand(len(ids), n, n)
        if self.gate:
            position, opens = self.gate
            closed = ids[:, position : position + 1, None] != opens
            sees = sees.masked_fill(closed & (torch.arange(n) > torch.arange(n)[:, None]), 0.0)
        outputs = sees @ F.embedding(ids, self.table)
        return outputs.unflatten(-1, (2, -1)) if self.axes == 2 else outputs

    def __repr__(self) -> str:
        return f"a model in which {self.words}"


class Case(NamedTuple):
    """What one draw's model does: a leak in another place each time, or none.

    Args:
        words: for the report.
        leak: a position and a later token that it sees.
        weight: how much of that token.
        ahead: how much of the next token each position sees.
        reach: how far each position sees besides: 0 is its own token, -1 the one before.
        sizes: of axes that are not drawn.
        only_id: the one id that occurs; the vocabulary is then 0 and 1.
        table: those two ids' numbers.
        gate: a position and an id; later tokens are seen only in sentences with that id there.
        axes: of an output.
        silent: of an output's numbers, how many never move.
    """

    words: str
    leak: tuple[int, int] = (0, 0)
    weight: float = 0.0
    ahead: float = 0.0
    reach: int = 0
    sizes: Mapping[str, int] = {}
    only_id: int | None = None
    table: tuple[float, float] = (1.0, 0.0)
    gate: tuple[int, int] | None = None
    axes: int = 1
    silent: int = 0


TWO, ONE = {"batch": 1, "n": 2}, {"sizes": {"batch": 1}, "table": (0.0, 1.0)}
ROUNDING, TRACE = 3.5e-6, 3e-5  # below the tolerance, and not far above it
CASES = (
    Case("position 1 also sees token 2, nothing else leaks", (1, 2), 1.0),
    Case("each position sees the tokens up to its own"),
    Case("position 0 also sees token 1", (0, 1), 1.0, sizes=TWO, only_id=0),
    Case("the last position but one sees the last token", (-2, -1), 1.0, only_id=1),
    Case("nothing leaks; rounding moves outputs by less than 0.00001", ahead=ROUNDING),
    Case("the last position but one sees a trace of the last token", (-2, -1), TRACE),
    Case(
        "sentences that begin with id 1 show position 0 the last token", (0, -1), 1.0, gate=(0, 1)
    ),
    Case("every position sees every token", reach=20, sizes={"batch": 1}, axes=2),
    Case("each position sees the tokens before its own", reach=-1),
    Case("each position sees the tokens up to its own", sizes=TWO),
    Case("position 0 sees token 1, no other leaks", (0, 1), 1.0, only_id=0, table=(0.0, 1.0)),
    Case("position 0 sees token 1 if token 2 has id 1", (0, 1), 1.0, only_id=1, gate=(2, 1)),
    Case("there is one token", sizes={"n": 1}),
    Case("rounding moves one number by less than 0.00001", (-2, -1), ROUNDING, only_id=0, **ONE),
    Case("position 0 sees a trace of token 1", (0, 1), TRACE, sizes=TWO),
    Case("sentences that begin with id 2 show position 0 token 1", (0, 1), 1.0, gate=(0, 2)),
    Case("position 0 also sees the last token, nothing else leaks", (0, -1), 1.0, silent=2),
)


def _leak_inputs(draw: Draw) -> tuple:
    case = CASES[draw.number]
    draw.sizes |= case.sizes
    n = draw.sizes.setdefault("n", 3 if draw.small else 4)
    ahead = torch.arange(n) - torch.arange(n)[:, None]  # how far from position to token
    sees = (ahead <= case.reach) / n + case.ahead * (ahead == 1)
    sees[case.leak] += case.weight
    if case.only_id is None:
        ids = draw.integers("batch n", 0, 30)
        table = 2 * torch.rand(draw.shape("30 width"), generator=draw.generator) - 1
        table = torch.cat([table, -table], dim=1)  # what moves adds up to nothing
    else:
        ids = torch.full(draw.shape("batch n"), case.only_id)
        table = torch.tensor(case.table)[:, None]
    if case.gate and case.only_id is None:
        ids[:, 0] = torch.arange(len(ids)).flip(0) + 1  # from the last sentence on: 1, 2, ...
    if case.sizes is TWO and case.only_id == 0:
        ids[:, 0] = 1
    table[:, : case.silent] = 0.0
    table.requires_grad_(case.reach == 20)  # as in a model that is trained
    return Mixer(case.words, sees, table, case.gate, case.axes), ids


@exercise(
    reference="transformer_lesson.interpretability.causality:leaks_future",
    make_inputs=_leak_inputs,
    draws=len(CASES),
    returns={"leaks": ""},
    hints=(
        "Change one token and run the model again. Which outputs are allowed to move?",
        "After a change at position t, outputs 0 to t - 1 must stay as they were. A leak may "
        "hide at any t, so try them all.",
        "For each t from 1 to n - 1, clone ids, put another id (0, or 1 where there's a 0) into "
        "column t, and compare `model(changed)[:, :t]` with `model(ids)[:, :t]`. Return "
        "`True` or `False`.",
    ),
    helpers=("transformer_lesson.interpretability.causality:changed_positions",),
    invariants=(random_layers.is_deterministic,),
)
def leaks_future(model, ids):
    """Return whether changing a token moves the output of any earlier position."""
    before, changed, leaks = model(ids), ids.clone(), []
    for position in _positions(ids.size(1)):
        changed = choose(ids.clone(), in_place=ids)
        sentences = slice(None)
        place = choose(position, all_later=slice(position, None))
        changed[sentences, place] = _another(ids[sentences, place], ids.max() + 1)
        difference = choose(
            model(changed) - before,
            text_cut_off=model(ids[:, :position]) - before[:, :position],
            most_probable=(model(changed).argmax(-1) - before.argmax(-1)),
        )
        leaks.append(_moves(difference, position))
        if leaks[-1]:
            break
    return any(leaks)


def _positions(n):
    """Return which tokens are changed, one at a time."""
    return choose(
        range(1, n),
        last_token=[n - 1],
        first_round=range(1, n)[:1],
        last_token_never=range(1, n - 1),
        token_1_never=range(2, n),
        middle_token=[n // 2],
        itself_from_token_0=range(n),
    )


def _another(old, vocab_size):
    """Return ids that are in the vocabulary and differ from the old ones."""
    return choose(
        (old == 0).long(),
        always_0=torch.zeros_like(old),
        next_id=old + 1,
        next_in_circle=(old + 1) % vocab_size,
    )


def _moves(difference, position):
    """Return whether an output moves that comes before the change."""
    earlier = difference[
        :,
        choose(
            slice(position),
            all_outputs=slice(None),
            changed_one_too=slice(position + 1),
            itself_from_token_0=slice(position + 1),
            first_output=slice(1),
            output_before=slice(position - 1, position),
        ),
    ]
    size = choose(earlier.abs(), sign_turned=-earlier)
    tolerance = choose(1e-5, too_small=0.0, too_large=1e-3)
    return choose(
        (size > tolerance).any().item(),
        added_up=size.sum().item() > tolerance,
        averaged=size.mean().item() > tolerance,
        signs_cancel=abs(earlier.sum().item()) > tolerance,
        three_axes_only=any(moved > tolerance for moved in size.amax((0, 2))),
    )


def _picture_inputs(draw: Draw) -> tuple:
    """One patch, patches of one pixel, one picture, and what lies in memory as its transpose."""
    squares, size = draw.one_of(((3, 2), (1, 5), (2, 5), (5, 3), (2, 3), (3, 1)))
    if draw.small:
        squares, size = draw.size("square", at_least=2), draw.size("pixel", at_least=2)
    else:
        draw.sizes |= {"square": squares, "pixel": size, "picture": draw.one_of((7, 2, 7, 1))}
    draw.sizes |= {"side": squares * size, "patch": squares**2, "number": size**2}
    pictures = draw.normal("picture side side")
    return (pictures.mT.contiguous().mT if draw.number == 4 else pictures), size


@exercise(
    reference="transformer_lesson.lessons.lesson_07.vision:patches",
    make_inputs=_picture_inputs,
    draws=6,
    returns={"patches": "picture patch number"},
    hints=(
        "Lesson 04 cut a row of numbers into heads with one `reshape`. Here two axes are cut: the "
        "rows of a picture and its columns. Into what does each fall?",
        "`pictures.reshape(n, k, size, k, size)` with k = side // size names every pixel by four "
        "numbers: row of the patch, row in the patch, column of the patch, column in the patch. "
        "The two that name the patch must stand together.",
        "`.transpose(2, 3)` brings them together. After it, `reshape(n, k * k, size * size)` joins "
        "both pairs.",
    ),
)
def patches(pictures, size):
    """Cut pictures into squares, row by row."""
    n, side, _ = pictures.shape
    k, size = (side // size, size)
    pictures = choose(
        pictures, upside_down=pictures.flip(1), mirrored=pictures.flip(2), scaled=pictures / 255
    )
    cut = choose(
        pictures.reshape(n, k, size, k, size),
        dealt_out=pictures.reshape(n, size, k, size, k).transpose(1, 2).transpose(3, 4),
        rows_dealt_out=pictures.reshape(n, size, k, k, size).transpose(1, 2),
    )
    squares = choose(
        cut.transpose(2, 3),
        no_transpose=cut,
        patches_by_columns=cut.permute(0, 3, 1, 2, 4),
        pixels_by_columns=cut.permute(0, 1, 3, 4, 2),
        patches_last=cut.permute(0, 2, 4, 1, 3),
    )
    return _tokens(squares, pictures, k, size)


def _tokens(squares, pictures, k, size):
    """Return the squares as rows of numbers."""
    n = len(pictures)
    tokens = squares.reshape(n, k * k, size * size)
    return choose(
        tokens, overlapping=pictures.unfold(1, size, 1).unfold(2, size, 1).flatten(1, 2).flatten(2)
    )
