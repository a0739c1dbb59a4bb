"""What learners might write for the exercises of lesson 09."""

import heapq
import itertools
import math

import torch
import torch.nn.functional as F

from tests.exercises.answers import right, wrong

# ---------------------------------------------------------------------------- greedy_decode


@wrong("greedy_decode", "usual", "stops before the end token is appended")
def _(next_logits, bos_id, eos_id, max_len):
    ids = [bos_id]
    while len(ids) < max_len:
        token = next_logits(ids).argmax().item()
        if token == eos_id:
            break
        ids.append(token)
    return ids


@wrong("greedy_decode", "usual", "max_len counts the new tokens only, so there can be one too many")
def _(next_logits, bos_id, eos_id, max_len):
    out = [bos_id]
    for _ in range(max_len):
        nxt = int(torch.argmax(next_logits(out)))
        out.append(nxt)
        if nxt == eos_id:
            break
    return out


@wrong("greedy_decode", "usual", "never looks for the end token")
def _(next_logits, bos_id, eos_id, max_len):
    ids = [bos_id]
    for _ in range(1, max_len):
        logits = next_logits(ids)
        ids.append(logits.argmax(dim=-1).item())
    return ids


@wrong("greedy_decode", "usual", "asks the model with the newest id only")
def _(next_logits, bos_id, eos_id, max_len):
    sequence = [bos_id]
    current = bos_id
    while len(sequence) < max_len and current != eos_id:
        current = int(next_logits([current]).argmax())
        sequence.append(current)
    return sequence


@wrong("greedy_decode", "usual", "draws from the distribution where the likeliest was asked for")
def _(next_logits, bos_id, eos_id, max_len):
    generated = [bos_id]
    while len(generated) < max_len:
        probs = F.softmax(next_logits(generated), dim=-1)
        next_id = torch.multinomial(probs, num_samples=1).item()
        generated.append(next_id)
        if next_id == eos_id:
            break
    return generated


@wrong("greedy_decode", "usual", "the result lacks the <bos> that it began with")
def _(next_logits, bos_id, eos_id, max_len):
    tokens = []
    while len(tokens) + 1 < max_len:
        best = next_logits([bos_id] + tokens).argmax().item()
        tokens.append(best)
        if best == eos_id:
            return tokens
    return tokens


@wrong("greedy_decode", "unusual", "hands a tensor to next_logits, which takes a list")
def _(next_logits, bos_id, eos_id, max_len):
    ys = torch.full((1, 1), bos_id, dtype=torch.long)
    for _ in range(max_len - 1):
        next_word = next_logits(ys)[-1].argmax()
        ys = torch.cat([ys, next_word.view(1, 1)], dim=1)
        if next_word == eos_id:
            break
    return ys[0].tolist()


@wrong("greedy_decode", "unusual", "returns None where the text ends by max_len without <eos>")
def _(next_logits, bos_id, eos_id, max_len):
    ids = [bos_id]
    for _ in range(max_len - 1):
        ids.append(next_logits(ids).argmax().item())
        if ids[-1] == eos_id:
            return ids


@wrong("greedy_decode", "unusual", "writes a second id even when max_len is 1")
def _(next_logits, bos_id, eos_id, max_len):
    ids = [bos_id]
    while True:
        ids += [int(next_logits(ids).max(dim=0).indices)]
        if ids[-1] == eos_id or len(ids) >= max_len:
            return ids


@wrong(
    "greedy_decode",
    "unusual",
    "exp overflows and makes logits equal; of (0, 100, 200) it takes 100",
)
def _(next_logits, bos_id, eos_id, max_len):
    ids = [bos_id]
    while len(ids) < max_len and (len(ids) == 1 or ids[-1] != eos_id):
        e = torch.exp(next_logits(ids))  # softmax without the division, the order is the same
        ids.append(e.argmax().item())
    return ids


@wrong("greedy_decode", "unusual", "fills up with <eos> to max_len as batched generation does")
def _(next_logits, bos_id, eos_id, max_len):
    out = torch.full((max_len,), eos_id).tolist()
    out[0] = bos_id
    for t in range(1, max_len):
        out[t] = int(next_logits(out[:t]).argmax())
        if out[t] == eos_id:
            break
    return out


@wrong("greedy_decode", "unusual", "forbids a token to come twice (a repetition penalty)")
def _(next_logits, bos_id, eos_id, max_len):
    ids = [bos_id]
    while len(ids) < max_len:
        scores = next_logits(ids).clone()
        scores[torch.tensor(ids)] = -math.inf
        ids.append(scores.argmax().item())
        if ids[-1] == eos_id:
            break
    return ids


@wrong(
    "greedy_decode",
    "pair",
    "stops before the end token is appended",
    "max_len counts the new tokens only",
)
def _(next_logits, bos_id, eos_id, max_len):
    result = [bos_id]
    for _step in range(max_len):
        token = next_logits(result).argmax().item()
        if token == eos_id:
            return result
        result.append(token)
    return result


@wrong(
    "greedy_decode",
    "pair",
    "asks the model with the newest id only",
    "the result lacks the <bos> that it began with",
)
def _(next_logits, bos_id, eos_id, max_len):
    written, last = [], bos_id
    for _ in range(max_len - 1):
        last = int(torch.argmax(next_logits([last])))
        written.append(last)
        if last == eos_id:
            break
    return written


@wrong(
    "greedy_decode",
    "pair",
    "takes the least likely token",
    "never looks for the end token",
)
def _(next_logits, bos_id, eos_id, max_len):
    ids = [bos_id]
    while len(ids) != max_len:
        order = torch.sort(next_logits(ids)).indices
        ids.append(order[0].item())
    return ids


@wrong(
    "greedy_decode",
    "pair",
    "leaves room for an <eos> and stops one id too early at max_len",
    "returns None where no <eos> was written",
)
def _(next_logits, bos_id, eos_id, max_len):
    seq = [bos_id]
    while len(seq) < max_len - 1:
        seq.append(next_logits(seq).argmax().item())
        if seq[-1] == eos_id:
            return seq


@wrong(
    "greedy_decode",
    "pair",
    "forgets the newest id when it asks the model",
    "stops before the end token is appended",
)
def _(next_logits, bos_id, eos_id, max_len):
    ids = [bos_id]
    for i in range(1, max_len):
        guess = next_logits(ids[: max(1, i - 1)]).argmax().item()
        if guess == eos_id:
            break
        ids.append(guess)
    return ids


@wrong(
    "greedy_decode",
    "unusual",
    "compares ids by `is`, never true for an eos_id above 256",
)
def _(next_logits, bos_id, eos_id, max_len):
    ids = [bos_id]
    while len(ids) < max_len:
        token = next_logits(ids).argmax().item()
        ids.append(token)
        if token is eos_id:
            break
    return ids


