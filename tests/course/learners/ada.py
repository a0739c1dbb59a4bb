# %% 00 write_translation
def write_translation(next_word, source):
    words = []
    finished = False
    while not finished:
        word = next_word(source, words)
        if word == "<eos>":
            finished = True
        else:
            words.append(word)
    return words


# %% 01 apply_byte_pairs
def apply_byte_pairs(word, merges):
    pieces = []
    for letter in word:
        pieces.append(letter)
    for merge in merges:
        left = merge[0]
        right = merge[1]
        i = 0
        while i < len(pieces) - 1:
            if pieces[i] == left and pieces[i + 1] == right:
                pieces[i] = left + right
                del pieces[i + 1]
            i = i + 1
    return pieces


# %% 01 train_byte_pairs
def train_byte_pairs(counts, n_merges):
    merges = []
    for round in range(n_merges):
        table = {}
        for word in counts:
            pieces = apply_byte_pairs(word, merges)
            for i in range(len(pieces) - 1):
                pair = (pieces[i], pieces[i + 1])
                if pair not in table:
                    table[pair] = 0
                table[pair] = table[pair] + counts[word]
        best = None
        for pair in table:
            if best is None or table[pair] > table[best]:
                best = pair
        if best is None:
            return merges
        merges.append(best)
    return merges


# %% 01 nearest_neighbors
def nearest_neighbors(vectors):
    n = vectors.shape[0]
    nearest = torch.zeros(n, dtype=torch.long)
    for i in range(n):
        best = None
        for j in range(n):
            if j != i:
                product = torch.sum(vectors[i] * vectors[j])
                cosine = product / (torch.norm(vectors[i]) * torch.norm(vectors[j]))
                if best is None or cosine > best:
                    best = cosine
                    nearest[i] = j
    return nearest


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
from math import atan2, cos, sin


def rotation_between(before, after):
    d_model = len(before)
    R = torch.zeros(d_model, d_model, dtype=before.dtype)
    for a in range(0, d_model, 2):
        b = a + 1
        turn = atan2(after[a], after[b]) - atan2(before[a], before[b])
        R[a, a] = cos(turn)
        R[a, b] = -sin(turn)
        R[b, a] = sin(turn)
        R[b, b] = cos(turn)
    return R


# %% 03 own_noun
def own_noun(R):
    W_Q = torch.zeros(7, 3)
    W_K = torch.zeros(7, 3)
    W_Q[0, 0] = 60
    W_K[1, 0] = 1
    # 1 step or 2 steps ahead, so aim in the middle
    W_Q[5:7, 1:3] = 30 * (R + R @ R)
    W_K[5:7, 1:3] = torch.eye(2)
    return W_Q, W_K


# %% 03 attention_scores
def attention_scores(Q, K):
    d_k = Q.shape[-1]
    K_T = K.transpose(-2, -1)
    dots = torch.matmul(Q, K_T)
    return dots / math.sqrt(d_k)


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
    d_model = 6 + n_places
    W_Q = torch.zeros(d_model, n_places)
    W_K = torch.zeros(d_model, n_places)
    W_V = torch.zeros(d_model, 1)
    for place in range(n_places):
        W_K[6 + place, place] = 1
        if place > 0:
            W_Q[6 + place, place - 1] = 40
        else:
            W_Q[6 + place, place] = 40  # the first word looks at itself
    W_V[2, 0] = 1
    return W_Q, W_K, W_V


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
    Q = split_heads(x @ W_Q, n_heads)
    K = split_heads(x @ W_K, n_heads)
    V = split_heads(x @ W_V, n_heads)
    heads, weights = scaled_dot_product_attention(Q, K, V, mask)
    together = merge_heads(heads)
    return together @ W_O


# %% 05 feed_forward
def feed_forward(x, W_1, b_1, W_2, b_2):
    wide = x @ W_1 + b_1
    hidden = F.relu(wide)
    narrow = hidden @ W_2 + b_2
    return narrow


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
    O_1 = attention(x)
    H = norm_1(x + O_1)
    O_2 = feed_forward(H)
    return norm_2(H + O_2)


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
EPSILON = 1e-5


def encoder_forward(source_ids, weights):
    mask = padding_mask(source_ids, weights.pad_id)
    X = embed(source_ids, weights.source_table)
    n = X.shape[1]
    d_model = X.shape[2]
    Z = X + sinusoidal_encoding(n, d_model)
    for block in weights.encoder:
        W_Q, W_K, W_V, W_O = block.self_attention
        W_1, b_1, W_2, b_2 = block.feed_forward
        gamma_1, beta_1 = block.norms[0]
        gamma_2, beta_2 = block.norms[1]
        O_1 = multi_head_attention(Z, W_Q, W_K, W_V, W_O, weights.n_heads, mask)
        H = layer_norm(Z + O_1, gamma_1, beta_1, EPSILON)
        O_2 = feed_forward(H, W_1, b_1, W_2, b_2)
        Z = layer_norm(H + O_2, gamma_2, beta_2, EPSILON)
    return Z


