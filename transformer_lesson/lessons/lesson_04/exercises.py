"""Lesson 04: heads.

Long because a head that is built may be any that keeps its promise: it is judged by what it does.
"""

import math
from itertools import permutations

import torch
from torch import Tensor

from transformer_lesson.exercises.engine.attempt import Failed
from transformer_lesson.exercises.engine.choosing import choose
from transformer_lesson.exercises.engine.specification import Draw, breaks, exercise
from transformer_lesson.interpretability.programmed_heads import VERB_FORMS, word_vectors
from transformer_lesson.model.attention import attention_scores

PATTERNS = (
    "the N V the N .",
    "the N V and the N V",
    "the A N V the N .",
    "if the N V the N , the N V .",
    "the N V .",
)
SPARE = (3, 0, 1, 0, 9)
"""Draw by draw: a sentence, and how many places stay empty behind it."""
DRAWN = {
    "N": "dog woman child king cat window".split(),
    "V": "sees loves hears finds".split(),
    "A": "old small".split(),
}


def _role_inputs(draw: Draw) -> tuple:
    """Some verb is the last word and fills the last place; one sentence has two verbs and room."""
    words = [
        DRAWN[word][int(draw.integers("", 0, len(DRAWN[word])))] if word in DRAWN else word
        for word in draw.one_of(PATTERNS).split()
    ]
    draw.sizes["word"] = len(words)
    return words, len(words) + draw.unless_unseen(draw.one_of(SPARE), 8, 40)


def _handed(answer, sentence, n_places):
    """Let a head read a sentence; return what it hands each word, and where words look.

    A head that keeps its promise, however loudly, gives just 0 and 1. What any other head
    hands over is described as if each word looked only at its favorites, so that loudness is
    judged separately; the first and the last word, which lack a neighbor, count if all others are
    right.
    """
    x = word_vectors(sentence, n_places).double()
    W_Q, W_K, W_V = _matrices(answer(n_places), x.size(1), n_places)
    weights, values = attention_scores(x @ W_Q, x @ W_K).softmax(-1), x @ W_V
    wanted = torch.tensor([0.0] + [float(word in VERB_FORMS) for word in sentence[:-1]])
    handed = weights @ values
    if torch.where(wanted == 1, (handed - 1).abs() < 0.2, handed.abs() < 0.1).all():
        return wanted, "at one word"
    highest = weights.amax(-1, keepdim=True)
    favorites = weights.isclose(highest, rtol=0.02).double()
    described = (favorites / favorites.sum(-1, keepdim=True)) @ values
    steps = torch.tensor([-0.1, 0.1, 0.8, 1.2], dtype=torch.float64)
    described = torch.tensor([-1.0, 0.0, 0.5, 1.0, 2.0])[torch.bucketize(described, steps)]
    if not torch.equal(described[1:-1], wanted[1:-1]):
        described[0] = described[-1] = 0.0
    if (favorites.sum(-1)[1:-1] > 1).any():
        return described, "at several words alike"
    return described, "at one word, faintly" if highest[1:-1].min() < 0.7 else "at one word"


def _matrices(answered, d_model: int, n_places: int) -> list[Tensor]:
    """Return three matrices in double precision, W_V as a vector; say what is wrong with others."""
    if not isinstance(answered, tuple | list) or len(answered) != 3:
        raise Failed("Return three matrices: (W_Q, W_K, W_V).")
    matrices = []
    for name, matrix in zip(("W_Q", "W_K", "W_V"), answered, strict=True):
        if not isinstance(matrix, Tensor):
            raise Failed(f"`{name}` must be a torch.Tensor. Yours is {type(matrix).__name__}.")
        if name == "W_V" and matrix.ndim == 1:
            matrix = matrix[:, None]
        if matrix.ndim != 2 or len(matrix) != d_model:
            raise Failed(
                f"`{name}` must have a row for each number of a word: 6 facts and {n_places} "
                f"places, {d_model} rows. Yours has shape {tuple(matrix.shape)}."
            )
        if not matrix.isfinite().all():
            raise Failed(f"There is a number in `{name}` that is NaN or infinite.")
        matrices.append(matrix.detach().double())
    if matrices[0].size(1) != matrices[1].size(1):
        raise Failed(
            f"Queries and keys must be of one length. `W_Q` makes {matrices[0].size(1)} numbers "
            f"of a word, `W_K` {matrices[1].size(1)}."
        )
    if matrices[2].size(1) != 1:
        raise Failed(
            "A word is to be handed one number, so `W_V` has one column. "
            f"Yours has {matrices[2].size(1)}."
        )
    return [*matrices[:2], matrices[2][:, 0]]