@wrong("greedy_decode", "unusual", "an end token with id 0 counts as none given")
def _(next_logits, bos_id, eos_id, max_len):
    ids = [bos_id]
    for _ in range(max_len - 1):
        ids.append(int(next_logits(ids).argmax()))
        if eos_id and ids[-1] == eos_id:
            break
    return ids


@wrong("greedy_decode", "unusual", "forbids <bos> to be written, even where it is the likeliest")
def _(next_logits, bos_id, eos_id, max_len):
    ids = [bos_id]
    while len(ids) < max_len:
        logits = next_logits(ids).clone()
        logits[bos_id] = float("-inf")
        ids.append(logits.argmax().item())
        if ids[-1] == eos_id:
            break
    return ids


@right("greedy_decode")
def _(next_logits, bos_id, eos_id, max_len):
    ids = [bos_id]
    for _ in range(max_len - 1):
        ids.append(int(torch.argmax(next_logits(ids))))
        if ids[-1] == eos_id:
            break
    return ids


@right("greedy_decode")
def _(next_logits, bos_id, eos_id, max_len):
    def go(ids):
        if len(ids) >= max_len:
            return ids
        best = next_logits(ids).topk(1).indices.item()
        return ids + [best] if best == eos_id else go(ids + [best])

    return go([bos_id])


@right("greedy_decode")
def _(next_logits, bos_id, eos_id, max_len):
    ids, done = [bos_id], False
    while not done and len(ids) < max_len:
        logits = next_logits(list(ids)).tolist()
        ids.append(logits.index(max(logits)))
        done = ids[-1] == eos_id
    return ids


@right("greedy_decode")
def _(next_logits, bos_id, eos_id, max_len):
    buffer = torch.empty(max_len, dtype=torch.long)
    buffer[0] = bos_id
    n = 1
    while n < max_len:
        buffer[n] = next_logits(buffer[:n].tolist()).log_softmax(dim=0).argmax()
        n += 1
        if buffer[n - 1] == eos_id:
            break
    return buffer[:n].tolist()


# ----------------------------------------------------------------------------- top_k_filter


@wrong("top_k_filter", "usual", "fills with 0, not with minus infinity")
def _(logits, k):
    values, indices = logits.topk(min(k, logits.size(-1)), dim=-1)
    return torch.zeros_like(logits).scatter(-1, indices, values)


@wrong("top_k_filter", "usual", "one threshold for the whole batch")
def _(logits, k):
    k = min(k, logits.size(-1))
    smallest_kept = logits.flatten().topk(k).values[-1]
    return logits.masked_fill(logits < smallest_kept, float("-inf"))


@wrong("top_k_filter", "usual", "keeps the k smallest")
def _(logits, k):
    k = min(k, logits.shape[1])
    order = logits.argsort(dim=1)
    out = torch.full_like(logits, -math.inf)
    for row in range(logits.shape[0]):
        keep = order[row, :k]
        out[row, keep] = logits[row, keep]
    return out


@wrong("top_k_filter", "usual", "fails when k is larger than vocab_size")
def _(logits, k):
    top = torch.topk(logits, k, dim=-1)
    result = torch.full_like(logits, float("-inf"))
    result.scatter_(-1, top.indices, top.values)
    return result


@wrong("top_k_filter", "usual", "changes its argument")
def _(logits, k):
    n_removed = max(logits.size(-1) - k, 0)
    _, losers = logits.topk(n_removed, dim=-1, largest=False)
    return logits.scatter_(-1, losers, -math.inf)


@right("top_k_filter")
def _(logits, k):
    # more than k where logits are equal, two of (1, 1, 0) with k = 1: the text leaves that open
    k = min(max(k, 1), logits.size(-1))
    indices_to_remove = logits < torch.topk(logits, k)[0][..., -1, None]
    return logits.masked_fill(indices_to_remove, -float("Inf"))


@wrong("top_k_filter", "usual", "drops the k-th highest too, so k - 1 stay")
def _(logits, k):
    if k >= logits.size(-1):
        return logits.clone()
    border = logits.sort(dim=-1, descending=True).values[:, k - 1 : k]
    return torch.where(logits > border, logits, -torch.inf)


@wrong("top_k_filter", "unusual", "multiplies the dropped logits: 0 times infinity is NaN")
def _(logits, k):
    idx = logits.topk(min(k, logits.size(-1)), dim=-1).indices
    keep = torch.zeros_like(logits).scatter(-1, idx, 1.0)
    return logits * keep + (1 - keep) * float("-inf")


@wrong("top_k_filter", "unusual", "takes argsort for the rank of each token")
def _(logits, k):
    ranks = logits.argsort(dim=-1, descending=True)
    return logits.masked_fill(ranks >= k, float("-inf"))


@wrong("top_k_filter", "unusual", "fills with -1e9, which is not minus infinity")
def _(logits, k):
    k = min(k, logits.size(-1))
    kept = F.one_hot(logits.topk(k, dim=-1).indices, logits.size(-1)).sum(dim=1).bool()
    return torch.where(kept, logits, torch.full_like(logits, -1e9))


@wrong("top_k_filter", "unusual", "returns the logits in sorted order, not at their tokens' places")
def _(logits, k):
    ordered, _ = torch.sort(logits, dim=-1, descending=True)
    positions = torch.arange(logits.size(-1))
    return ordered.masked_fill(positions >= k, -math.inf)


@wrong("top_k_filter", "unusual", "kthvalue counts from the smallest, so about V - k stay")
def _(logits, k):
    k = min(k, logits.size(-1))
    threshold, _ = logits.kthvalue(k, dim=-1, keepdim=True)
    return logits.masked_fill(logits < threshold, float("-inf"))


@right("top_k_filter")
def _(logits, k):
    # float64 logits become float32: the precision of numbers is no difference here
    rows = []
    for row in logits.tolist():
        best = heapq.nlargest(k, range(len(row)), key=row.__getitem__)
        rows.append([row[i] if i in best else -math.inf for i in range(len(row))])
    return torch.tensor(rows, dtype=torch.float32)


@wrong("top_k_filter", "unusual", "one shared set of tokens: those of the first row")
def _(logits, k):
    _, best = logits[0].topk(min(k, logits.shape[-1]))
    mask = torch.ones(logits.shape[-1], dtype=torch.bool)
    mask[best] = False
    return logits.masked_fill(mask, -math.inf)


@wrong(
    "top_k_filter",
    "pair",
    "one threshold for the whole batch",
    "fills with 0, not with minus infinity",
)
def _(logits, k):
    k = min(k, logits.size(-1))
    cut = logits.reshape(-1).sort(descending=True).values[k - 1]
    return torch.where(logits >= cut, logits, torch.tensor(0.0, dtype=logits.dtype))


@wrong(
    "top_k_filter",
    "pair",
    "fails when k is larger than vocab_size",
    "changes its argument",
)
def _(logits, k):
    keep = torch.zeros_like(logits, dtype=torch.bool)
    keep[torch.arange(len(logits))[:, None], logits.topk(k).indices] = True
    logits[~keep] = -math.inf
    return logits


