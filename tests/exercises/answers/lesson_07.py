"""What learners might write for the exercises of lesson 07."""

import torch
import torch.nn.functional as F
from torch import nn

from tests.exercises.answers import right, wrong
from transformer_lesson.model.attention import (
    cross_attention,
    merge_heads,
    multi_head_attention,
    scaled_dot_product_attention,
    split_heads,
)
from transformer_lesson.model.blocks import decoder_block, residual_branch
from transformer_lesson.model.embedding import embed
from transformer_lesson.model.feed_forward import feed_forward
from transformer_lesson.model.masks import causal_mask, padding_mask
from transformer_lesson.model.norm import layer_norm
from transformer_lesson.model.positions import sinusoidal_encoding

# decoder_block(y, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3)


@wrong("decoder_block", "usual", "no cross-attention")
def _(y, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3):
    N = norm_1(y + self_attention(y))
    return norm_3(N + feed_forward(N))


@wrong("decoder_block", "usual", "queries and memory exchanged")
def _(y, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3):
    y = norm_1(y + self_attention(y))
    y = norm_2(y + cross_attention(memory, y))
    return norm_3(y + feed_forward(y))


@wrong("decoder_block", "usual", "the cross-attention's queries are the block's input y, not N")
def _(y, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3):
    N = norm_1(y + self_attention(y))
    M = norm_2(N + cross_attention(y, memory))
    return norm_3(M + feed_forward(M))


@wrong("decoder_block", "usual", "pre-norm")
def _(y, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3):
    y = y + self_attention(norm_1(y))
    y = y + cross_attention(norm_2(y), memory)
    y = y + feed_forward(norm_3(y))
    return y


@wrong("decoder_block", "usual", "no residual connection around the cross-attention")
def _(y, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3):
    Z = y
    A = self_attention(Z)
    N = norm_1(Z + A)
    M = norm_2(cross_attention(N, memory))
    return norm_3(M + feed_forward(M))


@wrong("decoder_block", "usual", "no norm at the end")
def _(y, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3):
    y = residual_branch(y, self_attention, norm_1)
    y = residual_branch(y, lambda n: cross_attention(n, memory), norm_2)
    return y + feed_forward(y)


@wrong("decoder_block", "usual", "norm_2 and norm_3 in the wrong places")
def _(y, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3):
    y = norm_1(y + self_attention(y))
    y = norm_3(y + cross_attention(y, memory))
    return norm_2(y + feed_forward(y))


@wrong("decoder_block", "usual", "the last sum takes N instead of M")
def _(y, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3):
    N = norm_1(y + self_attention(y))
    M = norm_2(N + cross_attention(N, memory))
    out = feed_forward(M)
    return norm_3(N + out)


@wrong("decoder_block", "unusual", "adds into the caller's y")
def _(y, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3):
    y += self_attention(y)
    n = norm_1(y)
    m = norm_2(n + cross_attention(n, memory))
    return norm_3(m + feed_forward(m))


@wrong("decoder_block", "unusual", "the memory goes through a norm first")
def _(y, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3):
    N = norm_1(y + self_attention(y))
    M = norm_2(N + cross_attention(N, norm_2(memory)))
    return norm_3(M + feed_forward(M))


@wrong("decoder_block", "unusual", "the memory is cut to the length of the target")
def _(y, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3):
    n_target = y.size(1)
    y = norm_1(y + self_attention(y))
    y = norm_2(y + cross_attention(y, memory[:, :n_target]))
    y = norm_3(y + feed_forward(y))
    return y


@wrong("decoder_block", "unusual", "both attentions side by side on the same input")
def _(y, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3):
    own, other = self_attention(y), cross_attention(y, memory)
    m = norm_2(norm_1(y + own) + other)
    return norm_3(m + feed_forward(m))


@wrong("decoder_block", "unusual", "cross-attention before self-attention")
def _(y, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3):
    y = norm_1(y + cross_attention(y, memory))
    y = norm_2(y + self_attention(y))
    return norm_3(y + feed_forward(y))


