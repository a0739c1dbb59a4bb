"""What learners might write for the exercises of lesson 09."""

import math

import torch
import torch.nn.functional as F

from tests.exercises.answers import right, wrong


@wrong("greedy_decode", "unusual", "writes on until <eos>, whatever the maximum is")
def _(read, prompt, eos_id, max_new_tokens):
    ids, (logits, kept) = [], read(prompt, None)
    while True:
        ids.append(int(logits.argmax()))
        if ids[-1] == eos_id:
            return ids
        logits, kept = read(ids[-1:], kept)


@wrong("greedy_decode", "unusual", "an <eos> with id 0 is taken for none")
def _(read, prompt, eos_id, max_new_tokens):
    ids, new, kept = [], prompt, None
    while len(ids) < max_new_tokens and not (eos_id and ids[-1:] == [eos_id]):
        logits, kept = read(new, kept)
        new = [logits.argmax().item()]
        ids += new
    return ids


@wrong("greedy_decode", "unusual", "hands a tensor to read, which takes a list")
def _(read, prompt, eos_id, max_new_tokens):
    ids, new, kept = [], torch.tensor(prompt), None
    for _ in range(max_new_tokens):
        logits, kept = read(new, kept)
        new = logits.argmax().view(1)
        ids.append(new.item())
        if ids[-1] == eos_id:
            break
    return ids


@right("greedy_decode")  # recursion, and one-element tensors in the lists that it hands over
def _(read, prompt, eos_id, max_new_tokens):
    def go(new, kept, left):
        logits, kept = read(new, kept)
        best = logits.log_softmax(dim=0).topk(1).indices[0]
        over = left == 1 or best == eos_id
        return [best.item()] + ([] if over else go([best], kept, left - 1))

    return go(prompt, None, max_new_tokens)


@right("top_p_filter")
def _(logits, p):
    # `>`: another result only where a rounded sum happens to be p to the last digit
    sorted_logits, sorted_indices = torch.sort(logits, descending=True)
    cumulative_probs = torch.cumsum(F.softmax(sorted_logits, dim=-1), dim=-1)
    sorted_indices_to_remove = cumulative_probs > p
    sorted_indices_to_remove[..., 1:] = sorted_indices_to_remove[..., :-1].clone()
    sorted_indices_to_remove[..., 0] = False
    remove = sorted_indices_to_remove.scatter(1, sorted_indices, sorted_indices_to_remove)
    return logits.masked_fill(remove, float("-inf"))


@right("top_p_filter")
def _(logits, p):
    # all equals of the last token kept, all of (1/4, 1/4, 1/4, 1/4) for 0.5: left open by the text
    probs = logits.softmax(dim=-1)
    ranked = probs.sort(dim=-1, descending=True).values
    n_kept = (ranked.cumsum(dim=-1) - ranked < p).sum(dim=-1, keepdim=True)
    cutoff = ranked.gather(-1, n_kept - 1)
    return torch.where(probs >= cutoff, logits, -math.inf)


@wrong("top_p_filter", "unusual", "shifts the mask onto its own memory without a copy, which fails")
def _(logits, p):
    ranked, order = torch.sort(logits, dim=-1, descending=True)
    remove = ranked.softmax(dim=-1).cumsum(dim=-1) >= p
    remove[:, 1:] = remove[:, :-1]
    remove[:, 0] = False
    return logits.masked_fill(remove.gather(-1, order.argsort(-1)), -math.inf)


@right("top_p_filter")
def _(logits, p):
    # at p = 1 the rounded sum reaches 1 early, but p is below 1
    ranked, order = logits.sort(dim=-1, descending=True)
    total = F.softmax(ranked, dim=-1).cumsum(dim=-1)
    # the position at which the sum reaches p is the last one kept
    last = (total < p).sum(dim=-1, keepdim=True)
    keep = torch.arange(logits.size(-1)) <= last
    back = torch.zeros_like(keep).scatter(-1, order, keep)
    return logits.masked_fill(~back, -math.inf)