@exercise(
    reference="transformer_lesson.interpretability.programmed_heads:role_head",
    make_inputs=_role_inputs,
    trial=_handed,
    returns={"handed": "word", "looks": ""},
    hints=(
        "Each matrix answers one question. `W_Q`: which place does a word at place i want to look "
        "at? `W_K`: are words found by their kind, or by their place? `W_V`: which of its numbers "
        "does a word hand over?",
        "With `W_K[6:] = torch.eye(n_places)`, row 6 + i of `W_Q` is the wish list of "
        "place i, one number for each place. Place 3 wants place 2 and no other, and wants it "
        "loudly: softmax turns 0 and 1 into almost equal weights.",
        "`W_Q[7:, :-1] = 50 * torch.eye(n_places - 1)`: row 7 belongs to place 1, and column 0 "
        "says how much it wants place 0. Row 6, the first word's, needs a wish too: for a place "
        "that surely holds no verb.",
    ),
)
def role_head(n_places):
    """Return W_Q, W_K, W_V of a head that tells each word whether a verb stands right before it."""
    loud = choose(50.0, too_faint=1.0, a_little_faint=10.5, avoids=-50.0)
    i, j = torch.arange(n_places)[:, None], torch.arange(n_places)[None]
    wishes = choose(
        j == (i - 1).clamp(min=0),
        any_verb=j < 0,
        first_asks_nothing=j == i - 1,
        first_finds_verb=j == i - 1,
        around_the_end=j == (i - 1) % n_places,
        looks_ahead=j == i + 1,
        itself=j == i,
        both_sides=(j - i).abs() == 1,
        product_of_places=(i - 1) * j,
    )
    W_Q, W_K = torch.zeros(2, 6 + n_places, 1 + n_places)
    W_Q[6:, 1:] = loud * wishes
    W_Q[6:, 0] = loud * choose(0.0, first_finds_verb=0.4, any_verb=1.0)
    W_Q[0, 0] = loud * 0.0
    W_K[2, 0] = 1.0  # a verb is found by column 0,
    W_K[6:, 1:] = torch.eye(n_places)  # place j by column 1 + j
    W_K[6, 1] = choose(1.0, first_not_found=0.0)
    W_V = torch.zeros(6 + n_places, 1)
    W_V[6:] = choose(0.0 * j.mT, places_handed_over=j.mT)
    facts = choose(torch.arange(3) == 2, nouns_handed_over=torch.arange(3) == 1)
    W_V[:3, 0] = facts * choose(1.0, loud_value=100.0)
    return W_Q, W_K, W_V


def _model_width(draw: Draw) -> int:
    """Fix d_model as so many heads, each so wide."""
    draw.sizes["d_model"] = draw.size("head") * draw.size("d_head")
    return draw.sizes["d_model"]


def _split_inputs(draw: Draw) -> tuple:
    """One head, heads of one number, one token, one sentence; numbers that lie elsewhere."""
    single = draw.one_of(("", "batch", "", "n", "head", "d_head"))
    if single:
        draw.sizes[single] = 1
    _model_width(draw)
    x = draw.normal("batch n d_model")
    if draw.number == 2:  # in double precision, and x lies in memory as its transpose
        x = x.double().mT.contiguous().mT
    return x, draw.size("head")


@exercise(
    reference="transformer_lesson.model.attention:split_heads",
    make_inputs=_split_inputs,
    draws=6,
    returns={"heads": "batch head n d_head"},
    hints=(
        "Each head gets d_model / n_heads numbers of every token. Which numbers of token 0 "
        "does head 0 get?",
        "First cut the last axis into (head, d_head), so that every number stays with its token. "
        "Then bring the head axis forward.",
        "`x.view(batch, n, n_heads, d_head).transpose(1, 2)`. If you ask `view` for (batch, "
        "n_heads, n, d_head) at once, the shape is right and the tokens are mixed.",
    ),
)
def split_heads(x, n_heads):
    """Return the numbers that each head gets of every token, (batch, head, n, d_head)."""
    batch, n, d_model = x.shape
    d_head = d_model // n_heads
    x = choose(x, tokens_turned=x.flip(1))
    cut = choose(
        x.reshape(batch, n, n_heads, d_head),
        dealt_out=x.reshape(batch, n, d_head, n_heads).mT,
        tokens_in_the_last_axis=x.mT.reshape(batch, n, n_heads, d_head),
        last_head_first=x.reshape(batch, n, n_heads, d_head).flip(2),
        whole_tokens=x[:, :, None].expand(batch, n, n_heads, d_model),
    )
    heads = choose(
        cut.transpose(1, 2),
        no_transpose=x.reshape(batch, n_heads, n, d_head),
        behind_the_tokens=cut,
        in_front_of_the_batch=cut.permute(2, 0, 1, 3),
        numbers_first=cut.permute(0, 2, 3, 1),
        numbers_in_front=cut.permute(0, 3, 1, 2),
        pieces_of_n_heads=x.reshape(batch, n, d_head, n_heads).transpose(1, 2),
        all_cut_in_front=x.reshape(n_heads, batch, n, d_head),
        turned_first=x.mT.reshape(batch, n_heads, n, d_head),
    )
    return choose(heads, joined_with_the_batch=heads.flatten(0, 1))


