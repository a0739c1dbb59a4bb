# %% 00 write_translation
def write_translation(next_word, source):
    written = []
    while (word := next_word(source, written)) != "<eos>":
        written.append(word)
    return written


# %% 01 apply_byte_pairs
import re

def apply_byte_pairs(word, merges):
    text = f" {' '.join(word)} "
    for pair in merges:
        found = rf"(?<= ){re.escape(' '.join(pair))}(?= )"
        text = re.sub(found, lambda _, pair=pair: "".join(pair), text)
    return text.split()


# %% 01 train_byte_pairs
from collections import Counter
from itertools import pairwise

def train_byte_pairs(counts, n_merges):
    merges = []
    while len(merges) < n_merges:
        seen = Counter()
        for word, n in counts.items():
            for pair in pairwise(apply_byte_pairs(word, merges)):
                seen[pair] += n
        if not seen:
            break
        [(best, _)] = seen.most_common(1)
        merges.append(best)
    return merges


# %% 01 nearest_neighbors
def nearest_neighbors(vectors):
    cosines = F.cosine_similarity(vectors[:, None], vectors[None], dim=-1)
    return cosines.fill_diagonal_(-torch.inf).argmax(-1)


# %% 02 sinusoidal_encoding
def angle_at(pos, i, d_model, base):
    return pos / base ** (2 * i / d_model)