# %% 07 causal_mask
def causal_mask(n):
    table = []
    for query in range(n):
        row = []
        for key in range(n):
            row.append(key <= query)
        table.append(row)
    mask = torch.tensor(table)
    return mask.reshape(1, 1, n, n)


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
    batch, n = ids.shape
    with torch.no_grad():
        original = model(ids.clone())
        for b in range(batch):
            for t in range(1, n):
                for new_id in (0, 1):
                    changed = ids.clone()
                    changed[b, t] = new_id
                    output = model(changed)
                    distance = (output[:, :t] - original[:, :t]).abs()
                    if (distance > 1e-5).any():
                        return True
    return False


# %% 07 patches
def patches(pictures, size):
    side = pictures.shape[1]
    tokens = []
    for top in range(0, side, size):
        for left in range(0, side, size):
            square = pictures[:, top : top + size, left : left + size]
            tokens.append(square.reshape(len(pictures), size * size))
    return torch.stack(tokens, dim=1)


# %% 08 loss_gradient
def loss_gradient(logits, labels, smoothing, pad_id):
    batch, n, vocab_size = logits.shape
    gradient = torch.zeros_like(logits)
    count = 0
    for b in range(batch):
        for t in range(n):
            if labels[b, t] == pad_id:
                continue
            count += 1
            q = torch.full((vocab_size,), smoothing / vocab_size, dtype=logits.dtype)
            q[labels[b, t]] += 1 - smoothing
            gradient[b, t] = logits[b, t].softmax(dim=0) - q
    return gradient / count


# %% 08 projection_gradient
def projection_gradient(H, W_L, G):
    batch, n, d_model = H.shape
    of_H = torch.zeros_like(H)
    of_W = torch.zeros_like(W_L)
    for b in range(batch):
        for t in range(n):
            of_H[b, t] = W_L @ G[b, t]
            of_W += torch.outer(H[b, t], G[b, t])
    return of_H, of_W


# %% 08 softmax_gradient
def softmax_gradient(weights, G):
    of_scores = torch.zeros_like(weights)
    for b in range(weights.shape[0]):
        for q in range(weights.shape[1]):
            w = weights[b, q]
            jacobian = torch.diag(w) - torch.outer(w, w)
            of_scores[b, q] = jacobian @ G[b, q]
    return of_scores


# %% 08 layer_norm_gradient
def layer_norm_gradient(x, gamma, epsilon, G):
    d = x.shape[-1]
    mean = x.mean(dim=-1, keepdim=True)
    deviation = torch.sqrt(((x - mean) ** 2).mean(dim=-1, keepdim=True) + epsilon)
    z = (x - mean) / deviation
    of_gamma = torch.zeros_like(gamma)
    of_beta = torch.zeros_like(gamma)
    for b in range(x.shape[0]):
        for t in range(x.shape[1]):
            of_gamma += G[b, t] * z[b, t]
            of_beta += G[b, t]
    of_z = G * gamma
    total = of_z.sum(dim=-1, keepdim=True)
    along = (of_z * z).sum(dim=-1, keepdim=True)
    of_x = (d * of_z - total - z * along) / (d * deviation)
    return of_x, of_gamma, of_beta


# %% 08 head_gradient
def head_gradient(Q, K, V, weights, G):
    of_V = weights.transpose(1, 2) @ G
    of_weights = G @ V.transpose(1, 2)
    row = (of_weights * weights).sum(dim=2, keepdim=True)
    of_scores = weights * (of_weights - row) / Q.shape[-1] ** 0.5
    return of_scores @ K, of_scores.transpose(1, 2) @ Q, of_V


# %% 09 greedy_decode
def greedy_decode(read, prompt, eos_id, max_new_tokens):
    logits, kept = read(prompt, None)
    written = []
    while True:
        best = int(torch.argmax(logits))
        written.append(best)
        if best == eos_id or len(written) == max_new_tokens:
            return written
        logits, kept = read([best], kept)


# %% 09 top_p_filter
def nucleus(probabilities, p):
    order = sorted(range(len(probabilities)), key=lambda i: probabilities[i], reverse=True)
    chosen = []
    total = 0.0
    for i in order:
        chosen.append(i)
        total += probabilities[i]
        if total >= p:
            break
    return chosen