@wrong(
    "top_k_filter",
    "pair",
    "returns probabilities instead of logits",
    "fails when k is larger than vocab_size",
)
def _(logits, k):
    border = logits.sort(dim=-1, descending=True).values[:, k - 1]
    masked = logits.masked_fill(logits < border[:, None], -torch.inf)
    return F.softmax(masked, dim=-1)


@wrong(
    "top_k_filter",
    "pair",
    "keeps the k smallest",
    "fills with -1e4, which is not minus infinity",
)
def _(logits, k):
    worst, where = (-logits).topk(min(k, logits.size(-1)), dim=-1)
    return torch.full_like(logits, -1e4).scatter(-1, where, -worst)


@wrong(
    "top_k_filter",
    "pair",
    "ranks along the batch axis",
    "keeps k + 1",
)
def _(logits, k):
    rank = logits.argsort(dim=0, descending=True).argsort(dim=0)
    return logits.masked_fill(rank > k, -math.inf)


@right("top_k_filter")
def _(logits, k):
    rank = logits.argsort(dim=-1, descending=True).argsort(dim=-1)
    return torch.where(rank < k, logits, -torch.inf)


@right("top_k_filter")
def _(logits, k):
    result = logits.clone()
    for i, row in enumerate(logits):
        for j, z in enumerate(row):
            higher = (row > z).sum() + (row[:j] == z).sum()  # equals: the earlier one wins
            if higher >= k:
                result[i, j] = float("-inf")
    return result


@right("top_k_filter")
def _(logits, k):
    vocab_size = logits.shape[-1]
    if k >= vocab_size:
        return logits.clone()
    drop = logits.topk(vocab_size - k, dim=-1, largest=False).indices
    return logits.scatter(-1, drop, -math.inf)


@right("top_k_filter")
def _(logits, k):
    k = min(k, logits.size(-1))
    remaining, out = logits.clone(), torch.full_like(logits, -math.inf)
    rows = torch.arange(len(logits))
    taken = torch.zeros_like(logits, dtype=torch.bool)
    for _ in range(k):
        best = remaining.masked_fill(taken, -math.inf).argmax(dim=-1)
        # where all that is left is -inf, any of it may be taken: it is -inf in the result too
        out[rows, best] = logits[rows, best]
        taken[rows, best] = True
    return out


# ----------------------------------------------------------------------------- top_p_filter


@wrong("top_p_filter", "usual", "drops the token with which the sum reaches p")
def _(logits, p):
    values, order = logits.sort(dim=-1, descending=True)
    total = values.softmax(dim=-1).cumsum(dim=-1)
    values = values.masked_fill(total > p, -math.inf)
    return torch.full_like(logits, -math.inf).scatter(-1, order, values)


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


@wrong("top_p_filter", "usual", "the mask of the sorted tokens is laid over the unsorted ones")
def _(logits, p):
    probs = torch.softmax(logits, dim=-1)
    ranked = probs.sort(dim=-1, descending=True).values
    before = ranked.cumsum(dim=-1) - ranked
    return logits.masked_fill(before >= p, float("-inf"))


@wrong("top_p_filter", "usual", "adds up in the vocabulary's order, without sorting")
def _(logits, p):
    P = logits.softmax(dim=-1)
    running = P.cumsum(dim=-1)
    keep = running - P < p
    return torch.where(keep, logits, torch.full_like(logits, -torch.inf))


@wrong("top_p_filter", "usual", "starts from the least likely token")
def _(logits, p):
    ascending = logits.sort(dim=-1)
    probs = ascending.values.softmax(-1)
    keep = (probs.cumsum(-1) - probs) < p
    out = torch.full_like(logits, float("-inf"))
    for b in range(logits.size(0)):
        chosen = ascending.indices[b][keep[b]]
        out[b, chosen] = logits[b, chosen]
    return out


@wrong("top_p_filter", "usual", "fills with 0, not with minus infinity")
def _(logits, p):
    ranked, index = logits.sort(-1, descending=True)
    prob = ranked.softmax(-1)
    mask = (prob.cumsum(-1) - prob) >= p
    mask = torch.empty_like(mask).scatter_(-1, index, mask)
    return logits.masked_fill(mask, 0)


@wrong("top_p_filter", "usual", "changes its argument")
def _(logits, p):
    for row in logits:
        probabilities = row.softmax(dim=0)
        order = probabilities.argsort(descending=True)
        total = 0.0
        for token in order:
            if total >= p:
                row[token] = -math.inf
            total += probabilities[token].item()
    return logits


@wrong("top_p_filter", "unusual", "keeps what has at least p times the highest probability (min-p)")
def _(logits, p):
    probs = logits.softmax(dim=-1)
    scaled_min_p = p * probs.amax(dim=-1, keepdim=True)
    return logits.masked_fill(probs < scaled_min_p, float("-inf"))


@wrong("top_p_filter", "unusual", "what one row removes is removed in every row")
def _(logits, p):
    sorted_logits, sorted_indices = logits.sort(descending=True, dim=-1)
    probs = sorted_logits.softmax(dim=-1)
    sorted_remove = probs.cumsum(dim=-1) - probs >= p
    logits = logits.clone()
    indices_to_remove = sorted_indices[sorted_remove]
    logits[:, indices_to_remove] = -float("inf")
    return logits


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


@wrong("top_p_filter", "unusual", "keeps the share p of the tokens, not of the probability")
def _(logits, p):
    n = math.ceil(p * logits.size(-1))
    best = logits.topk(n, dim=-1)
    return torch.full_like(logits, -math.inf).scatter(-1, best.indices, best.values)


@wrong("top_p_filter", "unusual", "always keeps at least two tokens")
def _(logits, p, min_tokens_to_keep=2):
    ranked, order = logits.sort(dim=-1, descending=True)
    probs = ranked.softmax(dim=-1)
    drop = probs.cumsum(dim=-1) - probs >= p
    drop[:, :min_tokens_to_keep] = False
    drop = drop.gather(1, order.argsort(dim=1))
    return logits.masked_fill(drop, float("-inf"))


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


@wrong(
    "top_p_filter",
    "pair",
    "drops the token with which the sum reaches p",
    "the mask of the sorted tokens is laid over the unsorted ones",
)
def _(logits, p):
    sorted_probs = logits.softmax(dim=-1).sort(dim=-1, descending=True).values
    mask = sorted_probs.cumsum(dim=-1) <= p
    return torch.where(mask, logits, float("-inf"))


@wrong(
    "top_p_filter",
    "pair",
    "adds up logits, not probabilities",
    "fills with 0, not with minus infinity",
)
def _(logits, p):
    ranked, order = logits.sort(dim=-1, descending=True)
    before = ranked.cumsum(dim=-1) - ranked
    ranked = ranked.masked_fill(before >= p, 0.0)
    return torch.zeros_like(logits).scatter(-1, order, ranked)