@breaks("axes joined in another order")
def _joins_head_and_number(answer, inputs: tuple, merged: Tensor) -> str | None:
    (x,) = inputs
    axes = ("batch", "head", "n", "d_head")
    right = x.transpose(1, 2).flatten(2)
    if 1 in x.shape or torch.equal(merged, right) or merged.shape != right.shape:
        return None
    for order in permutations(range(4)):
        if torch.equal(merged, x.permute(order).reshape(right.shape)):
            yours = ", ".join(axes[i] for i in order)
            return (
                f"Your numbers are those of `x` with its axes as ({yours}), cut to the right "
                "shape. Only (batch, n, head, d_head) has each word's numbers side by side."
            )
    return None


def _merge_inputs(draw: Draw) -> tuple:
    single = draw.one_of(("", "batch", "", "n", "head", "d_head"))
    if single:
        draw.sizes[single] = 1
    if draw.number == 2:  # in double precision, and as split_heads leaves it in memory
        return (draw.normal("batch n head d_head").double().transpose(1, 2),)
    return (draw.normal("batch head n d_head"),)


@exercise(
    reference="transformer_lesson.model.attention:merge_heads",
    make_inputs=_merge_inputs,
    draws=6,
    returns={"merged": "batch n d_model"},
    hints=(
        "Undo `split_heads`: take the same steps backwards.",
        "First bring the token axis back in front of the head axis. Then join (head, d_head).",
        "`x.transpose(1, 2)` has shape (batch, n, head, d_head). `.flatten(2)` joins the last "
        "two axes. `.view` refuses here, because a transpose moves no numbers in memory.",
    ),
    invariants=(_joins_head_and_number,),
)
def merge_heads(x):
    """Return the heads' numbers side by side, shape (batch, n, d_model)."""
    batch, n_heads, n, d_head = x.shape
    x = choose(x, last_head_first=x.flip(1))
    side_by_side = choose(
        x.transpose(1, 2),
        number_by_number=x.permute(0, 2, 3, 1),
        all_axes_turned=x.permute(3, 2, 1, 0),
    )
    merged = choose(
        side_by_side.flatten(2),
        no_transpose=x.reshape(batch, n, n_heads * d_head),
        batch_and_heads_exchanged=x.transpose(0, 1).reshape(batch, n, n_heads * d_head),
        joined_first=x.reshape(batch, n_heads * d_head, n).mT,
        averaged=x.mean(1),
        added_up=x.sum(1),
    )
    return choose(merged, flat=merged.flatten())


MASKS = ("", "1 1 n n", "batch 1 1 n", "1 head n n", "n n", "head n n", "batch head n n", "1 1 1 n")
"""What a mask may depend on, draw by draw."""


def _multi_head_inputs(draw: Draw) -> tuple:
    """All kinds of masks, with a query that sees no key; one head; one token."""
    if draw.number in (4, 7):
        draw.sizes["head" if draw.number == 4 else "n"] = 1
    d_model = _model_width(draw)
    x, axes = draw.normal("batch n d_model"), draw.one_of(MASKS)
    matrices = [draw.normal("d_model d_model") / d_model**0.5 for _ in range(4)]
    mask = draw.booleans(axes) if axes else None
    if axes == "1 1 n n":
        mask = torch.ones_like(mask).tril()
    elif axes:
        mask[..., -1] = True
    if draw.number in (2, 3):
        mask[:1, ..., :1, :] = False  # a sentence, or a head's first query, without any key
    return x, *matrices, draw.size("head"), mask


