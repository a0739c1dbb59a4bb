"""What learners might write for the exercises of lesson 14."""

import math
from collections import Counter
from copy import deepcopy

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.exercises.answers import right, wrong
from transformer_lesson.model import attention


@right("gpt_block")
def _(x, attention_1, attention_2, feed_forward):
    position = torch.arange(x.shape[1], device=x.device)
    no_later = (position[None, :] <= position[:, None])[None, None]
    first = attention_1(x, x, x, no_later)
    h = first + x
    h = attention_2(h, h, h, no_later) + h
    return feed_forward(h) + h


@right("next_token_logits")
def _(ids, embedding, blocks, projection):
    n = ids.shape[1]
    mask = torch.tensor([[key <= query for key in range(n)] for query in range(n)])

    def through(x, rest):
        return through(rest[0](x, mask.view(1, 1, n, n)), rest[1:]) if rest else x

    return projection(through(embedding(ids), list(blocks)))


@right("mask_for_batch")
def _(ids, pad_id):
    batch, n = ids.shape
    mask = torch.zeros(batch, 1, n, n, dtype=torch.bool)
    for b in range(batch):
        for query in range(n):
            for key in range(query + 1):
                mask[b, 0, query, key] = bool(ids[b, key] != pad_id)
    return mask


@wrong("weights_of_real_keys", "usual", "clears NaN away afterwards: the gradient stays NaN")
def _(scores, mask):
    hidden = torch.zeros(mask.shape).masked_fill(~mask, -math.inf)
    return (scores + hidden).softmax(dim=-1).nan_to_num(0.0)


@wrong(
    "weights_of_real_keys", "unusual", "where() hides NaN in front, the gradient behind stays NaN"
)
def _(scores, mask):
    weights = (scores + torch.where(mask, 0.0, -torch.inf)).softmax(dim=-1)
    return torch.where(mask.any(dim=-1, keepdim=True), weights, torch.zeros_like(weights))


@right("weights_of_real_keys")
def _(scores, mask):
    # masked_fill passes no gradient to what it filled, so no NaN reaches the scores
    weights = scores.masked_fill(~mask, float("-inf")).softmax(dim=-1)
    return torch.nan_to_num(weights, nan=0.0)


@right("weights_of_real_keys")
def _(scores, mask):
    seen = torch.where(mask, scores, torch.finfo(scores.dtype).min)
    e = (seen - seen.amax(dim=-1, keepdim=True).detach()).exp() * mask
    total = e.sum(dim=-1, keepdim=True)
    return e / torch.where(total == 0, torch.ones_like(total), total)


@right("weights_of_real_keys")
def _(scores, mask):
    mask = mask.expand_as(scores)
    some = mask.any(dim=-1, keepdim=True)
    opened = mask | ~some  # empty rows see everything for a moment
    return scores.masked_fill(~opened, -math.inf).softmax(dim=-1) * some


@right("half_precision_weights")
def _(scores, mask):
    exact = scores.double().masked_fill(~mask, -1e300)
    weights = exact.softmax(dim=-1) * mask
    return weights.to(scores.dtype)


@wrong("cut_into_heads", "unusual", "the size of a head, 32, is built in")
def _(x, n_heads):
    return torch.stack([x[:, 32 * i : 32 * (i + 1)] for i in range(n_heads)])


@right("cut_into_heads")
def _(x, n_heads):
    return torch.stack(x.chunk(n_heads, dim=1))


@right("all_heads")
def _(x, W_Q, W_K, W_V):
    texts = []
    for text in x:  # a loop over the texts, whose number is not that of the heads
        Q, K, V = text @ W_Q, text @ W_K, text @ W_V  # (head, n, d_head)
        texts.append(F.scaled_dot_product_attention(Q[None], K[None], V[None])[0])
    return torch.stack(texts)


@right("all_heads")
def _(x, W_Q, W_K, W_V):
    x = x[:, None]  # (batch, 1, n, d_model)
    return attention.scaled_dot_product_attention(x @ W_Q, x @ W_K, x @ W_V)[0]


