# %% 00 write_translation
def go_on(next_word, source, written):
    word = next_word(source, written)
    return written if word == "<eos>" else go_on(next_word, source, [*written, word])


def write_translation(next_word, source):
    return go_on(next_word, source, [])


# %% 01 apply_byte_pairs
def joined(pieces, pair):
    if len(pieces) < 2:
        return pieces
    if (pieces[0], pieces[1]) == tuple(pair):
        return ["".join(pair), *joined(pieces[2:], pair)]
    return [pieces[0], *joined(pieces[1:], pair)]


def apply_byte_pairs(word, merges):
    if not merges:
        return list(word)
    *earlier, last = merges
    return joined(apply_byte_pairs(word, earlier), last)


# %% 01 train_byte_pairs
def merged_in(pieces, pair):
    one, other = pair
    out = []
    for piece in pieces:
        if piece == other and out and out[-1] == one:
            out.append(out.pop() + piece)
        else:
            out.append(piece)
    return out


def train_byte_pairs(counts, n_merges):
    words = [(list(word), n) for word, n in counts.items()]
    merges = []
    for _ in range(n_merges):
        tally = {}
        for pieces, n in words:
            for pair in zip(pieces[:-1], pieces[1:]):
                tally[pair] = tally.get(pair, 0) + n
        if not tally:
            break
        most = max(tally.values())
        merges.append(next(pair for pair, n in tally.items() if n == most))
        words = [(merged_in(pieces, merges[-1]), n) for pieces, n in words]
    return merges


# %% 01 embed
def width_of(table: torch.Tensor) -> int:
    return table.shape[-1]


def embed(ids, table):
    return table[ids, :] * math.sqrt(width_of(table))


# %% 02 sinusoidal_encoding
def sinusoidal_encoding(n_positions, d_model, base=10000.0):
    place, column = (torch.arange(size, dtype=torch.float64) for size in (n_positions, d_model))
    even = column % 2 == 0
    hand = torch.where(even, column, column - 1)  # 0 0 2 2 4 4 ...
    angle = place[:, None] / (base ** (hand / d_model))[None, :]
    return torch.where(even[None, :], angle.sin(), angle.cos()).to(torch.get_default_dtype())


# %% 02 shift_matrix
def turned_by(angle: float) -> torch.Tensor:
    sin, cos = math.sin(angle), math.cos(angle)
    return torch.tensor([[cos, -sin], [sin, cos]])