@wrong(
    "top_p_filter",
    "pair",
    "takes softmax over the batch axis",
    "changes its argument",
)
def _(logits, p):
    P = logits.softmax(dim=0)
    ranked, order = P.sort(dim=-1, descending=True)
    gone = (ranked.cumsum(dim=-1) - ranked) >= p
    logits[gone.gather(-1, order.argsort(dim=-1))] = -math.inf
    return logits


@wrong(
    "top_p_filter",
    "pair",
    "starts from the least likely token",
    "returns probabilities instead of logits",
)
def _(logits, p):
    probs = logits.softmax(-1)
    result = torch.zeros_like(probs)
    for i in range(len(probs)):
        total = 0.0
        for j in probs[i].argsort().tolist():
            if total >= p:
                break
            result[i, j] = probs[i, j]
            total += probs[i, j].item()
    return result / result.sum(-1, keepdim=True)


@wrong(
    "top_p_filter",
    "pair",
    "returns the logits in sorted order, not at their tokens' places",
    "[0] = False, from code for one row, keeps all of the first row",
)
def _(logits, p):
    ranked, _ = logits.sort(dim=-1, descending=True)
    remove = ranked.softmax(-1).cumsum(-1) >= p
    remove[..., 1:] = remove[..., :-1].clone()
    remove[0] = False
    return ranked.masked_fill(remove, -math.inf)


@wrong("top_p_filter", "unusual", "keeps nothing where the likeliest token alone reaches p")
def _(logits, p):
    P = logits.softmax(dim=-1)
    order = P.argsort(dim=-1, descending=True)
    within = P.gather(-1, order).cumsum(dim=-1) < p
    # the token with which the sum reaches p: the one after the last that is within
    last = within.sum(dim=-1, keepdim=True)
    keep = within | ((torch.arange(P.size(-1)) == last) & (last > 0))
    return logits.masked_fill(~torch.zeros_like(keep).scatter(-1, order, keep), -math.inf)


@right("top_p_filter")
def _(logits, p):
    if p >= 1:
        return logits.clone()
    probs = logits.double().softmax(dim=-1)
    order = probs.argsort(dim=-1, descending=True, stable=True)
    out = torch.full_like(logits, -math.inf)
    for row in range(logits.shape[0]):
        total = 0.0
        for token in order[row].tolist():
            out[row, token] = logits[row, token]
            total += probs[row, token].item()
            if total >= p - 1e-9:
                break
    return out


@right("top_p_filter")
def _(logits, p):
    if p == 1:
        return logits.clone()
    ranked, order = torch.sort(logits, descending=True, dim=-1)
    reached = ranked.softmax(dim=-1).cumsum(dim=-1) >= p
    remove = reached.roll(1, dims=-1)
    remove[..., 0] = False
    return logits.masked_fill(torch.zeros_like(remove).scatter(-1, order, remove), -math.inf)


@right("top_p_filter")
def _(logits, p):
    if p == 1:
        return logits + 0
    P = logits.softmax(dim=-1)
    token = torch.arange(P.size(-1))
    mine, other = P[:, :, None], P[:, None, :]  # (batch, token, 1), (batch, 1, token)
    earlier = (token[None, :] < token[:, None])[None]
    likelier = (other > mine) | ((other == mine) & earlier)  # (batch, token, token)
    mass_before = torch.einsum("bij,bj->bi", likelier.to(P.dtype), P)
    return torch.where(mass_before < p, logits, -torch.inf)


@right("top_p_filter")
def _(logits, p):
    rows = []
    for row in logits:
        values, order = row.sort(descending=True)
        total = values.softmax(dim=0).cumsum(dim=0)
        n = len(row) if p == 1 else min(int((total < p).sum()) + 1, len(row))
        kept = row.new_full(row.shape, -math.inf)
        kept[order[:n]] = values[:n]
        rows.append(kept)
    return torch.stack(rows)


# ------------------------------------------------------------------------------ beam_search


def normalized(total, n):
    return total / ((5 + n) / 6) ** 0.6


@wrong("beam_search", "usual", "the score is the plain sum, without the length penalty")
def _(next_log_probs, bos_id, eos_id, width, max_len):
    beams, done = [([bos_id], 0.0)], []
    while beams and len(beams[0][0]) < max_len:
        candidates = []
        for seq, score in beams:
            for tok, lp in enumerate(next_log_probs(seq).tolist()):
                candidates.append((seq + [tok], score + lp))
        candidates.sort(key=lambda c: c[1], reverse=True)
        beams = []
        for seq, score in candidates[:width]:
            (done if seq[-1] == eos_id else beams).append((seq, score))
    return max(done or beams, key=lambda c: c[1])


@wrong("beam_search", "usual", "divides by n to the power 0.6, other libraries' penalty")
def _(next_log_probs, bos_id, eos_id, width, max_len):
    running, finished = [(0.0, [bos_id])], []
    for _ in range(max_len - 1):
        pool = []
        for total, ids in running:
            log_probs = next_log_probs(ids)
            pool += [(total + log_probs[t].item(), ids + [t]) for t in range(len(log_probs))]
        best = heapq.nlargest(width, pool)
        finished += [b for b in best if b[1][-1] == eos_id]
        running = [b for b in best if b[1][-1] != eos_id]
        if not running:
            break
    ranked = [(total / (len(ids) - 1) ** 0.6, ids) for total, ids in finished or running]
    score, ids = max(ranked)
    return ids, score


@wrong("beam_search", "usual", "counts <bos> among the n tokens of the length penalty")
def _(next_log_probs, bos_id, eos_id, width, max_len):
    def final(h):
        return h[1] / ((5 + len(h[0])) / 6) ** 0.6

    live, ended = [([bos_id], 0.0)], []
    step = 1
    while live and step < max_len:
        grown = [
            (ids + [i], s + v)
            for ids, s in live
            for i, v in enumerate(next_log_probs(ids).tolist())
        ]
        grown = sorted(grown, key=lambda h: -h[1])[:width]
        live = [h for h in grown if h[0][-1] != eos_id]
        ended.extend(h for h in grown if h[0][-1] == eos_id)
        step += 1
    winner = max(ended or live, key=final)
    return winner[0], final(winner)


@wrong("beam_search", "usual", "chooses the winner by the plain sum")
def _(next_log_probs, bos_id, eos_id, width, max_len):
    beam, complete = [([bos_id], 0.0)], []
    while beam and len(beam[0][0]) < max_len:
        options = []
        for ids, total in beam:
            scores = next_log_probs(ids)
            values, tokens = scores.topk(min(width, len(scores)))
            for v, t in zip(values.tolist(), tokens.tolist(), strict=True):
                options.append((ids + [t], total + v))
        options = sorted(options, key=lambda o: o[1], reverse=True)[:width]
        complete += [o for o in options if o[0][-1] == eos_id]
        beam = [o for o in options if o[0][-1] != eos_id]
    ids, total = max(complete or beam, key=lambda o: o[1])
    n = len(ids) - 1
    return ids, total / ((5 + n) / 6) ** 0.6