@wrong("decoder_block", "unusual", "calls the attentions with three tensors")
def _(y, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3):
    y = norm_1(y + self_attention(y, y, y))
    y = norm_2(y + cross_attention(y, memory, memory))
    return norm_3(y + feed_forward(y))


@wrong("decoder_block", "unusual", "the second residual starts from the block's input")
def _(y, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3):
    residual = y
    h = norm_1(residual + self_attention(y))
    h = norm_2(residual + cross_attention(h, memory))
    return norm_3(h + feed_forward(h))


@wrong("decoder_block", "unusual", "the target cannot read beyond the mean of the memory")
def _(y, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3):
    summary = memory.mean(dim=1, keepdim=True)
    N = norm_1(y + self_attention(y))
    M = norm_2(N + cross_attention(N, summary))
    return norm_3(M + feed_forward(M))


@wrong("decoder_block", "unusual", "dropout that is always on")
def _(y, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3):
    dropout = nn.Dropout(0.1)
    y = norm_1(y + dropout(self_attention(y)))
    y = norm_2(y + dropout(cross_attention(y, memory)))
    return norm_3(y + dropout(feed_forward(y)))


@wrong("decoder_block", "unusual", "the cross-attention reads the target as its memory, as in GPT")
def _(y, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3):
    x = norm_1(self_attention(y) + y)
    x = norm_2(cross_attention(x, x) + x)
    return norm_3(feed_forward(x) + x)


@wrong("decoder_block", "unusual", "the memory runs through the self-attention too")
def _(y, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3):
    N = norm_1(y + self_attention(y))
    M = norm_2(N + cross_attention(N, self_attention(memory)))
    return norm_3(M + feed_forward(M))


@wrong("decoder_block", "pair", "queries and memory exchanged", "no residual around feed-forward")
def _(y, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3):
    y = norm_1(y + self_attention(y))
    y = norm_2(y + cross_attention(memory, y))
    return norm_3(feed_forward(y))


@wrong("decoder_block", "pair", "no cross-attention", "no norm at the end")
def _(y, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3):
    y = norm_1(y + self_attention(y))
    return y + feed_forward(y)


@wrong("decoder_block", "pair", "queries are the block's input", "norm_1 in every place")
def _(y, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3):
    n = norm_1(y + self_attention(y))
    m = norm_1(n + cross_attention(y, memory))
    return norm_1(m + feed_forward(m))


@wrong("decoder_block", "pair", "cross-attention comes first", "pre-norm")
def _(y, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3):
    y = y + cross_attention(norm_1(y), memory)
    y = y + self_attention(norm_2(y))
    return y + feed_forward(norm_3(y))


@wrong("decoder_block", "pair", "changes y in place", "last sum takes N")
def _(y, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3):
    y += self_attention(y)
    N = norm_1(y)
    M = norm_2(N + cross_attention(N, memory))
    return norm_3(N + feed_forward(M))


@right("decoder_block")
def _(y, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3):
    y = norm_1(y + self_attention(y))
    y = norm_2(y + cross_attention(y, memory))
    return norm_3(y + feed_forward(y))


@right("decoder_block")
def _(y, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3):
    def read_source(queries):
        return cross_attention(queries, memory)

    sublayers = [self_attention, read_source, feed_forward]
    for sublayer, norm in zip(sublayers, [norm_1, norm_2, norm_3], strict=True):
        y = residual_branch(y, sublayer, norm)
    return y


@right("decoder_block")
def _(y, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3):
    Z = y.clone()
    A = self_attention(Z)  # 3
    N = norm_1(Z.add(A))  # 4
    A_cross = cross_attention(N, memory)  # 5
    M = norm_2(N.add(A_cross))  # 6
    out = feed_forward(M)  # 7
    return norm_3(M.add(out))  # 8


# leaks_future(model, ids)


@wrong("leaks_future", "usual", "changes the last token only")
def _(model, ids):
    changed = ids.clone()
    changed[:, -1] = (ids[:, -1] == 0).long()
    difference = (model(changed) - model(ids)).abs()
    return bool((difference[:, :-1] > 1e-5).any())