def shift_matrix(k, d_model, base=10000.0):
    speeds = (base ** (-2 * i / d_model) for i in range(d_model // 2))
    return torch.block_diag(*(turned_by(k * speed) for speed in speeds))


# %% 03 attention_scores
def attention_scores(Q, K):
    return torch.einsum("...qd,...kd->...qk", Q, K) / math.sqrt(Q.shape[-1])


# %% 03 causal_mask
def causal_mask(n):
    t = torch.arange(n)
    return (t[None, :] <= t[:, None])[None, None]


# %% 03 scaled_dot_product_attention
def shares(scores: torch.Tensor) -> torch.Tensor:
    peak = scores.detach().amax(dim=-1, keepdim=True)
    powers = torch.exp(scores - torch.where(peak.isinf(), torch.zeros_like(peak), peak))
    total = powers.sum(dim=-1, keepdim=True)
    return powers / (total + (total == 0))


def scaled_dot_product_attention(Q, K, V, mask=None):
    scores = attention_scores(Q=Q, K=K)
    seen = scores if mask is None else torch.where(mask, scores, -math.inf)
    weights = shares(seen)
    return weights @ V, weights


# %% 03 padding_mask
def padding_mask(ids, pad_id):
    return (ids != pad_id)[:, None, None, :]


# %% 04 role_head
def below_the_facts(places: torch.Tensor) -> torch.Tensor:
    """Rows for places only; the six facts ask nothing."""
    return torch.cat([torch.zeros(6, places.shape[1]), places])


def role_head(n_places):
    wished = torch.diag(torch.full((n_places - 1,), 60.0), diagonal=-1)
    wished[0, 0] = 60.0  # nothing stands before the first word, and it is no verb
    is_verb = torch.eye(6 + n_places)[:, 2:3]
    return below_the_facts(wished), below_the_facts(torch.eye(n_places)), is_verb


# %% 04 split_heads
def split_heads(x, n_heads):
    return torch.stack(x.chunk(n_heads, dim=-1), dim=1)


# %% 04 merge_heads
def merge_heads(x):
    return torch.cat([x[:, head] for head in range(x.shape[1])], dim=-1)


# %% 04 multi_head_attention
def multi_head_attention(x, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    asked = [split_heads(x=x @ W, n_heads=n_heads) for W in (W_Q, W_K, W_V)]
    heads, _ = scaled_dot_product_attention(*asked, mask=mask)
    return merge_heads(heads) @ W_O


# %% 05 feed_forward
def cut_off(h: torch.Tensor) -> torch.Tensor:
    return h * (h > 0)


def feed_forward(x, W_1, b_1, W_2, b_2):
    affine = lambda h, W, b: h @ W + b
    return affine(cut_off(affine(x, W_1, b_1)), W_2, b_2)


# %% 05 layer_norm
def layer_norm(x, gamma, beta, epsilon):
    E = lambda t: t.sum(dim=-1, keepdim=True) / t.shape[-1]
    centered = x - E(x)
    return centered / torch.sqrt(E(centered**2) + epsilon) * gamma + beta


# %% 05 residual_branch
def composed(outer, inner):
    return lambda x: outer(inner(x))


def residual_branch(x, sublayer, norm):
    return composed(norm, lambda h: h + sublayer(h))(x)


# %% 05 residual_branch_pre
def residual_branch_pre(x, sublayer, norm):
    def added():
        return sublayer(norm(x))

    return x + added()


# %% 06 encoder_block
import functools


def encoder_block(x, attention, feed_forward, norm_1, norm_2):
    parts = zip((attention, feed_forward), (norm_1, norm_2))
    return functools.reduce(lambda h, part: residual_branch(h, *part), parts, x)


# %% 06 who_told
def heard(A, V):
    return A.unsqueeze(-1) * V.unsqueeze(-3)


def who_told(weights, values, new_weights, new_values):
    news = heard(A=new_weights, V=new_values) - heard(A=weights, V=values)
    by_head = (head.pow(2).sum(dim=-1) for head in news.unbind(dim=1))
    return sum(by_head).sqrt()


# %% 06 encoder_forward
from functools import reduce

EPSILON = 1e-5


def norm_of(pair):
    gamma, beta = pair
    return lambda h: layer_norm(x=h, gamma=gamma, beta=beta, epsilon=EPSILON)


def encoder_forward(source_ids, weights):
    words_only = padding_mask(ids=source_ids, pad_id=weights.pad_id)
    X = embed(ids=source_ids, table=weights.source_table)
    PE = sinusoidal_encoding(*X.shape[1:])

    def through(h, block):
        def attend(z):
            return multi_head_attention(z, *block.self_attention, weights.n_heads, mask=words_only)

        def think(z):
            return feed_forward(z, *block.feed_forward)

        return encoder_block(h, attend, think, *map(norm_of, block.norms))

    return reduce(through, weights.encoder, X + PE.to(X)[None])


# %% 07 cross_attention
def cross_attention(y, memory, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    read = zip((y, memory, memory), (W_Q, W_K, W_V))
    Q, K, V = (split_heads(x=source @ W, n_heads=n_heads) for source, W in read)
    heads = scaled_dot_product_attention(Q=Q, K=K, V=V, mask=mask)[0]  # (batch, head, target, d)
    d_head = heads.shape[-1]
    written = [heads[:, i] @ W_O[i * d_head : (i + 1) * d_head] for i in range(n_heads)]
    return torch.stack(written).sum(dim=0)  # each head writes its own part


# %% 07 decoder_block
import functools


def decoder_block(
    y,
    memory,
    self_attention,
    cross_attention,
    feed_forward,
    norm_1,
    norm_2,
    norm_3,
):
    ask_source = lambda n: cross_attention(n, memory)
    steps = ((self_attention, norm_1), (ask_source, norm_2), (feed_forward, norm_3))
    add_and_norm = lambda h, step: residual_branch(x=h, sublayer=step[0], norm=step[1])
    return functools.reduce(add_and_norm, steps, y)


# %% 07 decoder_forward
from functools import reduce


def decoder_forward(target_ids, memory, source_ids, weights):
    n_heads = weights.n_heads
    no_future = causal_mask(n=target_ids.shape[1])
    no_pads = padding_mask(ids=source_ids, pad_id=weights.pad_id)

    def norm(gamma, beta):
        return lambda h: layer_norm(x=h, gamma=gamma, beta=beta, epsilon=1e-5)

    def sublayers(block):  # a generator: masked, across, by itself
        yield lambda y: multi_head_attention(y, *block.self_attention, n_heads, mask=no_future)
        yield lambda y, m: cross_attention(y, m, *block.cross_attention, n_heads, mask=no_pads)
        yield lambda y: feed_forward(y, *block.feed_forward)

    def through(y, block):
        norms = [norm(*pair) for pair in block.norms]
        return decoder_block(y, memory, *sublayers(block), *norms)

    Y = embed(ids=target_ids, table=weights.target_table)
    PE = sinusoidal_encoding(n_positions=Y.shape[1], d_model=Y.shape[2]).to(Y)
    return reduce(through, weights.decoder, Y + PE) @ weights.projection


# %% 07 leaks_future
ROUNDING = 1e-5


def leaks_future(model, ids):
    place = torch.arange(ids.shape[1])[None, :]

    def outputs(read):
        with torch.no_grad():
            return model(read).double()

    honest = outputs(ids.clone())

    def moves(t, token):
        changed = torch.where(place == t, token, ids)
        here, there = honest[:, :t], outputs(changed)[:, :t]
        return not torch.allclose(here, there, rtol=0.0, atol=ROUNDING, equal_nan=True)

    return any(moves(t, token) for t in range(1, ids.shape[1]) for token in (0, 1))


# %% 08 training_step
def training_step(model, batch, loss_function, optimizer, max_norm):

    def how_wrong():
        return loss_function(model(*batch.inputs), batch.labels)

    optimizer.zero_grad()
    loss = how_wrong()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm=max_norm)
    optimizer.step()
    return loss.item()


# %% 08 label_smoothed_loss
def log_sum_exp(z: torch.Tensor) -> torch.Tensor:
    peak = z.detach().amax(dim=-1, keepdim=True)
    return peak + (z - peak).exp().sum(dim=-1, keepdim=True).log()


def label_smoothed_loss(logits, labels, smoothing, pad_id):
    counts = labels != pad_id
    z, y = logits[counts], labels[counts]  # (word, vocab_size), (word,)
    surprise = log_sum_exp(z) - z
    right, every = surprise[torch.arange(len(y)), y], surprise.mean(dim=-1)
    return ((1 - smoothing) * right + smoothing * every).mean()


# %% 08 loss_gradient
def smoothed(labels: torch.Tensor, like: torch.Tensor, smoothing: float) -> torch.Tensor:
    hot = torch.zeros_like(like).scatter(-1, labels.unsqueeze(-1), 1.0)
    return torch.lerp(hot, torch.full_like(hot, 1 / like.shape[-1]), smoothing)


def loss_gradient(logits, labels, smoothing, pad_id):
    counts = labels != pad_id
    wrong = torch.softmax(logits, dim=-1) - smoothed(labels, logits, smoothing)
    return wrong.masked_fill(~counts.unsqueeze(-1), 0.0).div(counts.count_nonzero())


# %% 09 greedy_decode
def greedy_decode(next_logits, bos_id, eos_id, max_len):
    if max_len == 1:
        return [bos_id]
    if max_len == 2:
        return [bos_id, int(next_logits([bos_id]).argmax())]
    begun = greedy_decode(next_logits, bos_id, eos_id, max_len // 2 + 1)
    if begun[-1] == eos_id:
        return begun
    *before, last = begun
    go_on = lambda ids: next_logits(before + ids)  # the rest begins with the last one written
    return before + greedy_decode(go_on, last, eos_id, max_len - len(before))


# %% 09 append_to_cache
def append_to_cache(cache, K, V):
    if cache is None:
        return K, V
    return tuple(map(lambda old, new: torch.cat([old, new], dim=-2), cache, (K, V)))


# %% 09 top_k_filter
NEVER = -math.inf


def top_k_filter(logits, k):
    order = logits.argsort(dim=-1, descending=True)
    rank = order.argsort(dim=-1)  # argsort of argsort: 0 is the highest
    return torch.where(rank < k, logits, NEVER)


# %% 09 top_p_filter
def probabilities(z: torch.Tensor) -> torch.Tensor:
    powers = torch.exp(z - z.amax(dim=-1)[..., None])
    return powers / powers.sum(dim=-1)[..., None]


def top_p_filter(logits, p):
    likely_first = probabilities(logits.double()).sort(dim=-1, descending=True).values
    too_few = likely_first.cumsum(dim=-1) < p
    needed = (1 + too_few.sum(dim=-1)).tolist()
    return torch.stack([top_k_filter(row[None], k=k)[0] for row, k in zip(logits, needed)])


# %% 09 legal_next
def begins(text: str, form: tuple) -> bool:
    """Whether the text is used up before the form is, or together with it."""
    if not text or not form:
        return not text
    part, *rest = form
    if part is str.isalpha:
        after = text.lstrip("".join(filter(str.isalpha, text)))
        return after != text and begins(after, tuple(rest))
    if isinstance(part, set):
        return text[0] in part and begins(text[1:], tuple(rest))
    n = min(len(part), len(text))
    return text[:n] == part[:n] and begins(text[n:], tuple(rest))


def legal_next(written, tokens):
    form = ('{"word": "', str.isalpha, '", "gender": "', {"m", "f", "n"}, '"}')
    return torch.tensor([begins(written + token, form) for token in tokens])


# %% 09 beam_search
import heapq
from collections import namedtuple

Hypothesis = namedtuple("Hypothesis", "ids total")
Beams = namedtuple("Beams", "running finished")


def beam_search(next_log_probs, bos_id, eos_id, width, max_len):
    score = lambda one: one.total / ((4 + len(one.ids)) / 6) ** 0.6
    ends = lambda one: one.ids[-1] == eos_id

    def extended(running):
        for ids, total in running:
            for token, log_p in enumerate(next_log_probs(list(ids)).tolist()):
                yield Hypothesis([*ids, token], total + log_p)

    def grow(beams: Beams, steps: int) -> Beams:
        if steps == 0 or not beams.running:
            return beams
        if steps > 1:  # halves, so that the recursion stays shallow
            return grow(grow(beams, steps // 2), steps - steps // 2)
        best = heapq.nlargest(width, extended(beams.running), key=lambda one: one.total)
        done = [one for one in best if ends(one)]
        return Beams([one for one in best if not ends(one)], beams.finished + done)

    running, finished = grow(Beams([Hypothesis([bos_id], 0.0)], []), max_len - 1)
    winner = max(finished or running, key=score)
    return winner.ids, score(winner)


# %% 10 bits_per_character
NATS_PER_BIT = math.log(2)


def bits_per_character(loss_in_nats, n_tokens, n_characters):
    bits_of_text = n_tokens * loss_in_nats / NATS_PER_BIT
    return bits_of_text / n_characters


# %% 10 gpt_forward
from functools import reduce


def gpt_forward(ids, weights):
    X = embed(ids=ids, table=weights.table)
    PE = sinusoidal_encoding(*X.shape[-2:]).to(X)
    back_only = causal_mask(n=X.shape[-2])

    def norm_with(gamma, beta):
        return lambda h: layer_norm(x=h, gamma=gamma, beta=beta, epsilon=1e-5)

    def through(h, block):
        parts = (
            lambda z: multi_head_attention(z, *block.self_attention, weights.n_heads, back_only),
            lambda z: feed_forward(z, *block.feed_forward),
        )
        norms = (norm_with(*pair) for pair in block.norms)
        return reduce(lambda h, pair: residual_branch_pre(h, *pair), zip(parts, norms), h)

    H = reduce(through, weights.blocks, X + PE[None])
    return norm_with(*weights.last_norm)(H) @ weights.projection


# %% 10 write_on
def write_on(next_logits, ids, draws, length, temperature=1.0):
    known, darts = list(ids), list(draws)
    if not darts:
        return known
    if len(darts) > 1:  # the first half of the text, then the other half after it
        half = len(darts) // 2
        begun = write_on(next_logits, known, darts[:half], length, temperature=temperature)
        return write_on(next_logits, begun, darts[half:], length, temperature=temperature)
    z = next_logits(known[-length:]).double() / temperature
    parts = torch.exp(z - z.max())
    ends = parts.cumsum(dim=0)  # where each part of the line ends, unscaled
    hit = int((ends <= darts[0] * ends[-1]).sum())
    last = int(parts.nonzero().max())  # a dart at the very end
    return [*known, min(hit, last)]


# %% 10 fit_power_law
from statistics import linear_regression


def law(floor, sizes, losses):
    line = linear_regression(
        list(map(math.log, sizes)), [math.log(loss - floor) for loss in losses]
    )
    return floor, math.exp(line.intercept), -line.slope


def fit_power_law(sizes, losses, floors):
    def miss(fitted):
        floor, a, b = fitted
        return math.dist([floor + a * n**-b for n in sizes], losses)

    return min((law(floor, sizes, losses) for floor in floors), key=miss)
