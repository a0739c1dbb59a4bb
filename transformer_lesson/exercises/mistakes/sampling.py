"""Mistakes in lesson 09: keeping the likeliest tokens only."""

import math

import torch

from transformer_lesson.exercises.specification import Mistake


def top_k(logits, k, rest=-math.inf):
    """Keep what reaches the k-th best, with a place for a bug."""
    kth = logits.sort(dim=-1).values[..., -min(k, logits.size(-1))]
    return torch.where(logits >= kth[..., None], logits, rest)


def _above_the_kth(logits, k):
    kth = logits.topk(min(k, logits.size(-1))).values[..., -1:]
    return logits.masked_fill(logits <= kth, -math.inf)


def _k_of_the_batch(logits, k):
    kth = logits.flatten().topk(min(k, logits.numel())).values[-1]
    return logits.masked_fill(logits < kth, -math.inf)


def _first_row_decides(logits, k):
    kept = logits[0].topk(min(k, logits.size(-1))).indices
    filtered = torch.full_like(logits, -math.inf)
    filtered[:, kept] = logits[:, kept]
    return filtered


def _in_place(logits, k):
    logits[logits < logits.topk(min(k, logits.size(-1))).values[..., -1:]] = -math.inf
    return logits


def _no_limit(logits, k):
    best = logits.topk(k)
    return torch.full_like(logits, -math.inf).scatter(-1, best.indices, best.values)


def top_p(logits, p, late=1, rest=-math.inf, descending=True, scatter=True, share=torch.softmax):
    """Mark in sorted order what is left out, shift the marks, put them back."""
    ranked, order = logits.sort(dim=-1, descending=descending)
    out = share(ranked, dim=-1).cumsum(dim=-1) >= p
    for _ in range(late):  # whatever is in front of the token that crosses p stays, and it too
        out = torch.cat([torch.zeros_like(out[..., :1]), out[..., :-1]], dim=-1)
    if scatter:
        out = torch.zeros_like(out).scatter(-1, order, out)
    return torch.where(out, rest, logits)


def _stays_sorted(logits, p):
    return top_p(logits.sort(dim=-1, descending=True).values, p)


SAMPLING_MISTAKES = {
    "top_k_filter": (
        Mistake(
            "0 for the tokens left out",
            "A logit of 0 is an ordinary one: softmax gives exp(0) = 1 before it divides, often "
            "more than the kept ones have. Which logit has probability 0?",
            lambda logits, k: top_k(logits, k, rest=0.0),
        ),
        Mistake(
            "probabilities for logits",
            "Sampling takes the softmax itself, and a second one flattens the distribution: "
            "tokens left out come back with equal chances. Return filtered logits.",
            lambda logits, k: top_k(logits, k).softmax(dim=-1),
        ),
        Mistake(
            "the k best of the whole batch",
            "Sentences compete with each other: one keeps many tokens, another perhaps none, and "
            "its softmax is NaN. Take the best along the last axis.",
            _k_of_the_batch,
        ),
        Mistake(
            "the first row's choice for every row",
            "Each sentence has its own likely words, and you keep the columns of the first one. "
            "`topk` gives indices for every row: use them along the last axis.",
            _first_row_decides,
        ),
        Mistake(
            "one token too few",
            "The k-th best is left out as well, and with k = 1 nothing stays, so softmax gives "
            "NaN. Is it `<` or `<=` that decides what leaves?",
            _above_the_kth,
        ),
        Mistake(
            "the k lowest logits",
            "You keep what the model thinks least likely. The larger a logit, the likelier its "
            "token: from which end of the sorted row do you count?",
            lambda logits, k: -top_k(-logits, k, rest=math.inf),
        ),
        Mistake(
            "an error when k is larger than the vocabulary",
            "With fewer than k tokens all of them stay; `topk` refuses to look for more than "
            "there are. What is the most that it may be asked for?",
            _no_limit,
        ),
        Mistake(
            "the k best without their places",
            "A logit's column says which token it is for, and you return k numbers without "
            "columns. The others must stay in the row, as minus infinity.",
            lambda logits, k: logits.topk(min(k, logits.size(-1))).values,
        ),
        Mistake(
            "filtering in place",
            "The result is right, but the model's logits are overwritten, so the next filter or a "
            "log-probability reads minus infinity. Fill a copy, or use `masked_fill`, which makes "
            "one.",
            _in_place,
        ),
    ),
    "top_p_filter": (
        Mistake(
            "dropping the token that crosses p",
            "What stays then holds less than p, and where one token alone has more than p, "
            "nothing stays at all. Ask about the sum before a token, not after it.",
            lambda *inputs: top_p(*inputs, late=0),
        ),
        Mistake(
            "keeping one token too many",
            "The token behind the one that crosses p stays as well, so the tail that top-p is to "
            "cut off has a way in. Do you shift the marks, and subtract too?",
            lambda *inputs: top_p(*inputs, late=2),
        ),
        Mistake(
            "0 for the tokens left out",
            "A logit of 0 is an ordinary one: after softmax these tokens are as likely as many "
            "that stay. Which logit has probability 0?",
            lambda *inputs: top_p(*inputs, rest=0.0),
        ),
        Mistake(
            "starting from the least likely token",
            "You fill up p with the tail and leave out the best tokens: the text becomes "
            "gibberish. Which way does `sort` go, unless told?",
            lambda *inputs: top_p(*inputs, descending=False),
        ),
        Mistake(
            "marks that stay in sorted order",
            "The first columns of the sorted row are the likeliest tokens, but in the logits they "
            "are whatever has a small id. `sort` returns indices: take the marks back with "
            "`scatter`.",
            lambda *inputs: top_p(*inputs, scatter=False),
        ),
        Mistake(
            "logits that stay sorted",
            "The values are right and stand in the wrong columns, so sampling picks token 0 most "
            "often, whatever it is. Put them back by the indices that `sort` returned.",
            _stays_sorted,
        ),
        Mistake(
            "sums of logits",
            "p is a probability, and logits are not: they may be negative and add up to anything. "
            "What turns a row of them into shares of 1 before you add?",
            lambda *inputs: top_p(*inputs, share=lambda x, dim: x),
        ),
        Mistake(
            "every token with a probability above p",
            "Hardly any token has that much on its own, so most rows lose everything. p is for "
            "the sum of those that stay, added from the likeliest down.",
            lambda logits, p: logits.masked_fill(logits.softmax(dim=-1) < p, -math.inf),
        ),
        Mistake(
            "probabilities for logits",
            "Sampling takes the softmax itself, and a second one makes all tokens nearly equal, "
            "those left out included. Return filtered logits.",
            lambda *inputs: top_p(*inputs).softmax(dim=-1),
        ),
    ),
}