@wrong("leaks_future", "usual", "compares the changed position itself too")
def _(model, ids):
    before = model(ids)
    for t in range(ids.size(1)):
        other = ids.clone()
        other[:, t] = torch.where(ids[:, t] == 0, 1, 0)
        moved = (model(other) - before).abs()
        if moved[:, : t + 1].max() > 1e-5:
            return True
    return False


@wrong("leaks_future", "usual", "writes the changed tokens into the caller's ids")
def _(model, ids):
    original = model(ids)
    for t in range(1, ids.shape[1]):
        ids[:, t] = (ids[:, t] == 0).long()
        if ((model(ids)[:, :t] - original[:, :t]).abs() > 1e-5).any():
            return True
    return False


@wrong("leaks_future", "usual", "always puts 0: ids that are all 0 never change")
def _(model, ids):
    out = model(ids)
    for position in range(1, ids.size(1)):
        changed = ids.clone()
        changed[:, position] = 0
        if not torch.allclose(model(changed)[:, :position], out[:, :position], rtol=0, atol=1e-5):
            return True
    return False


@wrong(
    "leaks_future",
    "usual",
    "rounding of 4e-6 at an earlier position is called a leak",
)
def _(model, ids):
    reference = model(ids)
    n = ids.size(1)
    for t in range(1, n):
        changed = ids.clone()
        changed[:, t] = (changed[:, t] == 0).to(ids.dtype)
        if not torch.equal(model(changed)[:, :t], reference[:, :t]):
            return True
    return False


@wrong("leaks_future", "usual", "looks at later positions instead of earlier ones")
def _(model, ids):
    base = model(ids)
    for t in range(ids.size(1) - 1):
        new = ids.clone()
        new[:, t] = 1 - (new[:, t] != 0).long()
        if (model(new) - base)[:, t + 1 :].abs().max() > 1e-5:
            return True
    return False


@wrong("leaks_future", "usual", "True and False exchanged")
def _(model, ids):
    before = model(ids)
    for t in range(1, ids.size(1)):
        after_ids = ids.clone()
        after_ids[:, t] = (ids[:, t] == 0).long()
        after = model(after_ids)
        if (after[:, :t] - before[:, :t]).abs().max() > 1e-5:
            return False
    return True


@wrong("leaks_future", "usual", "the first position without a leak ends the search")
def _(model, ids):
    out = model(ids)
    for t in range(1, ids.size(1)):
        changed = ids.clone()
        changed[:, t] = (ids[:, t] == 0).long()
        return bool(((model(changed) - out)[:, :t].abs() > 1e-5).any())
    return False


@wrong(
    "leaks_future",
    "unusual",
    "the id + 1 is outside a vocabulary whose last id stands in ids",
)
def _(model, ids):
    original_output = model(ids)
    for i in range(1, ids.size(1)):
        modified = ids.clone()
        modified[:, i] = modified[:, i] + 1
        diff = (model(modified)[:, :i] - original_output[:, :i]).abs()
        if torch.any(diff > 1e-5):
            return True
    return False


@wrong(
    "leaks_future",
    "unusual",
    "signed differences cancel, in probabilities that sum to 1",
)
def _(model, ids):
    out = model(ids)
    for t in range(1, ids.size(1)):
        changed = ids.clone()
        changed[:, t] = (ids[:, t] == 0).long()
        total = (model(changed) - out)[:, :t].sum()
        if abs(total.item()) > 1e-5:
            return True
    return False


@wrong("leaks_future", "unusual", "the mean hides a leak of 5e-5 in one of 100 numbers")
def _(model, ids):
    out = model(ids)
    moved = []
    for t in range(1, ids.size(1)):
        changed = ids.clone()
        changed[:, t] = (ids[:, t] == 0).long()
        moved.append((model(changed) - out)[:, :t].abs().mean().item())
    return max(moved, default=0.0) > 1e-5


