"""Next-event model for monophonic MIDI lines.  One flat vocabulary: NOTE_ON / NOTE_OFF / TIME_SHIFT / VELOCITY."""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F

CONFIG = {
    "seed": 7,
    "data": {"n_pitch": 24, "n_shift": 8, "n_vel": 4, "max_len": 48, "n_lines": 36, "batch_size": 6},
    "model": {
        "dim": 32, "n_layers": 2, "norm_eps": 1e-5, "dropout": 0.1,
        "attn": {"n_heads": 4, "n_kv_heads": 2, "dropout": 0.1, "rope_theta": 10000.0},
        "mlp": {"hidden": 64}},
    "optim": {"lr": 1e-3, "betas": (0.9, 0.95), "weight_decay": 0.1, "clip": 0.5},
    "sched": {"warmup": 10, "total": 60, "floor": 0.1},
    "sampling": {"temperature": 0.8},
}
PAD, BOS, EOS, FIRST = 0, 1, 2, 3

def make_lines(cfg, gen):
    """VEL (ON SHIFT OFF)* with a random walk over pitches, 3 to 12 notes, padded on the right."""
    off, shift = FIRST + cfg["n_pitch"], FIRST + 2 * cfg["n_pitch"]
    vel, rows = shift + cfg["n_shift"], []
    draw = lambda low, high: int(torch.randint(low, high, (1,), generator=gen))
    for _ in range(cfg["n_lines"]):
        pitch, step = draw(0, cfg["n_pitch"]), draw(0, cfg["n_shift"])
        row = [BOS, vel + draw(0, cfg["n_vel"])]
        for _ in range(draw(3, 13)):
            row += [FIRST + pitch, shift + step, off + pitch]
            pitch = (pitch + draw(-2, 3)) % cfg["n_pitch"]
        rows.append(torch.tensor(row + [EOS]))
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD), vel + cfg["n_vel"]

class RMSNorm(nn.Module):
    def __init__(self, dim, eps):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))
    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))

def rope_tables(length, head_dim, theta):
    inv_freq = theta ** (-torch.arange(0, head_dim, 2).float() / head_dim)
    angles = torch.outer(torch.arange(length).float(), inv_freq)
    angles = torch.cat([angles, angles], dim=-1)
    return angles.cos(), angles.sin()

def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-b, a], dim=-1) * sin

class GroupedAttention(nn.Module):
    def __init__(self, dim, n_heads, n_kv_heads, dropout, **_):
        super().__init__()
        self.n_heads, self.n_kv, self.head_dim = n_heads, n_kv_heads, dim // n_heads
        self.dropout = dropout
        kv_dim = n_kv_heads * self.head_dim
        self.wq, self.wo = nn.Linear(dim, dim, bias=False), nn.Linear(dim, dim, bias=False)
        self.wk, self.wv = nn.Linear(dim, kv_dim, bias=False), nn.Linear(dim, kv_dim, bias=False)
    def forward(self, x, cos, sin, mask, cache=None):
        b, t, _ = x.shape
        q = self.wq(x).view(b, t, self.n_heads, self.head_dim).transpose(1, 2)
        k = self.wk(x).view(b, t, self.n_kv, self.head_dim).transpose(1, 2)
        v = self.wv(x).view(b, t, self.n_kv, self.head_dim).transpose(1, 2)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        if cache is not None:
            if "k" in cache:
                k, v = torch.cat([cache["k"], k], 2), torch.cat([cache["v"], v], 2)
            cache["k"], cache["v"] = k, v
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
        else:
            group = self.n_heads // self.n_kv
            k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
            y = F.scaled_dot_product_attention(
                q, k, v, attn_mask=mask, dropout_p=self.dropout if self.training else 0.0)
        return self.wo(y.transpose(1, 2).reshape(b, t, -1))

class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        dim, hidden = cfg["dim"], cfg["mlp"]["hidden"]
        self.attn_norm = RMSNorm(dim, cfg["norm_eps"])
        self.attn = GroupedAttention(dim, **cfg["attn"])
        self.mlp_norm = RMSNorm(dim, cfg["norm_eps"])
        self.w1, self.w3 = nn.Linear(dim, hidden, bias=False), nn.Linear(dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, dim, bias=False)
        self.drop = nn.Dropout(cfg["dropout"])
    def forward(self, x, cos, sin, mask, cache=None):
        x = x + self.drop(self.attn(self.attn_norm(x), cos, sin, mask, cache))
        h = self.mlp_norm(x)
        return x + self.drop(self.w2(F.silu(self.w1(h)) * self.w3(h)))

