"""Mistakes in lesson 04: several heads."""

import math

import torch

from transformer_lesson.exercises.specification import Mistake


def view_without_transpose(x, n_heads):
    """Cut a sentence into pieces instead of cutting its tokens."""
    batch, n, d_model = x.shape
    return x.reshape(batch, n_heads, n, d_model // n_heads)


def _side_by_side(heads):
    batch, _, n, _ = heads.shape
    return heads.permute(0, 2, 1, 3).reshape(batch, n, -1)


def heads_together(
    x,
    W_Q,
    W_K,
    W_V,
    W_O,
    n_heads,
    mask=None,
    split=None,
    merge=_side_by_side,
    scale=lambda d_model, n_heads: (d_model / n_heads) ** 0.5,
    hide=lambda mask: ~mask,
):
    """Multi-head attention by einsum, with places for a bug."""
    d_model = x.size(-1)

    def parts(W):
        if split is not None:
            return split(x @ W, n_heads)
        return torch.einsum("bnd,dhk->bhnk", x, W.reshape(d_model, n_heads, -1))

    scores = torch.einsum("bhqd,bhkd->bhqk", parts(W_Q), parts(W_K)) / scale(d_model, n_heads)
    if mask is not None:
        scores = scores.masked_fill(hide(mask), -math.inf)
    return merge(scores.softmax(dim=-1) @ parts(W_V)) @ W_O


def _no_output_projection(x, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    return heads_together(x, W_Q, W_K, W_V, torch.eye(x.size(-1)), n_heads, mask)


def _transposed_weights(x, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    return heads_together(x, W_Q.T, W_K.T, W_V.T, W_O.T, n_heads, mask)


def _keys_as_values(x, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    return heads_together(x, W_Q, W_K, W_K, W_O, n_heads, mask)


def _one_head(x, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    return heads_together(x, W_Q, W_K, W_V, W_O, 1, mask)


HEAD_MISTAKES = {
    "split_heads": (
        Mistake(
            "a view without a transpose",
            "The shape is right, but the numbers are cut in the order in which they lie: head 0 "
            "gets the first tokens whole, head 1 the next ones, and no head sees the sentence. "
            "Cut the last axis only, then swap two axes.",
            view_without_transpose,
        ),
        Mistake(
            "heads that stay behind the tokens",
            "Attention works on the last two axes, and here these are (head, d_head): the heads "
            "of one token would attend to each other. Which two axes must change places after the "
            "cut?",
            lambda x, h: x.reshape(*x.shape[:2], h, -1),
        ),
        Mistake(
            "heads that take every n-th number",
            "Head 0 must get the first d_head numbers of each token, for they come from the first "
            "columns of `W_Q`. Yours deals the numbers out in turn, like cards. Which comes first "
            "in the view, head or d_head?",
            lambda x, h: x.reshape(*x.shape[:2], -1, h).permute(0, 3, 1, 2),
        ),
        Mistake(
            "n_heads and d_head in each other's place",
            "You get d_head heads with n_heads numbers each. Nothing crashes later, but each head "
            "compares tokens by too few numbers. Which of the two sizes is the argument, and "
            "which is left?",
            lambda x, h: x.reshape(*x.shape[:2], -1, h).transpose(1, 2),
        ),
        Mistake(
            "heads in front of the batch",
            "Masks broadcast over (batch, head, query, key), so they would meet the wrong axis. "
            "`chunk` and `stack` put the new axis first unless you say where. Batch stays axis 0.",
            lambda x, h: torch.stack(x.chunk(h, dim=-1)),
        ),
        Mistake(
            "numbers of a head in front of its tokens",
            "Your heads have shape (d_head, n) where (n, d_head) is wanted, so the products of "
            "attention would compare numbers instead of tokens. Look which two axes your "
            "transpose swaps.",
            lambda x, h: x.reshape(*x.shape[:2], h, -1).permute(0, 2, 3, 1),
        ),
    ),
    "merge_heads": (
        Mistake(
            "a reshape without a transpose",
            "The shape is right, but row 0 is filled with head 0's results for the first few "
            "tokens, so words get mixed. The token axis must come before the head axis before you "
            "join.",
            lambda x: x.reshape(x.size(0), x.size(2), -1),
        ),
        Mistake(
            "heads mixed number by number",
            "The rows of `W_O` expect head 0's numbers first, then head 1's. Yours take one "
            "number of each head in turn. In which order do head and d_head stand before you join "
            "them?",
            lambda x: x.permute(0, 2, 3, 1).flatten(2),
        ),
        Mistake(
            "heads added up",
            "A sum forgets which head found what, and leaves d_head numbers of d_model. The "
            "heads' results stand side by side; mixing them is the task of `W_O`.",
            lambda x: x.sum(dim=1),
        ),
        Mistake(
            "heads that are not joined",
            "The axes are in order now, but there are four of them, and the next matrix wants "
            "d_model numbers in the last. Join (head, d_head) into one.",
            lambda x: x.transpose(1, 2),
        ),
        Mistake(
            "tokens joined with heads",
            "You get a row for each head of each token, where each token needs one row. The axes "
            "to join are the last two: what does `flatten`'s argument say?",
            lambda x: x.transpose(1, 2).flatten(1, 2),
        ),
        Mistake(
            "heads joined before the tokens come forward",
            "Your head axis merges with the tokens of the same head, so the result is a longer "
            "sentence of small vectors. Transpose first, then join the last two axes.",
            lambda x: x.flatten(1, 2),
        ),
    ),
    "multi_head_attention": (
        Mistake(
            "a mask that never reaches the heads",
            "Every head sees every token: a decoder reads the future and learns nothing that "
            "helps it write. `scaled_dot_product_attention` takes the mask as its fourth "
            "argument.",
            lambda *inputs: heads_together(*inputs, hide=torch.zeros_like),
        ),
        Mistake(
            "an inverted mask",
            "`True` means may attend. Turned round, each token sees the future alone, and the "
            "last one sees nothing, which gives NaN. Hand the mask on as it is.",
            lambda *inputs: heads_together(*inputs, hide=lambda mask: mask),
        ),
        Mistake(
            "a view without a transpose",
            "Each head gets a few whole tokens in place of its part of every token, so most words "
            "can never meet. Use `split_heads`, or cut the last axis first and then swap.",
            lambda *i: heads_together(*i, split=view_without_transpose),
        ),
        Mistake(
            "merging the heads without a transpose",
            "Splitting is right. Put together, a row holds one head's results for several tokens, "
            "so the words are mixed on the way out. `merge_heads` undoes the transpose first.",
            lambda *i: heads_together(*i, merge=lambda heads: heads.reshape(i[0].shape)),
        ),
        Mistake(
            "leaving out the output projection",
            "Each head's result stays in its own columns, and nothing can weigh what one head "
            "found against another. One of the four matrices has no use in your function.",
            _no_output_projection,
        ),
        Mistake(
            "a single head",
            "All d_model numbers make one score, so a token gets one set of weights where n_heads "
            "are wanted: it cannot look at two things for two reasons. Where does `n_heads` come "
            "in?",
            _one_head,
        ),
        Mistake(
            "the root of d_model as the scale",
            "A head's score sums d_head products, not d_model. Divided by too much, the weights "
            "come close to a plain mean. Take the scale from the heads' last axis, after the "
            "split.",
            lambda *inputs: heads_together(*inputs, scale=lambda d_model, n_heads: d_model**0.5),
        ),
        Mistake(
            "heads without the scale",
            "The scores grow with d_head, softmax picks one key, and its gradient is nearly 0. "
            "Each head divides by the root of its own size.",
            lambda *inputs: heads_together(*inputs, scale=lambda d_model, n_heads: 1),
        ),
        Mistake(
            "transposed weights",
            "`nn.Linear` stores the transpose and multiplies by `.T`; these matrices are as in "
            "the formulas. A model loaded this way answers with noise. Here `x @ W` is all.",
            _transposed_weights,
        ),
        Mistake(
            "keys used as values",
            "What a token is found by and what it then says would be the same. Three matrices "
            "make three different things of x: which one makes V?",
            _keys_as_values,
        ),
    ),
}
