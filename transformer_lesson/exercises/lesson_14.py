"""Lesson 14: functions with a published bug, from masks to positions.

Long because it is twelve exercises; `lesson_14_later` has the other twelve.
"""

import math

import torch
import torch.nn.functional as F

from transformer_lesson.exercises.bug_hunt import inputs, rules
from transformer_lesson.exercises.choosing import choose
from transformer_lesson.exercises.specification import exercise
from transformer_lesson.model import masks

BUGS, REPAIRS = (f"transformer_lesson.exercises.bug_hunt.{name}:" for name in ("bugs", "repairs"))


@exercise(
    reference=REPAIRS + "gpt_block",
    start=BUGS + "gpt_block",
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


@exercise(
    reference=REPAIRS + "next_token_logits",
    start=BUGS + "next_token_logits",
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


@exercise(
    reference=REPAIRS + "mask_for_batch",
    start=BUGS + "mask_for_batch",
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


@exercise(
    reference=REPAIRS + "weights_of_real_keys",
    start=BUGS + "weights_of_real_keys",
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


@exercise(
    reference=REPAIRS + "half_precision_weights",
    start=BUGS + "half_precision_weights",
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


@exercise(
    reference=REPAIRS + "cut_into_heads",
    start=BUGS + "cut_into_heads",
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


@exercise(
    reference=REPAIRS + "all_heads",
    start=BUGS + "all_heads",
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


@exercise(
    reference=REPAIRS + "is_linear",
    start=BUGS + "is_linear",
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


@exercise(
    reference=REPAIRS + "projection_parameters",
    start=BUGS + "projection_parameters",
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


@exercise(
    reference=REPAIRS + "encoding_by_formula",
    start=BUGS + "encoding_by_formula",
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


@exercise(
    reference=REPAIRS + "encoding_of_any_width",
    start=BUGS + "encoding_of_any_width",
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


@exercise(
    reference=REPAIRS + "add_positions",
    start=BUGS + "add_positions",
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