@right("all_heads")
def _(x, W_Q, W_K, W_V):
    W = torch.stack([W_Q, W_K, W_V])
    Q, K, V = torch.einsum("bnd,shde->sbhne", x, W)
    scores = torch.einsum("bhqe,bhke->bhqk", Q, K) / math.sqrt(Q.size(-1))
    return torch.einsum("bhqk,bhke->bhqe", scores.softmax(dim=-1), V)


@right("all_heads")
def _(x, W_Q, W_K, W_V):
    h, d_model, d_head = W_Q.shape

    def project(W):
        wide = W.permute(1, 0, 2).reshape(d_model, h * d_head)  # one matrix for all heads
        return (x @ wide).view(*x.shape[:2], h, d_head).transpose(1, 2)

    return F.scaled_dot_product_attention(project(W_Q), project(W_K), project(W_V))


@right("is_linear")  # a tensor of one bool: every check takes such a tensor for a number
def _(attend, x, y):
    z = x + y
    difference = attend(z, z, z) - attend(x, x, x) - attend(y, y, y)
    return difference.abs().max() < 1e-4


@wrong(
    "is_linear",
    "pair",
    "tests a factor only, f(3x) = 3 f(x), no sum",
    "asks for equality to the last bit",
)
def _(attend, x, y):
    z = 3 * x
    return bool((attend(z, z, z) == 3 * attend(x, x, x)).all())


@right("projection_parameters")
def _(d_model, n_heads):
    d_k = d_model // n_heads
    W_Q = W_K = W_V = d_model * d_k
    return n_heads * (W_Q + W_K + W_V)


@right("encoding_by_formula")
def _(n_positions, d_model):
    two_i = torch.arange(0, d_model, 2, dtype=torch.float64)
    angle = torch.outer(torch.arange(n_positions).double(), 10000 ** (-two_i / d_model))
    return torch.stack([angle.sin(), angle.cos()], dim=-1).reshape(n_positions, d_model).float()


@wrong("encoding_of_any_width", "usual", "refuses odd widths where a table was asked for")
def _(n_positions, d_model):
    if d_model % 2:
        raise ValueError(f"d_model is {d_model}, but it must be even.")
    two_i = torch.arange(0, d_model, 2)
    angle = torch.arange(n_positions)[:, None] / 10000 ** (two_i / d_model)
    encoding = torch.zeros(n_positions, d_model)
    encoding[:, 0::2] = angle.sin()
    encoding[:, 1::2] = angle.cos()
    return encoding