def sinusoidal_encoding(n_positions, d_model, base=10000.0):
    PE = []
    for pos in range(n_positions):
        row = []
        for i in range(d_model // 2):
            angle = angle_at(pos, i, d_model, base)
            row.append(math.sin(angle))
            row.append(math.cos(angle))
        PE.append(row)
    return torch.tensor(PE)


# %% 02 rotation_between
def rotation_between(before, after):
    z, w = (torch.complex(code[1::2], code[0::2]) for code in (before, after))
    turn = w * z.conj()
    cos, sin = turn.real, turn.imag
    return torch.block_diag(*torch.stack([cos, -sin, sin, cos], dim=-1).view(-1, 2, 2))


# %% 03 own_noun
def own_noun(R):
    ask, offer = torch.zeros(7, 4), torch.zeros(7, 4)
    ask[0, 0] = 100.0
    offer[1, 0] = 1.0
    ask[5:, 2:] = 80.0 * R
    offer[5:, 2:] = torch.eye(2)
    return ask, offer


# %% 03 attention_scores
def attention_scores(Q, K):
    return torch.einsum("...qd,...kd->...qk", Q, K) / math.sqrt(Q.size(-1))


# %% 03 scaled_dot_product_attention
VERY_LOW = -1e9  # e to the power of this is 0

def scaled_dot_product_attention(Q, K, V, mask=None):
    scores = torch.matmul(Q, K.transpose(-2, -1)) / math.sqrt(Q.shape[-1])
    if mask is None:
        weights = torch.softmax(scores, dim=-1)
    else:
        hidden = mask == False
        scores = scores.masked_fill(hidden, VERY_LOW)
        weights = torch.softmax(scores, dim=-1)
        weights = weights.masked_fill(hidden, 0.0)  # for rows that see nothing
    output = torch.matmul(weights, V)
    return output, weights


# %% 04 role_head
def role_head(n_places):
    before = F.one_hot(torch.arange(-1, n_places - 1).relu(), n_places).float()
    W_Q, W_K = F.pad(99 * before, (0, 0, 6, 0)), F.pad(torch.eye(n_places), (0, 0, 6, 0))
    return W_Q, W_K, F.one_hot(torch.tensor(2), 6 + n_places)[:, None]


# %% 04 split_heads
def split_heads(x, n_heads):
    d_model = x.shape[2]
    d_head = d_model // n_heads
    heads = []
    for h in range(n_heads):
        start = h * d_head
        end = start + d_head
        heads.append(x[:, :, start:end])
    return torch.stack(heads, dim=1)


# %% 04 merge_heads
def merge_heads(x):
    heads = []
    for h in range(x.shape[1]):
        heads.append(x[:, h])
    return torch.cat(heads, dim=2)


# %% 04 multi_head_attention
def multi_head_attention(x, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    Q, K, V = (split_heads(x @ W, n_heads) for W in (W_Q, W_K, W_V))
    return merge_heads(F.scaled_dot_product_attention(Q, K, V, attn_mask=mask)) @ W_O


# %% 05 feed_forward
def feed_forward(x, W_1, b_1, W_2, b_2):
    return F.linear(F.relu(F.linear(x, W_1.T, b_1)), W_2.T, b_2)


# %% 05 layer_norm
def layer_norm(x, gamma, beta, epsilon):
    d_model = x.shape[-1]
    mean = x.sum(dim=-1, keepdim=True) / d_model
    difference = x - mean
    variance = (difference * difference).sum(dim=-1, keepdim=True) / d_model
    normal = difference / torch.sqrt(variance + epsilon)
    return normal * gamma + beta


# %% 05 residual_branch
def residual_branch(x, sublayer, norm):
    O = sublayer(x)
    total = x + O
    return norm(total)


# %% 06 encoder_block
def encoder_block(x, attention, feed_forward, norm_1, norm_2):
    return residual_branch(residual_branch(x, attention, norm_1), feed_forward, norm_2)


# %% 06 padding_mask
def padding_mask(ids, pad_id):
    mask = []
    for sentence in ids.tolist():
        is_word = []
        for token in sentence:
            is_word.append(token != pad_id)
        mask.append([[is_word]])
    return torch.tensor(mask)


# %% 06 encoder_forward
def encoder_forward(source_ids, weights):
    table, h = weights.source_table, weights.n_heads
    n, d = source_ids.size(1), table.size(1)
    angle = torch.outer(torch.arange(n).double(), 1e4 ** (-torch.arange(0, d, 2).double() / d))
    Z = F.embedding(source_ids, table) * math.sqrt(d)
    Z = Z + torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).to(table)
    words_only = source_ids.ne(weights.pad_id)[:, None, None]
    for block in weights.encoder:
        *W_QKV, W_O = block.self_attention
        W_1, b_1, W_2, b_2 = block.feed_forward
        norm_1, norm_2 = block.norms
        # (3, batch, head, n, d_head), all three at once
        Q, K, V = torch.einsum("bnm,cmhd->cbhnd", Z, torch.stack(W_QKV).unflatten(-1, (h, -1)))
        heads = F.scaled_dot_product_attention(Q, K, V, attn_mask=words_only)
        O = torch.einsum("bhnd,hdm->bnm", heads, W_O.unflatten(0, (h, -1)))
        Z = F.layer_norm(Z + O, (d,), *norm_1)
        Z = F.layer_norm(Z + F.relu(Z @ W_1 + b_1) @ W_2 + b_2, (d,), *norm_2)
    return Z


# %% 06 swap
def swap(memory, other, place):
    rows = list(memory.unbind(dim=1))
    rows[place] = other[:, place]
    return torch.stack(rows, dim=1)


# %% 07 causal_mask
def causal_mask(n):
    return ~torch.triu(torch.ones(1, 1, n, n, dtype=torch.bool), diagonal=1)


# %% 07 cross_attention
def cross_attention(y, memory, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    Q = split_heads(y @ W_Q, n_heads)
    K = split_heads(memory @ W_K, n_heads)
    V = split_heads(memory @ W_V, n_heads)
    heads = scaled_dot_product_attention(Q, K, V, mask)[0]
    return merge_heads(heads) @ W_O


# %% 07 decoder_forward
def decoder_forward(target_ids, memory, source_ids, weights):
    look_ahead = causal_mask(target_ids.shape[1])
    padding = padding_mask(source_ids, weights.pad_id)
    Y = embed(target_ids, weights.target_table)
    Z = Y + sinusoidal_encoding(Y.shape[1], Y.shape[2])
    for block in weights.decoder:

        def self_attend(y):
            return multi_head_attention(y, *block.self_attention, weights.n_heads, look_ahead)

        def cross_attend(y, memory):
            return cross_attention(y, memory, *block.cross_attention, weights.n_heads, padding)

        def network(y):
            return feed_forward(y, *block.feed_forward)

        norms = []
        for gamma, beta in block.norms:
            norms.append(lambda y, gamma=gamma, beta=beta: layer_norm(y, gamma, beta, 1e-5))
        Z = decoder_block(Z, memory, self_attend, cross_attend, network, *norms)
    return Z @ weights.projection


# %% 07 leaks_future
def leaks_future(model, ids):
    def moved(t, new):
        after = model(ids.index_fill(1, torch.tensor([t]), new))[:, :t]
        return not torch.allclose(after, before[:, :t], rtol=0, atol=1e-5, equal_nan=True)

    with torch.no_grad():
        before = model(ids.clone())
        return any(moved(t, new) for t in range(1, ids.size(1)) for new in (0, 1))


# %% 07 patches
def patches(pictures, size):
    return F.unfold(pictures.unsqueeze(1), kernel_size=size, stride=size).transpose(1, 2)


# %% 08 loss_gradient
def loss_gradient(logits, labels, smoothing, pad_id):
    real = (labels != pad_id)[..., None]
    p = logits.softmax(-1).scatter_add(-1, labels[..., None], (smoothing - 1) * real.to(logits))
    return real * (p - smoothing / logits.size(-1)) / real.sum()


# %% 08 adam_step
def adam_step(w, g, m, v, t, rate):
    m, v = torch.lerp(g, m, 0.9), torch.lerp(g.square(), v, 0.98)
    root = (v / (1 - 0.98**t)).sqrt() + 1e-9
    return torch.addcdiv(w, m, root, value=-rate / (1 - 0.9**t)), m, v


# %% 08 projection_gradient
def projection_gradient(H, W_L, G):
    return G @ W_L.T, torch.tensordot(H, G, dims=([0, 1], [0, 1]))


# %% 08 softmax_gradient
def softmax_gradient(weights, G):
    product = weights * G
    return product - weights * product.sum(-1, keepdim=True)


# %% 08 layer_norm_gradient
def layer_norm_gradient(x, gamma, epsilon, G):
    with torch.enable_grad():
        leaf, scale = x.detach().requires_grad_(), gamma.detach().requires_grad_()
        shift = torch.zeros_like(scale, requires_grad=True)
        out = F.layer_norm(leaf, leaf.shape[-1:], scale, shift, epsilon)
        return torch.autograd.grad(out, (leaf, scale, shift), G)


# %% 08 head_gradient
def head_gradient(Q, K, V, weights, G):
    product = weights * (G @ V.mT)
    of_scores = (product - weights * product.sum(-1, keepdim=True)) / Q.size(-1) ** 0.5
    return of_scores @ K, of_scores.mT @ Q, weights.mT @ G


# %% 09 greedy_decode
def greedy_decode(read, prompt, eos_id, max_new_tokens):
    ids, state = list(prompt), (None, None)
    while (done := len(ids) - len(prompt)) < max_new_tokens and (not done or ids[-1] != eos_id):
        state = read(ids[-1:] if done else prompt, state[1])
        ids.append(state[0].argmax().item())
    return ids[len(prompt) :]


# %% 09 top_p_filter
def top_p_filter(logits, p):
    P, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)
    before = F.pad(P.cumsum(dim=-1)[..., :-1], (1, 0))  # what the likelier tokens hold
    return logits.where(before.gather(-1, order.argsort(dim=-1)) < p, -math.inf)


# %% 09 legal_next
import re

def legal_next(written, tokens):
    letter = r"[^\W\d_]"
    parts = [*map(re.escape, '{"word": "'), letter, f"{letter}*", *'", "gender": "', *("[mfn]", '"', "}")]
    pattern = ""
    for part in reversed(parts):  # each part only behind the one before: (?:a(?:b(?:c)?)?)?
        pattern = f"(?:{part}{pattern})?"
    return torch.tensor([re.fullmatch(pattern, written + token) is not None for token in tokens])


# %% 09 beam_search
def beam_search(next_log_probs, bos_id, eos_id, width, max_len):
    running, finished = [([bos_id], 0.0)], []
    while running and len(running[0][0]) < max_len:
        sums = torch.stack([next_log_probs(ids).double() + total for ids, total in running])
        best = sums.flatten().topk(min(width, sums.numel()))
        hypotheses, tokens = torch.unravel_index(best.indices, sums.shape)
        chosen = zip(hypotheses.tolist(), tokens.tolist(), best.values.tolist())
        grown = [([*running[i][0], token], total) for i, token, total in chosen]
        finished += [one for one in grown if one[0][-1] == eos_id]
        running = [one for one in grown if one[0][-1] != eos_id]
    scored = [(ids, total / ((4 + len(ids)) / 6) ** 0.6) for ids, total in finished or running]
    return max(scored, key=lambda one: one[1])


# %% 10 bits_per_character
def bits_per_character(loss_in_nats, n_tokens, n_characters):
    return loss_in_nats / math.log(2) * n_tokens / n_characters


# %% 10 gpt_forward
def gpt_forward(ids, weights):
    n, d = ids.size(1), weights.table.size(1)
    x = embed(ids, weights.table) + sinusoidal_encoding(n, d).to(weights.table)
    for block in weights.blocks:
        sublayers = (
            lambda z: multi_head_attention(
                z, *block.self_attention, weights.n_heads, causal_mask(n)
            ),
            lambda z: feed_forward(z, *block.feed_forward),
        )
        for sublayer, norm in zip(sublayers, block.norms, strict=True):
            x = residual_branch_pre(x, sublayer, lambda z: layer_norm(z, *norm, 1e-5))
    return torch.einsum("bnd,dv->bnv", layer_norm(x, *weights.last_norm, 1e-5), weights.projection)


# %% 10 write_on
def write_on(next_logits, ids, draws, length, temperature=1.0):
    ids = list(ids)
    for u in draws:
        ends = (next_logits(ids[-length:]).double() / temperature).softmax(dim=-1).cumsum(dim=-1)
        u = torch.tensor([float(u)], dtype=torch.float64)
        hit = torch.searchsorted(ends, u, right=True)  # the first part that ends behind u
        last = torch.searchsorted(ends, ends[-1:])  # u = 1 belongs to the last part with a width
        ids.append(torch.minimum(hit, last).item())
    return ids


# %% 10 fit_power_law
import numpy as np

def fit_power_law(sizes, losses, floors):
    n, loss, floor = np.array(sizes), np.array(losses), np.array(floors)
    slopes, heights = np.polyfit(np.log(n), np.log(loss[:, None] - floor), 1)  # one a floor
    curves = floor + np.exp(heights) * n[:, None] ** slopes  # (runs, floors)
    i = np.square(curves - loss[:, None]).mean(axis=0).argmin()
    return float(floor[i]), float(np.exp(heights[i])), float(-slopes[i])