@wrong("beam_search", "usual", "lets unfinished hypotheses compete with the finished ones")
def _(next_log_probs, bos_id, eos_id, width, max_len):
    hypotheses = [([bos_id], 0.0)]
    finished = []
    while hypotheses and len(hypotheses[0][0]) < max_len:
        extended = []
        for ids, total in hypotheses:
            for token, log_p in enumerate(next_log_probs(ids).tolist()):
                extended.append((ids + [token], total + log_p))
        extended.sort(key=lambda pair: pair[1], reverse=True)
        extended = extended[:width]
        hypotheses = [(i, t) for i, t in extended if i[-1] != eos_id]
        finished += [(i, t) for i, t in extended if i[-1] == eos_id]
    everything = finished + hypotheses
    scored = [(i, normalized(t, len(i) - 1)) for i, t in everything]
    return max(scored, key=lambda pair: pair[1])


@wrong("beam_search", "usual", "returns the first hypothesis that ends, without waiting for better")
def _(next_log_probs, bos_id, eos_id, width, max_len):
    running = [([bos_id], 0.0)]
    for length in range(2, max_len + 1):
        every = []
        for ids, total in running:
            lp = next_log_probs(ids)
            every.extend((ids + [j], total + float(lp[j])) for j in range(lp.numel()))
        every.sort(key=lambda e: e[1], reverse=True)
        running = every[:width]
        for ids, total in running:
            if ids[-1] == eos_id:
                return ids, normalized(total, length - 1)
    ids, total = running[0]
    return ids, normalized(total, len(ids) - 1)


@wrong("beam_search", "usual", "returns the pair in the order (score, ids)")
def _(next_log_probs, bos_id, eos_id, width, max_len):
    running, finished = [([bos_id], 0.0)], []
    while running and len(running[0][0]) < max_len:
        new = []
        for ids, s in running:
            for token, p in enumerate(next_log_probs(ids).tolist()):
                new.append((ids + [token], s + p))
        new = sorted(new, key=lambda x: x[1])[-width:]
        running = []
        for hyp in new:
            if hyp[0][-1] == eos_id:
                finished.append(hyp)
            else:
                running.append(hyp)
    candidates = finished if finished else running
    return max((normalized(s, len(ids) - 1), ids) for ids, s in candidates)


@wrong("beam_search", "usual", "max_len counts the new tokens only, so there can be one too many")
def _(next_log_probs, bos_id, eos_id, width, max_len):
    running, finished = [([bos_id], 0.0)], []
    for _ in range(max_len):
        if not running:
            break
        step = []
        for ids, total in running:
            step += [(ids + [t], total + x) for t, x in enumerate(next_log_probs(ids).tolist())]
        step = sorted(step, key=lambda h: h[1], reverse=True)[:width]
        running = [h for h in step if h[0][-1] != eos_id]
        finished += [h for h in step if h[0][-1] == eos_id]
    best = max(finished or running, key=lambda h: normalized(h[1], len(h[0]) - 1))
    return best[0], normalized(best[1], len(best[0]) - 1)


@wrong(
    "beam_search",
    "unusual",
    "keeps width running ones beside those that end, as fairseq does; width 2, "
    "<bos>: <eos> 0.36, a 0.34, b 0.30; a: all alike; b: c 1; c: <eos> 1",
)
def _(next_log_probs, bos_id, eos_id, width, max_len):
    running, finished = [([bos_id], 0.0)], []
    while running and len(running[0][0]) < max_len:
        pool = [
            (ids + [t], total + lp)
            for ids, total in running
            for t, lp in enumerate(next_log_probs(ids).tolist())
        ]
        pool.sort(key=lambda h: h[1], reverse=True)
        running = []
        for hypothesis in pool:
            if hypothesis[0][-1] == eos_id:
                finished.append(hypothesis)
            else:
                running.append(hypothesis)
            if len(running) == width:
                break
    scored = [(ids, normalized(t, len(ids) - 1)) for ids, t in finished or running]
    return max(scored, key=lambda h: h[1])


@wrong("beam_search", "unusual", "the beam gets narrower with every hypothesis that ends")
def _(next_log_probs, bos_id, eos_id, width, max_len):
    k, alive, dead = width, [(0.0, [bos_id])], []
    while k > 0 and len(alive[0][1]) < max_len:
        nxt = []
        for total, ids in alive:
            for token, value in enumerate(next_log_probs(ids).tolist()):
                nxt.append((total + value, ids + [token]))
        nxt = sorted(nxt, reverse=True)[:k]
        dead += [h for h in nxt if h[1][-1] == eos_id]
        alive = [h for h in nxt if h[1][-1] != eos_id]
        k = len(alive) if dead else k
    final = [(total / ((5 + len(ids) - 1) / 6) ** 0.6, ids) for total, ids in dead or alive]
    score, ids = max(final)
    return ids, score


@wrong(
    "beam_search",
    "unusual",
    "fails when the width is larger than the vocabulary, 8 with 4 tokens",
)
def _(next_log_probs, bos_id, eos_id, width, max_len):
    beams, finished = [([bos_id], 0.0)], []
    while beams and len(beams[0][0]) < max_len:
        candidates = []
        for ids, total in beams:
            topv, topi = torch.topk(next_log_probs(ids), width)
            for j in range(width):
                candidates.append((ids + [topi[j].item()], total + topv[j].item()))
        candidates = sorted(candidates, key=lambda c: c[1], reverse=True)[:width]
        finished.extend([c for c in candidates if c[0][-1] == eos_id])
        beams = [c for c in candidates if c[0][-1] != eos_id]
    pool = finished if len(finished) > 0 else beams
    pool = [(c[0], c[1] / ((5 + len(c[0]) - 1) / 6) ** 0.6) for c in pool]
    return sorted(pool, key=lambda c: c[1])[-1]


@wrong("beam_search", "unusual", "fails when no hypothesis has ended")
def _(next_log_probs, bos_id, eos_id, width, max_len):
    running, finished = [([bos_id], 0.0)], []
    while running and len(running[0][0]) < max_len:
        grown = []
        for ids, total in running:
            row = next_log_probs(ids).tolist()
            grown += [(ids + [t], total + row[t]) for t in range(len(row))]
        best = sorted(grown, key=lambda g: g[1], reverse=True)[:width]
        finished += [(ids, normalized(t, len(ids) - 1)) for ids, t in best if ids[-1] == eos_id]
        running = [(ids, t) for ids, t in best if ids[-1] != eos_id]
    return max(finished, key=lambda g: g[1])


