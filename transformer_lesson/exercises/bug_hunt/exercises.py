"""Lesson 14: functions to repair, from masks to positions."""

from collections.abc import Callable

from transformer_lesson.exercises.bug_hunt import inputs, rules
from transformer_lesson.exercises.specification import Exercise


def _repair(
    name: str, make_inputs: Callable, returns: dict[str, str], hints: tuple[str, ...], *broken
) -> Exercise:
    """Return an exercise that starts from the bug of that name."""
    return Exercise(
        name=name,
        reference=f"transformer_lesson.exercises.bug_hunt.repairs:{name}",
        start=f"transformer_lesson.exercises.bug_hunt.bugs:{name}",
        make_inputs=make_inputs,
        returns=returns,
        hints=hints,
        invariants=broken,
    )


BUG_HUNT_EXERCISES = (
    _repair(
        "gpt_block",
        inputs.block_inputs,
        {"x": "batch n d_model"},
        (
            "Two places of this block let a token look at others. Which of them is told where to "
            "stop?",
            "Attention takes the mask as its last argument. What does it do without one?",
            "Keep the second attention and give it the mask too: `attention_2(x, x, x, mask)`.",
        ),
        rules.earlier_outputs_stay,
    ),
    _repair(
        "next_token_logits",
        inputs.model_inputs,
        {"logits": "batch n vocab_size"},
        (
            "What may the output at position 3 know? Look for the line that forbids it the rest.",
            "`block(x, mask)` takes a mask. Which one of lesson 03 hides what comes later?",
            "`mask = masks.causal_mask(ids.size(1))` before the loop, then `block(x, mask)` in it.",
        ),
        rules.earlier_outputs_stay,
    ),
    _repair(
        "mask_for_batch",
        inputs.batch_inputs,
        {"mask": "batch head query key"},
        (
            "Padding on the right comes later than every real token. And padding on the left?",
            "A key must be allowed by two masks: not later, and not padding. Masks combine with "
            "`&`.",
            "`mask & masks.padding_mask(ids, pad_id)` has shape (batch, 1, query, key) by itself.",
        ),
        rules.padding_is_hidden,
    ),
    _repair(
        "weights_of_real_keys",
        inputs.masked_inputs,
        {"weights": "batch head query key"},
        (
            "Softmax divides by the sum of exp(score). What is that sum where every key is hidden?",
            "Hide with a finite number, then no row is 0 / 0. What does a row get that is hidden "
            "whole, and what should it get?",
            "`scores.masked_fill(~mask, torch.finfo(scores.dtype).min)`, softmax, and then "
            "`.masked_fill(~mask, 0.0)`.",
        ),
        rules.empty_rows_get_nothing,
        rules.gradient_is_finite,
    ),
    _repair(
        "half_precision_weights",
        inputs.half_inputs,
        {"weights": "batch head query key"},
        (
            "Half precision ends at 65504. And look at a query all of whose keys are hidden.",
            "`torch.finfo(scores.dtype).min` is the lowest number of whatever precision comes in. "
            "A row of nothing but that number is still a row of equal scores.",
            "Hide with that number before the softmax and with `.masked_fill(~mask, 0.0)` after "
            "it.",
        ),
        rules.empty_rows_get_nothing,
    ),
    _repair(
        "cut_into_heads",
        inputs.cut_inputs,
        {"heads": "head n d_head"},
        (
            "`view` moves no number: it cuts them in the order in which they lie in memory.",
            "Cut the last axis first: (n, head, d_head). Then no number has left its token.",
            "`x.view(n, n_heads, d_model // n_heads).transpose(0, 1)`",
        ),
        rules.rows_keep_their_token,
    ),
    _repair(
        "all_heads",
        inputs.matrices_inputs,
        {"heads": "batch head n d_head"},
        (
            "The numbers are right. What is done as often as there are heads?",
            "W_Q has shape (head, d_model, d_head), and attention takes (batch, head, n, d_head) "
            "as "
            "it is. Only the products with x are missing, for all heads at once.",
            '`torch.einsum("bnd,hdk->bhnk", x, W_Q)`, the same for K and V, and one attention.',
        ),
        rules.operations_do_not_grow,
    ),
    _repair(
        "is_linear",
        inputs.linear_inputs,
        {"linear": ""},
        (
            "Linear means f(x + y) = f(x) + f(y). What is f here, and where does its x go?",
            "In self-attention one x is query, key and value. In this test only the values become "
            "x + y: the weights stay.",
            "`attend(x + y, x + y, x + y)` against `attend(x, x, x) + attend(y, y, y)`.",
        ),
        rules.softmax_is_not_linear,
    ),
    _repair(
        "projection_parameters",
        lambda draw: (draw.size("head") * draw.size("d_head"), draw.size("head", at_least=2)),
        {"count": ""},
        (
            "What does a token look like when it comes to a head, and what when it has been "
            "projected?",
            "It comes with d_model numbers and leaves with d_k.",
            "One matrix of one head holds `d_model * d_k` numbers.",
        ),
        rules.cutting_changes_nothing,
    ),
    _repair(
        "encoding_by_formula",
        lambda draw: (draw.size("n_positions"), 2 * draw.size("pair")),
        {"encoding": "n_positions d_model"},
        (
            "The formula has sines at 2i and cosines at 2i + 1, with i from 0. And positions?",
            "Row 0 of the tensor is position 0, column 0 is dimension 0: both ranges begin at 0.",
            "`for pos in range(n_positions)`, `for column in range(d_model)`, and "
            "`encoding[pos, column]`.",
        ),
        rules.first_row_is_angle_zero,
    ),
    _repair(
        "encoding_of_any_width",
        inputs.any_width_inputs,
        {"encoding": "n_positions d_model"},
        (
            "Of 5 columns, how many are even and how many are odd?",
            "`encoding[:, 1::2]` has `d_model // 2` columns, and `angle` one more when d_model "
            "is odd.",
            "Leave the last cosine out: `angle.cos()[:, : d_model // 2]`.",
        ),
    ),
    _repair(
        "add_positions",
        inputs.table_inputs,
        {"x": "batch n d_model"},
        (
            "x has shape (batch, n, d_model). Which of these axes is the place in the sentence?",
            "`x.size(0)` counts sentences. And without an axis in the middle, (n, d_model) "
            "broadcasts "
            "over the batch by itself.",
            "`x + table[: x.size(1)]`",
        ),
        rules.same_sentence_same_vectors,
    ),
)
"""All exercises by name."""
