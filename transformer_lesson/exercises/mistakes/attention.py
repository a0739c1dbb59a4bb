"""Mistakes in lessons 03 and 04: scores, weights, masks, heads.

Long because it is data: many wrong versions of seven exercises.
"""

import math
from functools import partial

import torch

from transformer_lesson.exercises.specification import Mistake


def attend(
    Q, K, V, mask=None, axis=-1, scale=0.5, hide=lambda mask: ~mask, hidden=-math.inf, empty=0.0
):
    """Attention by hand, with places for a bug; `empty` is for a softmax over minus infinity."""
    scores = Q @ K.mT / Q.size(-1) ** scale
    if mask is not None:
        scores = scores.masked_fill(hide(mask), hidden)
    weights = scores.softmax(dim=axis).nan_to_num(empty)
    return weights @ V, weights


def _mask_after_softmax(Q, K, V, mask=None):
    _, weights = attend(Q, K, V)
    weights = weights if mask is None else weights * mask
    return weights @ V, weights


def _mask_added(Q, K, V, mask=None):
    scores = Q @ K.mT / math.sqrt(Q.size(-1))
    weights = (scores if mask is None else scores + mask.float()).softmax(dim=-1)
    return weights @ V, weights


def _scores_returned(Q, K, V, mask=None, empty=0.0):
    scores = Q @ K.mT / math.sqrt(Q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return scores.softmax(dim=-1).nan_to_num(empty) @ V, scores


def alone_and_with_nan(name, explanation, version):
    """A mistake alone, and the same where a fully masked row also gives NaN."""
    both = f"{explanation} And a row whose keys are all hidden must get zeros; yours gives NaN."
    return (
        Mistake(name, explanation, version),
        Mistake(f"{name} (and a fully masked row of NaN)", both, partial(version, empty=math.nan)),
    )


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
    hidden=-math.inf,
    empty=0.0,
):
    """Multi-head attention by einsum, with places for a bug."""
    d_model = x.size(-1)

    def parts(W):
        if split is not None:
            return split(x @ W, n_heads)
        return torch.einsum("bnd,dhk->bhnk", x, W.reshape(d_model, n_heads, -1))

    scores = torch.einsum("bhqd,bhkd->bhqk", parts(W_Q), parts(W_K)) / scale(d_model, n_heads)
    if mask is not None:
        scores = scores.masked_fill(hide(mask), hidden)
    weights = scores.softmax(dim=-1).nan_to_num(empty)
    return merge(weights @ parts(W_V)) @ W_O


def _no_output_projection(x, W_Q, W_K, W_V, W_O, n_heads, mask=None, **rest):
    return heads_together(x, W_Q, W_K, W_V, torch.eye(x.size(-1)), n_heads, mask, **rest)


def _transposed_weights(x, W_Q, W_K, W_V, W_O, n_heads, mask=None, **rest):
    return heads_together(x, W_Q.T, W_K.T, W_V.T, W_O.T, n_heads, mask, **rest)


def _keys_as_values(x, W_Q, W_K, W_V, W_O, n_heads, mask=None, **rest):
    return heads_together(x, W_Q, W_K, W_K, W_O, n_heads, mask, **rest)


def _one_head(x, W_Q, W_K, W_V, W_O, n_heads, mask=None, **rest):
    return heads_together(x, W_Q, W_K, W_V, W_O, 1, mask, **rest)