@wrong(
    "beam_search",
    "unusual",
    "stops as soon as width hypotheses have ended; width 2, <bos>: <eos> 0.3, a 0.7; "
    "a: <eos> 0.3, b 0.7; b: <eos> 1",
)
def _(next_log_probs, bos_id, eos_id, width, max_len):
    running, finished = [([bos_id], 0.0)], []
    while running and len(running[0][0]) < max_len and len(finished) < width:
        new = []
        for ids, total in running:
            for tok, v in enumerate(next_log_probs(ids).tolist()):
                new.append((ids + [tok], total + v))
        new.sort(key=lambda h: h[1], reverse=True)
        finished += [h for h in new[:width] if h[0][-1] == eos_id]
        running = [h for h in new[:width] if h[0][-1] != eos_id]
    ids, total = max(finished or running, key=lambda h: normalized(h[1], len(h[0]) - 1))
    return ids, normalized(total, len(ids) - 1)


@wrong("beam_search", "unusual", "the 6 stands outside the power: (5 + n)^0.6 / 6")
def _(next_log_probs, bos_id, eos_id, width, max_len):
    def lp(n):
        return (5 + n) ** 0.6 / 6

    active = {(bos_id,): 0.0}
    closed = {}
    for _ in range(max_len - 1):
        expanded = {}
        for prefix, total in active.items():
            for tok, logp in enumerate(next_log_probs(list(prefix)).tolist()):
                expanded[prefix + (tok,)] = total + logp
        survivors = sorted(expanded, key=expanded.get, reverse=True)[:width]
        active = {s: expanded[s] for s in survivors if s[-1] != eos_id}
        closed.update({s: expanded[s] for s in survivors if s[-1] == eos_id})
        if not active:
            break
    results = closed or active
    best = max(results, key=lambda s: results[s] / lp(len(s) - 1))
    return list(best), results[best] / lp(len(best) - 1)


@wrong(
    "beam_search",
    "unusual",
    "extends a hypothesis at least once, even when max_len is 1",
)
def _(next_log_probs, bos_id, eos_id, width, max_len):
    running, finished = [([bos_id], 0.0)], []
    while True:
        pool = []
        for ids, total in running:
            pool += [(ids + [t], total + v) for t, v in enumerate(next_log_probs(ids).tolist())]
        pool = heapq.nlargest(width, pool, key=lambda h: h[1])
        finished += [h for h in pool if h[0][-1] == eos_id]
        running = [h for h in pool if h[0][-1] != eos_id]
        if not running or len(running[0][0]) >= max_len:
            break
    scored = [(normalized(t, len(ids) - 1), ids) for ids, t in finished or running]
    score, ids = max(scored)
    return ids, score


@wrong(
    "beam_search",
    "pair",
    "the score is the plain sum, without the length penalty",
    "returns the ids without <bos>",
)
def _(next_log_probs, bos_id, eos_id, width, max_len):
    running, finished = [([], 0.0)], []
    for _ in range(max_len - 1):
        grown = []
        for ids, total in running:
            for t, v in enumerate(next_log_probs([bos_id, *ids]).tolist()):
                grown.append(([*ids, t], total + v))
        grown.sort(key=lambda g: -g[1])
        running = [g for g in grown[:width] if g[0][-1] != eos_id]
        finished += [g for g in grown[:width] if g[0][-1] == eos_id]
        if not running:
            break
    return max(finished or running, key=lambda g: g[1])


@wrong(
    "beam_search",
    "pair",
    "lets unfinished hypotheses compete with the finished ones",
    "divides by n to the power 0.6, other libraries' penalty",
)
def _(next_log_probs, bos_id, eos_id, width, max_len):
    beams = [([bos_id], 0.0, False)]
    ended = []
    while beams and len(beams[0][0]) < max_len:
        pool = []
        for ids, s, _ in beams:
            for t, v in enumerate(next_log_probs(ids).tolist()):
                pool.append((ids + [t], s + v, t == eos_id))
        pool = sorted(pool, key=lambda b: b[1], reverse=True)[:width]
        ended += [b for b in pool if b[2]]
        beams = [b for b in pool if not b[2]]
    ids, s, _ = max(ended + beams, key=lambda b: b[1] / max(len(b[0]) - 1, 1) ** 0.6)
    return ids, s / max(len(ids) - 1, 1) ** 0.6


@wrong(
    "beam_search",
    "pair",
    "counts <bos> among the n tokens of the length penalty",
    "max_len counts the new tokens only",
)
def _(next_log_probs, bos_id, eos_id, width, max_len):
    running, finished = [([bos_id], 0.0)], []
    for _ in range(max_len):
        every = itertools.chain.from_iterable(
            [(ids + [t], s + v) for t, v in enumerate(next_log_probs(ids).tolist())]
            for ids, s in running
        )
        best = heapq.nlargest(width, every, key=lambda h: h[1])
        running, now = [], best
        for h in now:
            (finished if h[0][-1] == eos_id else running).append(h)
        if not running:
            break
    scored = [(ids, normalized(s, len(ids))) for ids, s in finished or running]
    return max(scored, key=lambda h: h[1])


@wrong(
    "beam_search",
    "pair",
    "forgets the sum so far and ranks by the newest log-probability",
    "returns the pair in the order (score, ids)",
)
def _(next_log_probs, bos_id, eos_id, width, max_len):
    running, finished = [(0.0, [bos_id])], []
    while running and len(running[0][1]) < max_len:
        new = []
        for _score, ids in running:
            for t, v in enumerate(next_log_probs(ids).tolist()):
                new.append((v, ids + [t]))
        new = sorted(new, reverse=True)[:width]
        finished += [h for h in new if h[1][-1] == eos_id]
        running = [h for h in new if h[1][-1] != eos_id]
    return max((normalized(s, len(ids) - 1), ids) for s, ids in finished or running)


@wrong(
    "beam_search",
    "pair",
    "adds probabilities, not their logarithms",
    "stops at the first hypothesis that ends",
)
def _(next_log_probs, bos_id, eos_id, width, max_len):
    beams = [([bos_id], 0.0)]
    while len(beams[0][0]) < max_len:
        grown = []
        for ids, total in beams:
            probs = next_log_probs(ids).exp()
            grown += [(ids + [t], total + q) for t, q in enumerate(probs.tolist())]
        beams = sorted(grown, key=lambda b: b[1], reverse=True)[:width]
        if any(b[0][-1] == eos_id for b in beams):
            break
    ended = [b for b in beams if b[0][-1] == eos_id] or beams
    return max(((i, normalized(s, len(i) - 1)) for i, s in ended), key=lambda b: b[1])


@wrong("beam_search", "unusual", "hypotheses share one list, so all hold the same ids")
def _(next_log_probs, bos_id, eos_id, width, max_len):
    running, finished = [([bos_id], 0.0)], []
    for _ in range(max_len - 1):
        pool = []
        for ids, total in running:
            for token, value in enumerate(next_log_probs(ids).tolist()):
                pool.append((ids, token, total + value))
        pool = sorted(pool, key=lambda h: h[2], reverse=True)[:width]
        running = []
        for ids, token, total in pool:
            ids.append(token)
            (finished if token == eos_id else running).append((ids, total))
        if not running:
            break
    return max(
        ((ids, normalized(s, len(ids) - 1)) for ids, s in finished or running), key=lambda h: h[1]
    )


