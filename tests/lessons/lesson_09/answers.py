"""What learners might write for the exercises of lesson 09."""

import heapq
import itertools
import math

import torch
import torch.nn.functional as F

from tests.exercises.answers import right, wrong


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


@wrong("greedy_decode", "unusual", "hands a tensor to next_logits, which takes a list")
def _(next_logits, bos_id, eos_id, max_len):
    ys = torch.full((1, 1), bos_id, dtype=torch.long)
    for _ in range(max_len - 1):
        next_word = next_logits(ys)[-1].argmax()
        ys = torch.cat([ys, next_word.view(1, 1)], dim=1)
        if next_word == eos_id:
            break
    return ys[0].tolist()


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
    buffer = torch.empty(max_len, dtype=torch.long)
    buffer[0] = bos_id
    n = 1
    while n < max_len:
        buffer[n] = next_logits(buffer[:n].tolist()).log_softmax(dim=0).argmax()
        n += 1
        if buffer[n - 1] == eos_id:
            break
    return buffer[:n].tolist()


@right("top_k_filter")
def _(logits, k):
    # more than k where logits are equal, two of (1, 1, 0) with k = 1: the text leaves that open
    k = min(max(k, 1), logits.size(-1))
    indices_to_remove = logits < torch.topk(logits, k)[0][..., -1, None]
    return logits.masked_fill(indices_to_remove, -float("Inf"))


@right("top_k_filter")
def _(logits, k):
    # float64 logits become float32: the precision of numbers is no difference here
    rows = []
    for row in logits.tolist():
        best = heapq.nlargest(k, range(len(row)), key=row.__getitem__)
        rows.append([row[i] if i in best else -math.inf for i in range(len(row))])
    return torch.tensor(rows, dtype=torch.float32)


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


def normalized(total, n):
    return total / ((5 + n) / 6) ** 0.6


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


@wrong("append_to_cache", "unusual", "changes the cached tensors themselves")
def _(cache, K, V):
    if cache is None:
        return K, V
    keys, values = cache
    keys.data = torch.cat([keys.data, K], dim=2)
    values.data = torch.cat([values.data, V], dim=2)
    return keys, values


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
    if cache is None:
        return K, V
    keys, values = (list(x.unbind(2)) for x in cache)
    for t in range(K.size(2)):
        keys.append(K[:, :, t])
        values.append(V[:, :, t])
    return torch.stack(keys, dim=2), torch.stack(values, dim=2)


@right("legal_next")  # which characters may follow, one after the other
def _(written, tokens):
    def following(text):
        start, middle, end = '{"word": "', '", "gender": "', '"}'
        if len(text) < len(start):
            return start[len(text)]
        word, quote, rest = text[len(start) :].partition('"')
        if not quote:
            return str.isalpha, '"' if word else ""
        rest = quote + rest
        if len(rest) < len(middle):
            return middle[len(rest)]
        rest = rest[len(middle) :]
        return (end + "\0")[len(rest) - 1] if rest else "mfn"

    def legal(text, token):
        for character in token:
            allowed = following(text)
            if isinstance(allowed, tuple):
                test, quote = allowed
                if not test(character) and character != (quote or None):
                    return False
            elif character not in allowed:
                return False
            text += character
        return True

    return torch.tensor([legal(written, token) for token in tokens])


@right("legal_next")  # a whole record made of the text's own letters, compared up to its length
def _(written, tokens):
    mask = []
    for token in tokens:
        text = written + token
        word = "".join(itertools.takewhile(str.isalpha, text[10:])) or "x"
        whole = f'{{"word": "{word}", "gender": "?"}}'
        g = whole.index("?")
        hit = text[:g] == whole[: len(text)][:g]
        hit &= text[g : g + 1] in ("", "m", "f", "n")
        hit &= text[g + 1 :] == whole[g + 1 :][: max(0, len(text) - g - 1)]
        mask.append(hit)
    return torch.as_tensor(mask)


@right("legal_next")  # a table of states, all tokens at once
def _(written, tokens):
    states = [*'{"word": "', "L", *'", "gender": "', "G", *'"}']

    def run(text):
        at = 0
        for c in text:
            if at == 11 and c.isalpha():  # still in the word
                continue
            if at >= len(states):
                return False
            s = states[at]
            if not (c.isalpha() if s == "L" else c in "mfn" if s == "G" else c == s):
                return False
            at += 1
        return True

    return torch.tensor(list(map(run, (written + t for t in tokens))), dtype=torch.bool)
