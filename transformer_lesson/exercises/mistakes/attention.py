"""Mistakes in lesson 03: scores, weights, masks."""

import math

import torch

from transformer_lesson.exercises.mistakes.heads import HEAD_MISTAKES
from transformer_lesson.exercises.specification import Mistake


def attend(Q, K, V, mask=None, axis=-1, scale=0.5, hide=lambda mask: ~mask, hidden=-math.inf):
    """Attention by hand, with places for a bug."""
    scores = Q @ K.mT / Q.size(-1) ** scale
    if mask is not None:
        scores = scores.masked_fill(hide(mask), hidden)
    weights = scores.softmax(dim=axis)
    return weights @ V, weights


def _mask_after_softmax(Q, K, V, mask=None):
    _, weights = attend(Q, K, V)
    weights = weights if mask is None else weights * mask
    return weights @ V, weights


def _mask_added(Q, K, V, mask=None):
    scores = Q @ K.mT / math.sqrt(Q.size(-1))
    weights = (scores if mask is None else scores + mask.float()).softmax(dim=-1)
    return weights @ V, weights


def _scores_returned(Q, K, V, mask=None):
    scores = Q @ K.mT / math.sqrt(Q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return scores.softmax(dim=-1) @ V, scores


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
            "softmax over the query axis",
            "Here each key shares its weight out among the queries, so a query may get more than "
            "1 in all, or next to nothing. The axes are (batch, head, query, key): which is the "
            "one to sum to 1?",
            lambda *inputs: attend(*inputs, axis=-2),
        ),
        Mistake(
            "softmax over the head axis",
            "The heads then compete for each key, and what one head sees depends on the others. "
            "Axis 1 counts heads here: count axes from the end, and heads and batch do not "
            "matter.",
            lambda *inputs: attend(*inputs, axis=1),
        ),
        Mistake(
            "an inverted mask",
            "`True` means may attend, but you hide where it is `True`: each token sees what it "
            "must not see, and nothing else. Some libraries mean it so. Which sign turns a mask "
            "round?",
            lambda *inputs: attend(*inputs, hide=lambda mask: mask),
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
        Mistake(
            "attention without the scale",
            "Products of d_head numbers are large, softmax puts nearly all weight on one key, and "
            "hardly any gradient comes back. You have written a function that scales: "
            "`attention_scores`.",
            lambda *inputs: attend(*inputs, scale=0),
        ),
        Mistake(
            "the output without the weights",
            "Both are needed: the output goes on through the model, the weights show what it "
            "looked at. Return the pair, output first.",
            lambda *inputs: attend(*inputs)[0],
        ),
        Mistake(
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
} | HEAD_MISTAKES
