"""Right and wrong versions of lesson 09's exercises."""

import math

import torch


def greedy(
    next_logits, bos_id, eos_id, max_len, stops=True, keep_eos=True, sees=slice(None), best=max
):
    ids = [bos_id]
    for _ in range(max_len - 1):
        logits = next_logits(ids[sees]).tolist()
        token = logits.index(best(logits))
        if stops and token == eos_id:
            return ids + [eos_id] * keep_eos
        ids.append(token)
    return ids


def asks_before_it_stops(next_logits, bos_id, eos_id, max_len):
    """Document 004's off-by-one: what is counted is not the length."""
    return greedy(next_logits, bos_id, eos_id, max_len + 1)


def top_k(logits, k, rest=-math.inf):
    kth = logits.sort(dim=-1).values[..., -min(k, logits.size(-1))]
    return torch.where(logits >= kth[..., None], logits, rest)


def top_k_of_the_batch(logits, k):
    kth = logits.flatten().topk(min(k, logits.numel())).values[-1]
    return logits.masked_fill(logits < kth, -math.inf)


def top_k_in_place(logits, k):
    logits[logits < logits.topk(min(k, logits.size(-1))).values[..., -1:]] = -math.inf
    return logits


def top_p(logits, p, crossing=True, rest=-math.inf, descending=True, scatter=True, prepare=None):
    """By the published recipe: mark in sorted order, shift by one, put the marks back."""
    ranked, order = (logits if prepare is None else prepare(logits)).sort(descending=descending)
    out = ranked.softmax(dim=-1).cumsum(dim=-1) >= p if prepare is None else ranked.cumsum(-1) >= p
    if crossing:
        out = torch.cat([torch.zeros_like(out[..., :1]), out[..., :-1]], dim=-1)
    if scatter:
        out = torch.zeros_like(out).scatter(-1, order, out)
    return torch.where(out, rest, logits)


def beams(
    next_log_probs,
    bos_id,
    eos_id,
    width,
    max_len,
    finishes=True,
    first_wins=False,
    prune=True,
    score=lambda total, n: total / ((5 + n) / 6) ** 0.6,
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
    scored = [(ids, score(total, len(ids) - 1)) for ids, total in finished or running]
    return max(scored, key=lambda pair: pair[1])


def only_what_still_runs(next_log_probs, bos_id, eos_id, width, max_len):
    """Finished hypotheses are dropped instead of kept."""
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
    return ids, total / ((4 + len(ids)) / 6) ** 0.6


def cached(cache, K, V, axis=-2, new_first=False, swap=False):
    if cache is None:
        return (V, K) if swap else (K, V)
    pairs = zip(cache, (V, K) if swap else (K, V), strict=True)
    return tuple(torch.cat(pair[::-1] if new_first else pair, dim=axis) for pair in pairs)


GENERATION_RIGHT = {
    "greedy_decode": [greedy],
    "top_k_filter": [top_k, lambda logits, k: top_k(logits.double(), k)],
    "top_p_filter": [top_p, lambda logits, p: top_p(logits.double(), p)],
    "beam_search": [beams, lambda *inputs: list(beams(*inputs))],
    "append_to_cache": [cached, lambda *inputs: [part.double() for part in cached(*inputs)]],
}

GENERATION_WRONG = {
    "greedy_decode": {
        "no test for <eos>": lambda *inputs: greedy(*inputs, stops=False),
        "<eos> left out": lambda *inputs: greedy(*inputs, keep_eos=False),
        "<bos> left out": lambda *inputs: greedy(*inputs)[1:],
        "one too many": asks_before_it_stops,
        "reads the last token only": lambda *inputs: greedy(*inputs, sees=slice(-1, None)),
        "the least likely": lambda *inputs: greedy(*inputs, best=min),
        "tensors in the list": lambda *inputs: [torch.tensor(i) for i in greedy(*inputs)],
    },
    "top_k_filter": {
        "0 for the rest": lambda logits, k: top_k(logits, k, rest=0.0),
        "probabilities": lambda logits, k: top_k(logits, k).softmax(dim=-1),
        "k of the whole batch": top_k_of_the_batch,
        "one too few": lambda logits, k: top_k(logits, max(k - 1, 1)),
        "the k lowest": lambda logits, k: -top_k(-logits, k, rest=math.inf),
        "a k larger than the row raises": lambda logits, k: torch.full_like(
            logits, -math.inf
        ).scatter(-1, logits.topk(k).indices, logits.topk(k).values),
        "in place": top_k_in_place,
    },
    "top_p_filter": {
        "drops the token that crosses p": lambda *inputs: top_p(*inputs, crossing=False),
        "0 for the rest": lambda *inputs: top_p(*inputs, rest=0.0),
        "from the least likely up": lambda *inputs: top_p(*inputs, descending=False),
        "marks stay in sorted order": lambda *inputs: top_p(*inputs, scatter=False),
        "sums of logits": lambda *inputs: top_p(*inputs, prepare=lambda logits: logits),
        "each token above p": lambda logits, p: logits.masked_fill(
            logits.softmax(dim=-1) < p, -math.inf
        ),
    },
    "beam_search": {
        "<eos> finishes nothing": lambda *inputs: beams(*inputs, finishes=False),
        "finished ones are dropped": only_what_still_runs,
        "the first to finish wins": lambda *inputs: beams(*inputs, first_wins=True),
        "sums not normalised": lambda *inputs: beams(*inputs, score=lambda total, n: total),
        "mean log-probability": lambda *inputs: beams(*inputs, score=lambda total, n: total / n),
        "<bos> counts": lambda *inputs: beams(
            *inputs, score=lambda total, n: total / ((6 + n) / 6) ** 0.6
        ),
        "greedy": lambda f, bos, eos, width, max_len: beams(f, bos, eos, 1, max_len),
        "width of each beam": lambda *inputs: beams(*inputs, prune=False),
        "only the ids": lambda *inputs: beams(*inputs)[0],
    },
    "append_to_cache": {
        "new ones first": lambda *inputs: cached(*inputs, new_first=True),
        "along d_head": lambda *inputs: cached(*inputs, axis=-1),
        "keys and values swapped": lambda *inputs: cached(*inputs, swap=True),
        "only the new ones": lambda cache, K, V: (K, V),
        "no first time": lambda cache, K, V: (
            torch.cat([cache[0], K], dim=2),
            torch.cat([cache[1], V], dim=2),
        ),
    },
}
