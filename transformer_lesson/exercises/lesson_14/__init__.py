"""Lesson 14: functions with a published bug, from masks to reading code.

Long because it is 24 exercises, in the order of the lesson. Each sets out from a bug and ends in a
repair that learners read whole, so this lesson alone is a folder: `bugs` holds the functions as a
learner finds them, `repairs` the same ones repaired; `inputs` and `rules` are what they are checked
with. `hunt` holds six more: the choice of a probe, and repairs of programs that run and are wrong.
"""

import math
from itertools import takewhile

import torch
import torch.nn.functional as F
from torch import nn

from transformer_lesson.exercises.engine.choosing import choose
from transformer_lesson.exercises.engine.specification import exercise
from transformer_lesson.exercises.lesson_14 import hunt, inputs, rules
from transformer_lesson.model import masks


def repaired(**fields):
    """Make an exercise that sets out from the bug of the marked function's name."""

    def make(marked):
        """Return the exercise."""
        places = {"reference": f"{__name__}.repairs:{marked.__name__}"}
        places["start"] = f"{__name__}.bugs:{marked.__name__}"
        return exercise(**places, **fields)(marked)

    return make


@repaired(
    make_inputs=inputs.block_inputs,
    draws=4,
    returns={"x": "batch n d_model"},
    hints=(
        "Two places of this block let a token look at others. Which of them is told where to stop?",
        "Attention takes the mask as its last argument. What does it do without one?",
        "Keep the second attention and give it the mask too: `attention_2(x, x, x, mask)`.",
    ),
    invariants=(rules.earlier_outputs_stay,),
)
def gpt_block(x, attention_1, attention_2, feed_forward):
    """Return x after two attentions under the causal mask and the feed-forward."""
    attention_1, attention_2 = choose(
        (attention_1, attention_2),
        exchanged=(attention_2, attention_1),
        first_twice=(attention_1, attention_1),
    )
    mask = _causal(choose(x.size(1), sentences_counted=x.size(0)))
    mask_1 = choose(mask, first_open=None, first_inverted=~mask)
    mask_2 = choose(
        mask, second_open=None, second_inverted=~mask, second_hides_itself=mask.tril(-1)
    )
    first = attention_1(x, x, x, mask_1)
    y = choose(x + first, first_residual_missing=first, no_first_attention=x)
    collected = choose(
        attention_2(y, y, y, mask_2),
        asks_the_input=attention_2(y, x, x, mask_2),
        beside_the_first=attention_2(x, x, x, mask_2),
        reads_the_first_alone=attention_2(first, first, first, mask_2),
    )
    z = choose(
        y + collected,
        second_residual_missing=collected,
        one_attention=y,
        around_both=x + collected,
    )
    return choose(
        z + feed_forward(z),
        no_feed_forward=z,
        last_residual_missing=feed_forward(z),
        feed_forward_too_early=z + feed_forward(y),
        input_added_again=x + z + feed_forward(z),
    )


def _causal(n):
    """Return the mask that hides what comes later, shape (1, 1, query, key)."""
    mask = masks.causal_mask(n)
    return choose(
        mask,
        inverted=~mask,
        not_itself=mask.tril(-1),
        one_ahead=torch.ones_like(mask).tril(1),
        upper=mask.mT,
    )


@repaired(
    make_inputs=inputs.model_inputs,
    draws=4,
    returns={"logits": "batch n vocab_size"},
    hints=(
        "What may the output at position 3 know? Look for the line that forbids it the rest.",
        "`block(x, mask)` takes a mask. Which one of lesson 03 hides what comes later?",
        "`mask = masks.causal_mask(ids.size(1))` before the loop, then `block(x, mask)` in it.",
    ),
    invariants=(rules.earlier_outputs_stay,),
)
def next_token_logits(ids, embedding, blocks, projection):
    """Return logits for each next token from the tokens up to it."""
    ids = choose(ids, last_token_cut=ids[:, :-1])
    embedded = x = choose(embedding(ids), scaled=embedding(ids) * embedding(ids).size(-1) ** 0.5)
    n = choose(ids.size(1), sentences_counted=ids.size(0))
    blocks = choose(
        list(blocks),
        first_block_alone=list(blocks)[:1],
        last_block_first=list(blocks)[::-1],
        no_blocks=[],
    )
    for i, block in enumerate(blocks):
        mask = choose(
            _causal(n),
            open=None,
            first_masked=_causal(n) if i == 0 else None,
            first_open=_causal(n) if i > 0 else None,
            last_masked=_causal(n) if block is blocks[-1] else None,
            padding_mask=masks.padding_mask(ids, 0),
        )
        x = choose(
            block(x, mask),
            reads_the_embedding=block(embedded, mask),
            second_residual=x + block(x, mask),
        )
    logits = choose(projection(x), not_projected=x)
    return choose(
        logits,
        probabilities=logits.softmax(-1),
        log_probabilities=logits.log_softmax(-1),
        tokens=logits.argmax(-1),
        last_position=logits[:, -1],
        last_position_kept=logits[:, -1:],
    )


@repaired(
    make_inputs=inputs.batch_inputs,
    draws=6,
    returns={"mask": "batch head query key"},
    hints=(
        "Padding on the right comes later than every real token. And padding on the left?",
        "A key must be allowed by two masks: not later, and not padding. Masks combine with `&`.",
        "`mask & masks.padding_mask(ids, pad_id)` has shape (batch, 1, query, key) by itself.",
    ),
    invariants=(rules.padding_is_hidden,),
)
def mask_for_batch(ids, pad_id):
    """Return the mask that hides what comes later, and padding wherever it stands."""
    n = ids.size(1)
    causal = _causal(n)
    real = choose(
        ids != pad_id,
        padding_inverted=ids == pad_id,
        id_0=ids != 0,
        ids_above=ids > pad_id,
        up_to_the_first=(ids == pad_id).cumsum(-1) == 0,
        from_the_first_real_one=(ids != pad_id).cumsum(-1) > 0,
        first_sentence=(ids != pad_id)[:1].expand(ids.shape),
        any_sentence=(ids != pad_id).any(0).expand(ids.shape),
    )
    keys = choose(
        real[:, None, None, :],
        queries=real[:, None, :, None],
        keys_and_queries=real[:, None, None, :] & real[:, None, :, None],
        no_axes=real,
        one_axis=real[:, None, :],
    )
    mask = choose(
        causal & keys,
        causal_alone=causal.expand(len(ids), -1, -1, -1),
        padding_alone=keys.expand(-1, -1, n, -1),
        padding_not_expanded=keys,
        either=causal | keys,
        one_of_the_two=causal ^ keys,
    )
    return choose(
        mask,
        everything_inverted=~mask,
        each_sees_itself=mask | torch.eye(n, dtype=torch.bool),
        empty_rows_opened=mask | ~mask.any(-1, keepdim=True),
        turned=mask.mT,
        no_head_axis=mask[:, 0],
        squeezed=mask.squeeze(),
        numbers=mask.float(),
        additive=torch.zeros(mask.shape).masked_fill(~mask, -math.inf),
    )