@right("beam_search")
def _(next_log_probs, bos_id, eos_id, width, max_len):
    running, finished = [(0.0, [bos_id])], []
    for _ in range(max_len - 1):
        heap = []
        for total, ids in running:
            for token, value in enumerate(next_log_probs(ids).double().tolist()):
                if value == -math.inf:
                    continue
                entry = (total + value, ids + [token])
                if len(heap) < width:
                    heapq.heappush(heap, entry)
                else:
                    heapq.heappushpop(heap, entry)
        running = []
        for entry in heap:
            (finished if entry[1][-1] == eos_id else running).append(entry)
        if not running:
            break
    pool = finished or running
    scores = [total / ((5 + len(ids) - 1) / 6) ** 0.6 for total, ids in pool]
    winner = scores.index(max(scores))
    return pool[winner][1], scores[winner]


@right("beam_search")
def _(next_log_probs, bos_id, eos_id, width, max_len):
    ids = torch.tensor([[bos_id]])  # (beam, length)
    sums = torch.zeros(1, dtype=torch.float64)
    finished = []
    while len(ids) and ids.size(1) < max_len:
        rows = torch.stack([next_log_probs(row) for row in ids.tolist()]).double()
        vocab_size = rows.size(1)
        totals = (sums[:, None] + rows).flatten()
        possible = int((totals > -math.inf).sum())
        best = totals.topk(min(width, possible))
        parents, tokens = best.indices // vocab_size, best.indices % vocab_size
        grown = torch.cat([ids[parents], tokens[:, None]], dim=1)
        over = tokens == eos_id
        finished += list(zip(grown[over].tolist(), best.values[over].tolist(), strict=True))
        ids, sums = grown[~over], best.values[~over]
    if not finished:
        finished = list(zip(ids.tolist(), sums.tolist(), strict=True))
    penalty = [((4 + len(text)) / 6) ** 0.6 for text, _ in finished]
    scored = [(s / q, text) for (text, s), q in zip(finished, penalty, strict=True)]
    score, text = max(scored)
    return text, score


@right("beam_search")
def _(next_log_probs, bos_id, eos_id, width, max_len):
    def extend(hypothesis):
        ids, total = hypothesis
        for token, value in enumerate(next_log_probs(list(ids)).tolist()):
            if value > -math.inf:
                yield (*ids, token), total + value

    def search(running, finished):
        if not running or len(next(iter(running))) >= max_len:
            return finished or running
        pool = [pair for hypothesis in running.items() for pair in extend(hypothesis)]
        best = dict(sorted(pool, key=lambda pair: pair[1], reverse=True)[:width])
        ended = {ids: total for ids, total in best.items() if ids[-1] == eos_id}
        alive = {ids: total for ids, total in best.items() if ids[-1] != eos_id}
        return search(alive, {**finished, **ended})

    scores = {
        ids: total * (6 / (5 + len(ids) - 1)) ** 0.6
        for ids, total in search({(bos_id,): 0.0}, {}).items()
    }
    best = max(scores, key=scores.get)
    return list(best), scores[best]


@right("beam_search")
def _(next_log_probs, bos_id, eos_id, width, max_len):
    beams, done = [{"ids": [bos_id], "sum": 0.0}], []
    while beams:
        if len(beams[0]["ids"]) >= max_len:
            break
        grown = []
        for beam in beams:
            log_probs = next_log_probs(beam["ids"])
            for token in log_probs.isfinite().nonzero().flatten().tolist():
                total = beam["sum"] + log_probs[token].item()
                grown.append({"ids": beam["ids"] + [token], "sum": total})
        grown.sort(key=lambda beam: beam["sum"], reverse=True)
        del grown[width:]
        beams = []
        for beam in grown:
            if beam["ids"][-1] == eos_id:
                done.append(beam)
            else:
                beams.append(beam)
    best, best_score = None, -math.inf
    for beam in done or beams:
        n = len(beam["ids"]) - 1
        score = beam["sum"] / math.exp(0.6 * math.log((5 + n) / 6))
        if best is None or score > best_score:
            best, best_score = beam["ids"], score
    return best, best_score


# -------------------------------------------------------------------------- append_to_cache


@wrong("append_to_cache", "usual", "joins along the head axis")
def _(cache, K, V):
    if cache is None:
        return K, V
    past_k, past_v = cache
    return torch.cat((past_k, K), dim=1), torch.cat((past_v, V), dim=1)


@wrong("append_to_cache", "usual", "puts the new tokens before the old ones")
def _(cache, K, V):
    if cache is not None:
        K = torch.cat([K, cache[0]], dim=2)
        V = torch.cat([V, cache[1]], dim=2)
    return K, V


@wrong("append_to_cache", "usual", "names no axis, so the batch grows")
def _(cache, K, V):
    if cache is None:
        return (K, V)
    keys, values = cache
    keys = torch.cat([keys, K])
    values = torch.cat([values, V])
    return keys, values


@wrong("append_to_cache", "usual", "appends the new keys to the values, too")
def _(cache, K, V):
    if cache is None:
        return K, V
    k_old, v_old = cache
    k_all = torch.cat([k_old, K], dim=-2)
    v_all = torch.cat([v_old, K], dim=-2)
    return k_all, v_all


@wrong("append_to_cache", "usual", "has no answer for the first token, when the cache is None")
def _(cache, K, V):
    keys, values = cache
    return torch.cat([keys, K], dim=2), torch.cat([values, V], dim=2)


@wrong("append_to_cache", "usual", "holds the first tokens twice")
def _(cache, K, V):
    keys, values = cache or (K, V)
    return torch.cat((keys, K), 2), torch.cat((values, V), 2)


@wrong("append_to_cache", "usual", "returns values and keys, in this order")
def _(cache, K, V):
    if cache is None:
        keys, values = K, V
    else:
        keys = torch.cat([cache[0], K], dim=2)
        values = torch.cat([cache[1], V], dim=2)
    return values, keys


@wrong("append_to_cache", "unusual", "takes over only the last of several new tokens")
def _(cache, K, V):
    if cache is None:
        return K, V
    joined = [
        torch.cat([old, new[:, :, -1:]], dim=2) for old, new in zip(cache, (K, V), strict=True)
    ]
    return tuple(joined)


@wrong("append_to_cache", "unusual", "changes the cached tensors themselves")
def _(cache, K, V):
    if cache is None:
        return K, V
    keys, values = cache
    keys.data = torch.cat([keys.data, K], dim=2)
    values.data = torch.cat([values.data, V], dim=2)
    return keys, values


@wrong("append_to_cache", "unusual", "adds the tensors as if + joined them")
def _(cache, K, V):
    if cache is None:
        return K, V
    return cache[0] + K, cache[1] + V


