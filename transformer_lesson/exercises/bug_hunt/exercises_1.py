"""Lesson 14, first part: the future and masks, heads and projections, positions."""

from collections.abc import Callable

import torch
from torch import Tensor

from transformer_lesson.exercises.bug_hunt import rules_1 as rules
from transformer_lesson.exercises.bug_hunt.parts_1 import (
    Attention,
    Block,
    Blocks,
    kinds_of_attention,
)
from transformer_lesson.exercises.specification import Draw, Exercise


def _block_inputs(draw: Draw) -> tuple:
    draw.size("n", at_least=3)
    x = draw.normal("batch n d_model")
    W = draw.normal("d_model d_model") / draw.size("d_model") ** 0.5

    def feed_forward(x: Tensor) -> Tensor:
        return (x @ W.to(x.dtype)).relu()

    return x, Attention(draw), Attention(draw), feed_forward


def _model_inputs(draw: Draw) -> tuple:
    draw.size("n", at_least=3)
    ids, table = draw.integers("batch n", 0, 30), draw.normal("vocab_size d_model")

    def embedding(ids: Tensor) -> Tensor:
        return table[ids % len(table)]

    def projection(x: Tensor) -> Tensor:
        return x @ table.T.to(x.dtype)

    return ids, embedding, Blocks([Block(draw), Block(draw)]), projection


def _batch_inputs(draw: Draw) -> tuple:
    pad_id = 3 * (draw.number % 2)
    n, batch = draw.size("n", at_least=3), draw.size("batch", at_least=2)
    ids = draw.integers("batch n", 4, 50)
    place = torch.arange(n) if draw.number < 3 else torch.arange(n).flip(0)  # left, then right
    padding = torch.randint(0, n, (batch, 1), generator=draw.generator)
    padding[-1] = n - 1  # the last sentence has one real token
    return ids.masked_fill(place < padding, pad_id), pad_id


def _masked_inputs(draw: Draw) -> tuple:
    scores = draw.normal("batch head query key")
    mask = draw.booleans("batch query key")[:, None]  # (batch, 1, query, key)
    mask[0, 0, 0] = False  # a query that sees no key
    mask[-1, 0, -1, -1] = True
    return scores, mask


def _half_inputs(draw: Draw) -> tuple:
    """Return every second time half precision, with weights that it can hold exactly."""
    draw.size("key", at_least=5)
    scores, mask = _masked_inputs(draw)
    if draw.number % 2 == 0:
        return scores, mask
    keys = torch.arange(draw.size("key"))
    counts = 2 ** torch.randint(0, 3, mask.shape[:-1], generator=draw.generator)  # 1, 2 or 4
    mask = keys < counts[..., None]
    mask[0, 0, 0] = False
    return scores[..., :1].expand(scores.shape).half().contiguous(), mask


def _head_inputs(draw: Draw) -> tuple:
    draw.sizes["d_model"] = draw.size("head") * draw.size("d_head")
    return draw.normal("n d_model"), draw.size("head")


def _matrices_inputs(draw: Draw) -> tuple:
    draw.size("d_model", at_least=3)
    draw.size("head", at_least=2)
    x = draw.normal("batch n d_model")
    return x, *(draw.normal("head d_model d_head") / x.size(-1) ** 0.5 for _ in range(3))


def _linear_inputs(draw: Draw) -> tuple:
    kinds = kinds_of_attention(draw)
    return kinds[draw.number % len(kinds)], draw.normal("n d_model"), draw.normal("n d_model")


def _width_inputs(draw: Draw) -> tuple:
    return draw.size("n_positions", at_least=3), 2 * draw.size("pair") + 1 - draw.number % 2


def _table_inputs(draw: Draw) -> tuple:
    draw.size("batch", at_least=2)
    if draw.number == 2:  # as many sentences as tokens: a swapped axis raises no error
        draw.sizes["n"] = draw.size("batch")
    x = draw.normal("batch n d_model")
    draw.sizes["max_len"] = 17
    angle = torch.arange(17)[:, None] * draw.positive("d_model")
    return x, angle.sin().round(decimals=2)


def _bug(
    name: str,
    make_inputs: Callable[[Draw], tuple],
    returns: dict[str, str],
    invariants: tuple,
    *hints: str,
) -> Exercise:
    module = "transformer_lesson.exercises.bug_hunt"
    return Exercise(
        name=name,
        reference=f"{module}.repairs_1:{name}",
        start=f"{module}.bugs_1:{name}",
        make_inputs=make_inputs,
        returns=returns,
        invariants=invariants,
        hints=hints,
    )


