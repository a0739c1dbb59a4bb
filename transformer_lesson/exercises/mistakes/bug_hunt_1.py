"""Lesson 14, first part: half repairs and other bugs of masks; the other bugs joined to them."""

import math

import torch

from transformer_lesson.exercises.bug_hunt import bugs_1
from transformer_lesson.exercises.mistakes.bug_hunt_1_heads import BUG_HUNT_1_HEADS_MISTAKES
from transformer_lesson.exercises.mistakes.bug_hunt_1_positions import BUG_HUNT_1_POSITIONS_MISTAKES
from transformer_lesson.exercises.specification import Mistake
from transformer_lesson.model import masks


def block(x, attention_1, attention_2, feed_forward, mask_1, mask_2, residual=True):
    """The block with a mask for each attention, made from the causal one."""
    causal = masks.causal_mask(x.size(1))
    x = x + attention_1(x, x, x, mask_1(causal))
    x = (x if residual else 0) + attention_2(x, x, x, mask_2(causal))
    return x + feed_forward(x)


def one_attention(x, attention_1, attention_2, feed_forward):
    """The block without its second attention."""
    x = x + attention_1(x, x, x, masks.causal_mask(x.size(1)))
    return x + feed_forward(x)


def stacked(ids, embedding, blocks, projection, mask_of):
    """The model with a mask for each block: mask_of(n, number of the block)."""
    x = embedding(ids)
    for i, one in enumerate(blocks):
        x = one(x, mask_of(ids.size(1), i))
    return projection(x)


def same(mask):
    """The mask as it is."""
    return mask


def both(ids, hides_padding):
    """The causal mask and another one."""
    return masks.causal_mask(ids.size(1)) & hides_padding


def softmax_where(scores, mask, value, axis=-1):
    """Softmax with a value in the place of hidden scores."""
    return scores.masked_fill(~mask, value).softmax(dim=axis)


def first_key_for_empty_rows(scores, mask):
    """Weights that give a query without keys the first one."""
    weights = softmax_where(scores, mask, torch.finfo(scores.dtype).min).masked_fill(~mask, 0.0)
    weights[..., 0] += (~mask.any(-1)).to(scores.dtype)
    return weights


def inverted(scores, mask):
    """Weights on the keys that should be hidden."""
    lowest = torch.finfo(scores.dtype).min
    return softmax_where(scores, ~mask, lowest).masked_fill(mask, 0.0)