@wrong("append_to_cache", "unusual", "takes the layout (batch, n, head, d_head) of other libraries")
def _(cache, K, V):
    if cache is None:
        return K, V
    B, old, H, D = cache[0].shape
    new = K.shape[1]
    keys = K.new_empty(B, old + new, H, D)
    values = V.new_empty(B, old + new, H, D)
    keys[:, :old], keys[:, old:] = cache[0], K
    values[:, :old], values[:, old:] = cache[1], V
    return keys, values


@wrong("append_to_cache", "unusual", "returns all the room that it reserved, filled up with zeros")
def _(cache, K, V, max_len=64):
    b, h, n, d = K.shape
    old = 0 if cache is None else cache[0].size(2)
    buffers = []
    for i, new in enumerate((K, V)):
        buffer = new.new_zeros(b, h, max(max_len, old + n), d)
        if cache is not None:
            buffer[:, :, :old] = cache[i]
        buffer[:, :, old : old + n] = new
        buffers.append(buffer)
    return buffers[0], buffers[1]


@wrong("append_to_cache", "unusual", "returns one stacked tensor, not a pair")
def _(cache, K, V):
    new = torch.stack([K, V])
    return new if cache is None else torch.cat([torch.stack(list(cache)), new], dim=3)


@wrong(
    "append_to_cache",
    "pair",
    "joins along the numbers of a head",
    "returns values and keys, in this order",
)
def _(cache, K, V):
    if cache is None:
        return V, K
    old_keys, old_values = cache
    return torch.cat([old_values, V], dim=-1), torch.cat([old_keys, K], dim=-1)


@wrong(
    "append_to_cache",
    "pair",
    "has no answer for the first token, when the cache is None",
    "puts the new tokens before the old ones",
)
def _(cache, K, V):
    return tuple(torch.cat([new, old], dim=2) for old, new in zip(cache, (K, V), strict=True))


@wrong(
    "append_to_cache",
    "pair",
    "holds the first tokens twice",
    "appends the new keys to the values, too",
)
def _(cache, K, V):
    if cache is None:
        cache = (K, V)
    keys, values = cache
    return torch.cat([keys, K], dim=-2), torch.cat([values, K], dim=-2)


@wrong(
    "append_to_cache",
    "pair",
    "names no axis, so the batch grows",
    "takes over only the first of several new tokens",
)
def _(cache, K, V):
    if cache is None:
        return K, V
    K, V = K[:, :, 0, None], V[:, :, 0, None]
    return torch.concat([cache[0], K]), torch.concat([cache[1], V])


@wrong(
    "append_to_cache",
    "pair",
    "leaves the values at the old tokens",
    "takes over only the last of several new tokens",
)
def _(cache, K, V):
    if cache is None:
        return K, V
    keys, values = cache
    keys = torch.cat([keys, K[:, :, -1].unsqueeze(2)], dim=2)
    return keys, values


@right("append_to_cache")
def _(cache, K, V):
    if cache is None:
        cache = K[:, :, :0], V[:, :, :0]
    return tuple(torch.cat(pair, dim=2) for pair in zip(cache, (K, V), strict=True))


@right("append_to_cache")
def _(cache, K, V):
    if cache is None:
        return K.clone(), V.clone()

    def join(old, new):
        batch, head, n_old, d_head = old.shape
        whole = old.new_empty(batch, head, n_old + new.size(2), d_head)
        whole[:, :, :n_old].copy_(old)
        whole[:, :, n_old:].copy_(new)
        return whole

    return join(cache[0], K), join(cache[1], V)


@right("append_to_cache")
def _(cache, K, V):
    new = torch.stack((K, V))
    if cache is not None:
        new = torch.cat((torch.stack(cache), new), dim=-2)
    keys, values = new.unbind(0)
    return keys, values


@right("append_to_cache")
def _(cache, K, V):
    if cache is None:
        return K, V
    keys, values = (list(x.unbind(2)) for x in cache)
    for t in range(K.size(2)):
        keys.append(K[:, :, t])
        values.append(V[:, :, t])
    return torch.stack(keys, dim=2), torch.stack(values, dim=2)


# ---------------------------------------------------------------------- accept_and_residual


@wrong("accept_and_residual", "usual", "replaces a refused guess by a token of p")
def _(p, q):
    return torch.where(q > 0, p / q, torch.ones_like(p)).clamp(max=1), p


@wrong("accept_and_residual", "usual", "forgets that p / q can be more than 1")
def _(p, q):
    accept = torch.where(q == 0, torch.ones_like(q), p / q)
    residual = F.relu(p - q)
    return accept, residual / residual.sum(-1, keepdim=True)


@wrong("accept_and_residual", "usual", "leaves the residual without a sum of 1")
def _(p, q):
    accept = torch.minimum(torch.ones_like(p), (p / q).nan_to_num(1.0))
    return accept, torch.relu(p - q)


@wrong("accept_and_residual", "usual", "0 / 0 where neither model writes the token")
def _(p, q):
    rest = torch.maximum(p - q, torch.zeros_like(p))
    return (p / q).clamp(max=1), rest / rest.sum(dim=-1, keepdim=True)


@wrong("accept_and_residual", "usual", "divides all rows by one sum")
def _(p, q):
    rest = (p - q).clamp(min=0)
    return (p / q).nan_to_num(1.0, posinf=1.0).clamp(max=1), rest / rest.sum()


@wrong("accept_and_residual", "usual", "draft and large model exchanged")
def _(p, q):
    ratio = torch.where(p > 0, q / p, 1.0)
    rest = (q - p).clamp(min=0)
    return ratio.clamp(max=1.0), rest / rest.sum(dim=-1, keepdim=True)


@wrong("accept_and_residual", "unusual", "a softmax makes the residual a distribution")
def _(p, q):
    accept = torch.where(p >= q, torch.ones_like(p), p / q)
    return accept, F.softmax((p - q).clamp(min=0), dim=-1)


@wrong("accept_and_residual", "unusual", "replaces with p, only without the refused tokens")
def _(p, q):
    accept = torch.where(p >= q, torch.ones_like(p), p / q)
    rest = torch.where(p > q, p, torch.zeros_like(p))
    return accept, rest / rest.sum(dim=-1, keepdim=True)


@wrong("accept_and_residual", "pair", "never limits the ratio", "leaves the residual unnormalized")
def _(p, q):
    return torch.where(q > 0, p / q, torch.ones_like(p)), (p - q).clamp(min=0)


@right("accept_and_residual")
def _(p, q):
    accept = torch.where(p >= q, torch.ones_like(p), p / q)
    rest = (p - q).clamp(min=0)
    return accept, rest / rest.sum(dim=-1, keepdim=True)


@right("accept_and_residual")
def _(p, q):
    accept = torch.minimum((p / q).nan_to_num(nan=1.0), torch.tensor(1.0, dtype=p.dtype))
    return accept, F.normalize(F.relu(p - q), p=1, dim=-1)
