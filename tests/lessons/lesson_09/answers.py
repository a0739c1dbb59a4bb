"""What learners might write for the exercises of lesson 09."""

import heapq
import itertools
import math

import torch
import torch.nn.functional as F

from tests.exercises.answers import right, wrong


@wrong("greedy_decode", "usual", "draws from the distribution where the likeliest was asked for")
def _(read, prompt, eos_id, max_new_tokens):
    generated, new, kept = [], prompt, None
    while len(generated) < max_new_tokens:
        logits, kept = read(new, kept)
        new = [torch.multinomial(F.softmax(logits, dim=-1), num_samples=1).item()]
        generated += new
        if new[0] == eos_id:
            break
    return generated


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


@right("greedy_decode")  # reads before the loop, and in it only where it goes on
def _(read, prompt, eos_id, max_new_tokens):
    logits, kept = read(list(prompt), None)
    ids = [int(logits.argmax())]
    while ids[-1] != eos_id and len(ids) != max_new_tokens:
        logits, kept = read((ids[-1],), kept)
        ids.append(int(logits.argmax()))
    return ids


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