class EventDecoder(nn.Module):
    def __init__(self, cfg, vocab, max_len):
        super().__init__()
        self.tok = nn.Embedding(vocab, cfg["dim"])
        self.drop = nn.Dropout(cfg["dropout"])
        self.blocks = nn.ModuleList(Block(cfg) for _ in range(cfg["n_layers"]))
        self.norm = RMSNorm(cfg["dim"], cfg["norm_eps"])
        self.head = nn.Linear(cfg["dim"], vocab, bias=False)
        cos, sin = rope_tables(max_len, cfg["dim"] // cfg["attn"]["n_heads"], cfg["attn"]["rope_theta"])
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        for name, p in self.named_parameters():
            if p.dim() > 1:
                scaled = name.endswith(("wo.weight", "w2.weight"))
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * cfg["n_layers"]) if scaled else 0.02)
    def new_cache(self, ids):
        return {"seen": ids.new_zeros(ids.shape[0], 0, dtype=torch.bool), "layers": [{} for _ in self.blocks]}
    def forward(self, ids, cache=None):
        t, seen, layers = ids.shape[1], ids.ne(PAD), [None] * len(self.blocks)
        start = 0 if cache is None else cache["seen"].shape[1]
        if cache is not None:
            seen = cache["seen"] = torch.cat([cache["seen"], seen], 1)
            layers = cache["layers"]
        s = seen.shape[1]
        causal = torch.ones(t, s, dtype=torch.bool, device=ids.device).tril(s - t)
        mask = causal & seen[:, None, None, :]
        x = self.drop(self.tok(ids))
        cos, sin = self.cos[start:start + t], self.sin[start:start + t]
        for block, layer in zip(self.blocks, layers):
            x = block(x, cos, sin, mask, layer)
        return self.head(self.norm(x))

cfg = CONFIG
torch.manual_seed(cfg["seed"])
lines, vocab = make_lines(cfg["data"], torch.Generator().manual_seed(cfg["seed"]))
model = EventDecoder(cfg["model"], vocab, cfg["data"]["max_len"])
optimizer = torch.optim.AdamW([
    {"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": cfg["optim"]["weight_decay"]},
    {"params": [p for p in model.parameters() if p.dim() == 1], "weight_decay": 0.0},
], lr=cfg["optim"]["lr"], betas=cfg["optim"]["betas"])

def loss(ids):
    logits = model(ids[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), ignore_index=PAD)

def schedule(step):
    warmup, total, floor = cfg["sched"]["warmup"], cfg["sched"]["total"], cfg["sched"]["floor"]
    if step < warmup:
        return cfg["optim"]["lr"] * (step + 1) / warmup
    done = min(1.0, (step - warmup) / (total - warmup))
    return cfg["optim"]["lr"] * (floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * done)))

def train_step(ids):
    model.train()
    optimizer.zero_grad()
    value = loss(ids)
    value.backward()
    nn.utils.clip_grad_norm_(model.parameters(), cfg["optim"]["clip"])
    optimizer.step()
    return value.item()

@torch.no_grad()
def evaluate(batches):
    model.eval()
    total, count = 0.0, 0
    for ids in batches:
        n = int(ids[:, 1:].ne(PAD).sum())
        total += loss(ids).item() * n
        count += n
    model.train()
    return total / count

@torch.no_grad()
def generate(ids, count):
    model.eval()
    cache, feed = model.new_cache(ids), ids
    for _ in range(count):
        feed = model(feed, cache)[:, -1].argmax(-1, keepdim=True)
        ids = torch.cat([ids, feed], 1)
    return ids

@torch.no_grad()
def cached(ids):
    model.eval()
    cache = model.new_cache(ids)
    return torch.cat([model(ids[:, i:i + 1], cache) for i in range(ids.shape[1])], 1)

@torch.no_grad()
def sample(ids):
    model.eval()
    scores = model(ids)[:, -1] / temperature
    probs = F.softmax(scores, dim=-1)
    return torch.cat([ids, torch.multinomial(probs, 1)], 1)

def fit(train):
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = schedule(step)
        train_step(train[torch.randperm(len(train))[:cfg["data"]["batch_size"]]])
        if step % 20 == 0:
            print(step, evaluate([batch, train[:4]]))

kind, pad_id, eos_id, start_id = "causal", PAD, EOS, BOS
max_length, steps, temperature = cfg["data"]["max_len"], cfg["sched"]["total"], cfg["sampling"]["temperature"]
batch = lines[:cfg["data"]["batch_size"]]

if __name__ == "__main__":
    fit(lines[cfg["data"]["batch_size"]:])
    print(generate(batch[:2, :5], 10).tolist())