def top_p_filter(logits, p):
    result = torch.full_like(logits, -math.inf)
    for b in range(logits.shape[0]):
        probabilities = torch.softmax(logits[b], dim=-1).tolist()
        for i in nucleus(probabilities, p):
            result[b, i] = logits[b, i]
    return result


# %% 09 legal_next
def could_become_record(text):
    for gender in ["m", "f", "n"]:
        state = 0
        ok = True
        form = list('{"word": "') + ["LETTERS"] + list('", "gender": "') + [gender] + list('"}')
        letters = 0
        for char in text:
            if state == len(form):
                ok = False
                break
            if form[state] == "LETTERS":
                if char.isalpha():
                    letters += 1
                    continue
                if letters == 0:
                    ok = False
                    break
                state += 1  # the word is over, so this must be the quote
            if char != form[state]:
                ok = False
                break
            state += 1
        if ok:
            return True
    return False


def legal_next(written, tokens):
    legal = torch.zeros(len(tokens), dtype=torch.bool)
    for i in range(len(tokens)):
        legal[i] = could_become_record(written + tokens[i])
    return legal


# %% 09 beam_search
ALPHA = 0.6


def normalized(ids, total):
    n = len(ids) - 1
    return total / ((5 + n) / 6) ** ALPHA


def beam_search(next_log_probs, bos_id, eos_id, width, max_len):
    running = [([bos_id], 0.0)]
    finished = []
    for _ in range(max_len - 1):
        extended = []
        for ids, total in running:
            log_probs = next_log_probs(ids).tolist()
            for token in range(len(log_probs)):
                extended.append((ids + [token], total + log_probs[token]))
        extended.sort(key=lambda pair: pair[1], reverse=True)
        running = []
        for ids, total in extended[:width]:
            if ids[-1] == eos_id:
                finished.append((ids, total))
            else:
                running.append((ids, total))
        if len(running) == 0:
            break
    if len(finished) == 0:
        finished = running
    ids, total = max(finished, key=lambda pair: normalized(pair[0], pair[1]))
    return ids, normalized(ids, total)


# %% 10 bits_per_character
def bits_per_character(loss_in_nats, n_tokens, n_characters):
    bits_per_token = loss_in_nats / math.log(2)
    return bits_per_token * n_tokens / n_characters


# %% 10 gpt_forward
def gpt_forward(ids, weights):
    n = ids.shape[1]
    mask = causal_mask(n)
    x = embed(ids, weights.table)
    x = x + sinusoidal_encoding(n, x.shape[2])
    for block in weights.blocks:
        (gamma_1, beta_1), (gamma_2, beta_2) = block.norms
        x = residual_branch_pre(
            x,
            lambda z: multi_head_attention(z, *block.self_attention, weights.n_heads, mask),
            lambda z: layer_norm(z, gamma_1, beta_1, 1e-5),
        )
        x = residual_branch_pre(
            x,
            lambda z: feed_forward(z, *block.feed_forward),
            lambda z: layer_norm(z, gamma_2, beta_2, 1e-5),
        )
    gamma, beta = weights.last_norm
    x = layer_norm(x, gamma, beta, 1e-5)
    return x @ weights.projection


# %% 10 write_on
def hit_by(draw, probabilities):
    right_end = 0.0
    last = 0
    for i in range(len(probabilities)):
        if probabilities[i] > 0:
            last = i
            right_end += probabilities[i]
            if draw < right_end:
                return i
    return last


def write_on(next_logits, ids, draws, length, temperature=1.0):
    written = list(ids)
    for draw in draws:
        newest = written[-length:]
        logits = next_logits(newest)
        probabilities = torch.softmax(logits / temperature, dim=-1)
        written.append(hit_by(draw, probabilities.tolist()))
    return written


# %% 10 fit_power_law
def fit_power_law(sizes, losses, floors):
    best = None
    for floor in floors:
        n = len(sizes)
        xs = []
        ys = []
        for i in range(n):
            xs.append(math.log(sizes[i]))
            ys.append(math.log(losses[i] - floor))
        mean_x = sum(xs) / n
        mean_y = sum(ys) / n
        above = 0.0
        below = 0.0
        for i in range(n):
            above += (xs[i] - mean_x) * (ys[i] - mean_y)
            below += (xs[i] - mean_x) ** 2
        b = -above / below
        a = math.exp(mean_y + b * mean_x)
        error = 0.0
        for i in range(n):
            error += (floor + a / sizes[i] ** b - losses[i]) ** 2
        if best is None or error < best[0]:
            best = (error, floor, a, b)
    return best[1], best[2], best[3]