BUG_HUNT_1_MISTAKES = {
    "gpt_block": (
        Mistake(
            "a second attention without a mask",
            "The first attention is masked, the second lets every token see all others: one open "
            "door is enough. Where does the mask go in?",
            lambda *inputs: bugs_1.gpt_block(*inputs),
        ),
        Mistake(
            "a block without its second attention",
            "It no longer sees the future, and most decoder-only models are built so. But this "
            "model has weights for two attentions: keep both and mask the second.",
            one_attention,
        ),
        Mistake(
            "a mask moved to the second attention",
            "Now the first attention stands open. Whoever may look at all tokens needs the mask, "
            "so both do.",
            lambda *inputs: block(*inputs, lambda mask: None, same),
        ),
        Mistake(
            "an inverted second mask",
            "`True` means: may attend. The second attention sees only what comes later, which is "
            "the part to be hidden.",
            lambda *inputs: block(*inputs, same, lambda mask: ~mask),
        ),
        Mistake(
            "a second attention without its residual",
            "The mask is right, but `x` itself is not added to what the second attention collects, "
            "so the token loses what it was.",
            lambda *inputs: block(*inputs, same, same, residual=False),
        ),
    ),
    "next_token_logits": (
        Mistake(
            "a stack without a causal mask",
            "Every position sees the token that it should predict. Such a model learns to copy it "
            "and knows nothing when it must write. What does `block` take besides `x`?",
            lambda *inputs: bugs_1.next_token_logits(*inputs),
        ),
        Mistake(
            "a mask for the first block only",
            "The second block still sees the future, and passes it on. The mask belongs to every "
            "block, so into the loop.",
            lambda *inputs: stacked(*inputs, lambda n, i: None if i else masks.causal_mask(n)),
        ),
        Mistake(
            "an inverted causal mask",
            "`True` means: may attend. Your tokens see only what comes after them. Does a `~` "
            "stand where none is needed, or `triu` for `tril`?",
            lambda *inputs: stacked(*inputs, lambda n, i: ~masks.causal_mask(n)),
        ),
        Mistake(
            "a mask that hides the token itself",
            "Position i may see positions 0 to i. In yours the diagonal is hidden too: a token "
            "has to predict its successor without knowing itself.",
            lambda *inputs: stacked(
                *inputs, lambda n, i: torch.ones(1, 1, n, n, dtype=torch.bool).tril(-1)
            ),
        ),
        Mistake(
            "a mask that shows one token ahead",
            "The triangle is shifted by one, so each position sees exactly the token that it must "
            "predict. The diagonal is the last one allowed.",
            lambda *inputs: stacked(
                *inputs, lambda n, i: torch.ones(1, 1, n, n, dtype=torch.bool).tril(1)
            ),
        ),
    ),
    "mask_for_batch": (
        Mistake(
            "a causal mask alone",
            "It hides padding on the right, which comes later than every real token. Padding on "
            "the left comes earlier and is seen. Which second mask looks at `ids`?",
            lambda *inputs: bugs_1.mask_for_batch(*inputs),
        ),
        Mistake(
            "a padding mask alone",
            "Padding is hidden now and the future is open. A key must be allowed by both masks.",
            lambda ids, pad_id: masks.padding_mask(ids, pad_id).expand(-1, -1, ids.size(1), -1),
        ),
        Mistake(
            "joining the masks by or",
            "With `|` a key is seen when one of the masks allows it. It must be allowed by both: "
            "`&`.",
            lambda ids, pad_id: masks.causal_mask(ids.size(1)) | masks.padding_mask(ids, pad_id),
        ),
        Mistake(
            "padding hidden as a query",
            "Your rows of padding are empty, and the columns are still there: real tokens see "
            "padding. Keys are the last axis.",
            lambda ids, pad_id: both(ids, (ids != pad_id)[:, None, :, None]),
        ),
        Mistake(
            "an inverted padding mask",
            "Your tokens see padding and nothing else. `True` means: may attend, and `ids == "
            "pad_id` says where they may not.",
            lambda ids, pad_id: both(ids, (ids == pad_id)[:, None, None]),
        ),
        Mistake(
            "a pad id taken to be 0",
            "Padding is 0 in some vocabularies and 3 in others. Compare with the argument "
            "`pad_id`.",
            lambda ids, pad_id: both(ids, (ids != 0)[:, None, None]),
        ),
    ),
    "weights_of_real_keys": (
        Mistake(
            "a row of nothing but minus infinity",
            "Softmax divides by the sum of exp(score), and here the sum is 0: NaN. One layer "
            "later NaN reaches every token. Hide with a finite number.",
            lambda *inputs: bugs_1.weights_of_real_keys(*inputs),
        ),
        Mistake(
            "a finite number without zeros after it",
            "NaN is gone. But a row of equal scores becomes a row of equal weights: a query that "
            "may see nothing now sees everything. What is left to do after the softmax?",
            lambda scores, mask: softmax_where(scores, mask, -1e9),
        ),
        Mistake(
            "the first key for an empty row",
            "No NaN, but a query that may see nothing collects key 0, which is hidden from it. "
            "Its weights must be 0.",
            first_key_for_empty_rows,
        ),
        Mistake(
            "a mask applied after the softmax",
            "Hidden keys get 0, but they took part in the sum: what is left does not sum to 1. "
            "Hide before the softmax as well.",
            lambda scores, mask: scores.softmax(dim=-1).masked_fill(~mask, 0.0),
        ),
        Mistake(
            "an inverted mask",
            "`True` means: may attend. You give the weight to the keys that are hidden.",
            inverted,
        ),
    ),
    "half_precision_weights": (
        Mistake(
            "minus 1e9 for every precision",
            "Half precision has no -1e9 and refuses; in the others a query without keys sees all "
            "of them evenly. Ask the scores' own precision for its lowest number.",
            lambda *inputs: bugs_1.half_precision_weights(*inputs),
        ),
        Mistake(
            "a lowest number without zeros after it",
            "It fits into half precision. But a row that is hidden whole is a row of equal "
            "scores, and softmax spreads it evenly. Hidden keys need a 0 after the softmax.",
            lambda scores, mask: softmax_where(scores, mask, torch.finfo(scores.dtype).min),
        ),
        Mistake(
            "minus 1e9 with zeros after it",
            "Rows without keys are right now. But half precision ends at 65504 and refuses -1e9: "
            "ask the scores' own precision for its lowest number.",
            lambda scores, mask: softmax_where(scores, mask, -1e9).masked_fill(~mask, 0.0),
        ),
        Mistake(
            "minus infinity alone",
            "Every precision has minus infinity. But a query that sees no key divides 0 by 0 and "
            "gets NaN: what should it get?",
            lambda scores, mask: softmax_where(scores, mask, -math.inf),
        ),
        Mistake(
            "a number that is not low enough",
            "-5 fits into half precision, and exp(-5) is no 0: hidden keys get a little weight. "
            "Take the lowest number that the precision has.",
            lambda scores, mask: softmax_where(scores, mask, -5.0),
        ),
        Mistake(
            "a product of scores and mask",
            "A hidden score becomes 0, and exp(0) is 1: a hidden key may get more weight than a "
            "visible one. Replace hidden scores, do not multiply them.",
            lambda scores, mask: (scores * mask).softmax(dim=-1),
        ),
    ),
}
BUG_HUNT_1_MISTAKES |= BUG_HUNT_1_HEADS_MISTAKES | BUG_HUNT_1_POSITIONS_MISTAKES
