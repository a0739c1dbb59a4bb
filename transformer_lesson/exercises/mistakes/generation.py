"""Mistakes in lesson 09: greedy and beam search, the cache, keeping the likeliest tokens only.

Long because it is data: many wrong versions of five exercises.
"""

import math

import torch

from transformer_lesson.exercises.specification import Mistake


def greedy(
    next_logits, bos_id, eos_id, max_len, stops=True, keep_eos=True, sees=slice(None), best=max
):
    """Greedy decoding with lists, with places for a bug."""
    ids = [bos_id]
    for _ in range(max_len - 1):
        logits = next_logits(ids[sees]).tolist()
        token = logits.index(best(logits))
        if stops and token == eos_id:
            return ids + [eos_id] * keep_eos
        ids.append(token)
    return ids


def normalized(total, n):
    """The paper's length normalization."""
    return total / ((5 + n) / 6) ** 0.6


def beams(
    next_log_probs,
    bos_id,
    eos_id,
    width,
    max_len,
    finishes=True,
    first_wins=False,
    prune=True,
    all_win=False,
    score=normalized,
):
    """Beam search with tensors: all extensions at once, topk over beam * vocab_size."""
    running, finished = [([bos_id], 0.0)], []
    while running and len(running[0][0]) < max_len:
        sums = torch.stack([next_log_probs(ids) + total for ids, total in running])
        count = min(width if prune else len(running) * width, sums.numel())
        best = sums.double().flatten().topk(count)
        extended = [
            (running[i // sums.size(1)][0] + [i % sums.size(1)], value)
            for value, i in zip(best.values.tolist(), best.indices.tolist(), strict=True)
        ]
        ended = [pair for pair in extended if finishes and pair[0][-1] == eos_id]
        if first_wins and ended:
            return ended[0][0], score(ended[0][1], len(ended[0][0]) - 1)
        finished += ended
        running = [pair for pair in extended if pair not in ended]
    candidates = finished + running if all_win else finished or running
    scored = [(ids, score(total, len(ids) - 1)) for ids, total in candidates]
    return max(scored, key=lambda pair: pair[1])


def _only_what_still_runs(next_log_probs, bos_id, eos_id, width, max_len):
    running = [([bos_id], 0.0)]
    while len(running[0][0]) < max_len:
        extended = [
            (ids + [token], total + value)
            for ids, total in running
            for token, value in enumerate(next_log_probs(ids).tolist())
            if token != eos_id
        ]
        running = sorted(extended, key=lambda pair: -pair[1])[:width]
    ids, total = running[0]
    return ids, normalized(total, len(ids) - 1)


def cached(cache, K, V, new_first=False, swap=False, axis=-2):
    """Append to the cache, with places for a bug."""
    if cache is None:
        return (V, K) if swap else (K, V)
    pairs = zip(cache, (V, K) if swap else (K, V), strict=True)
    return tuple(torch.cat(pair[::-1] if new_first else pair, dim=axis) for pair in pairs)


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


GENERATION_MISTAKES = {
    "greedy_decode": (
        Mistake(
            "a loop that does not look for <eos>",
            "The model has said that the text is over, and whatever comes after it was never "
            "learned: every result is filled up to max_len. When should the loop break?",
            lambda *inputs: greedy(*inputs, stops=False),
        ),
        Mistake(
            "a list without its <eos>",
            "Without it a finished text looks like one that was cut off at max_len. Append the "
            "token first, then ask whether it was `eos_id`.",
            lambda *inputs: greedy(*inputs, keep_eos=False),
        ),
        Mistake(
            "a list without its <bos>",
            "The ids begin with what the model was given, so that they can be handed back to it. "
            "Return the whole list.",
            lambda *inputs: greedy(*inputs)[1:],
        ),
        Mistake(
            "one token too many",
            "`max_len` counts all tokens, `<bos>` included, and yours counts the new ones. A "
            "position beyond the last has no encoding, and the model fails there. Compare "
            "`len(ids)` with it.",
            lambda f, bos, eos, max_len: greedy(f, bos, eos, max_len + 1),
        ),
        Mistake(
            "one token too few",
            "A text that needs all max_len tokens loses its last one. Where `len(ids)` is max_len "
            "- 1 there is room for one more: look at your comparison.",
            lambda f, bos, eos, max_len: greedy(f, bos, eos, max(max_len - 1, 1)),
        ),
        Mistake(
            "a model that reads the last token only",
            "It forgets all that it wrote before, and soon goes round in circles. Hand it all ids "
            "so far; only with a cache is the newest enough.",
            lambda *inputs: greedy(*inputs, sees=slice(-1, None)),
        ),
        Mistake(
            "the least likely token",
            "You take the smallest logit. Logits are not costs: the larger, the likelier.",
            lambda *inputs: greedy(*inputs, best=min),
        ),
        Mistake(
            "tensors in the list",
            "`argmax` gives a tensor, even for a single number, and a tokenizer cannot look that "
            "up. `int(...)` or `.item()` makes it a number before you append it.",
            lambda *inputs: [inputs[1], *map(torch.tensor, greedy(*inputs)[1:])],
        ),
    ),
    "beam_search": (
        Mistake(
            "beams that <eos> does not finish",
            "Hypotheses run on behind their `<eos>`, and what the model says there means nothing. "
            "Move the ones that end in `eos_id` to a list of their own.",
            lambda *inputs: beams(*inputs, finishes=False),
        ),
        Mistake(
            "finished hypotheses that are thrown away",
            "No text may end, so all results have max_len tokens and break off in the middle. "
            "Keep those that end in `<eos>`: at the end the best of them wins.",
            _only_what_still_runs,
        ),
        Mistake(
            "the first finished hypothesis winning",
            "The shortest text finishes first, and a longer one may be likelier by far. Set it "
            "aside, let the others run on, and compare at the end.",
            lambda *inputs: beams(*inputs, first_wins=True),
        ),
        Mistake(
            "unfinished hypotheses among the candidates",
            "A sentence cut off at max_len can beat a whole one, since its `<eos>` has not been "
            "paid for. Running ones count only where none is finished.",
            lambda *inputs: beams(*inputs, all_win=True),
        ),
        Mistake(
            "sums that are not normalized by length",
            "Every token lowers the sum, so short texts win and words are left out. Divide by a "
            "power of the length before you compare.",
            lambda *inputs: beams(*inputs, score=lambda total, n: total),
        ),
        Mistake(
            "the mean log-probability",
            "Dividing by n itself favors long texts more than the paper does, so the search "
            "rambles. The penalty is ((5 + n) / 6) to the power 0.6.",
            lambda *inputs: beams(*inputs, score=lambda total, n: total / n),
        ),
        Mistake(
            "a length that counts <bos>",
            "`<bos>` was given, not chosen, so it has no log-probability, and n must not count "
            "it. How long is ids without it?",
            lambda *inputs: beams(*inputs, score=lambda total, n: normalized(total, n + 1)),
        ),
        Mistake(
            "a beam of width 1",
            "That is greedy search: a first word that looks a little worse is lost, even if it "
            "leads to a better sentence. How many extensions do you keep at each step?",
            lambda f, bos, eos, width, max_len: beams(f, bos, eos, 1, max_len),
        ),
        Mistake(
            "a width for each beam",
            "Every hypothesis keeps `width` children, so their number multiplies at each step, "
            "and soon memory is full. All extensions of all beams compete: sort one list.",
            lambda *inputs: beams(*inputs, prune=False),
        ),
        Mistake(
            "the ids without their score",
            "The score says how sure the search was, and lets you compare two widths. Return the "
            "pair, ids first.",
            lambda *inputs: beams(*inputs)[0],
        ),
    ),
    "append_to_cache": (
        Mistake(
            "new tokens in front of the old ones",
            "The tokens then stand in the wrong order: masks and relative positions meet the "
            "wrong keys. New ones come last; the first in the list given to `torch.cat` comes "
            "first.",
            lambda *inputs: cached(*inputs, new_first=True),
        ),
        Mistake(
            "joining along the wrong axis",
            "`torch.cat` wants all other sizes equal, and old and new differ in their number of "
            "tokens. Of (batch, head, token, d_head), which is it, counted from the end?",
            lambda *inputs: cached(*inputs, axis=-1),
        ),
        Mistake(
            "keys and values in each other's place",
            "Queries would be compared with values, and the output made of keys: the text becomes "
            "noise. Keys come first in the cache, in the arguments and in the result.",
            lambda *inputs: cached(*inputs, swap=True),
        ),
        Mistake(
            "the new tokens alone",
            "The model forgets all that it has read and sees one token at a time. What `cache` "
            "holds must come back too, in front.",
            lambda cache, K, V: (K, V),
        ),
        Mistake(
            "an old cache that never grows",
            "New tokens never find their way in, so nobody can attend to what was written. Return "
            "what was there and the new ones joined to it.",
            lambda cache, K, V: cache or (K, V),
        ),
        Mistake(
            "values that do not grow with the keys",
            "There are more keys than values now, and the weighted sum has nothing to weigh for "
            "the old tokens. Join both halves, each with its own.",
            lambda cache, K, V: (cached(cache, K, V)[0], V),
        ),
        Mistake(
            "no answer to an empty cache",
            "Before the first token `cache` is `None`, and `None` has no keys to join. What are "
            "the keys of all tokens so far, when there were none before?",
            lambda cache, K, V: cached((cache[0], cache[1]), K, V),
        ),
        Mistake(
            "the keys without the values",
            "Attention finds tokens by their keys and then reads their values: it needs both. "
            "Return a pair.",
            lambda *inputs: cached(*inputs)[0],
        ),
    ),
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
