# A causal model of toy melodies written as plain functions. Weights live in dictionaries; one thin module ("Store")
# holds them so that optimizer, train() and eval() work as usual. Blocks have two branches that read the same stream
# (attention and feed-forward in parallel), positions are a learned bias per head and distance. Texts are padded on the
# left, so the newest note is always the last column.
import math, torch
from torch import nn
from torch.nn.functional import cross_entropy, dropout, gelu, layer_norm

PAD, BEGIN, END = 0, 1, 2
NOTES = 50            # vocabulary, special ids included
WIDTH, HEADS, HIDDEN, DEPTH = 48, 4, 112, 2
FAR = 16              # distances from here on share one bias
RATE = 0.1            # dropout
LONGEST = 48
PEAK, WARM, HOLD, TOTAL = 4e-3, 15, 90, 150
HEAT = 0.8

def draw(dice, fan_in, fan_out, gain=1.0):
    return torch.randn(fan_in, fan_out, generator=dice) * gain / math.sqrt(fan_in)

def block_weights(dice):
    quiet = 1 / math.sqrt(2 * DEPTH)
    return {
        "attend_gain": torch.ones(WIDTH), "attend_shift": torch.zeros(WIDTH),
        "feed_gain": torch.ones(WIDTH), "feed_shift": torch.zeros(WIDTH),
        "query": draw(dice, WIDTH, WIDTH), "key": draw(dice, WIDTH, WIDTH), "value": draw(dice, WIDTH, WIDTH),
        "merge": draw(dice, WIDTH, WIDTH, quiet),
        "widen": draw(dice, WIDTH, HIDDEN), "widen_shift": torch.zeros(HIDDEN),
        "narrow": draw(dice, HIDDEN, WIDTH, quiet), "narrow_shift": torch.zeros(WIDTH),
        "nearness": torch.randn(FAR, HEADS, generator=dice) * 0.5,
    }

def outer_weights(dice):
    return {
        "table": torch.randn(NOTES, WIDTH, generator=dice) * 0.5,
        "last_gain": torch.ones(WIDTH), "last_shift": torch.zeros(WIDTH),
        "readout": draw(dice, WIDTH, NOTES, 0.5), "readout_shift": torch.zeros(NOTES),
    }

def distance_bias(w, rows, columns):
    """(heads, rows, columns): what each head adds to a score for the distance back to the key."""
    distance = (rows[:, None] - columns[None, :]).clamp(0, FAR - 1)
    return w["nearness"][distance].permute(2, 0, 1)