@wrong(
    "leaks_future",
    "unusual",
    "only the first sentence: a leak that shows in the second is missed",
)
def _(model, ids):
    sentence = ids[:1]
    out = model(sentence)
    for t in range(1, sentence.size(1)):
        changed = sentence.clone()
        changed[0, t] = 1 if changed[0, t] == 0 else 0
        if (model(changed) - out)[0, :t].abs().max() > 1e-5:
            return True
    return False


@wrong("leaks_future", "unusual", "compares with the position just before only")
def _(model, ids):
    baseline = model(ids)

    def touch(t):
        probe = ids.clone()
        probe[:, t] = torch.where(probe[:, t] == 0, 1, 0)
        return model(probe)

    neighbors = range(1, ids.size(1))
    gaps = [(touch(t)[:, t - 1] - baseline[:, t - 1]).abs().max().item() for t in neighbors]
    return max(gaps, default=0.0) > 1e-5


@wrong(
    "leaks_future",
    "unusual",
    "allclose's default tolerance calls 4e-6 beside 0 a leak",
)
def _(model, ids):
    y = model(ids)
    same = []
    for t in range(1, ids.shape[1]):
        x = torch.clone(ids)
        x[:, t] = 1 - ids[:, t].clamp(max=1)
        same.append(torch.allclose(model(x)[:, :t], y[:, :t]))
    return not all(same)


@wrong(
    "leaks_future",
    "unusual",
    "a relative tolerance hides a leak of 1 in outputs of 10,000",
)
def _(model, ids):
    expected = model(ids)
    for position in range(1, ids.size(1)):
        ids_2 = ids.clone()
        ids_2[:, position] ^= ids_2[:, position]  # 0
        ids_2[:, position] += ids[:, position] == 0
        a, b = expected[:, :position], model(ids_2)[:, :position]
        relative = (a - b).norm() / (a.norm() + 1e-8)
        if relative > 1e-3:
            return True
    return False


@wrong("leaks_future", "unusual", "leaves the last token out: range ends one too early")
def _(model, ids):
    clean = model(ids)
    positions = list(range(ids.size(1)))[1:-1]
    for p in positions:
        row = torch.where(ids[:, p] == 0, 1, 0).unsqueeze(1)
        dirty = model(torch.cat((ids[:, :p], row, ids[:, p + 1 :]), dim=1))
        if (dirty - clean)[:, :p].abs().max() > 1e-5:
            return True
    return False


@wrong("leaks_future", "unusual", "begins with token 2, so a leak of token 1 is not seen")
def _(model, ids):
    before = model(ids)
    for t in range(2, ids.size(1)):
        changed = ids.clone()
        changed[:, t] = (ids[:, t] == 0).long()
        if (model(changed) - before)[:, :t].abs().max() > 1e-5:
            return True
    return False


@wrong("leaks_future", "unusual", "compares the most probable tokens, not the outputs")
def _(model, ids):
    def predictions(tokens):
        return model(tokens).softmax(dim=-1).argmax(dim=-1).tolist()

    before = predictions(ids)
    for t in range(1, ids.size(1)):
        changed = [row[:t] + [int(row[t] == 0)] + row[t + 1 :] for row in ids.tolist()]
        after = predictions(torch.tensor(changed))
        if any(a[:t] != b[:t] for a, b in zip(after, before, strict=True)):
            return True
    return False


@wrong("leaks_future", "unusual", "cuts the text off instead of changing a token")
def _(model, ids):
    whole = model(ids)
    for t in range(1, ids.size(1)):
        prefix = model(ids[:, :t])
        if (prefix - whole[:, :t]).abs().max() > 1e-5:
            return True
    return False


@wrong(
    "leaks_future",
    "unusual",
    "changes all later tokens at once; output 0 = (id 1 is 0, id 2 not)",
)
def _(model, ids):
    n = ids.size(1)
    out, flipped = model(ids), (ids == 0).long()
    for t in range(1, n):
        past = torch.arange(n) < t
        mixed = torch.where(past, ids, flipped)
        if not torch.isclose(model(mixed), out, rtol=0, atol=1e-5)[:, :t].all():
            return True
    return False