@repaired(
    make_inputs=inputs.masked_inputs,
    draws=6,
    returns={"weights": "batch head query key"},
    hints=(
        "Softmax divides by the sum of exp(score). What is that sum where every key is hidden?",
        "Hide with a finite number, then no row is 0 / 0. What does a row get that is hidden "
        "whole, and what should it get?",
        "`scores.masked_fill(~mask, torch.finfo(scores.dtype).min)`, softmax, and then "
        "`.masked_fill(~mask, 0.0)`.",
    ),
    invariants=(rules.empty_rows_get_nothing, rules.gradient_is_finite),
)
def weights_of_real_keys(scores, mask):
    """Return a softmax over the keys that the mask allows; zeros where it allows none."""
    mask = choose(mask, inverted=~mask)
    lowest = choose(
        torch.finfo(scores.dtype).min,
        minus_infinity=-math.inf,
        not_low_enough=-10.0,
        highest=torch.finfo(scores.dtype).max,
    )
    masked = _hidden(scores, mask, lowest)
    shares = _shares(masked)
    some = mask.any(-1, keepdim=True)  # may see at least one key
    first_key = (torch.arange(scores.size(-1)) == 0).to(scores.dtype)
    hidden_0 = shares.masked_fill(~mask, 0.0)
    e = scores.exp() * mask
    return choose(
        hidden_0,
        shares.masked_fill(~some, 0.0),
        minus_infinity=shares,
        empty_rows_even=shares,
        first_key_for_empty_rows=torch.where(some, hidden_0, first_key),
        renormalized=hidden_0 / hidden_0.sum(-1, keepdim=True),
        renormalized_with_care=F.normalize(hidden_0, p=1, dim=-1),
        naive_and_masked_after=e / (e.sum(-1, keepdim=True) + 1e-20),
        one_empty_row_empties_all=hidden_0.masked_fill(~some.all(), 0.0),
    )


def _hidden(scores, mask, lowest):
    """Return the scores with those of hidden keys so low that softmax leaves them nothing."""
    return choose(
        scores.masked_fill(~mask, lowest),
        after_the_softmax=scores,
        renormalized=scores,
        renormalized_with_care=scores,
        product=scores * mask,
        mask_added=scores + mask,
        lowered=scores - 10000.0 * ~mask,
        zero_times_infinity=scores + ~mask * -math.inf,
    )


def _shares(scores):
    """Return the shares of the keys, rows that sum to 1."""
    return choose(
        scores.softmax(-1),
        over_queries=scores.softmax(-2),
        over_heads=scores.softmax(1),
        over_all=scores.flatten(1).softmax(-1).view(scores.shape),
        twice=scores.softmax(-1).softmax(-1),
        logarithms=scores.log_softmax(-1),
        sigmoid=scores.sigmoid(),
        naive_exponential=scores.exp() / scores.exp().sum(-1, keepdim=True),
    )


@repaired(
    make_inputs=inputs.half_inputs,
    draws=6,
    returns={"weights": "batch head query key"},
    hints=(
        "Half precision ends at 65504. And look at a query all of whose keys are hidden.",
        "`torch.finfo(scores.dtype).min` is the lowest number of whatever precision comes in. "
        "A row of nothing but that number is still a row of equal scores.",
        "Hide with that number before the softmax and with `.masked_fill(~mask, 0.0)` after it.",
    ),
    invariants=(rules.empty_rows_get_nothing,),
)
def half_precision_weights(scores, mask):
    """Return a softmax over the keys that the mask allows, in any precision."""
    mask = choose(mask, inverted=~mask)
    lowest = choose(
        torch.finfo(scores.dtype).min,
        minus_1e9_alone=-1e9,
        minus_1e9=-1e9,
        minus_infinity=-math.inf,
        not_low_enough=-5.0,
        highest=torch.finfo(scores.dtype).max,
        tiny=torch.finfo(scores.dtype).tiny,
    )
    masked = _hidden(scores, mask, lowest)
    shares = _shares(masked)
    some = mask.any(-1, keepdim=True)  # may see at least one key
    hidden_0 = shares.masked_fill(~mask, 0.0)
    e = scores.exp() * mask
    return choose(
        hidden_0,
        shares.masked_fill(~some, 0.0),
        minus_1e9_alone=shares,
        minus_infinity=shares,
        empty_rows_even=shares,
        renormalized=hidden_0 / hidden_0.sum(-1, keepdim=True),
        renormalized_with_care=F.normalize(hidden_0, p=1, dim=-1),
        naive_and_masked_after=e / (e.sum(-1, keepdim=True) + 1e-20),
        one_empty_row_empties_all=hidden_0.masked_fill(~some.all(), 0.0),
    )


