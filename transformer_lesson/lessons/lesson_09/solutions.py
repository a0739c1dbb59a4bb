"""Lesson 09: choosing the next token, searching with beams."""

import math

import torch


def top_p_filter(logits, p):
    """Keep each row's fewest likely tokens that together hold p."""
    ranked = logits.sort(dim=-1, descending=True)
    probabilities = ranked.values.softmax(dim=-1)  # (batch, vocab_size), likeliest first
    before = probabilities.cumsum(dim=-1) - probabilities  # what all likelier tokens hold
    kept = ranked.values.masked_fill(before >= p, -math.inf)
    return torch.full_like(logits, -math.inf).scatter(-1, ranked.indices, kept)


def beam_search(next_log_probs, bos_id, eos_id, width, max_len):
    """Return the best of `width` beginnings kept at every step, and its score."""
    running, finished = [([bos_id], 0.0)], []
    while running and len(running[0][0]) < max_len:
        extensions = [
            ([*ids, token], total + log_prob)
            for ids, total in running
            for token, log_prob in enumerate(next_log_probs(ids).tolist())
        ]
        kept = sorted(extensions, key=lambda one: one[1], reverse=True)[:width]
        finished += [one for one in kept if one[0][-1] == eos_id]
        running = [one for one in kept if one[0][-1] != eos_id]
    scored = [(ids, total / ((4 + len(ids)) / 6) ** 0.6) for ids, total in finished or running]
    return max(scored, key=lambda one: one[1])  # len(ids) is n + 1: <bos> is among them