@breaks("later tokens that reach earlier outputs")
def _no_future_leak(answer, inputs: tuple, output: Tensor) -> str | None:
    x, mask = inputs[0], inputs[-1]
    if mask is None or x.size(1) < 2 or mask.dim() < 2 or mask.size(-2) == 1:
        return None
    if mask[..., :-1, -1].any():  # some earlier token may see the last
        return None
    changed = x.clone()
    changed[:, -1] += 1.0
    moved = (answer(changed, *inputs[1:]) - output)[:, :-1].abs().max()
    if moved < 1e-4:
        return None
    return (
        "With a causal mask, changing the last token must not move earlier outputs. "
        f"Yours move by up to {moved:.4g}.\n"
        "Does the mask reach the attention of every head, and which way round is it?"
    )


@exercise(
    reference="transformer_lesson.model.attention:multi_head_attention",
    make_inputs=_multi_head_inputs,
    draws=8,
    returns={"output": "batch n d_model"},
    hints=(
        "Project, split into heads, attend, merge, project again. You've written all the parts.",
        "`x @ W_Q` holds the queries of all heads side by side, and `split_heads` takes them "
        "apart. Do the same for keys and values.",
        "`heads, weights = scaled_dot_product_attention(Q, K, V, mask)` works on all heads "
        "at once. Then `merge_heads(heads) @ W_O`.",
    ),
    invariants=(_no_future_leak,),
)
def multi_head_attention(x, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    """Return Concat(head_1, ..., head_h) W_O."""
    n_heads = choose(n_heads, single_head=1)
    share = torch.arange(x.size(-1)) // (x.size(-1) // n_heads)  # whose head's a number is
    same_head = share[:, None] == share
    W_Q, W_K, W_V = choose(
        (W_Q, W_K, W_V),
        transposed_weights=(W_Q.T, W_K.T, W_V.T),
        keys_made_like_queries=(W_Q, W_Q, W_V),
        keys_and_values_exchanged=(W_Q, W_V, W_K),
        split_before_projecting=(W_Q * same_head, W_K * same_head, W_V * same_head),
    )
    W_O = choose(W_O, transposed_weights=W_O.T, last_one_transposed=W_O.T)
    Q = _heads(choose(x @ W_Q, queries_not_projected=x), n_heads)
    K = choose(x @ W_K, keys_not_projected=x)
    V = choose(x @ W_V, values_not_projected=x, keys_as_values=x @ W_K)
    K, V = _heads(K, n_heads), _heads(V, n_heads)
    scale = choose(
        math.sqrt(Q.size(-1)),
        root_of_d_model=math.sqrt(x.size(-1)),
        unscaled=1.0,
        not_the_root=Q.size(-1),
    )
    weights = _weights((Q @ K.mT) / scale, mask)
    return _projected(weights @ V, x, W_O)


def _heads(numbers, n_heads):
    """Return each head's share of a projection, shape (batch, head, n, d_head)."""
    batch, n, _ = numbers.shape
    return choose(
        numbers.reshape(batch, n, n_heads, -1).transpose(1, 2),
        view_without_transpose=numbers.reshape(batch, n_heads, n, -1),
        never_transposed=numbers.reshape(batch, n_heads, n, -1),
        dealt_out=numbers.reshape(batch, n, -1, n_heads).permute(0, 3, 1, 2),
        dealt_out_and_back=numbers.reshape(batch, n, -1, n_heads).permute(0, 3, 1, 2),
    )


def _weights(scores, mask):
    """Return the shares of the keys; zeros for a query that sees none."""
    hidden = torch.tensor(False) if mask is None else choose(~mask, inverted=mask)
    hidden = choose(
        hidden,
        mask_ignored=torch.tensor(False),
        first_heads_mask=hidden[:, :1] if hidden.dim() == 4 else hidden,
    )
    masked = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
    shares = choose(masked.softmax(-1), over_heads=masked.softmax(1))
    empty = hidden.all(-1, keepdim=True) if hidden.dim() else hidden
    return choose(
        shares.masked_fill(hidden, 0.0),
        shares.masked_fill(empty, 0.0),
        empty_rows_of_nan=shares.masked_fill(empty, math.nan),
        empty_rows_even=shares,
    )


def _projected(heads, x, W_O):
    """Return the heads side by side, mixed by the output projection."""
    batch, n_heads, n, d_head = heads.shape
    joined = choose(
        heads.transpose(1, 2).flatten(2),
        merged_without_transpose=heads.reshape(batch, n, -1),
        never_transposed=heads.reshape(batch, n, -1),
        dealt_out_and_back=heads.permute(0, 2, 3, 1).flatten(2),
        added_up=heads.sum(1).repeat(1, 1, n_heads),
    )
    output = choose(joined @ W_O, no_output_projection=joined)
    return choose(output, residual=x + output)