@repaired(
    make_inputs=inputs.cut_inputs,
    draws=7,
    returns={"heads": "head n d_head"},
    hints=(
        "`view` moves no number: it cuts them in the order in which they lie in memory.",
        "Cut the last axis first: (n, head, d_head). Then no number has left its token.",
        "`x.view(n, n_heads, d_model // n_heads).transpose(0, 1)`",
    ),
    invariants=(rules.rows_keep_their_token,),
)
def cut_into_heads(x, n_heads):
    """Return each head's own d_model / n_heads numbers of every token."""
    n, d_model = x.shape
    d_head = d_model // n_heads
    cut = choose(
        x.reshape(n, n_heads, d_head),
        dealt_out=x.reshape(n, d_head, n_heads).mT,
        sizes_exchanged=x.reshape(n, d_head, n_heads),
        last_head_first=x.reshape(n, n_heads, d_head).flip(1),
        whole_tokens=x[:, None].expand(n, n_heads, d_model),
    )
    heads = choose(
        cut.transpose(0, 1),
        no_transpose=x.reshape(n_heads, n, d_head),
        turned_before_the_cut=x.T.reshape(n_heads, n, d_head),
        tokens_in_front=cut,
        tokens_last=cut.permute(1, 2, 0),
        numbers_in_front=cut.permute(2, 0, 1),
        numbers_before_heads=cut.mT,
        tokens_shared_out=x.reshape(n_heads, -1, d_model),
    )
    return choose(
        heads,
        listed=list(heads),
        first_head=heads[0],
        batch_axis=heads[None],
        squeezed=heads.squeeze(),
        squeezed_heads=heads.squeeze(0),
        joined_again=heads.flatten(0, 1),
    )


@repaired(
    make_inputs=inputs.matrices_inputs,
    draws=5,
    returns={"heads": "batch head n d_head"},
    hints=(
        "The numbers are right. What is done as often as there are heads?",
        "W_Q has shape (head, d_model, d_head), and attention takes (batch, head, n, d_head) as "
        "it is. Only the products with x are missing, for all heads at once.",
        '`torch.einsum("bnd,hdk->bhnk", x, W_Q)`, the same for K and V, and one attention.',
    ),
    invariants=(rules.operations_do_not_grow,),
)
def all_heads(x, W_Q, W_K, W_V):
    """Return the results of all heads at once."""
    Q = _projected(x, W_Q)
    K = _projected(x, choose(W_K, queries_as_keys=W_Q, exchanged=W_V))
    V = _projected(x, choose(W_V, keys_as_values=W_K, exchanged=W_K))
    width = choose(Q.size(-1), d_model=x.size(-1), unscaled=1, number_of_heads=len(W_Q))
    scores = Q @ K.mT / width**0.5
    scores = choose(scores, shared_weights=scores.mean(dim=1, keepdim=True))
    weights = choose(
        scores.softmax(-1),
        over_queries=scores.softmax(-2),
        over_heads=scores.softmax(1),
        over_sentences=scores.softmax(0),
        no_softmax=scores,
    )
    V = choose(V, first_values=V[:, :1].expand_as(V))
    heads = choose(
        weights @ V,
        loop=torch.stack([weights[:, i] @ V[:, i] for i in range(V.size(1))], dim=1),
    )
    return choose(
        heads,
        compared_with_each_other_and_turned=heads.transpose(1, 2),
        tokens_before_heads=heads.transpose(1, 2),
        heads_in_front=heads.transpose(0, 1),
        side_by_side=heads.transpose(1, 2).flatten(2),
        pair=(heads, weights),
        weights_returned=weights,
        added_up=heads.sum(1),
        averaged=heads.mean(1),
        one_head=heads[:, 0],
        last_head=heads[:, -1],
    )


def _projected(x, W):
    """Return x times each head's matrix, shape (batch, head, n, d_head)."""
    (batch, n, d_model), (n_heads, _, d_head) = x.shape, W.shape
    joined = W.transpose(0, 1).reshape(d_model, -1)  # the heads' columns side by side
    return choose(
        torch.einsum("bnd,hdk->bhnk", x, W),
        sentences_meet_heads=x @ W,
        compared_with_each_other=torch.einsum("bnd,hdk->bnhk", x, W),
        compared_with_each_other_and_turned=torch.einsum("bnd,hdk->bnhk", x, W),
        not_cut_again=(x @ joined)[:, None],
        view_without_transpose=(x @ joined).reshape(batch, n_heads, n, d_head),
        matrices_joined_by_view=(x @ W.reshape(d_model, -1))
        .unflatten(-1, (n_heads, d_head))
        .transpose(1, 2),
        dealt_out=(x @ joined).unflatten(-1, (d_head, n_heads)).permute(0, 3, 1, 2),
    )


@repaired(
    make_inputs=inputs.linear_inputs,
    draws=8,
    returns={"linear": ""},
    hints=(
        "Linear means f(x + y) = f(x) + f(y). What is f here, and where does its x go?",
        "In self-attention one x is query, key and value. In this test only the values become "
        "x + y: the weights stay.",
        "`attend(x + y, x + y, x + y)` against `attend(x, x, x) + attend(y, y, y)`.",
    ),
    invariants=(rules.softmax_is_not_linear,),
)
def is_linear(attend, x, y):
    """Return whether self-attention of a sum is the sum of the self-attentions."""
    z = x + y
    Q, K = choose(
        (z, z),
        values_alone=(x, x),
        queries_still=(x, z),
        keys_still=(z, x),
        sum_half_mended=(x, x),
    )
    together = attend(Q, K, z)
    Q, K = choose(
        (y, y),
        values_alone=(x, x),
        queries_still=(x, y),
        keys_still=(y, x),
        second_half_mended=(x, x),
    )
    apart = choose(attend(x, x, x) + attend(Q, K, y), second_left_out=attend(x, x, x))
    together, apart = choose(
        (together, apart),
        doubling=(attend(2 * x, 2 * x, 2 * x), 2 * attend(x, x, x)),
        negative=(attend(-x, -x, -x), -attend(x, x, x)),
    )
    close = (together - apart).abs() < 1e-5
    return choose(
        torch.allclose(together, apart, atol=1e-5),
        no_room=torch.equal(together, apart),
        inverted=not torch.allclose(together, apart, atol=1e-5),
        number_by_number=close,
        any_number=bool(close.any()),
        token_by_token=close.all(-1),
        difference=together - apart,
        words=str(torch.allclose(together, apart, atol=1e-5)),
    )