@right("encoding_of_any_width")
def _(n_positions, d_model):
    return torch.tensor(
        [
            [
                (math.cos if column % 2 else math.sin)(pos / 10000 ** ((column // 2) * 2 / d_model))
                for column in range(d_model)
            ]
            for pos in range(n_positions)
        ]
    )


@wrong("add_positions", "unusual", "changes its argument")
def _(x, table):
    x += table[: x.size(1)]
    return x


@right("add_positions")
def _(x, table):
    out = torch.empty_like(x)
    for pos in range(x.size(1)):
        out[:, pos] = x[:, pos] + table[pos]
    return out


@right("add_positions")
def _(x, table):
    positions = torch.arange(x.size(1)).expand(x.size(0), -1)  # (batch, n)
    return x + F.embedding(positions, table)


@right("frequencies")
def _(d_model):
    speeds = [math.exp(-2 * i * math.log(10000.0) / d_model) for i in range(d_model // 2)]
    return torch.tensor(speeds)


@wrong("add_and_norm", "unusual", "a dropout of its own, which evaluation does not switch off")
def _(x, sublayer, dropout, norm):
    branch = F.dropout(sublayer(x), 0.1)
    return norm(x + branch)


@right("add_and_norm")
def _(x, sublayer, dropout, norm):
    return norm(x + dropout(sublayer(x)))


@wrong("close_branch", "unusual", "a copy of the norm: the block's own weights get no gradient")
def _(x, branch, block):
    norm = deepcopy(block.norm)
    return norm(x + block.dropout(branch))


@wrong("close_branch", "unusual", "the norm's weights are kept, its epsilon is not")
def _(x, branch, block):
    norm = block.norm
    total = x + block.dropout(branch)
    return F.layer_norm(total, norm.normalized_shape, norm.weight, norm.bias)


@right("close_branch")
def _(x, branch, block):
    total = torch.stack([x, block.dropout(branch)]).sum(dim=0)
    return block.norm(total)


@right("last_logits")
def _(x, W, b):
    everywhere = torch.einsum("bnd,dv->bnv", x, W) + b
    return everywhere.select(dim=1, index=-1)


@right("smoothed_targets")
def _(labels, n_classes, smoothing):
    one_hot = F.one_hot(labels, n_classes).float()
    uniform = torch.ones_like(one_hot) / n_classes
    return torch.lerp(one_hot, uniform, smoothing)


@right("smoothed_targets")
def _(labels, n_classes, smoothing):
    share = smoothing / n_classes
    rows = []
    for label in labels.tolist():
        row = [share] * n_classes
        row[label] = 1 - share * (n_classes - 1)
        rows.append(row)
    return torch.tensor(rows).view(len(rows), n_classes)


@right("next_token_loss")
def _(logits, labels):
    chosen = logits.gather(-1, labels[..., None])[..., 0]  # (batch, n)
    return (logits.logsumexp(dim=-1) - chosen).mean()


@wrong("continue_text", "unusual", "writes on to the prompt's own list")
def _(next_logits, prompt, eos_id, max_new_tokens):
    ids = prompt
    for _ in range(max_new_tokens):
        ids.append(int(next_logits(ids).argmax()))
        if ids[-1] == eos_id:
            break
    return ids


@right("continue_text")
def _(next_logits, prompt, eos_id, max_new_tokens):
    written = []
    while len(written) < max_new_tokens and eos_id not in written:
        logits = next_logits([*prompt, *written])
        written.append(logits.max(dim=-1).indices.item())
    return [*prompt, *written]


@wrong("look_up", "unusual", "adds unknown words to the vocabulary")
def _(words, vocabulary, unk_id):
    return [vocabulary.setdefault(word, unk_id) for word in words]


@wrong(
    "look_up",
    "pair",
    "ends at the first unknown word",
    "leaves out the word with id 0",
)
def _(words, vocabulary, unk_id):
    ids = []
    for word in words:
        if word not in vocabulary:
            ids.append(unk_id)
            break
        if vocabulary[word]:
            ids.append(vocabulary[word])
    return ids


@right("look_up")
def _(words, vocabulary, unk_id):
    ids = []
    for word in words:
        try:
            ids.append(vocabulary[word])
        except KeyError:
            ids.append(unk_id)
    return ids


@right("look_up")
def _(words, vocabulary, unk_id):
    # every vocabulary has the token <unk>
    return [vocabulary[word if word in vocabulary else "<unk>"] for word in words]


@right("fill_up")
def _(next_logits, start, length):
    batch, n = start.shape
    ids = start.new_zeros(batch, length)
    ids[:, :n] = start
    for t in range(n, length):
        ids[:, t] = next_logits(ids[:, :t]).topk(1).indices.squeeze(1)
    return ids


@right("fill_up")
def _(next_logits, start, length):
    columns = list(start.unbind(dim=1))
    for _ in range(length - start.size(1)):
        columns.append(next_logits(torch.stack(columns, dim=1)).argmax(-1))
    return torch.stack(columns, dim=1)


@wrong("width_message", "usual", "the words have changed")
def _(x, table):
    return f"Expected vectors with {table.shape[1]} dimensions, but got {x.shape[-1]}."


@wrong("width_message", "unusual", "prints the method size, because its brackets are missing")
def _(x, table):
    return f"Expected vectors of {table.size} numbers, but got {x.size(-1)}."


@right("width_message")
def _(x, table):
    return "Expected vectors of {} numbers, but got {}.".format(*(t.size(-1) for t in (table, x)))


@right("run_listing")
def _(model, ids):
    parts = [model.embedding, *model.layers, model.out]
    result = ids
    while parts:
        result = parts.pop(0)(result)
    return result


@wrong("gpt2_d_model", "usual", "right for medium only")
def _(n_heads):
    if n_heads == 16:
        return 1024
    d_head = 1280 // 16
    return n_heads * d_head


@wrong(
    "gpt2_d_model",
    "pair",
    "divides by the heads where it must multiply",
    "takes medium's width for 1280",
)
def _(n_heads):
    return 1280 * 16 // n_heads


@right("gpt2_d_model")
def _(n_heads):
    d_head = 768 // 12  # GPT-2 small has 12 heads
    return n_heads * d_head


@right("next_probe")
def _(suspects, outcomes, costs):
    def worth(probe):
        groups = Counter(outcomes[probe][suspect] for suspect in suspects).values()
        pairs = (len(suspects) ** 2 - sum(size**2 for size in groups)) / 2
        return pairs / costs[probe]

    best = max(outcomes, key=lambda probe: (worth(probe), -costs[probe]))
    return best if worth(best) > 0 else None


@right("next_probe")
def _(suspects, outcomes, costs):
    scores = []
    for position, probe in enumerate(outcomes):
        count = 0
        for i in range(len(suspects)):
            for j in range(i + 1, len(suspects)):
                if outcomes[probe][suspects[i]] != outcomes[probe][suspects[j]]:
                    count += 1
        if count:
            scores.append((-count / costs[probe], costs[probe], position, probe))
    return sorted(scores)[0][-1] if scores else None


@wrong("next_probe", "unusual", "splits into halves as evenly as possible, whatever the price")
def _(suspects, outcomes, costs):
    def unevenness(probe):
        groups = Counter(outcomes[probe][one] for one in suspects)
        return max(groups.values()) / len(suspects)

    return min(outcomes, key=unevenness)


@wrong("next_probe", "unusual", "wants entropy for each minute instead of pairs")
def _(suspects, outcomes, costs):
    def entropy(probe):
        shares = [n / len(suspects) for n in Counter(outcomes[probe][s] for s in suspects).values()]
        return -sum(share * math.log(share) for share in shares)

    best = max(outcomes, key=lambda probe: (round(entropy(probe) / costs[probe], 9), -costs[probe]))
    return best if entropy(best) > 0 else None


@wrong("next_probe", "unusual", "takes ruled out suspects off the list for good")
def _(suspects, outcomes, costs):
    best, most = None, 0
    while len(suspects) > 1:
        one = suspects.pop()
        for probe in outcomes:
            told = sum(outcomes[probe][one] != outcomes[probe][other] for other in suspects)
            if told / costs[probe] > most:
                best, most = probe, told / costs[probe]
    return best


@right("shifted_loss")
def _(logits, ids, pad_id):
    total, count = torch.zeros((), dtype=logits.dtype), 0
    for text, tokens in zip(logits, ids, strict=True):
        for i in range(len(tokens) - 1):
            if tokens[i + 1] != pad_id:
                total = total + text[i].logsumexp(0) - text[i, tokens[i + 1]]
                count += 1
    return total / count


@right("shifted_loss")
def _(logits, ids, pad_id):
    labels = ids[:, 1:]
    losses = F.cross_entropy(logits[:, :-1].permute(0, 2, 1), labels, reduction="none")
    real = (labels != pad_id).to(losses.dtype)
    return (losses * real).sum() / real.sum()


@right("shifted_loss")
def _(logits, ids, pad_id):
    labels = torch.cat([ids[:, 1:], torch.full_like(ids[:, :1], pad_id)], dim=1)
    labels = labels.masked_fill(labels == pad_id, -100)
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))


@wrong("shifted_loss", "unusual", "sets labels to -100 in the argument itself")
def _(logits, ids, pad_id):
    ids[ids == pad_id] = -100
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


@wrong("shifted_loss", "unusual", "reshapes the axes for the loss instead of moving them")
def _(logits, ids, pad_id):
    logits, labels = logits[:, :-1], ids[:, 1:]
    batch, n, vocab_size = logits.shape
    return F.cross_entropy(logits.reshape(batch, vocab_size, n), labels, ignore_index=pad_id)


@wrong("shifted_loss", "unusual", "smooths the labels by a tenth")
def _(logits, ids, pad_id):
    return F.cross_entropy(
        logits[:, :-1].flatten(0, 1),
        ids[:, 1:].flatten(),
        ignore_index=pad_id,
        label_smoothing=0.1,
    )


@right("decay_groups")
def _(parameters):
    decayed, others = [], []
    for name in parameters:
        if not parameters[name].requires_grad:
            continue
        (decayed if len(parameters[name].shape) > 1 else others).append(name)
    return decayed, others


@right("decay_groups")
def _(parameters):
    def of(wanted):
        return tuple(
            n for n, p in parameters.items() if p.requires_grad and (p.dim() > 1) == wanted
        )

    return [of(True), of(False)]


@wrong("decay_groups", "unusual", "sorts the names")
def _(parameters):
    decayed = sorted(n for n, p in parameters.items() if p.requires_grad and p.ndim >= 2)
    return decayed, sorted(n for n, p in parameters.items() if p.requires_grad and p.ndim < 2)


@wrong("decay_groups", "unusual", "returns the tensors instead of their names")
def _(parameters):
    trained = [p for p in parameters.values() if p.requires_grad]
    return [p for p in trained if p.ndim >= 2], [p for p in trained if p.ndim < 2]


@wrong("decay_groups", "unusual", "looks for an axis of size 1 instead of one axis")
def _(parameters):
    trained = {n: p for n, p in parameters.items() if p.requires_grad}
    decayed = [n for n, p in trained.items() if 1 not in p.shape]
    return decayed, [n for n in trained if n not in decayed]


@right("rate_at")
def _(step, steps_per_epoch, peak, warmup_epochs, epochs):
    epoch, end = step / steps_per_epoch, epochs
    if epoch < warmup_epochs:
        return peak * (epoch + 1 / steps_per_epoch) / warmup_epochs
    if epoch >= end:
        return peak / 10
    part = (epoch - warmup_epochs) / (end - warmup_epochs)
    return peak / 10 + (peak - peak / 10) * math.cos(math.pi * part / 2) ** 2


@right("rate_at")
def _(step, steps_per_epoch, peak, warmup_epochs, epochs):
    warmup = warmup_epochs * steps_per_epoch
    grid = np.arange(epochs * steps_per_epoch + 1)
    climb = peak * (grid + 1) / warmup
    part = (grid - warmup) / (grid[-1] - warmup)
    fall = 0.1 * peak + 0.45 * peak * (1 + np.cos(np.pi * part))
    return np.where(grid < warmup, climb, fall)[min(step, grid[-1])].item()


@wrong("rate_at", "unusual", "rounds the part of the way to whole epochs")
def _(step, steps_per_epoch, peak, warmup_epochs, epochs):
    warmup = warmup_epochs * steps_per_epoch
    if step < warmup:
        return peak * (step + 1) / warmup
    done = (step - warmup) // steps_per_epoch
    part = min(1, done / (epochs - warmup_epochs))
    return peak * (0.1 + 0.45 * (1 + math.cos(math.pi * part)))


@wrong("rate_at", "unusual", "takes the smaller of climb and cosine over the whole training")
def _(step, steps_per_epoch, peak, warmup_epochs, epochs):
    warmup, total = warmup_epochs * steps_per_epoch, epochs * steps_per_epoch
    fall = 0.1 + 0.45 * (1 + math.cos(math.pi * min(1, step / total)))
    return peak * min((step + 1) / warmup, fall)


@wrong("rate_at", "unusual", "gives degrees to the cosine")
def _(step, steps_per_epoch, peak, warmup_epochs, epochs):
    warmup, total = warmup_epochs * steps_per_epoch, epochs * steps_per_epoch
    if step < warmup:
        return peak * (step + 1) / warmup
    part = min(1, (step - warmup) / (total - warmup))
    return peak * (0.1 + 0.45 * (1 + math.cos(180 * part)))


@right("evaluation_loss")
def _(model, batches, loss_function, pad_id):
    mode = model.training
    model.train(False)
    with torch.inference_mode():
        sums = [(loss_function(model(x), y), (y != pad_id).sum()) for x, y in batches]
    if mode:
        model.train()
    weights = torch.stack([count for _, count in sums]).double()
    losses = torch.stack([loss for loss, _ in sums]).double()
    return (losses * weights).sum().item() / weights.sum().item()


@right("evaluation_loss")
@torch.no_grad()
def _(model, batches, loss_function, pad_id):
    before = model.training
    model.eval()
    mean, seen = 0.0, 0
    for inputs, labels in batches:
        count = labels.ne(pad_id).sum().item()
        seen += count
        mean += (loss_function(model(inputs), labels).item() - mean) * count / seen
    model.train(before)
    return mean


@wrong("evaluation_loss", "unusual", "switches the dropout off in the first batch only")
def _(model, batches, loss_function, pad_id):
    mode, total, count = model.training, 0.0, 0
    model.eval()
    with torch.no_grad():
        for inputs, labels in batches:
            real = (labels != pad_id).sum().item()
            total += loss_function(model(inputs), labels).item() * real
            count += real
            model.train()
    model.train(mode)
    return total / count


@wrong("evaluation_loss", "unusual", "averages logits through a moving mean")
def _(model, batches, loss_function, pad_id):
    mode = model.training
    model.eval()
    mean = None
    with torch.no_grad():
        for inputs, labels in batches:
            loss = loss_function(model(inputs), labels).item()
            mean = loss if mean is None else 0.9 * mean + 0.1 * loss
    model.train(mode)
    return mean


@wrong("evaluation_loss", "unusual", "feeds the labels to the model")
def _(model, batches, loss_function, pad_id):
    mode, total, count = model.training, 0.0, 0
    model.eval()
    with torch.no_grad():
        for _, labels in batches:
            real = (labels != pad_id).sum().item()
            total += loss_function(model(labels), labels).item() * real
            count += real
    model.train(mode)
    return total / count


@right("cached_step")
def _(x, n_cached, table):
    n = x.shape[1]
    positions = torch.arange(n_cached, n_cached + n)
    keys = torch.arange(n_cached + n)
    return x + F.embedding(positions, table), keys <= positions[:, None]


@right("cached_step")
def _(x, n_cached, table):
    out = x.clone()
    n = x.size(1)
    mask = torch.zeros(n, n_cached + n, dtype=torch.bool)
    for i in range(n):
        out[:, i] += table[n_cached + i]
        mask[i, : n_cached + i + 1] = True
    return out, mask


@right("cached_step")
def _(x, n_cached, table):
    n = x.size(1)
    old = torch.ones(n, n_cached).bool()
    new = nn.Transformer.generate_square_subsequent_mask(n) == 0
    return x + table.narrow(0, n_cached, n)[None], torch.cat([old, new], dim=-1)


@wrong("cached_step", "unusual", "adds the position of the sentence in the batch")
def _(x, n_cached, table):
    n = x.size(1)
    mask = torch.ones(n, n_cached + n, dtype=torch.bool).tril(n_cached)
    return x + table[n_cached : n_cached + x.size(0), None], mask


@wrong("cached_step", "unusual", "puts the new keys before the cached ones")
def _(x, n_cached, table):
    n = x.size(1)
    new, old = torch.ones(n, n).tril().bool(), torch.ones(n, n_cached).bool()
    return x + table[n_cached : n_cached + n], torch.cat([new, old], dim=1)


@wrong("cached_step", "unusual", "writes the positions backward through the table")
def _(x, n_cached, table):
    n = x.size(1)
    mask = torch.ones(n, n_cached + n, dtype=torch.bool).tril(n_cached)
    return x + table.flip(0)[n_cached : n_cached + n], mask