def split(x):
    return x.view(x.shape[0], x.shape[1], HEADS, WIDTH // HEADS).transpose(1, 2)

def attend(w, h, seen, rows, memory, noisy):
    query, key, value = split(h @ w["query"]), split(h @ w["key"]), split(h @ w["value"])
    if memory is not None:
        if memory:
            key, value = torch.cat([memory["key"], key], 2), torch.cat([memory["value"], value], 2)
        memory["key"], memory["value"] = key, value
    columns = torch.arange(key.shape[2])
    score = query @ key.transpose(2, 3) / math.sqrt(WIDTH // HEADS) + distance_bias(w, rows, columns)
    weight = score.masked_fill(~seen, -1e9).softmax(-1)
    weight = dropout(weight, RATE, noisy)
    return (weight @ value).transpose(1, 2).flatten(2) @ w["merge"]

def feed(w, h):
    return gelu(h @ w["widen"] + w["widen_shift"]) @ w["narrow"] + w["narrow_shift"]

def block(w, x, seen, rows, memory, noisy):
    left = attend(w, layer_norm(x, (WIDTH,), w["attend_gain"], w["attend_shift"]), seen, rows, memory, noisy)
    right = feed(w, layer_norm(x, (WIDTH,), w["feed_gain"], w["feed_shift"]))
    return x + dropout(left, RATE, noisy) + dropout(right, RATE, noisy)

def read(store, ids, memory=None):
    """Logits of every column; `memory` keeps keys, values and the ids read so far."""
    noisy, w = store.training, store.outer
    past = ids if memory is None else torch.cat([memory["ids"], ids], 1)
    if memory is not None:
        memory["ids"] = past
    columns = torch.arange(past.shape[1])
    rows = columns[-ids.shape[1]:]
    real = past.ne(PAD)[:, None, None, :]
    seen = (columns <= rows[:, None]) & (real | (columns == rows[:, None]))   # padding reads only itself
    x = dropout(w["table"][ids], RATE, noisy)
    for i, each in enumerate(store.blocks):
        x = block(each, x, seen, rows, None if memory is None else memory["blocks"][i], noisy)
    x = layer_norm(x, (WIDTH,), w["last_gain"], w["last_shift"])
    return x @ w["readout"] + w["readout_shift"]

class Store(nn.Module):
    def __init__(self, seed):
        super().__init__()
        dice = torch.Generator().manual_seed(seed)
        self.outer = nn.ParameterDict(outer_weights(dice))
        self.blocks = nn.ModuleList([nn.ParameterDict(block_weights(dice)) for _ in range(DEPTH)])

    def forward(self, ids):
        return read(self, ids)

def surprise(ids):
    """Nats for each note that follows a real one, and which columns those are."""
    before, after = ids[:, :-1], ids[:, 1:]
    asked = before.ne(PAD) & after.ne(PAD)
    nats = cross_entropy(model(before).transpose(1, 2), after, reduction="none")
    return nats * asked, asked

def loss(ids):
    nats, asked = surprise(ids)
    return nats.sum() / asked.sum()

def schedule(step):
    """Up, a plateau, and straight down to nothing."""
    if step < WARM:
        return PEAK * (step + 1) / WARM
    return PEAK * min(1.0, max(0.0, (TOTAL - step) / (TOTAL - HOLD)))

def train_step(ids):
    model.train()
    for group in optimizer.param_groups:
        group["lr"] = schedule(done[0])
    optimizer.zero_grad()
    value = loss(ids)
    value.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    done[0] += 1
    return value.item()

@torch.no_grad()
def calmly(function, *inputs):
    mode = model.training
    model.eval()
    answer = function(*inputs)
    model.train(mode)
    return answer

def evaluate(batches):
    pairs = [calmly(surprise, ids) for ids in batches]
    return float(sum(nats.sum() for nats, _ in pairs) / sum(asked.sum() for _, asked in pairs))

def generate(ids, count):
    for _ in range(count):
        ids = torch.cat([ids, calmly(model, ids)[:, -1:].argmax(-1)], 1)
    return ids

def cached(ids):
    memory = {"ids": ids[:, :0], "blocks": [{} for _ in range(DEPTH)]}
    return torch.cat([calmly(read, model, ids[:, i:i + 1], memory) for i in range(ids.shape[1])], 1)

def sample(ids):
    chance = (calmly(model, ids)[:, -1] / HEAT).softmax(-1)
    return torch.cat([ids, torch.multinomial(chance, 1)], 1)

def melodies(seed, lengths=(4, 12, 7, 9, 5)):
    """Each melody swings between two drifting voices."""
    dice, rows = torch.Generator().manual_seed(seed), []
    for n in lengths:
        a, b, s = torch.randint(0, NOTES - 3, (3,), generator=dice).tolist()
        tune = [3 + ((a if k % 2 else b) + s * (k // 2)) % (NOTES - 3) for k in range(n)]
        rows.append([PAD] * (max(lengths) - n) + [BEGIN] + tune + [END])
    return torch.tensor(rows)

model, done = Store(seed=11), [0]
flat = [p for p in model.parameters() if p.dim() == 1]
deep = [p for p in model.parameters() if p.dim() == 2]
optimizer = torch.optim.AdamW([{"params": deep, "weight_decay": 0.05}, {"params": flat, "weight_decay": 0.0}], lr=PEAK)
batch, kind, padding_side, temperature = melodies(5), "causal", "left", HEAT
pad_id, eos_id, start_id, max_length, steps = PAD, END, BEGIN, LONGEST, TOTAL
if __name__ == "__main__":
    print([round(train_step(batch), 2) for _ in range(60)][::15], evaluate([batch]))