@repaired(
    make_inputs=inputs.parameters_inputs,
    draws=4,
    returns={"count": ""},
    hints=(
        "What does a token look like when it comes to a head, and what when it has been projected?",
        "It comes with d_model numbers and leaves with d_k.",
        "One matrix of one head holds `d_model * d_k` numbers.",
    ),
    invariants=(rules.cutting_changes_nothing,),
)
def projection_parameters(d_model, n_heads):
    """Return how many numbers W_Q, W_K and W_V of all heads hold together."""
    d_k = choose(d_model // n_heads, fraction=d_model / n_heads)
    one = choose(
        d_model * d_k,
        square_of_d_k=d_k * d_k,
        whole_width=d_model * d_model,
        heads_by_d_k=n_heads * d_k,
        added=d_model + d_k,
    )
    bias = choose(0, biases=d_k, one_bias=1)
    matrices = choose(3, two_matrices=2, one_matrix=1, output_too=4)
    return n_heads * matrices * (one + bias)


@repaired(
    make_inputs=inputs.formula_inputs,
    draws=4,
    returns={"encoding": "n_positions d_model"},
    hints=(
        "The formula has sines at 2i and cosines at 2i + 1, with i from 0. And positions?",
        "Row 0 of the tensor is position 0, column 0 is dimension 0: both ranges begin at 0.",
        "`for pos in range(n_positions)`, `for column in range(d_model)`, and "
        "`encoding[pos, column]`.",
    ),
    invariants=(rules.first_row_is_angle_zero,),
)
def encoding_by_formula(n_positions, d_model):
    """Return sines in even columns, cosines in odd ones; both count from 0."""
    encoding = torch.zeros(n_positions, d_model)
    rows = choose(range(n_positions), first_row_empty=range(1, n_positions))
    rows = choose(rows, last_row_empty=rows[:-1])
    columns = choose(range(d_model), first_column_empty=range(1, d_model))
    columns = choose(columns, last_column_empty=columns[:-1])
    for row in rows:
        for column in columns:
            pos = choose(row, positions_from_1=row + 1, both_from_1=row + 1)
            place = choose(column, columns_from_1=column + 1, both_from_1=column + 1)
            angle = _angle(pos, place, d_model)
            is_even = choose(place % 2 == 0, side_by_side=place < d_model // 2)
            value = choose(
                math.sin(angle) if is_even else math.cos(angle),
                exchanged=math.cos(angle) if is_even else math.sin(angle),
                all_sines=math.sin(angle),
                all_cosines=math.cos(angle),
            )
            target = choose(row, rows_one_early=row - 1)
            encoding[target, choose(column, columns_one_early=column - 1)] = value
    return choose(
        encoding, turned=encoding.T, batch_axis=encoding[None], whole_numbers=encoding.long()
    )


def _angle(pos, column, d_model):
    """Return the angle of a position in a column."""
    two_i = choose(
        2 * (column // 2),
        frequency_of_its_own=column,
        twice_the_exponent=4 * (column // 2),
        half_the_exponent=column // 2,
        side_by_side=2 * (column % (d_model // 2)),
        twice_the_column=2 * column,
        pairs_from_1=2 * (column // 2 + 1),
    )
    speed = choose(10000, base_1000=1000, base_100000=100000) ** (two_i / d_model)
    return choose(pos / speed, multiplied=pos * speed, cut_to_whole=pos // speed)


@repaired(
    make_inputs=inputs.any_width_inputs,
    draws=6,
    returns={"encoding": "n_positions d_model"},
    hints=(
        "Of 5 columns, how many are even and how many are odd?",
        "`encoding[:, 1::2]` has `d_model // 2` columns, and `angle` one more when d_model is odd.",
        "Leave the last cosine out: `angle.cos()[:, : d_model // 2]`.",
    ),
)
def encoding_of_any_width(n_positions, d_model):
    """Return sines and cosines in turn; an odd width ends in a sine without its cosine."""
    two_i = torch.arange(0, d_model, 2)  # 0, 2, 4, ...
    exponent = two_i / choose(
        d_model,
        next_even_width=d_model + d_model % 2,
        even_width_before=max(d_model - d_model % 2, 1),
        twice_the_exponent=d_model / 2,
        half_the_exponent=2 * d_model,
    )
    pos = torch.arange(n_positions)[:, None]
    angle = choose(pos, positions_from_1=pos + 1) / 10000**exponent
    sines, cosines = choose(
        (angle.sin(), angle.cos()),
        cosine_first=(angle.cos(), angle.sin()),
        all_sines=(angle.sin(), angle.sin()),
    )
    width = choose(d_model, rounded_up=d_model + d_model % 2, rounded_down=d_model - d_model % 2)
    room = width // 2
    encoding = torch.zeros(n_positions, width)
    encoding[:, 0::2] = choose(
        sines[:, : width - room],
        empty_last_column=F.pad(sines[:, :room], (0, width % 2)),
        ends_in_a_cosine=torch.cat([sines[:, :room], cosines[:, room:]], dim=1),
    )
    encoding[:, 1::2] = choose(
        cosines[:, :room],
        too_many=cosines,
        always_one_fewer=cosines[:, :-1],
        first_one_left_out=cosines[:, -room:] if room else cosines[:, :0],
        no_cosines=0.0,
    )
    return choose(
        encoding,
        side_by_side=torch.cat([sines, cosines], dim=1)[:, :d_model],
        turned=encoding.T,
        batch_axis=encoding[None],
    )


@repaired(
    make_inputs=inputs.table_inputs,
    draws=7,
    returns={"x": "batch n d_model"},
    hints=(
        "x has shape (batch, n, d_model). Which of these axes is the place in the sentence?",
        "`x.size(0)` counts sentences. And without an axis in the middle, (n, d_model) broadcasts "
        "over the batch by itself.",
        "`x + table[: x.size(1)]`",
    ),
    invariants=(rules.same_sentence_same_vectors,),
)
def add_positions(x, table):
    """Return x with row i of the table added to token i of every sentence."""
    batch, n, d_model = x.shape
    rows = choose(
        table[:n],
        per_sentence=table[:batch, None],
        tokens_in_front=table[:n, None],
        cut_at_the_batch=table[:batch],
        cut_at_the_width=table[:d_model],
        whole_table=table,
        from_1=table[1 : n + 1],
        end_of_the_table=table[-n:],
        row_n=table[n],
        last_row=table[n - 1],
        first_row=table[0],
        backwards=table[:n].flip(0),
        counted_on=table[: batch * n].view(batch, n, d_model),
        one_number_each=table[:n, :1],
    )
    return choose(
        x + rows,
        positions_alone=rows.expand(batch, -1, -1),
        rows_alone=rows,
        x_alone=x,
        multiplied=x * rows,
        subtracted=x - rows,
        added_twice=x + 2 * rows,
        scaled=x * math.sqrt(d_model) + rows,
        side_by_side=torch.cat([x, rows.expand(batch, n, d_model)], dim=-1),
        first_sentence=x[:1] + rows,
        summed=(x + rows).sum(0),
    )


@repaired(
    make_inputs=inputs.frequency_inputs,
    draws=4,
    returns={"frequencies": "pair"},
    hints=(
        "10000^(-2i / d_model) has 2i in the exponent. Where is it in this code?",
        "exp(a · b) is not a · exp(b). Each entry needs an exponent of its own, and a minus.",
        "`torch.exp(two_i * (-math.log(10000.0) / d_model))`",
    ),
    invariants=(rules.fastest_comes_first,),
)
def frequencies(d_model):
    """Return exp(-2i ln(10000) / d_model), pair by pair."""
    two_i = choose(
        torch.arange(0, d_model, 2),
        every_column=torch.arange(d_model),
        counted_from_1=torch.arange(1, d_model, 2),
        counted_from_2=torch.arange(2, d_model + 1, 2),
    )
    share = choose(
        two_i / d_model,
        i_alone=two_i / 2 / d_model,
        half_of_d_model=2 * two_i / d_model,
        one_column_fewer=two_i / (d_model - 1),
        ends_at_10000=two_i / max(1, d_model - 2),
        not_divided=two_i,
        whole_division=two_i // d_model,
        upside_down=d_model / two_i,
    )
    log = _log()
    sign = choose(-1, no_minus=1)
    speeds = choose(
        torch.exp(sign * share * log),
        one_factor=two_i * math.exp(sign * log / d_model),
        one_factor_below=1 / (two_i * math.exp(-sign * log / d_model)),
        divided_afterwards=torch.exp(sign * two_i * log) / d_model,
        factor_afterwards=torch.exp(two_i) * sign * log / d_model,
        exponent_alone=sign * share * log,
        exponent_of_10=10 ** (sign * share * log),
    )
    return choose(
        speeds,
        turns_not_radians=speeds / (2 * math.pi),
        times_2_pi=speeds * 2 * math.pi,
        slowest_first=speeds.flip(0),
        each_twice=speeds.repeat_interleave(2),
        column=speeds[:, None],
        row=speeds[None],
    )


def _log():
    """Return the natural logarithm of the base."""
    return choose(
        math.log(10000.0),
        to_base_10=math.log10(10000.0),
        to_base_2=math.log2(10000.0),
        a_thousand=math.log(1000.0),
        exponent_of_10=math.log(10000.0),  # with the logarithm to its base it would be right
    )


@repaired(
    make_inputs=inputs.add_inputs,
    draws=4,
    returns={"output": "batch n d_model"},
    hints=(
        "Dropout makes holes. The next sub-layer should get what the norm promises: for each "
        "token mean 0 and deviation 1. So which of the two comes last?",
        "The residual path carries x past the sub-layer whole. Only what the sub-layer adds "
        "may lose numbers.",
        "Dropout acts on `sublayer(x)` alone: `norm(x + dropout(sublayer(x)))`.",
    ),
    invariants=(rules.ends_with_the_norm, rules.silent_sublayer),
)
def add_and_norm(x, sublayer, dropout, norm):
    """Return norm(x + dropout(sublayer(x)))."""
    read = choose(
        x,
        pre_norm=norm(x),
        norm_before_and_after=norm(x),
        dropout_on_input=dropout(x),
        dropout_before_and_after=dropout(x),
    )
    branch = choose(sublayer(read), no_sublayer=read, norm_on_branch_first=norm(sublayer(read)))
    dropped = choose(
        dropout(branch),
        no_dropout=branch,
        dropout_on_input=branch,
        dropout_on_sum=branch,
        dropout_on_residual=branch,
        dropout_after_norm=branch,
        dropout_twice=dropout(dropout(branch)),
    )
    total = choose(
        x + dropped,
        no_residual=dropped,
        norm_of_branch=x + norm(dropped),
        norm_of_residual=norm(x) + dropped,
        dropout_on_sum=dropout(x + dropped),
        dropout_on_residual=dropout(x) + dropped,
        added_twice=2 * x + dropped,
        subtracted=x - dropped,
    )
    return choose(
        norm(total),
        no_norm=total,
        pre_norm=total,
        norm_of_branch=total,
        norm_of_residual=total,
        dropout_after_norm=dropout(norm(total)),
        dropout_once_more=dropout(norm(total)),
        residual_after_norm=x + norm(total),
        squeezed=norm(total).squeeze(),
    )


@repaired(
    make_inputs=inputs.close_inputs,
    draws=4,
    returns={"output": "batch n d_model"},
    hints=(
        "What `nn.Dropout(0.3)` returns is a new module. It is in training mode, whatever "
        "the model is in.",
        "What `nn.LayerNorm(...)` returns is a new module too, with scale 1 and shift 0. What "
        "the optimizer trained lies in another one.",
        "The block was made once and has both: `block.dropout` and `block.norm`.",
    ),
    invariants=(rules.same_twice, rules.norm_is_trained),
)
def close_branch(x, branch, block):
    """Return block.norm(x + block.dropout(branch))."""
    dropout = choose(
        block.dropout,
        both_new=nn.Dropout(0.3),
        new_dropout=nn.Dropout(0.3),
        new_dropout_of_one_half=nn.Dropout(),
        new_dropout_in_its_mode=nn.Dropout(0.3).train(block.training),
        put_into_training=block.train().dropout,
        no_dropout=nn.Identity(),
    )
    norm = choose(block.norm, both_new=nn.LayerNorm(x.size(-1)), new_norm=nn.LayerNorm(x.size(-1)))
    branch = choose(branch, norm_on_branch_first=norm(branch))
    dropped = choose(
        dropout(branch),
        dropout_on_sum=branch,
        dropout_on_residual=branch,
        dropout_after_norm=branch,
        dropout_twice=dropout(dropout(branch)),
    )
    total = choose(
        x + dropped,
        no_residual=dropped,
        dropout_on_sum=dropout(x + dropped),
        dropout_on_residual=dropout(x) + dropped,
        subtracted=x - dropped,
    )
    return choose(
        norm(total),
        no_norm=total,
        norm_of_branch=x + norm(dropped),
        norm_of_residual=norm(x) + dropped,
        norm_twice=norm(norm(total)),
        dropout_after_norm=dropout(norm(total)),
        dropout_once_more=dropout(norm(total)),
        squeezed=norm(total).squeeze(),
    )


@repaired(
    make_inputs=inputs.last_inputs,
    draws=5,
    returns={"logits": "batch vocab_size"},
    hints=(
        "Logits are any numbers, negative ones too. Do yours look like that?",
        "Whoever gets logits does the softmax: the loss, or the one who samples. Done twice, "
        "it makes all tokens nearly alike.",
        "The projection of the last position is the result: `x[:, -1] @ W + b`.",
    ),
    invariants=(rules.are_no_probabilities,),
)
def last_logits(x, W, b):
    """Return the projection of each text's last position."""
    last = choose(
        x[:, -1],
        first_position=x[:, 0],
        last_but_one=x[:, -2],
        every_position=x,
        axis_kept=x[:, -1:],
        last_sentence=x[-1],
        mean_of_positions=x.mean(1),
        sum_of_positions=x.sum(1),
    )
    logits = choose(
        last @ W + b,
        no_bias=last @ W,
        bias_subtracted=last @ W - b,
        bias_multiplied=last @ W * b,
    )
    return choose(
        logits,
        probabilities=logits.softmax(-1),
        log_probabilities=logits.log_softmax(-1),
        over_batch=logits.softmax(0),
        softmax_twice=logits.softmax(-1).softmax(-1),
        sigmoid=logits.sigmoid(),
        relu=logits.relu(),
        tanh=logits.tanh(),
        scaled=logits / math.sqrt(W.size(0)),
        exponential=logits.exp(),
        largest_is_0=logits - logits.amax(-1, keepdim=True),
        ids=logits.argmax(-1),
        largest=logits.amax(-1),
        squeezed=logits.squeeze(),
    )


@repaired(
    make_inputs=inputs.target_inputs,
    draws=6,
    returns={"targets": "n n_classes"},
    hints=(
        "In PyTorch's convention the smoothing is mixed in: (1 - smoothing) of the label, "
        "plus smoothing of a distribution that is even over all classes.",
        "Even over all classes means 1 / n_classes for each, the label too. So how much does "
        "the label have in the end?",
        "Fill with `smoothing / n_classes`, then add `1 - smoothing` at the labels (`+=`).",
    ),
    invariants=(rules.rows_sum_to_one, rules.all_spread),
)
def smoothed_targets(labels, n_classes, smoothing):
    """Return (1 - smoothing) of the label and smoothing of all classes evenly."""
    one_hot = F.one_hot(labels, n_classes)
    at_label = choose(
        one_hot,
        every_row=one_hot.amax(0).expand(one_hot.shape),
        other_classes=1 - one_hot,
    )
    share = _share(len(labels), n_classes, smoothing)
    kept = choose(
        1 - smoothing,
        gives_nothing=1.0,
        gives_one_share=1 - smoothing / n_classes,
        no_smoothing=1.0,
        changed_round=smoothing,
        label_forgotten=0.0,
    )
    targets = choose(
        share + kept * at_label,
        others_only=torch.where(at_label.bool(), kept, share),
        written_over=torch.where(at_label.bool(), kept, share),
        annotated=torch.where(at_label.bool(), kept, share),
        label_alone_repaired=torch.where(at_label.bool(), kept + smoothing / n_classes, share),
        share_twice=share + (kept + share) * at_label,
        others_get_nothing=(share + kept) * at_label,
    )
    targets = choose(
        targets,
        logarithms=targets.log(),
        another_softmax=targets.softmax(-1),
        whole_numbers=targets.long(),
        annotated=targets.masked_fill(torch.arange(n_classes) == 0, 0.0),
    )
    return choose(targets, turned=targets.mT, batch_axis=targets[None])


def _share(n_labels, n_classes, smoothing):
    """Return what every class gets of the smoothing."""
    return choose(
        smoothing / n_classes,
        others_only=smoothing / (n_classes - 1),
        one_too_few=smoothing / (n_classes - 1),
        label_alone_repaired=smoothing / (n_classes - 1),
        annotated=smoothing / max(1, n_classes - 2),
        nothing_spread=0.0,
        one_too_many=smoothing / (n_classes + 1),
        not_shared=smoothing,
        shared_among_labels=smoothing / n_labels,
        whole_even_share=1 / n_classes,
        no_smoothing=0.0,
        changed_round=(1 - smoothing) / n_classes,
    )


@repaired(
    make_inputs=inputs.loss_inputs,
    draws=6,
    returns={"loss": ""},
    hints=(
        "Probabilities lie between 0 and 1. As logits that is a very narrow range: how far "
        "apart can a softmax of them get?",
        "`F.cross_entropy` does log_softmax itself. How many softmaxes are there in total?",
        "Give it what the model gives: `F.cross_entropy(logits.flatten(0, 1), labels.flatten())`.",
    ),
    invariants=(rules.sure_and_right,),
)
def next_token_loss(logits, labels):
    """Return the mean cross-entropy of the logits."""
    logits, labels = choose(
        (logits, labels),
        shifted_again=(logits[:, :-1], labels[:, 1:]),
        shifted_back=(logits[:, 1:], labels[:, :-1]),
        last_token_only=(logits[:, -1:], labels[:, -1:]),
        first_sentence_only=(logits[:1], labels[:1]),
    )
    scores = choose(
        logits,
        softmax_first=logits.softmax(-1),
        sigmoid_first=logits.sigmoid(),
        softmax_over_tokens=logits.softmax(1),
        softmax_over_sentences=logits.softmax(0),
        two_softmaxes_first=logits.softmax(-1).softmax(-1),
        negative_logits=-logits,
        over_positions=logits.log_softmax(1),
    )
    vocab_size = scores.size(-1)
    flat = choose(
        scores.reshape(-1, vocab_size),
        viewed=scores.reshape(len(scores), vocab_size, -1).mT.reshape(-1, vocab_size),
        tokens_first=scores.transpose(0, 1).reshape(-1, vocab_size),
    )
    right = labels.flatten()
    losses = choose(
        F.cross_entropy(flat, right, reduction="none"),
        no_logarithm=F.nll_loss(flat.softmax(-1), right, reduction="none"),
        softmax_then_log=F.nll_loss(flat.softmax(-1).log(), right, reduction="none"),
        no_softmax=F.nll_loss(flat, right, reduction="none"),
        over_positions=F.nll_loss(flat, right, reduction="none"),
        one_minus_probability=1 + F.nll_loss(flat.softmax(-1), right, reduction="none"),
        squared_error=(flat.softmax(-1) - F.one_hot(right, vocab_size)).square().mean(-1),
        smoothed=F.cross_entropy(flat, right, label_smoothing=0.1, reduction="none"),
        id_0_left_out=F.cross_entropy(flat, right, ignore_index=0, reduction="none")[right != 0],
    )
    return _of_all(losses, labels, vocab_size)


def _of_all(losses, labels, vocab_size):
    """Return the mean of all tokens' losses."""
    losses = choose(losses, other_sign=-losses)
    return choose(
        losses.mean(),
        sum_of_tokens=losses.sum(),
        sum_per_sentence=losses.sum() / len(labels),
        mean_per_class=losses.mean() / vocab_size,
        each_token=losses.view(labels.shape),
        each_sentence=losses.view(labels.shape).mean(-1),
        largest=losses.max(),
        bits=losses.mean() / math.log(2),
        perplexity=losses.mean().exp(),
    )


@repaired(
    make_inputs=inputs.text_inputs,
    draws=8,
    returns={"ids": "token"},
    hints=(
        "Nothing in a model ends a loop. Who looks at the token that was written?",
        "Look at the token that was appended, not at the prompt: an `<eos>` may stand there. "
        "The `<eos>` that ends the text stays in the list.",
        "After the append: `if ids[-1] == eos_id: break`.",
    ),
    invariants=(rules.stops_at_the_end,),
)
def continue_text(next_logits, prompt, eos_id, max_new_tokens):
    """Append the likeliest token until one is `<eos>`, at most max_new_tokens of them."""
    n = len(prompt)
    most = choose(
        max_new_tokens,
        prompt_counted=max_new_tokens - n,
        one_fewer=max_new_tokens - 1,
        one_more=max_new_tokens + 1,
        at_least_one=max(1, max_new_tokens),
        no_maximum=100,
    )
    ids = list(prompt)
    for _ in range(most):
        if choose(False, asks_first=ids[-1] == eos_id, asks_prompt_first=eos_id in ids):
            break
        read = choose(ids, last_token=ids[-1:], prompt_only=prompt, without_prompt=ids[n:] or ids)
        logits = next_logits(read)
        ids.append(int(choose(logits.argmax(), least_likely=logits.argmin())))
        if choose(
            ids[-1] == eos_id,
            never_looks=False,
            one_after_end=eos_id in ids[n:-1],
            token_before=ids[-2] == eos_id,
            end_in_prompt=eos_id in ids,
            prompt_asked=eos_id in prompt,
            inverted=ids[-1] != eos_id,
            end_is_0=ids[-1] == 0,
            end_0_is_none=eos_id and ids[-1] == eos_id,
            one_token=True,
        ):
            break
    return _handed_over(ids, n, eos_id)


def _handed_over(ids, n, eos_id):
    """Return all tokens, the prompt's n and the new ones."""
    ended = len(ids) > n and ids[-1] == eos_id
    ids = choose(
        ids,
        end_not_kept=ids[:-1] if ended else ids,
        every_end_removed=[token for token in ids if token != eos_id],
        end_appended=ids if ended else [*ids, eos_id],
        end_doubled=[*ids, eos_id],
        last_always_cut=ids[:-1],
        cut_before_first_end=ids[: ids.index(eos_id)] if eos_id in ids else ids,
        cut_at_first_end=ids[: ids.index(eos_id) + 1] if eos_id in ids else ids,
    )
    return choose(ids, new_tokens_only=ids[n:], last_one_only=ids[-1])


@repaired(
    make_inputs=inputs.word_inputs,
    draws=7,
    returns={"ids": "token"},
    hints=(
        "What does a dictionary's `get` return for a word that it does not have?",
        "Every word has to become an id, and an unknown one the id that says so. Leaving it "
        "out would change the sentence without a trace.",
        "`get` takes a second argument, what to return for a missing key: "
        "`vocabulary.get(word, unk_id)`. (`or unk_id` would also replace id 0.)",
    ),
)
def look_up(words, vocabulary, unk_id):
    """Return one id per word, `unk_id` for a word that the vocabulary does not have."""
    words = choose(
        words,
        each_word_once=list(dict.fromkeys(words)),
        letters=list("".join(words)),
        in_another_order=sorted(words),
        stops_at_unknown=list(takewhile(vocabulary.__contains__, words)),
        ends_with_unknown=words[: len(list(takewhile(vocabulary.__contains__, words))) + 1],
        lowered=[word.lower() for word in words],
    )
    ids = [
        choose(
            vocabulary.get(word, unk_id),
            becomes_none=vocabulary.get(word),
            raises_an_error=vocabulary[word],
            id_0_missing=vocabulary.get(word) or unk_id,
            id_0_for_unknown=vocabulary.get(word, 0),
            minus_1_for_unknown=vocabulary.get(word, -1),
            last_row=vocabulary.get(word, len(vocabulary) - 1),
            past_the_end=vocabulary.get(word, len(vocabulary)),
            last_id=vocabulary.get(word, max(vocabulary.values())),
            word_for_unknown=vocabulary.get(word, "<unk>"),
            all_unknown=unk_id,
            inverted=unk_id if word in vocabulary else vocabulary.get(word),
        )
        for word in words
        if choose(True, left_out=word in vocabulary, id_0_left_out=vocabulary.get(word))
    ]
    known = all(word in vocabulary for word in words)
    return choose(
        ids,
        one_makes_all_unknown=ids if known else [unk_id] * len(ids),
        tensor=torch.tensor(ids),
        first_only=ids[0] if ids else ids,
        last_only=ids[-1] if ids else ids,
    )


@repaired(
    make_inputs=inputs.fill_inputs,
    draws=6,
    returns={"ids": "batch length"},
    hints=(
        "`len` of a tensor is the size of its first axis. What does that axis count here?",
        "`best` holds one token for each text, shape (batch,). To stand at the end of each "
        "row it needs shape (batch, 1). Which one does `unsqueeze(0)` make?",
        "`length - start.size(1)` rounds, and `best.unsqueeze(1)`.",
    ),
)
def fill_up(next_logits, start, length):
    """Append the likeliest token to every text of a batch until all have `length` tokens."""
    rounds = choose(
        length - start.size(1),
        both_axes=length - len(start),
        texts_counted=length - len(start),
        all_numbers_counted=length - start.numel(),
        new_tokens_only=length,
        at_least_one=max(1, length - start.size(1)),
        round_too_few=length - start.size(1) - 1,
        round_too_many=length - start.size(1) + 1,
    )
    ids = start
    for _ in range(rounds):
        read = choose(ids, last_token=ids[:, -1:], start_only=start)
        logits = next_logits(read)
        best = choose(
            logits.argmax(-1),
            one_for_all=logits.argmax().expand(len(ids)),
            best_of_all=(logits.argmax() % logits.size(-1)).expand(len(ids)),
            of_first_text=logits[0].argmax().expand(len(ids)),
            of_last_text=logits[-1].argmax().expand(len(ids)),
            over_texts=logits.argmax(0),
            least_likely=logits.argmin(-1),
        )
        column = choose(
            best.unsqueeze(1),
            both_axes=best.unsqueeze(0),
            row=best.unsqueeze(0),
            row_for_every_text=best.expand(len(ids), -1),
        )
        ids = choose(
            torch.cat([ids, column], dim=1),
            in_front=torch.cat([column, ids], dim=1),
            below=torch.cat([ids, column], dim=0),
            window=torch.cat([ids[:, 1:], column], dim=1),
        )
        if choose(False, one_round=True):
            break
    return choose(ids, start_cut_off=ids[:, start.size(1) :], last_column=ids[:, -1:])


@repaired(
    make_inputs=inputs.message_inputs,
    draws=4,
    returns={"message": ""},
    hints=(
        "Print `table[1]` and `table.shape`. Which of them holds two numbers?",
        "The table has shape (n_positions, d_model). You want the second of these sizes.",
        "`table.shape[1]` instead of `table[1]`.",
    ),
    invariants=(rules.names_two_widths,),
)
def width_message(x, table):
    """Return the sentence with the two widths in it."""
    expected = choose(
        table.shape[1],
        row_of_table=table[1],
        column_of_table=table[:, 1],
        first_row=table[0],
        last_row=table[-1],
        shape_of_row=table[1].shape,
        number_of_positions=table.shape[0],
        whole_shape=table.shape,
        whole_shape_in_brackets=tuple(table.shape),
        one_number=table[1, 1],
        all_numbers=table.numel(),
        axes_of_table=table.dim(),
        changed_round=x.shape[-1],
    )
    got = choose(
        x.shape[-1],
        changed_round=table.shape[1],
        number_of_tokens=x.shape[1],
        number_of_sentences=x.shape[0],
        shape_of_x=x.shape,
        axes_of_x=x.dim(),
        all_numbers_of_x=x.numel(),
        last_vector=x[-1],
    )
    message = f"Expected vectors of {expected} numbers, but got {got}."
    return choose(
        message,
        no_comma=f"Expected vectors of {expected} numbers but got {got}.",
        no_period=message[:-1],
        space_at_the_end=f"{message} ",
        no_braces="Expected vectors of {table.shape[1]} numbers, but got {x.shape[-1]}.",
        two_numbers=(expected, got),
    )


@repaired(
    make_inputs=inputs.listing_inputs,
    draws=4,
    returns={"logits": "batch n vocab_size"},
    hints=(
        "Run it on any model with these parts and read the error: which name is missing, and "
        "which ones are there? Then run it again.",
        "A function that ends without `return` returns `None`, whatever it has computed.",
        "`model.embedding(ids)` in the first line, `return model.out(x)` in the last.",
    ),
)
def run_listing(model, ids):
    """Return what embedding, layers and projection make of the ids."""
    x = choose(
        model.embedding(ids),
        other_name=model.embed(ids),
        nothing_repaired=model.embed(ids),
    )
    layers = choose(
        model.layers,
        return_in_loop=model.layers[:1],
        last_one_missing=model.layers[:-1],
        first_one_missing=model.layers[1:],
        reads_embedding=model.layers[-1:],
        only_two=model.layers[:2],
        thrown_away=model.layers[:0],
        other_order=model.layers[::-1],
        twice=model.layers * 2,
    )
    for layer in layers:
        x = choose(layer(x), residual=x + layer(x))
    logits = model.out(x)
    return choose(
        logits,
        nothing_returned=None,
        nothing_repaired=None,
        before_projection=x,
        probabilities=logits.softmax(-1),
        log_probabilities=logits.log_softmax(-1),
        last_position=logits[:, -1],
        ids=logits.argmax(-1),
        squeezed=logits.squeeze(),
    )


@repaired(
    make_inputs=inputs.gpt2_inputs,
    draws=4,
    returns={"d_model": ""},
    hints=(
        "All four sizes of GPT-2 have heads of the same width. GPT-2 small: 12 heads and a "
        "d_model of 768.",
        "Try a width for medium, count the parameters, and compare with the 354,823,168 of "
        "the published model.",
        "1024 numbers in 16 heads, 768 in 12: `d_head = 64`.",
    ),
    invariants=(rules.weighs_what_was_published,),
)
def gpt2_d_model(n_heads):
    """Return 64 numbers for each head."""
    d_head = choose(
        64,
        heads_of_80=1280 // 16,
        heads_of_gpt3=128,
        heads_of_48=768 // 16,
        heads_of_85=1024 // 12,
        heads_of_32=32,
        heads_of_100=1600 // 16,
    )
    d_model = choose(
        n_heads * d_head,
        always_small=768,
        always_medium=1024,
        always_large=1280,
        always_xl=1600,
        head_alone=d_head,
        power_of_two=2 ** math.ceil(math.log2(n_heads * d_head)),
        head_added=n_heads + d_head,
        all_three=3 * n_heads * d_head,
        feed_forward=4 * n_heads * d_head,
        square_of_heads=4 * n_heads**2,
    )
    return choose(d_model, fraction=float(d_model), text=str(d_model))


next_probe, shifted_loss, decay_groups = hunt.next_probe, hunt.shifted_loss, hunt.decay_groups
rate_at, evaluation_loss, cached_step = hunt.rate_at, hunt.evaluation_loss, hunt.cached_step