@wrong(
    "leaks_future",
    "unusual",
    "an error for outputs of four axes, (batch, n, head, d_head)",
)
def _(model, ids):
    n = ids.size(1)
    out = model(ids)
    for t in range(1, n):
        changed = ids.clone()
        changed[:, t] = (ids[:, t] == 0).long()
        moved = (model(changed) - out).abs().amax(dim=(0, 2))  # (n,)
        if any(moved[i] > 1e-5 for i in range(t)):
            return True
    return False


@wrong("leaks_future", "unusual", "a leak of 0.001 does not count")
def _(model, ids):
    out, table = model(ids), []
    for t in range(ids.size(1)):
        one_hot = torch.zeros_like(ids)
        one_hot[:, t] = 1
        changed = ids * (1 - one_hot) + one_hot * (ids == 0)
        table.append((model(changed) - out).abs().flatten(2).amax(dim=(0, 2)))
    table = torch.stack(table)  # (changed token, output position)
    return bool((table.tril(-1) > 0.01).any())


@wrong(
    "leaks_future",
    "unusual",
    "adds 1 modulo the largest id + 1: ids that are all 0 stay so",
)
def _(model, ids):
    vocab_size = int(ids.max()) + 1
    out = model(ids)
    for t in range(1, ids.size(1)):
        changed = ids.clone()
        changed[:, t] = (changed[:, t] + 1) % vocab_size
        if (model(changed)[:, :t] - out[:, :t]).abs().max() > 1e-5:
            return True
    return False


@wrong(
    "leaks_future",
    "unusual",
    "an error for one token per sentence, ids of shape (batch, 1)",
)
def _(model, ids):
    out = model(ids)
    moved = []
    for t in range(1, ids.size(1)):
        changed = ids.clone()
        changed[:, t] = (ids[:, t] == 0).long()
        moved.append((model(changed) - out)[:, :t].abs().max())
    return bool((torch.stack(moved) > 1e-5).any())


@wrong("leaks_future", "pair", "compares the changed position too", "writes into ids")
def _(model, ids):
    before = model(ids)
    for t in range(1, ids.size(1)):
        ids[:, t] = (ids[:, t] == 0).long()
        if ((model(ids) - before)[:, : t + 1].abs() > 1e-5).any():
            return True
    return False


@wrong("leaks_future", "pair", "last token only", "always puts 0 there")
def _(model, ids):
    changed = ids.clone()
    changed[:, -1] = 0
    return not torch.allclose(model(changed)[:, :-1], model(ids)[:, :-1], atol=1e-5)


@wrong("leaks_future", "pair", "any rounding is a leak", "token 1 is never changed")
def _(model, ids):
    out = model(ids)
    for t in range(2, ids.size(1)):
        changed = ids.clone()
        changed[:, t] = (ids[:, t] == 0).long()
        if (model(changed)[:, :t] != out[:, :t]).any():
            return True
    return False


@wrong("leaks_future", "pair", "signed differences cancel", "only the position just before")
def _(model, ids):
    baseline = model(ids)
    leak = 0.0
    for t in range(1, ids.size(1)):
        perturbed = ids.clone()
        perturbed[:, t] = torch.where(ids[:, t] == 0, 1, 0)
        shift = model(perturbed)[:, t - 1] - baseline[:, t - 1]
        leak = max(leak, abs(shift.sum().item()))
    return leak > 1e-5


@wrong("leaks_future", "pair", "True and False exchanged", "the last token is left out")
def _(model, ids):
    out = model(ids)
    safe = True
    for t in range(1, ids.size(1) - 1):
        changed = ids.clone()
        changed[:, t] = (ids[:, t] == 0).long()
        safe = safe and torch.allclose(model(changed)[:, :t], out[:, :t], rtol=0, atol=1e-5)
    return safe