ATTENTION_MISTAKES = {
    "attention_scores": (
        Mistake(
            "a product without the scale",
            "A dot product of d_head numbers grows with d_head. Softmax then puts nearly all "
            "weight on one key, and its gradient vanishes. Divide by what keeps the variance at "
            "1.",
            lambda Q, K: Q @ K.mT,
        ),
        Mistake(
            "dividing by d_head instead of its root",
            "It is the variance of a dot product that grows like d_head; its size grows like the "
            "root. Divided by d_head, all scores come close to 0 and every key gets nearly the "
            "same weight.",
            lambda Q, K: Q @ K.mT / Q.size(-1),
        ),
        Mistake(
            "the root of the number of keys",
            "A score is a sum over d_head products, however many keys there are. With this scale "
            "the same two tokens match less well in a longer sentence. Which axis of `Q` is "
            "summed over?",
            lambda Q, K: Q @ K.mT / K.size(-2) ** 0.5,
        ),
        Mistake(
            "multiplying by the root of d_head",
            "The scores become larger than without any scale, so softmax picks one key and learns "
            "no more. The root belongs under the fraction bar.",
            lambda Q, K: Q @ K.mT * Q.size(-1) ** 0.5,
        ),
        Mistake(
            "a softmax that comes too early",
            "These are weights already, and a mask must come before they are made. Scores are the "
            "scaled products alone; softmax is the next step, in another function.",
            lambda Q, K: (Q @ K.mT / Q.size(-1) ** 0.5).softmax(-1),
        ),
        Mistake(
            "keys asking queries",
            "Your rows are keys and your columns queries, so softmax would share out the wrong "
            "thing. Row i must hold the scores of query i: which of the two stands on the left of "
            "`@`?",
            lambda Q, K: K @ Q.mT / Q.size(-1) ** 0.5,
        ),
    ),
    "scaled_dot_product_attention": (
        Mistake(
            "a fully masked row of NaN",
            "A query whose keys are all hidden has a row of minus infinity. Softmax divides 0 by 0 "
            "there, and the NaN spreads to the loss of the whole batch. Hide with the lowest "
            "finite number; what must such a row get after the softmax?",
            lambda *inputs: attend(*inputs, empty=math.nan),
        ),
        Mistake(
            "equal weights for a fully masked row",
            "Hidden by a finite number, a row whose keys are all hidden is a row of equal scores, "
            "and softmax spreads it evenly: a query that may see nothing sees everything. Hidden "
            "keys need a 0 after the softmax too.",
            lambda *inputs: attend(*inputs, hidden=-1e9),
        ),
        *alone_and_with_nan(
            "softmax over the query axis",
            "Here each key shares its weight out among the queries, so a query may get more than "
            "1 in all, or next to nothing. The axes are (batch, head, query, key): which is the "
            "one to sum to 1?",
            lambda *inputs, **rest: attend(*inputs, axis=-2, **rest),
        ),
        *alone_and_with_nan(
            "softmax over the head axis",
            "The heads then compete for each key, and what one head sees depends on the others. "
            "Axis 1 counts heads here: count axes from the end, and heads and batch do not "
            "matter.",
            lambda *inputs, **rest: attend(*inputs, axis=1, **rest),
        ),
        *alone_and_with_nan(
            "an inverted mask",
            "`True` means may attend, but you hide where it is `True`: each token sees what it "
            "must not see, and nothing else. Some libraries mean it so. Which sign turns a mask "
            "round?",
            lambda *inputs, **rest: attend(*inputs, hide=lambda mask: mask, **rest),
        ),
        Mistake(
            "a mask applied after the softmax",
            "The hidden keys have taken their share of the 1 by then, so what is left sums to "
            "less, and hidden tokens still weaken the output. Hide the scores, before they become "
            "weights.",
            _mask_after_softmax,
        ),
        Mistake(
            "a mask that is never used",
            "Every query sees every key: padding counts as words, and a decoder reads the future "
            "that it has to predict. What must happen to the scores where the mask is `False`?",
            lambda Q, K, V, mask=None: attend(Q, K, V),
        ),
        Mistake(
            "hidden scores set to 0",
            "A score of 0 is an ordinary one: exp(0) is 1, so a hidden key still gets weight, and "
            "more than keys with a negative score. Which score does softmax turn into exactly 0?",
            lambda *inputs: attend(*inputs, hidden=0.0),
        ),
        Mistake(
            "a boolean mask added to the scores",
            "Added, `True` is 1 and `False` is 0, so hidden keys get only a little less weight "
            "and stay in sight. Fill the hidden scores with something that leaves no weight at "
            "all.",
            _mask_added,
        ),
        *alone_and_with_nan(
            "attention without the scale",
            "Products of d_head numbers are large, softmax puts nearly all weight on one key, and "
            "hardly any gradient comes back. You have written a function that scales: "
            "`attention_scores`.",
            lambda *inputs, **rest: attend(*inputs, scale=0, **rest),
        ),
        *alone_and_with_nan(
            "the output without the weights",
            "Both are needed: the output goes on through the model, the weights show what it "
            "looked at. Return the pair, output first.",
            lambda *inputs, **rest: attend(*inputs, **rest)[0],
        ),
        *alone_and_with_nan(
            "scores in the place of the weights",
            "The output is right. What you return beside it is from before the softmax: its rows "
            "do not sum to 1, and a map of it shows no shares. Give the softmax's result a name "
            "and return that.",
            _scores_returned,
        ),
    ),
    "causal_mask": (
        Mistake(
            "a mask that is True where it hides",
            "`nn.MultiheadAttention` means it so; here `True` means may attend. With this mask "
            "each token sees the future alone, and the last one nothing. Which triangle holds the "
            "past?",
            lambda n: torch.ones(n, n).triu(1).bool()[None, None],
        ),
        Mistake(
            "a token that may not see itself",
            "Row 0 has no key left, and every token has to do without its own vector. The "
            "diagonal, where query and key are the same, is allowed: what does the second "
            "argument of `tril` move?",
            lambda n: torch.ones(n, n).tril(-1).bool()[None, None],
        ),
        Mistake(
            "a look one token ahead",
            "Each query may see the token after it, the very one that it has to predict: the loss "
            "falls to almost 0 and the model writes nonsense. On which diagonal must the triangle "
            "end?",
            lambda n: torch.ones(n, n).tril(1).bool()[None, None],
        ),
        Mistake(
            "the upper triangle",
            "Rows are queries, columns are keys, and in your row 0 all keys are allowed: each "
            "token sees itself and the future. The past is to the left of the diagonal.",
            lambda n: torch.ones(n, n).triu().bool()[None, None],
        ),
        Mistake(
            "a mask of numbers",
            "`~mask` and `masked_fill` need `True` and `False`, and a mask of ones and zeros is "
            "added to the scores by some functions, which hides nothing. Which dtype has only two "
            "values?",
            lambda n: torch.ones(n, n).tril()[None, None],
        ),
        Mistake(
            "a mask of 0 and minus infinity",
            "Such a mask is added to the scores; the masks of this course are boolean, combine "
            "with `&`, and the attention does the filling. Leave the infinity to `masked_fill`.",
            lambda n: torch.full((n, n), -math.inf).triu(1)[None, None],
        ),
        Mistake(
            "a mask without the axes of batch and head",
            "The triangle is right. Combined with a padding mask (batch, 1, 1, key) its shape is "
            "still a guess of the broadcast. Give it two leading axes of size 1; `None` in an "
            "index makes one.",
            lambda n: torch.ones(n, n).tril().bool(),
        ),
    ),
    "padding_mask": (
        Mistake(
            "an inverted mask",
            "`True` where padding stands lets every token attend to padding alone and to no word. "
            "`True` means may attend: which comparison holds for real tokens?",
            lambda ids, pad_id: (ids == pad_id)[:, None, None],
        ),
        Mistake(
            "padding taken for id 0",
            "Another tokenizer may pad with another id. Then padding is read as a word, and the "
            "word with id 0 is hidden. Compare with the argument.",
            lambda ids, pad_id: (ids != 0)[:, None, None],
        ),
        Mistake(
            "hiding queries instead of keys",
            "Padding must not be looked at, and that is a matter of keys, the last axis. Your "
            "mask forbids padding to look, and all other tokens still see it. Where do the axes "
            "of size 1 go?",
            lambda ids, pad_id: (ids != pad_id)[:, None, :, None],
        ),
        Mistake(
            "hiding queries as well as keys",
            "The query of a padding token then has no key at all: softmax over nothing but minus "
            "infinity is NaN, and it spreads to the loss. Hide keys only; nobody reads a padding "
            "token's output.",
            lambda ids, pad_id: (ids != pad_id)[:, None, :, None] & (ids != pad_id)[:, None, None],
        ),
        Mistake(
            "a mask without axes for head and query",
            "Against scores (batch, head, query, key) a mask (batch, key) is read as (query, "
            "key): sentence i's padding is hidden from query i of every sentence, or the shapes "
            "clash. Put two axes of size 1 between.",
            lambda ids, pad_id: ids != pad_id,
        ),
        Mistake(
            "a mask with one axis of size 1",
            "Broadcasting lines axes up from the end, so your batch meets the head axis of the "
            "scores: head i would get the padding of sentence i. Scores have four axes; how many "
            "has your mask?",
            lambda ids, pad_id: (ids != pad_id)[:, None],
        ),
        Mistake(
            "a mask of numbers",
            "`~mask` does not work on decimal numbers, and added to scores a 1 hides nothing. A "
            "comparison such as `!=` gives `True` and `False` already: leave them as they are.",
            lambda ids, pad_id: (ids != pad_id)[:, None, None].float(),
        ),
    ),
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
            "a fully masked row of NaN",
            "A query whose keys are all hidden has a row of minus infinity. Softmax divides 0 by 0 "
            "there, and the NaN spreads to the loss of the whole batch. Hide with the lowest "
            "finite number; what must such a row get after the softmax?",
            lambda *inputs: heads_together(*inputs, empty=math.nan),
        ),
        Mistake(
            "equal weights for a fully masked row",
            "Hidden by a finite number, a row whose keys are all hidden is a row of equal scores, "
            "and softmax spreads it evenly: a query that may see nothing sees everything. Hidden "
            "keys need a 0 after the softmax too.",
            lambda *inputs: heads_together(*inputs, hidden=-1e9),
        ),
        Mistake(
            "a mask that never reaches the heads",
            "Every head sees every token: a decoder reads the future and learns nothing that "
            "helps it write. `scaled_dot_product_attention` takes the mask as its fourth "
            "argument.",
            lambda *inputs: heads_together(*inputs, hide=torch.zeros_like),
        ),
        *alone_and_with_nan(
            "an inverted mask",
            "`True` means may attend. Turned round, each token sees the future alone, and the "
            "last one sees nothing. Hand the mask on as it is.",
            lambda *inputs, **rest: heads_together(*inputs, **rest, hide=lambda mask: mask),
        ),
        *alone_and_with_nan(
            "a view without a transpose",
            "Each head gets a few whole tokens in place of its part of every token, so most words "
            "can never meet. Use `split_heads`, or cut the last axis first and then swap.",
            lambda *i, **rest: heads_together(*i, **rest, split=view_without_transpose),
        ),
        *alone_and_with_nan(
            "merging the heads without a transpose",
            "Splitting is right. Put together, a row holds one head's results for several tokens, "
            "so the words are mixed on the way out. `merge_heads` undoes the transpose first.",
            lambda *i, **rest: heads_together(
                *i, **rest, merge=lambda heads: heads.reshape(i[0].shape)
            ),
        ),
        *alone_and_with_nan(
            "leaving out the output projection",
            "Each head's result stays in its own columns, and nothing can weigh what one head "
            "found against another. One of the four matrices has no use in your function.",
            _no_output_projection,
        ),
        *alone_and_with_nan(
            "a single head",
            "All d_model numbers make one score, so a token gets one set of weights where n_heads "
            "are wanted: it cannot look at two things for two reasons. Where does `n_heads` come "
            "in?",
            _one_head,
        ),
        *alone_and_with_nan(
            "the root of d_model as the scale",
            "A head's score sums d_head products, not d_model. Divided by too much, the weights "
            "come close to a plain mean. Take the scale from the heads' last axis, after the "
            "split.",
            lambda *inputs, **rest: heads_together(
                *inputs, **rest, scale=lambda d_model, n_heads: d_model**0.5
            ),
        ),
        *alone_and_with_nan(
            "heads without the scale",
            "The scores grow with d_head, softmax picks one key, and its gradient is nearly 0. "
            "Each head divides by the root of its own size.",
            lambda *inputs, **rest: heads_together(
                *inputs, **rest, scale=lambda d_model, n_heads: 1
            ),
        ),
        *alone_and_with_nan(
            "transposed weights",
            "`nn.Linear` stores the transpose and multiplies by `.T`; these matrices are as in "
            "the formulas. A model loaded this way answers with noise. Here `x @ W` is all.",
            _transposed_weights,
        ),
        *alone_and_with_nan(
            "keys used as values",
            "What a token is found by and what it then says would be the same. Three matrices "
            "make three different things of x: which one makes V?",
            _keys_as_values,
        ),
    ),
}
