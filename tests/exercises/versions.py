"""Other right ways of writing every exercise: by hand, by loops, in doubles, by the library."""

import math

import torch
import torch.nn.functional as F

from transformer_lesson.model.masks import causal_mask
from transformer_lesson.text.tokenizers import words

# Lessons 01 to 04


def pad_rows(sequences, pad_id):
    n = max(map(len, sequences))
    return torch.tensor([s + [pad_id] * (n - len(s)) for s in sequences])


def sinusoids(n, d_model, base=10000.0):
    position = torch.arange(n, dtype=torch.float64)[:, None]
    angle = position / base ** (torch.arange(0, d_model, 2) / d_model)  # (n, d_model / 2)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)


def shifted(k, d_model, base=10000.0):
    R = torch.zeros(d_model, d_model)
    for i in range(0, d_model, 2):
        angle = k / base ** (i / d_model)
        R[i, i] = R[i + 1, i + 1] = math.cos(angle)
        R[i + 1, i], R[i, i + 1] = math.sin(angle), -math.sin(angle)
    return R


def attend(Q, K, V, mask=None):
    scores = Q @ K.mT / Q.size(-1) ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1).nan_to_num(0.0)
    return weights @ V, weights


def heads_together(x, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    batch, n, d_model = x.shape

    def parts(W):
        return torch.einsum("bnd,dhk->bhnk", x, W.reshape(d_model, n_heads, -1))

    heads, _ = attend(parts(W_Q), parts(W_K), parts(W_V), mask)
    return heads.permute(0, 2, 1, 3).reshape(batch, n, -1) @ W_O


def turned_by_blocks(d_model, steps, base=10000.0):
    angles = [steps / base ** (two_i / d_model) for two_i in range(0, d_model, 2)]
    cos, sin = math.cos, math.sin
    return torch.block_diag(*(torch.tensor([[cos(a), sin(a)], [-sin(a), cos(a)]]) for a in angles))


def turned_as_complex(d_model, steps, base=10000.0):
    angle = -steps * base ** (-torch.arange(0, d_model, 2).double() / d_model)
    hands = torch.view_as_complex(torch.eye(d_model).double().view(d_model, -1, 2).flip(-1))
    turned = hands * torch.exp(1j * angle)  # cosine + i sine
    return torch.view_as_real(turned).flip(-1).flatten(1)


def fitted_to_encodings(d_model, steps, base=10000.0):
    places = torch.arange(-400, 400, dtype=torch.float64)[:, None]
    angle = base ** (-torch.arange(0, d_model, 2).double() / d_model)

    def encoding(pos):
        return torch.stack([(pos * angle).sin(), (pos * angle).cos()], dim=-1).flatten(1)

    return torch.linalg.lstsq(encoding(places), encoding(places - steps)).solution.float()


# Lessons 05 to 07


def norm_by_hand(x, gamma, beta, epsilon):
    mean = x.mean(-1, keepdim=True)
    variance = x.var(-1, keepdim=True, correction=0)
    return (x - mean) / (variance + epsilon) ** 0.5 * gamma + beta


def post(x, sublayer, norm):
    return norm(x + sublayer(x))


def count(d_model, d_ff, n_layers):
    return (4 * d_model**2 + 2 * d_model * d_ff + 9 * d_model + d_ff) * n_layers


def decoder(y, memory, self_attention, cross_attention, feed_forward, *norms):
    y = post(y, self_attention, norms[0])
    y = post(y, lambda queries: cross_attention(queries, memory), norms[1])
    return post(y, feed_forward, norms[2])


def heads_across(y, memory, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    results = []
    for W in zip(*(M.chunk(n_heads, dim=1) for M in (W_Q, W_K, W_V)), strict=True):
        results.append(attend(y @ W[0], memory @ W[1], memory @ W[2], _of_heads(mask))[0])
    return torch.cat(results, dim=-1) @ W_O


def _of_heads(mask):
    return mask if mask is None else mask[:, 0]


def _stream(ids, table):
    n, d_model = ids.size(1), table.size(1)
    return F.embedding(ids, table) * d_model**0.5 + sinusoids(n, d_model).float()


def _network(x, W_1, b_1, W_2, b_2):
    return (x @ W_1 + b_1).clamp(min=0) @ W_2 + b_2


def _normed(x, pair):
    return F.layer_norm(x, x.shape[-1:], *pair)


def encoder(source_ids, weights):
    x, h = _stream(source_ids, weights.source_table), weights.n_heads
    real = (source_ids != weights.pad_id)[:, None, None, :]
    for block in weights.encoder:
        x = _normed(x + heads_together(x, *block.self_attention, h, real), block.norms[0])
        x = _normed(x + _network(x, *block.feed_forward), block.norms[1])
    return x


def logits_of(target_ids, memory, source_ids, weights):
    y, h = _stream(target_ids, weights.target_table), weights.n_heads
    earlier = torch.ones(y.size(1), y.size(1)).tril().bool()
    real = (source_ids != weights.pad_id)[:, None, None, :]
    for block in weights.decoder:
        y = _normed(y + heads_together(y, *block.self_attention, h, earlier), block.norms[0])
        y = _normed(y + heads_across(y, memory, *block.cross_attention, h, real), block.norms[1])
        y = _normed(y + _network(y, *block.feed_forward), block.norms[2])
    return torch.einsum("btd,dv->btv", y, weights.projection)


def leaks_if_changed(positions):
    """A test for causality that changes these positions, one after the other."""

    def leaks_future(model, ids):
        for t in positions(ids.size(1)):
            changed = ids.clone()
            changed[:, t] = (ids[:, t] == 0).long()
            if ((model(changed) - model(ids))[:, :t].abs() > 1e-5).any():
                return True
        return False

    return leaks_future


# Lessons 08 to 11


def labels_by_windows(target):
    return list(target.unfold(1, target.size(1) - 1, 1).unbind(1))


def rate(step, d_model, warmup_steps):
    return d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)


def loss_of_targets(logits, labels, smoothing, pad_id):
    vocab_size = logits.size(-1)
    target = F.one_hot(labels, vocab_size) * (1 - smoothing) + smoothing / vocab_size
    losses = -(target * logits.log_softmax(dim=-1)).sum(dim=-1)
    return losses[labels != pad_id].mean()


def loss_with_pytorch(logits, labels, smoothing, pad_id):
    return F.cross_entropy(
        logits.flatten(0, -2), labels.flatten(), ignore_index=pad_id, label_smoothing=smoothing
    )


def greedy(next_logits, bos_id, eos_id, max_len):
    ids = [bos_id]
    while len(ids) < max_len and (len(ids) == 1 or ids[-1] != eos_id):
        logits = next_logits(ids).tolist()
        ids.append(logits.index(max(logits)))
    return ids


def top_k(logits, k):
    kth = logits.sort(dim=-1).values[..., -min(k, logits.size(-1))]
    return torch.where(logits >= kth[..., None], logits, -math.inf)


def top_p(logits, p):
    """Mark in sorted order what is left out, shift the marks by one, put them back."""
    ranked, order = logits.sort(dim=-1, descending=True)
    out = ranked.softmax(dim=-1).cumsum(dim=-1) >= p
    out = torch.cat([torch.zeros_like(out[..., :1]), out[..., :-1]], dim=-1)
    return torch.where(torch.zeros_like(out).scatter(-1, order, out), -math.inf, logits)


def beams(next_log_probs, bos_id, eos_id, width, max_len):
    """All extensions of all beams at once, one topk over beam * vocab_size."""
    running, finished = [([bos_id], 0.0)], []
    while running and len(running[0][0]) < max_len:
        sums = torch.stack([next_log_probs(ids) + total for ids, total in running])
        best = sums.double().flatten().topk(min(width, sums.numel()))
        extended = [
            (running[i // sums.size(1)][0] + [i % sums.size(1)], value)
            for value, i in zip(best.values.tolist(), best.indices.tolist(), strict=True)
        ]
        finished += [pair for pair in extended if pair[0][-1] == eos_id]
        running = [pair for pair in extended if pair[0][-1] != eos_id]
    scored = [(ids, total / ((4 + len(ids)) / 6) ** 0.6) for ids, total in finished or running]
    return max(scored, key=lambda pair: pair[1])


def accepted(p, q):
    accept, residual = torch.ones_like(p), torch.zeros_like(p)
    for row in range(len(p)):
        for token in range(p.size(1)):
            if q[row, token] > p[row, token]:
                accept[row, token] = p[row, token] / q[row, token]
            residual[row, token] = max(p[row, token] - q[row, token], 0)
        residual[row] /= sum(residual[row])
    return accept, residual


def cached(cache, K, V):
    if cache is None:
        return K, V
    return tuple(torch.cat(pair, dim=-2) for pair in zip(cache, (K, V), strict=True))


def bits(loss, n_tokens, n_characters):
    return loss * math.log2(math.e) * n_tokens / n_characters


def windows_unfolded(ids, length, starts):
    rows = ids.unfold(0, length + 1, 1)[torch.tensor(starts)]  # (batch, length + 1)
    return rows[:, :-1], rows[:, 1:]


def gpt(ids, weights):
    x, h = _stream(ids, weights.table), weights.n_heads
    earlier = torch.ones(x.size(1), x.size(1)).tril().bool()
    for block in weights.blocks:
        x = x + heads_together(_normed(x, block.norms[0]), *block.self_attention, h, earlier)
        x = x + _network(_normed(x, block.norms[1]), *block.feed_forward)
    return torch.einsum("bnd,dv->bnv", _normed(x, weights.last_norm), weights.projection)


def written(next_logits, ids, draws, length, temperature=1.0):
    """Walk along the line, token by token."""
    new = []
    for draw in draws:
        shares = [math.exp(z / temperature) for z in next_logits((ids + new)[-length:]).tolist()]
        token, end = 0, shares[0] / sum(shares)
        while end <= draw:
            token += 1
            end += shares[token] / sum(shares)
        new.append(token)
    return ids + new


def score_by_loops(weights, period):
    n = weights.size(-1)
    cells = [weights[:, :, i, i - period + 1] for i in range(period, n)]  # (batch, head) each
    return torch.stack(cells).mean(dim=(0, 1))


def score_on_diagonal(weights, period):
    diagonal = weights.double().diagonal(1 - period, dim1=-2, dim2=-1)
    return diagonal[..., 1:].mean(dim=(0, 2))


def zeroed(head_outputs, head):
    copy = head_outputs.clone()
    copy[:, head] = 0.0
    return copy


def masked(head_outputs, head):
    keep = torch.arange(head_outputs.size(1)) != head
    return head_outputs * keep[:, None, None]


# Lesson 12


def named_by_parts(name):
    block, _, part = name.removesuffix(".weight").rpartition(".")
    if not block:
        return {"token_embd": "embedding", "output_norm": "decoder_norm"}[part] + ".weight"
    kind, _, what = part.partition("_")
    if what == "norm":
        ours = {"attn": "norm_1", "ffn": "norm_2"}[kind]
    elif kind == "attn":
        ours = f"self_attention.W_{what[0].upper()}"
    else:
        ours = f"feed_forward.W_{what}"
    return f"decoder.{block[4:]}.{ours}.weight"


def unpacked(blocks):
    scale, smallest = blocks[:, :4].contiguous().view(torch.float16).float().unbind(dim=1)
    steps = torch.stack([blocks[:, 4:] % 16, blocks[:, 4:] // 16], dim=1).flatten(1)
    return torch.addcmul(smallest[:, None], scale[:, None], steps.float())


def spoken(tokenizer, messages):
    start, end = (tokenizer.vocabulary[f"<|im_{mark}|>"] for mark in ("start", "end"))
    ids = []
    for role, text in [*messages, ("assistant", None)]:
        ids += [start, *tokenizer.encode(f"{role}\n")]
        ids += [] if text is None else [*tokenizer.encode(text), end, *tokenizer.encode("\n")]
    return ids


# Lesson 13


def rms(x, gamma, epsilon):
    return x / ((x * x).mean(dim=-1, keepdim=True) + epsilon).sqrt() * gamma


def rotated(x, positions, base=10000.0):
    half = x.size(-1) // 2
    angle = positions[:, None] * base ** (-torch.arange(half) / half)
    (a, b), (cos, sin) = x.chunk(2, dim=-1), (angle.cos(), angle.sin())
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


def rotated_as_complex(x, positions, base=10000.0):
    half = x.size(-1) // 2
    angle = positions[:, None] * base ** (-torch.arange(half) / half)
    turned = torch.complex(x[..., :half], x[..., half:]) * torch.polar(
        torch.ones_like(angle), angle
    )
    return torch.cat([turned.real, turned.imag], dim=-1)


def gated(x, W_gate, W_up, W_down):
    return (F.silu(x @ W_gate) * (x @ W_up)) @ W_down


def gated_by_hand(x, W_gate, W_up, W_down):
    gate = x @ W_gate
    return (gate / (1 + (-gate).exp()) * (x @ W_up)) @ W_down


def expanded(x, n_groups):
    batch, heads, n, d_head = x.shape
    return x[:, :, None].expand(batch, heads, n_groups, n, d_head).reshape(batch, -1, n, d_head)


# Lesson 14


def hide_and_stack(ids, embedding, blocks, projection):
    n = ids.size(1)
    x = embedding(ids)
    for block in blocks:
        x = block(x, torch.arange(n)[:, None] >= torch.arange(n))
    return projection(x)


def block_in_doubles(x, attention_1, attention_2, feed_forward):
    x, mask = x.double(), causal_mask(x.size(1))
    for attention in (attention_1, attention_2):
        x = attention(x, x, x, mask) + x
    return feed_forward(x) + x


def mask_by_loops(ids, pad_id):
    batch, n = ids.shape
    mask = torch.zeros(batch, 1, n, n, dtype=torch.bool)
    for sentence in range(batch):
        for query in range(n):
            for key in range(query + 1):
                mask[sentence, 0, query, key] = ids[sentence, key] != pad_id
    return mask


def infinite_where_some(scores, mask):
    some = mask.any(-1, keepdim=True)
    return scores.masked_fill(~mask & some, -math.inf).softmax(-1) * mask


def infinite_then_zero(scores, mask):
    return scores.masked_fill(~mask, -math.inf).softmax(-1).masked_fill(~mask, 0.0)


def in_single_precision(scores, mask):
    return infinite_then_zero(scores.float(), mask)


def fused(x, W_Q, W_K, W_V):
    Q, K, V = (x[:, None] @ W for W in (W_Q, W_K, W_V))
    return F.scaled_dot_product_attention(Q, K, V)


def side_by_side(x, *matrices):
    Q, K, V = (
        (x @ torch.cat(list(W), dim=1)).unflatten(-1, (len(W), -1)).transpose(1, 2)
        for W in matrices
    )
    return (Q @ K.mT / Q.size(-1) ** 0.5).softmax(-1) @ V


def linear_in_steps(attend, x, y):
    def f(z):
        return attend(z, z, z)

    return bool(((f(x + y) - f(x) - f(y)).abs() < 1e-4).all())


def halves(n_positions, d_model):
    encoding = torch.empty(n_positions, d_model, dtype=torch.float64)
    for column in range(d_model):
        angle = torch.arange(n_positions) / 10000 ** (2 * (column // 2) / d_model)
        encoding[:, column] = angle.cos() if column % 2 else angle.sin()
    return encoding


def wide_then_cut(n_positions, d_model):
    two_i = torch.arange(0, d_model, 2)
    angle = torch.arange(n_positions)[:, None] / 10000 ** (two_i / d_model)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :d_model]


def one_token_after_the_other(x, table):
    return torch.stack([token + table[i] for i, token in enumerate(x.unbind(1))], dim=1)


def added_in_steps(x, sublayer, dropout, norm):
    total = dropout(sublayer(x.double()))
    total += x
    return norm(total)


def by_loops(labels, n_classes, smoothing):
    rows = [[smoothing / n_classes] * n_classes for _ in labels]
    for row, label in zip(rows, labels.tolist(), strict=True):
        row[label] += 1 - smoothing
    return torch.tensor(rows)


def loss_by_hand(logits, labels):
    log_p = logits.double() - logits.double().logsumexp(dim=-1, keepdim=True)
    return -log_p.gather(-1, labels[..., None]).mean()


def while_loop(next_logits, prompt, eos_id, max_new_tokens):
    new = []
    while len(new) < max_new_tokens and eos_id not in new:
        logits = next_logits(prompt + new).tolist()
        new.append(logits.index(max(logits)))
    return prompt + new


def with_if(words, vocabulary, unk_id):
    ids = []
    for word in words:
        ids.append(vocabulary[word] if word in vocabulary else unk_id)
    return tuple(ids)


def row_by_row(next_logits, start, length):
    ids = start.clone()
    while ids.shape[1] < length:
        new = [[int(row.argmax())] for row in next_logits(ids)]
        ids = torch.cat([ids, torch.tensor(new)], dim=1)
    return ids


def keepdim(next_logits, start, length):
    n = start.shape[-1]
    for _ in range(n, length):
        start = torch.cat([start, next_logits(start).argmax(-1, keepdim=True)], -1)
    return start


def chained(model, ids):
    x = model.embedding(ids).double()
    for i in range(len(model.layers)):
        x = model.layers[i](x)
    logits = model.out(x)
    return logits


def step_that_clears_at_the_end(model, batch, loss_function, optimizer, max_norm):
    loss = loss_function(model(*batch.inputs), batch.labels)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()


def step_by_hand(model, batch, loss_function, optimizer, max_norm):
    weights = list(model.parameters())
    logits = model(*batch.inputs)
    loss = loss_function(logits, batch.labels)
    model.zero_grad()
    loss.backward()
    length = math.sqrt(sum(float(weight.grad.square().sum()) for weight in weights))
    for weight in weights:
        weight.grad *= min(1.0, max_norm / length)
    optimizer.step()
    return loss.item()


RIGHT = {
    "encode": [lambda t, v, unk: tuple(v[w] if w in v else unk for w in words(t))],
    "pad_batch": [pad_rows],
    "embed": [
        lambda ids, table: F.embedding(ids, table) * table.size(1) ** 0.5,
        lambda ids, table: (
            F.one_hot(ids, len(table)).double() @ table.double() * math.sqrt(table.size(1))
        ),
    ],
    "sinusoidal_encoding": [sinusoids, lambda *sizes: sinusoids(*sizes).float()],
    "shift_matrix": [shifted, lambda *sizes: shifted(*sizes).double()],
    "attention_scores": [
        lambda Q, K: torch.einsum("...qd,...kd->...qk", Q, K) / Q.size(-1) ** 0.5,
        lambda Q, K: (Q * Q.size(-1) ** -0.25).double() @ (K * Q.size(-1) ** -0.25).double().mT,
    ],
    "scaled_dot_product_attention": [
        attend,
        lambda Q, K, V, mask=None: list(attend(Q.double(), K.double(), V.double(), mask)),
    ],
    "causal_mask": [
        lambda n: (torch.arange(n)[:, None] >= torch.arange(n))[None, None],
        lambda n: ~torch.ones(n, n).triu(1).bool().expand(1, 1, n, n),
    ],
    "padding_mask": [lambda ids, pad_id: ~ids.eq(pad_id).unsqueeze(1).unsqueeze(1)],
    "look_back_head": [turned_by_blocks, turned_as_complex, fitted_to_encodings],
    "split_heads": [
        lambda x, h: torch.stack(x.chunk(h, dim=-1), dim=1),
        lambda x, h: x.reshape(*x.shape[:2], h, -1).permute(0, 2, 1, 3),
    ],
    "merge_heads": [lambda x: torch.cat(list(x.unbind(1)), dim=-1)],
    "multi_head_attention": [heads_together],
    "layer_norm": [
        norm_by_hand,
        lambda x, gamma, beta, e: F.layer_norm(x, gamma.shape, gamma, beta, e),
        lambda *args: norm_by_hand(*(a.double() if torch.is_tensor(a) else a for a in args)),
    ],
    "feed_forward": [
        lambda x, W_1, b_1, W_2, b_2: F.linear(F.relu(F.linear(x, W_1.T, b_1)), W_2.T, b_2),
        lambda x, W_1, b_1, W_2, b_2: (x @ W_1).add_(b_1).clamp_(min=0) @ W_2 + b_2,
    ],
    "residual_branch": [lambda x, f, norm: norm(f(x.double()) + x)],
    "residual_branch_pre": [lambda x, f, norm: f(norm(x)) + x],
    "encoder_block": [lambda x, a, f, n_1, n_2: post(post(x, a, n_1), f, n_2)],
    "encoder_forward": [encoder],
    "count_encoder_parameters": [count, lambda *sizes: torch.tensor(count(*sizes))],
    "cross_attention": [heads_across],
    "decoder_block": [decoder],
    "decoder_forward": [logits_of],
    "leaks_future": [
        leaks_if_changed(lambda n: range(n)),
        leaks_if_changed(lambda n: range(n - 1, 0, -1)),
    ],
    "shift_right": [lambda target: (target[:, :-1], target[:, 1:]), labels_by_windows],
    "warmup_rate": [rate, lambda *inputs: torch.tensor(rate(*inputs))],
    "training_step": [step_that_clears_at_the_end, step_by_hand],
    "label_smoothed_loss": [
        loss_of_targets,
        loss_with_pytorch,
        lambda logits, *rest: loss_with_pytorch(logits.double(), *rest),
    ],
    "greedy_decode": [greedy],
    "top_k_filter": [top_k, lambda logits, k: top_k(logits.double(), k)],
    "top_p_filter": [top_p, lambda logits, p: top_p(logits.double(), p)],
    "beam_search": [beams, lambda *inputs: list(beams(*inputs))],
    "append_to_cache": [cached, lambda *inputs: [part.double() for part in cached(*inputs)]],
    "accept_and_residual": [
        accepted,
        lambda p, q: [part.double() for part in accepted(p, q)],
    ],
    "bits_per_character": [
        bits,
        lambda loss, n_tokens, n_characters: torch.tensor(bits(loss, n_tokens, n_characters)),
        lambda loss, n_tokens, n_characters: -math.log2(math.exp(-loss)) / n_characters * n_tokens,
    ],
    "windows": [windows_unfolded, lambda *inputs: list(windows_unfolded(*inputs))],
    "gpt_forward": [gpt],
    "write_on": [written],
    "induction_score": [
        score_by_loops,
        score_on_diagonal,
        lambda weights, period: (
            weights[..., period:, 1:].diagonal(dim1=-2, dim2=-1).mean(dim=-1).mean(dim=0)
        ),
    ],
    "ablate_head": [
        zeroed,
        masked,
        lambda x, head: torch.cat([x[:, :head], 0 * x[:, head : head + 1], x[:, head + 1 :]], 1),
    ],
    "our_name": [named_by_parts],
    "dequantize_q4_1": [
        unpacked,
        lambda blocks: unpacked(blocks).double(),
    ],
    "chat_prompt": [spoken, lambda *inputs: tuple(spoken(*inputs))],
    "most_similar": [
        lambda query, vectors, k: F.cosine_similarity(vectors, query[None]).topk(k).indices.tolist()
    ],
    "rms_norm": [
        rms,
        lambda x, gamma, e: F.rms_norm(x, gamma.shape, gamma, e),
        lambda x, gamma, e: rms(x.double(), gamma.double(), e),
    ],
    "apply_rotary": [rotated, rotated_as_complex],
    "swiglu": [gated, gated_by_hand],
    "repeat_kv": [
        expanded,
        lambda x, n_groups: torch.stack([x] * n_groups, dim=2).flatten(1, 2),
        lambda x, n_groups: x[:, torch.arange(x.size(1)).repeat_interleave(n_groups)],
    ],
    "gpt_block": [block_in_doubles],
    "next_token_logits": [hide_and_stack],
    "mask_for_batch": [mask_by_loops],
    "weights_of_real_keys": [infinite_where_some, infinite_then_zero],
    "half_precision_weights": [infinite_where_some, infinite_then_zero, in_single_precision],
    "cut_into_heads": [
        lambda x, n_heads: torch.stack(x.chunk(n_heads, dim=1)),
        lambda x, n_heads: x.T.reshape(n_heads, -1, len(x)).mT,
    ],
    "all_heads": [fused, side_by_side],
    "is_linear": [linear_in_steps],
    "projection_parameters": [
        lambda d_model, n_heads: 3 * d_model**2,
        lambda d_model, n_heads: torch.tensor(3 * d_model * n_heads * (d_model // n_heads)),
    ],
    "encoding_by_formula": [halves, wide_then_cut],
    "encoding_of_any_width": [halves, wide_then_cut],
    "add_positions": [
        lambda x, table: x + table[None, : x.size(1)],
        one_token_after_the_other,
        lambda x, table: F.embedding(torch.arange(x.size(1)), table).double() + x,
    ],
    "frequencies": [
        lambda d_model: 10000.0 ** (-torch.arange(0, d_model, 2) / d_model),
        lambda d_model: 1 / torch.logspace(0, 4, d_model // 2 + 1)[:-1],
    ],
    "add_and_norm": [added_in_steps, lambda x, f, dropout, norm: norm(dropout(f(x)) + x)],
    "close_branch": [
        lambda x, branch, block: block.norm(block.dropout(branch) + x),
        lambda x, branch, block: block.norm(x.double() + block.dropout(branch.double())),
    ],
    "last_logits": [
        lambda x, W, b: (x @ W + b)[:, -1],
        lambda x, W, b: F.linear(x[:, -1, :].double(), W.T.double(), b.double()),
        lambda x, W, b: torch.einsum("bd,dv->bv", x[:, -1], W) + b,
    ],
    "smoothed_targets": [
        by_loops,
        lambda labels, n, smoothing: torch.lerp(
            F.one_hot(labels, n).float(), torch.full((len(labels), n), 1 / n), smoothing
        ),
        lambda labels, n, smoothing: (
            (1 - smoothing) * F.one_hot(labels, n).double() + smoothing / n
        ),
    ],
    "next_token_loss": [
        loss_by_hand,
        lambda logits, labels: F.cross_entropy(logits.transpose(1, 2), labels),
        lambda logits, labels: F.cross_entropy(logits.log_softmax(dim=-1).mT, labels),
        lambda logits, labels: F.nll_loss(
            logits.log_softmax(dim=-1).reshape(-1, logits.size(-1)), labels.reshape(-1)
        ),
        lambda logits, labels: float(loss_by_hand(logits, labels)) * torch.ones(()),
    ],
    "continue_text": [while_loop],
    "look_up": [with_if],
    "fill_up": [row_by_row, keepdim],
    "width_message": [
        lambda x, table: f"Expected vectors of {table.size(1)} numbers, but got {x.size(-1)}.",
        lambda x, table: (
            "Expected vectors of %d numbers, but got %d." % (len(table[0]), x.shape[2])  # noqa: UP031
        ),
    ],
    "run_listing": [chained],
    "gpt2_d_model": [
        lambda n_heads: 64 * n_heads,
        lambda n_heads: n_heads * (1024 // 16),
        lambda n_heads: {12: 768, 16: 1024, 20: 1280, 25: 1600}.get(n_heads, n_heads << 6),
        lambda n_heads: int(math.prod((n_heads, 768)) / 12),
    ],
}
"""By exercise."""