@right("leaks_future")
@torch.no_grad()
def _(model, ids):
    before = model(ids)
    for t in range(1, ids.size(1)):
        changed = ids.clone()
        changed[:, t] = (ids[:, t] == 0).to(ids.dtype)
        moved = (model(changed) - before).abs()
        if (moved[:, :t] > 1e-5).any():
            return True
    return False


@right("leaks_future")
def _(model, ids):
    # one token of one sentence at a time, from behind
    batch, n = ids.shape
    original = model(ids).detach()
    for b in range(batch):
        for t in reversed(range(n)):
            copy = ids.clone()
            copy[b, t] = 1 if ids[b, t] == 0 else 0
            difference = model(copy).detach()[b, :t] - original[b, :t]
            if difference.numel() and difference.abs().max().item() > 1e-5:
                return True
    return False


@right("leaks_future")
def _(model, ids):
    # tries both 0 and 1; one of the two is certainly a change
    with torch.no_grad():
        reference = model(ids)
        largest = [0.0]
        for t in range(1, ids.shape[1]):
            for new in (0, 1):
                probe = torch.cat(
                    [ids[:, :t], torch.full_like(ids[:, :1], new), ids[:, t + 1 :]], dim=1
                )
                gap = F.l1_loss(model(probe)[:, :t], reference[:, :t], reduction="none")
                largest.append(gap.max().item())
    return max(largest) > 1e-5


@right("leaks_future")
def _(model, ids):
    n = ids.size(1)
    replacement = (ids == 0).to(ids.dtype)

    def moves_the_past(t):
        with torch.no_grad():
            only_t = torch.arange(n) == t
            changed = torch.where(only_t, replacement, ids)
            distance = torch.abs(model(changed)[:, :t] - model(ids)[:, :t])
        return bool(torch.any(distance > 1e-5))

    return any(moves_the_past(t) for t in range(1, n))


# cross_attention(y, memory, W_Q, W_K, W_V, W_O, n_heads, mask=None)