BUG_HUNT_1_EXERCISES = (
    _bug(
        "gpt_block",
        _block_inputs,
        {"x": "batch n d_model"},
        (rules.earlier_outputs_stay,),
        "Two places of this block let a token look at others. Which of them is told where to stop?",
        "Attention takes the mask as its last argument. What does it do without one?",
        "Keep the second attention and give it the mask too: `attention_2(x, x, x, mask)`.",
    ),
    _bug(
        "next_token_logits",
        _model_inputs,
        {"logits": "batch n vocab_size"},
        (rules.earlier_outputs_stay,),
        "What may the output at position 3 know? Look for the line that forbids it the rest.",
        "`block(x, mask)` takes a mask. Which one of lesson 03 hides what comes later?",
        "`mask = masks.causal_mask(ids.size(1))` before the loop, then `block(x, mask)` in it.",
    ),
    _bug(
        "mask_for_batch",
        _batch_inputs,
        {"mask": "batch head query key"},
        (rules.padding_is_hidden,),
        "Padding on the right comes later than every real token. And padding on the left?",
        "A key must be allowed by two masks: not later, and not padding. Masks combine with `&`.",
        "`mask & masks.padding_mask(ids, pad_id)` has shape (batch, 1, query, key) by itself.",
    ),
    _bug(
        "weights_of_real_keys",
        _masked_inputs,
        {"weights": "batch head query key"},
        (rules.empty_rows_get_nothing, rules.gradient_is_finite),
        "Softmax divides by the sum of exp(score). What is that sum where every key is hidden?",
        "Hide with a finite number, then no row is 0 / 0. What does a row get that is hidden "
        "whole, and what should it get?",
        "`scores.masked_fill(~mask, torch.finfo(scores.dtype).min)`, softmax, and then "
        "`.masked_fill(~mask, 0.0)`.",
    ),
    _bug(
        "half_precision_weights",
        _half_inputs,
        {"weights": "batch head query key"},
        (rules.empty_rows_get_nothing,),
        "Half precision ends at 65504. And look at a query all of whose keys are hidden.",
        "`torch.finfo(scores.dtype).min` is the lowest number of whatever precision comes in. "
        "A row of nothing but that number is still a row of equal scores.",
        "Hide with that number before the softmax and with `.masked_fill(~mask, 0.0)` after it.",
    ),
    _bug(
        "cut_into_heads",
        _head_inputs,
        {"heads": "head n d_head"},
        (rules.rows_keep_their_token,),
        "`view` moves no number: it cuts them in the order in which they lie in memory.",
        "Cut the last axis first: (n, head, d_head). Then no number has left its token.",
        "`x.view(n, n_heads, d_model // n_heads).transpose(0, 1)`",
    ),
    _bug(
        "all_heads",
        _matrices_inputs,
        {"heads": "batch head n d_head"},
        (rules.operations_do_not_grow,),
        "The numbers are right. What is done as often as there are heads?",
        "W_Q has shape (head, d_model, d_head), and attention takes (batch, head, n, d_head) as "
        "it is. Only the products with x are missing, for all heads at once.",
        '`torch.einsum("bnd,hdk->bhnk", x, W_Q)`, the same for K and V, and one attention.',
    ),
    _bug(
        "is_linear",
        _linear_inputs,
        {"linear": ""},
        (rules.softmax_is_not_linear,),
        "Linear means f(x + y) = f(x) + f(y). What is f here, and where does its x go?",
        "In self-attention one x is query, key and value. In this test only the values become "
        "x + y: the weights stay.",
        "`attend(x + y, x + y, x + y)` against `attend(x, x, x) + attend(y, y, y)`.",
    ),
    _bug(
        "projection_parameters",
        lambda draw: (draw.size("head") * draw.size("d_head"), draw.size("head", at_least=2)),
        {"count": ""},
        (rules.cutting_changes_nothing,),
        "What does a token look like when it comes to a head, and what when it has been projected?",
        "It comes with d_model numbers and leaves with d_k.",
        "One matrix of one head holds `d_model * d_k` numbers.",
    ),
    _bug(
        "encoding_by_formula",
        lambda draw: (draw.size("n_positions"), 2 * draw.size("pair")),
        {"encoding": "n_positions d_model"},
        (rules.first_row_is_angle_zero,),
        "The formula has sines at 2i and cosines at 2i + 1, with i from 0. And positions?",
        "Row 0 of the tensor is position 0, column 0 is dimension 0: both ranges begin at 0.",
        "`for pos in range(n_positions)`, `for column in range(d_model)`, and "
        "`encoding[pos, column]`.",
    ),
    _bug(
        "encoding_of_any_width",
        _width_inputs,
        {"encoding": "n_positions d_model"},
        (),
        "Of 5 columns, how many are even and how many are odd?",
        "`encoding[:, 1::2]` has `d_model // 2` columns, and `angle` one more when d_model is odd.",
        "Leave the last cosine out: `angle.cos()[:, : d_model // 2]`.",
    ),
    _bug(
        "add_positions",
        _table_inputs,
        {"x": "batch n d_model"},
        (rules.same_sentence_same_vectors,),
        "x has shape (batch, n, d_model). Which of these axes is the place in the sentence?",
        "`x.size(0)` counts sentences. And without an axis in the middle, (n, d_model) broadcasts "
        "over the batch by itself.",
        "`x + table[: x.size(1)]`",
    ),
    _bug(
        "frequencies",
        lambda draw: (2 * draw.size("pair"),),
        {"frequencies": "pair"},
        (rules.fastest_comes_first,),
        "10000^(-2i / d_model) has 2i in the exponent. Where is it in this code?",
        "exp(a · b) is not a · exp(b). Each entry needs an exponent of its own, and a minus.",
        "`torch.exp(two_i * (-math.log(10000.0) / d_model))`",
    ),
)