@right("cross_attention")
def _(y, memory, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    Q = split_heads(y @ W_Q, n_heads)
    K = split_heads(memory @ W_K, n_heads)
    V = split_heads(memory @ W_V, n_heads)
    output, weights = scaled_dot_product_attention(Q, K, V, mask)
    return merge_heads(output) @ W_O


@right("cross_attention")
def _(y, memory, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    (batch, n, d), m = y.shape, memory.size(1)
    q = (y @ W_Q).view(batch, n, n_heads, -1).transpose(1, 2)
    k = (memory @ W_K).view(batch, m, n_heads, -1).transpose(1, 2)
    v = (memory @ W_V).view(batch, m, n_heads, -1).transpose(1, 2)
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return out.transpose(1, 2).reshape(batch, n, d) @ W_O


@wrong("cross_attention", "usual", "the values come from y")
def _(y, memory, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    Q, K, V = (split_heads(x @ W, n_heads) for x, W in ((y, W_Q), (memory, W_K), (y, W_V)))
    return merge_heads(scaled_dot_product_attention(Q, K, V, mask)[0]) @ W_O


@wrong("cross_attention", "usual", "queries from memory, keys and values from y")
def _(y, memory, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    Q, K, V = (split_heads(x @ W, n_heads) for x, W in ((memory, W_Q), (y, W_K), (y, W_V)))
    return merge_heads(scaled_dot_product_attention(Q, K, V, None)[0]) @ W_O


@wrong("cross_attention", "usual", "the mask is not handed on")
def _(y, memory, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    Q, K, V = (split_heads(x @ W, n_heads) for x, W in ((y, W_Q), (memory, W_K), (memory, W_V)))
    return merge_heads(scaled_dot_product_attention(Q, K, V)[0]) @ W_O


@wrong("cross_attention", "usual", "self-attention of y")
def _(y, memory, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    return multi_head_attention(y, W_Q, W_K, W_V, W_O, n_heads)


@wrong("cross_attention", "unusual", "no output projection, and no mask")
def _(y, memory, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    Q, K, V = (split_heads(x @ W, n_heads) for x, W in ((y, W_Q), (memory, W_K), (memory, W_V)))
    return merge_heads(scaled_dot_product_attention(Q, K, V)[0])


# decoder_forward(target_ids, memory, source_ids, weights)


def _functions(block, n_heads, causal, real):
    return (
        lambda h: multi_head_attention(h, *block.self_attention, n_heads, causal),
        lambda h, memory: cross_attention(h, memory, *block.cross_attention, n_heads, real),
        lambda h: feed_forward(h, *block.feed_forward),
        *(lambda h, pair=pair: layer_norm(h, *pair) for pair in block.norms),
    )


@right("decoder_forward")
def _(target_ids, memory, source_ids, weights):
    y = embed(target_ids, weights.target_table)
    y = y + sinusoidal_encoding(*y.shape[1:])
    causal, real = causal_mask(y.size(1)), padding_mask(source_ids, weights.pad_id)
    for block in weights.decoder:
        y = decoder_block(y, memory, *_functions(block, weights.n_heads, causal, real))
    return y @ weights.projection


@right("decoder_forward")
def _(target_ids, memory, source_ids, weights):
    y = embed(target_ids, weights.target_table)
    y += sinusoidal_encoding(y.size(1), y.size(2))
    causal = causal_mask(y.size(1)) & padding_mask(target_ids, weights.pad_id)
    real = (source_ids != weights.pad_id)[:, None, None]
    for block in weights.decoder:
        own, across, network, *norms = _functions(block, weights.n_heads, causal, real)
        y = norms[0](y + own(y))
        y = norms[1](y + across(y, memory))
        y = norms[2](y + network(y))
    return F.linear(y, weights.projection.T)


@wrong("decoder_forward", "usual", "no causal mask")
def _(target_ids, memory, source_ids, weights):
    y = embed(target_ids, weights.target_table)
    y = y + sinusoidal_encoding(*y.shape[1:])
    real = padding_mask(source_ids, weights.pad_id)
    for block in weights.decoder:
        y = decoder_block(y, memory, *_functions(block, weights.n_heads, None, real))
    return y @ weights.projection


@wrong("decoder_forward", "usual", "a softmax at the end")
def _(target_ids, memory, source_ids, weights):
    y = embed(target_ids, weights.target_table)
    y = y + sinusoidal_encoding(*y.shape[1:])
    causal, real = causal_mask(y.size(1)), padding_mask(source_ids, weights.pad_id)
    for block in weights.decoder:
        y = decoder_block(y, memory, *_functions(block, weights.n_heads, causal, real))
    return (y @ weights.projection).softmax(-1)


@wrong("decoder_forward", "usual", "the source's padding is read, and the last block alone counts")
def _(target_ids, memory, source_ids, weights):
    y = embed(target_ids, weights.target_table)
    y = y + sinusoidal_encoding(*y.shape[1:])
    causal = causal_mask(y.size(1))
    for block in weights.decoder:
        out = decoder_block(y, memory, *_functions(block, weights.n_heads, causal, None))
    return out @ weights.projection


@wrong("decoder_forward", "usual", "the vectors, not projected")
def _(target_ids, memory, source_ids, weights):
    y = embed(target_ids, weights.target_table)
    y = y + sinusoidal_encoding(*y.shape[1:])
    causal, real = causal_mask(y.size(1)), padding_mask(source_ids, weights.pad_id)
    for block in weights.decoder:
        y = decoder_block(y, memory, *_functions(block, weights.n_heads, causal, real))
    return y


@wrong("decoder_forward", "unusual", "one mask of both languages' padding")
def _(target_ids, memory, source_ids, weights):
    y = embed(target_ids, weights.target_table)
    y = y + sinusoidal_encoding(*y.shape[1:])
    real = padding_mask(source_ids, weights.pad_id)
    for block in weights.decoder:
        y = decoder_block(y, memory, *_functions(block, weights.n_heads, real, real))
    return y @ weights.projection
